//! The README and the page of metrics say what the code says.

mod book;
mod links;
mod results;

use std::fmt::Write as _;

use throng::measure::probes::PROBES;
use throng::protocol::PROTOCOLS;
use throng::report::metrics::METRICS;
use throng::serve::models::MODELS;

/// Replaces what stands between the marks of a generated part.
fn renew(text: &str, name: &str, table: &str) -> String {
    let begin = text.find(&format!("<!-- {name}:"));
    let begin = begin.expect("the page has the begin mark");
    let begin = begin + text[begin..].find('\n').expect("the mark's line ends") + 1;
    let end = text.find(&format!("<!-- end of {name} -->"));
    let end = end.expect("the page has the end mark");
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

fn metrics() -> String {
    let mut table = String::from("| metric | what it is | terms |\n|---|---|---|\n");
    for metric in METRICS {
        writeln!(
            table,
            "| `{}` | {} | {} |",
            metric.name,
            metric.help,
            metric.terms()
        )
        .expect("writing to a string does not fail");
    }
    table
}

/// Has the parts of a page renewed, and demands that they were current.
fn demand_current(page: &str, parts: &[(&str, String)]) {
    let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the page can be read");
    let mut current = text.clone();
    for (name, table) in parts {
        current = renew(&current, name, table);
    }
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(path, &current).expect("the page can be written");
    }
    assert_eq!(
        text, current,
        "run UPDATE_README=1 cargo test --test readme, and read the change"
    );
}

#[test]
fn the_tables_are_current() {
    let of_readme = [
        ("models", models()),
        ("protocols", protocols()),
        ("probes", probes()),
        ("results", results::figures()),
        ("claims", results::claims()),
    ];
    demand_current("README.md", &of_readme);
    demand_current("docs/metrics.md", &[("metrics", metrics())]);
}
