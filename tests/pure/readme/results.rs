//! The reference runs in `results/`: what was published beside what was measured, and what came of the claims.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;
use throng::record::format::counted;

use super::summary;

/// The directory of the latest reference runs of studies; its name begins with the date.
fn latest() -> PathBuf {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let entries = std::fs::read_dir(results).expect("there are reference runs");
    let directories = entries.map(|entry| entry.expect("it can be read").path());
    let has_studies = |path: &PathBuf| path.join("capacity/study.json").exists();
    let latest = directories.filter(has_studies).max();
    latest.expect("there is a reference run")
}

/// The studies of the latest reference runs, by name, with their summaries.
fn studies() -> &'static [(String, Value)] {
    static STUDIES: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
        let entries = std::fs::read_dir(latest()).expect("it can be read");
        let mut studies: Vec<(String, Value)> = entries
            .map(|entry| entry.expect("it can be read"))
            .filter(|entry| entry.path().is_dir())
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, summary(&entry.path()))
            })
            .collect();
        studies.sort_by(|one, other| one.0.cmp(&other.0));
        studies
    });
    &STUDIES
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The rows of a study that are about most clients, one of each published table of a metric, each with
/// its part.
fn last_rows(summary: &Value) -> Vec<(&Value, &Value)> {
    let mut found: Vec<(&Value, &Value)> = Vec::new();
    for part in rows(&summary["parts"]) {
        for row in rows(&part["published"]["rows"]) {
            let alike = |(_, other): &(&Value, &Value)| {
                let served = |row: &Value| -> Vec<Value> {
                    rows(&row["cells"])
                        .iter()
                        .map(|cell| cell["server"].clone())
                        .collect()
                };
                other["metric"] == row["metric"]
                    && other["note"] == row["note"]
                    && served(other) == served(row)
            };
            found.retain(|earlier| !alike(earlier));
            found.push((part, row));
        }
    }
    found
}

/// What was published and what was measured of one figure.
fn cell(row: &Value, server: &str) -> String {
    let Some(cell) = rows(&row["cells"])
        .iter()
        .find(|cell| cell["server"] == server)
    else {
        return String::new();
    };
    let measured = match text(cell, "measured") {
        "" => "none",
        measured => measured,
    };
    // A reason stands as it was written.
    let published = ["published_text", "published"].map(|key| text(cell, key));
    match published
        .into_iter()
        .find(|published| !published.is_empty())
    {
        None => measured.to_owned(),
        Some(published) => format!("{published} / {measured}"),
    }
}

/// Words about a part and a row of it.
type Said = fn(&(&Value, &Value)) -> String;

/// What the rows are called: by their figure; where that is not enough, with their part, and with what was
/// noted beside them.
fn labels(rows: &[(&Value, &Value)]) -> Vec<String> {
    let figure = |(_, row): &(&Value, &Value)| match row["clients"].as_u64() {
        Some(clients) => {
            let clients = counted(clients as u32, "client");
            format!("{}, {clients}", text(row, "title"))
        }
        None => text(row, "title").to_owned(),
    };
    let mut labels: Vec<String> = rows.iter().map(figure).collect();
    let further: [Said; 2] = [
        |(part, _)| text(part, "title").to_owned(),
        |(_, row)| text(row, "note").to_owned(),
    ];
    for more in further {
        let before = labels.clone();
        for (label, row) in labels.iter_mut().zip(rows) {
            if before.iter().filter(|other| *other == label).count() > 1 {
                *label += &format!(", {}", more(row));
            }
        }
    }
    labels
}

/// What was published beside what was measured: of each study, and each metric, that of most clients.
pub(crate) fn figures() -> String {
    let latest = latest();
    let place = latest.file_name().expect("it has a name");
    let mut tables = String::new();
    for (name, summary) in studies() {
        let chosen = last_rows(summary);
        let mut servers: Vec<&str> = Vec::new();
        for (_, row) in &chosen {
            for cell in rows(&row["cells"]) {
                let server = text(cell, "server");
                if !servers.contains(&server) {
                    servers.push(server);
                }
            }
        }
        let link = format!("[{name}](../results/{}/{name})", place.display());
        write!(tables, "\n| {link} | {} |\n|---|", servers.join(" | ")).expect("it is a string");
        tables.extend(servers.iter().map(|_| "--:|"));
        for (figure, (_, row)) in labels(&chosen).iter().zip(&chosen) {
            let cells: Vec<String> = servers.iter().map(|server| cell(row, server)).collect();
            write!(tables, "\n| {figure} | {} |", cells.join(" | ")).expect("it is a string");
        }
        tables.push('\n');
    }
    tables + "\n"
}

/// What came of each claim.
pub(crate) fn claims() -> String {
    let mut table = String::from("| study | claim | here |\n|---|---|---|\n");
    for (name, summary) in studies() {
        let mut first = name.as_str();
        for claim in rows(&summary["claims"]) {
            let verdict = text(claim, "verdict").replace('-', " ");
            let said = text(claim, "text").trim_end_matches('.');
            writeln!(
                table,
                "| {} | {said} | {verdict} |",
                std::mem::take(&mut first)
            )
            .expect("it is a string");
        }
    }
    table
}
