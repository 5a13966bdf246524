//! Published values next to those that the reference runs in `results/` measured.

use std::fmt::Write as _;

use serde_json::Value;
use throng::record::format::counted;

pub(super) fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The rows of a study with the most clients, one for each published table of a metric, each with its part.
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

/// The published and the measured value of one figure.
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
    match text(cell, "published") {
        "" => measured.to_owned(),
        published => format!("{published} / {measured}"),
    }
}

/// "Peak RSS, MB"
fn in_unit(row: &Value) -> String {
    let unit = Some(text(row, "unit")).filter(|unit| !unit.is_empty());
    let unit = unit.map_or_else(String::new, |unit| format!(", {unit}"));
    format!("{}{unit}", text(row, "title"))
}

/// Text about a part and a row of it.
type Describe = fn(&(&Value, &Value)) -> String;

/// The labels of the rows: their figure. If that is not unique, their part follows, and then their note.
fn labels(rows: &[(&Value, &Value)]) -> Vec<String> {
    let figure = |(_, row): &(&Value, &Value)| match row["clients"].as_u64() {
        Some(clients) => {
            let clients = counted(clients as u32, "client");
            format!("{}, {clients}", in_unit(row))
        }
        None => in_unit(row),
    };
    let mut labels: Vec<String> = rows.iter().map(figure).collect();
    let further: [Describe; 2] = [
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

/// A table of published and measured values: for each metric, those with the most clients. Empty if nothing was
/// published.
pub(super) fn published(summary: &Value) -> String {
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
    if chosen.is_empty() {
        return String::new();
    }
    let mut table = format!(
        "\n| published / measured | {} |\n|---|",
        servers.join(" | ")
    );
    table.extend(servers.iter().map(|_| "--:|"));
    for (figure, (_, row)) in labels(&chosen).iter().zip(&chosen) {
        let cells: Vec<String> = servers.iter().map(|server| cell(row, server)).collect();
        write!(table, "\n| {figure} | {} |", cells.join(" | ")).expect("it is a string");
    }
    table + "\n"
}
