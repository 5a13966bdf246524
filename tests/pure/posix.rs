//! Models that need only POSIX are fully included in builds for other systems.
//!
//! `.ci/posix` compiles them for other systems, which shows that nothing in them is Linux-only; this test ensures that
//! they, and what they use to serve, are not left out there.

use std::fs;

/// Models that need no more than POSIX.
const POSIX: [&str; 9] = [
    "iterative",
    "fork",
    "prefork",
    "thread",
    "thread_pool",
    "polling",
    "select",
    "poll",
    "aio",
];

fn read(path: &str) -> String {
    fs::read_to_string(format!(
        "{}/crates/throng-serve/src/{path}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("it is there and UTF-8")
}

/// The names in lines that `cfg` leaves out on other systems, as in `mod epoll;` or `&epoll::Epoll,`.
fn left_out(table: &str) -> Vec<&str> {
    let lines = table.lines().zip(table.lines().skip(1));
    lines
        .filter(|(above, _)| above.trim_start().starts_with("#[cfg("))
        .filter_map(|(_, line)| {
            line.trim()
                .trim_start_matches(['&'])
                .trim_start_matches("mod ")
                .split([':', ';'])
                .next()
        })
        .collect()
}

#[test]
fn no_posix_model_is_left_out_elsewhere() {
    let table = read("models/mod.rs");
    let out = left_out(&table);
    assert!(out.contains(&"epoll"), "the search finds what is left out");
    for model in POSIX {
        assert!(table.contains(&format!("&{model}::")), "{model} is listed");
        assert!(!out.contains(&model), "{model} is left out elsewhere");
    }
}

#[test]
fn no_part_of_a_posix_model_is_left_out_elsewhere() {
    for model in POSIX.into_iter().chain(["aio/client"]) {
        let code = read(&format!("models/{model}.rs"));
        assert!(
            !code.contains("cfg(") && !code.contains("cfg_attr("),
            "{model}"
        );
    }
}

#[test]
fn planted_omissions_are_found() {
    let cfg = "#[cfg(target_os = \"linux\")]";
    assert_eq!(left_out(&format!("mod a;\n{cfg}\nmod b;\n")), ["b"]);
    assert_eq!(
        left_out(&format!("    &a::A,\n    {cfg}\n    &b::B,\n")),
        ["b"]
    );
}
