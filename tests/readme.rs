//! The README says what the code says.

use std::fmt::Write as _;

use throng::measure::probes::PROBES;
use throng::protocol::PROTOCOLS;
use throng::serve::models::MODELS;

/// Replaces what stands between the marks of a generated part.
fn renew(text: &str, name: &str, table: &str) -> String {
    let begin = text.find(&format!("<!-- {name}:"));
    let begin = begin.expect("the README has the begin mark");
    let begin = begin + text[begin..].find('\n').expect("the mark's line ends") + 1;
    let end = text.find(&format!("<!-- end of {name} -->"));
    let end = end.expect("the README has the end mark");
    format!("{}{table}{}", &text[..begin], &text[end..])
}

fn protocols() -> String {
    let mut table = String::from("| protocol | what is said |\n|---|---|\n");
    for protocol in PROTOCOLS {
        let info = protocol.info();
        writeln!(table, "| `{}` | {} |", info.name, info.summary)
            .expect("writing to a string does not fail");
    }
    table
}

fn models() -> String {
    let mut table = String::from(
        "| model | how it works | system calls a request | processes and threads | breaks when |\n\
         |---|---|---|---|---|\n",
    );
    for model in MODELS {
        let (info, card) = (model.info(), model.card());
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} |",
            info.name, info.summary, card.system_calls, card.processes, card.breaks_when
        )
        .expect("writing to a string does not fail");
    }
    table
}

fn probes() -> String {
    let mut table = String::from("| probe | what it measures |\n|---|---|\n");
    for probe in PROBES {
        let info = probe.info();
        writeln!(table, "| `{}` | {} |", info.name, info.summary)
            .expect("writing to a string does not fail");
    }
    table
}

#[test]
fn the_tables_are_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let current = renew(&text, "models", &models());
    let current = renew(&current, "protocols", &protocols());
    let current = renew(&current, "probes", &probes());
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    assert_eq!(
        text, current,
        "run UPDATE_README=1 cargo test --test readme, and read the change"
    );
}
