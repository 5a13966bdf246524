//! The README and the page of metrics agree with the code.

mod book;
mod findings;
mod links;
mod reference;
mod reports;
mod results;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use throng::learn::generated::{Part, parts, renewed};
use throng::measure::probes::PROBES;
use throng::protocol::PROTOCOLS;
use throng::record::FINDINGS;
use throng::record::metrics::syscalls::CALLS;
use throng::record::metrics::{METRICS, Subject, named};
use throng::registry::{self, Entry as _};
use throng::report::exporters::EXPORTERS;
use throng::serve::models::MODELS;

/// The summary of the record in a directory, as `throng report --json` prints it.
fn summary(directory: &Path) -> serde_json::Value {
    let json = registry::find("exporter", EXPORTERS, "json").expect("there is one");
    let text =
        throng::report::exported(directory, json).unwrap_or_else(|error| panic!("{error:#}"));
    serde_json::from_slice(&text).expect("a summary is JSON")
}

fn protocols() -> String {
    let mut table = String::from("| protocol | messages |\n|---|---|\n");
    for protocol in PROTOCOLS {
        let info = protocol.info();
        writeln!(table, "| `{}` | {} |", info.name, info.summary)
            .expect("writing to a string does not fail");
    }
    table
}

/// The models in brief, for readers new to them.
fn models_in_short() -> String {
    let mut table = String::from("| model | how it works |\n|---|---|\n");
    for model in MODELS {
        let info = model.info;
        writeln!(
            table,
            "| [`{0}`](docs/models/{0}.md) | {1} |",
            info.name, info.summary
        )
        .expect("writing to a string does not fail");
    }
    table
}

fn models() -> String {
    let mut table = String::from(
        "| model | how it works | system calls per request | processes and threads | weak when |\n\
         |---|---|---|---|---|\n",
    );
    for model in MODELS {
        let (info, card) = (model.info, model.card);
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
        let info = probe.info;
        writeln!(table, "| `{}` | {} |", info.name, info.summary)
            .expect("writing to a string does not fail");
    }
    table
}

/// A table of the clients' results, and one for each probe. Both sides' metrics share a row. System calls by name
/// share one list.
fn metrics() -> String {
    let mut text = String::new();
    let probes = PROBES.iter().map(|probe| Some(probe.info.name));
    for probe in [None].into_iter().chain(probes) {
        let heading =
            probe.map_or_else(|| "Clients".to_owned(), |probe| format!("Probe `{probe}`"));
        let columns = "| metric | label | what it is | terms |\n|---|---|---|---|";
        writeln!(text, "\n## {heading}\n\n{columns}").expect("writing to a string does not fail");
        let own = METRICS.iter().filter(|metric| metric.probe == probe);
        for metric in own.filter(|metric| metric.subject != Subject::LoadGenerator) {
            if metric.call().is_some_and(|call| call != "other") {
                continue;
            }
            let of_clients = metric.name.replacen("server_", "client_", 1);
            let mut names = format!("`{}`", metric.name);
            if named(&of_clients).is_some_and(|other| other.subject == Subject::LoadGenerator) {
                write!(names, ", `{of_clients}`").expect("writing to a string does not fail");
            }
            for alias in metric.aliases {
                write!(names, ", or `{alias}`").expect("writing to a string does not fail");
            }
            let (label, help, terms) = (metric.label, metric.help, metric.terms());
            writeln!(text, "| {names} | {label} | {help} | {terms} |")
                .expect("writing to a string does not fail");
        }
    }
    let calls: Vec<&str> = CALLS.iter().map(|(call, _)| *call).collect();
    let lines: Vec<String> = calls.chunks(8).map(|line| line.join(" ")).collect();
    writeln!(
        text,
        "\nEach system call by name has `server_syscalls_NAME`, `client_syscalls_NAME` and the same with \
         `_per_request`. They are absent if no process made the call:\n\n```text\n{}\n```",
        lines.join("\n")
    )
    .expect("writing to a string does not fail");
    text
}

fn findings_reference() -> String {
    let mut text = String::from("| finding | severity | meaning | remedy |\n|---|---|---|---|\n");
    for kind in FINDINGS {
        let (name, severity) = (kind.name, kind.severity.text());
        writeln!(
            text,
            "| `{name}` | {severity} | {} | {} |",
            kind.meaning, kind.remedy
        )
        .expect("writing to a string does not fail");
    }
    text
}

/// Asserts that the generated parts of a page are current, and that they are exactly the named ones. With
/// `UPDATE_README` set, updates them instead.
fn demand_current(page: &str, names: &[&str], mut text: impl FnMut(Part<'_>) -> String) {
    let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
    let old = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let found: BTreeSet<&str> = parts(&old).iter().map(|part| part.name).collect();
    assert_eq!(found, names.iter().copied().collect(), "{page}");
    let current = renewed(&old, &mut text);
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(path, &current).expect("the page can be written");
        return;
    }
    assert!(
        old == current,
        "{page}: run UPDATE_README=1 cargo test --test pure readme, and read the change"
    );
}

#[test]
fn every_model_has_a_look_of_its_own_in_all_pictures() {
    let alone = MODELS.iter().map(|model| {
        let name = model.info.name.to_owned();
        throng::report::palette::place(&name, std::slice::from_ref(&name))
    });
    let places: std::collections::BTreeSet<usize> = alone.collect();
    assert_eq!(places.len(), MODELS.len(), "add it to MODELS of palette.rs");
}

#[test]
fn the_tables_are_current() {
    demand_current("README.md", &["models"], |_| models_in_short());
    let names = ["models", "protocols", "probes"];
    demand_current("docs/reference.md", &names, |part| match part.name {
        "models" => models(),
        "protocols" => protocols(),
        _ => probes(),
    });
    demand_current("docs/findings.md", &["reports", "own"], |part| {
        findings::in_short(part.name == "reports")
    });
    demand_current(
        "docs/findings-details.md",
        &["claims", "studies"],
        |part| match part.name {
            "claims" => findings::claims(),
            _ => findings::studies(),
        },
    );
    demand_current("docs/metrics.md", &["metrics"], |_| metrics());
    demand_current("docs/findings-reference.md", &["findings"], |_| {
        findings_reference()
    });
}
