//! Texts of reports, metrics and studies follow the same rules as pages.

use std::fs;
use std::path::{Path, PathBuf};

use throng::record::metrics::METRICS;

use super::{BANNED, words};

/// Further phrases that reports must not contain.
const BANNED_IN_REPORTS: [&str; 11] = [
    " at hand",
    " beside",
    " cannot be told",
    " comes to ",
    " costs least",
    " gets in ",
    " held ",
    " looked at",
    " nobody ",
    " tells ",
    " who ",
];
/// Maximum words of a sentence in a study, and of the description of a metric.
const MOST_IN_STUDIES: usize = 30;
const MOST_IN_METRICS: usize = 25;
/// Keys of studies whose texts readers see.
const KEYS: [&str; 9] = [
    "fidelity", "note", "question", "source", "summary", "text", "title", "when", "why",
];

/// The faults of a text from `place`.
fn faults(place: &str, text: &str, most: usize) -> Vec<String> {
    let joined: Vec<&str> = text.split_whitespace().collect();
    let lower = format!(" {} ", joined.join(" ").to_lowercase());
    let banned = BANNED.iter().chain(&BANNED_IN_REPORTS);
    let found = banned.filter(|phrase| lower.contains(**phrase));
    let mut faults: Vec<String> = found
        .map(|phrase| format!("{place}: `{phrase}` in {text}"))
        .collect();
    let sentences = super::split(&joined.join(" "));
    let long = sentences.iter().filter(|one| words(one) > most);
    faults.extend(long.map(|one| format!("{place}: {} words in{one}", words(one))));
    faults
}

/// The texts of a study that readers see.
fn texts(value: &toml::Value, key: &str, all: &mut Vec<String>) {
    match value {
        toml::Value::String(text) if KEYS.contains(&key) => all.push(text.clone()),
        toml::Value::Array(values) => values.iter().for_each(|value| texts(value, key, all)),
        toml::Value::Table(table) => {
            for (key, value) in table {
                texts(value, key, all);
            }
        }
        _ => {}
    }
}

fn files(directory: &Path, extension: &str, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            files(&path, extension, all);
        } else if path.extension().is_some_and(|found| found == extension) {
            all.push(path);
        }
    }
}

#[test]
fn reports_metrics_and_studies_read_well() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for metric in METRICS {
        let text = format!("{}: {}", metric.label, metric.help);
        wrong.extend(faults(metric.name, &text, MOST_IN_METRICS));
    }
    let mut studies = Vec::new();
    files(&root.join("studies"), "toml", &mut studies);
    for path in &studies {
        let study = fs::read_to_string(path).expect("a study is UTF-8");
        let study: toml::Value = toml::from_str(&study).expect("a study is TOML");
        let mut all = Vec::new();
        texts(&study, "", &mut all);
        let place = path.display().to_string();
        wrong.extend(
            all.iter()
                .flat_map(|text| faults(&place, text, MOST_IN_STUDIES)),
        );
    }
    let mut snapshots = Vec::new();
    files(
        &root.join("crates/throng-report/src"),
        "snap",
        &mut snapshots,
    );
    assert!(studies.len() > 5 && snapshots.len() > 10);
    for path in snapshots {
        let text = fs::read_to_string(&path).expect("a snapshot is UTF-8");
        // Its header is not ours, and values make lines of any length.
        for line in text.lines().skip(4) {
            wrong.extend(faults(&path.display().to_string(), line, usize::MAX));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
