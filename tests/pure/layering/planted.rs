//! Planted breaches of the rules, and code that breaks none.

use std::collections::BTreeSet;

use super::{MOST_LINES, Source, breaches, cycles};

#[test]
fn planted_breaches_are_found() {
    for (home, path, code) in [
        (
            "crates/throng-report",
            "render/png.rs",
            "std::process::Command::new(\"dot\")",
        ),
        (
            "crates/throng-serve",
            "listen.rs",
            "eprintln!(\"out of descriptors\");",
        ),
        (
            "crates/throng-measure",
            "run.rs",
            "anstream::println!(\"trial\");",
        ),
        (
            "crates/throng-load",
            "lib.rs",
            "let value = unsafe { *pointer };",
        ),
        (
            "crates/throng-sys",
            "lib.rs",
            "//! ```text\n//! a -> b\n//! ```\n\n/// ```\n/// wait();\n/// ```\nfn wait() {}",
        ),
        (
            "crates/throng-serve",
            "models/mod.rs",
            "include_str!(\"../../../../docs/models/epoll.md\")",
        ),
        (
            "crates/throng-serve",
            "lib.rs",
            "include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../docs/models/epoll.md\"))",
        ),
        (
            "crates/throng-serve",
            "listen.rs",
            &"\n".repeat(MOST_LINES + 1),
        ),
    ] {
        assert_eq!(
            breaches(&Source::new(home, path, code)).len(),
            1,
            "{path}: {code}"
        );
    }
}

#[test]
fn planted_cycles_are_found() {
    let source = |path, code| Source::new("crates/x", path, code);
    let found = cycles(&[
        source("a.rs", "use crate::b::B;"),
        source("b/mod.rs", "use super::c;"),
        source("c.rs", "use super::{\n    a::{self, A},\n    d,\n};"),
        source("d.rs", "fn f() {}"),
    ]);
    assert_eq!(found, BTreeSet::from(["crates/x: : a b c".to_owned()]));
}

#[test]
fn allowed_code_is_no_breach() {
    for (home, path, code) in [
        (
            "crates/throng-protocol",
            "http.rs",
            "/// As `crate::load::now` would.\n// unsafe, println!\nfn f() {}",
        ),
        (
            "crates/throng-protocol",
            "http.rs",
            "const TEXT: &str = \"use crate::load; \\\" unsafe println!\";",
        ),
        (".", "cli/output.rs", "println!(\"{text}\");"),
        ("crates/throng-sys", "poll.rs", "unsafe { poll() }"),
        (
            "crates/throng-serve",
            "listen.rs",
            "let quote = '\"'; let other = '\"';",
        ),
    ] {
        assert_eq!(
            breaches(&Source::new(home, path, code)),
            [""; 0],
            "{path}: {code}"
        );
    }
    let source = |path, code| Source::new("crates/x", path, code);
    let found = cycles(&[
        source("lib.rs", "use a::A;"),
        source("a.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests {\n}"),
        source(
            "b.rs",
            "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
        ),
    ]);
    assert_eq!(found, BTreeSet::new());
}
