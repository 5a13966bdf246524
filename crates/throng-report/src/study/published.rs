//! Published and measured values side by side.

use serde::Serialize;

use super::PartReport;
use throng_record::format::{ABSENT, counted, grouped, number};
use throng_record::metrics::{Metric, find};
use throng_record::{Published, PublishedValue};

/// A reason longer than this many characters becomes a footnote, and the cell refers to it.
const LONGEST_REASON: usize = 28;

/// All published figures of a part: one row per metric and number of clients, one cell per server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// The servers with published figures.
    pub servers: Vec<String>,
    pub rows: Vec<Row>,
}

/// A metric with one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the metric.
    pub metric: String,
    /// Its heading.
    pub title: String,
    /// Number of clients; absent for a value over all numbers of clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// A note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// One per server of the table.
    pub cells: Vec<Cell>,
    /// The published unit, in which tables show both values; empty for a plain number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The other system that its values are of; nothing measured stands beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Index of its publication within the part.
    #[serde(skip)]
    publication: usize,
}

/// The rows of one publication: a metric with one or more numbers of clients.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// Its rows, at least one.
    pub rows: &'a [Row],
}

/// A value of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    pub server: String,
    /// The published value with its digits, or why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The published value in the metric's own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_value: Option<f64>,
    /// The measured value, in the published unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// The measured value as a number: the median over trials or slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_value: Option<f64>,
    /// Its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// The interval as text.
    #[serde(skip)]
    pub interval_text: String,
    /// Measured over published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Why there is no measured value, or no published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Table {
    /// The table of a part that ran as written: a published value compares with nothing else.
    pub(super) fn of(part: &PartReport<'_>) -> Self {
        let mut table = Self::default();
        for published in &part.record.published {
            for server in published.values.keys() {
                if !table.servers.contains(server) {
                    table.servers.push(server.clone());
                }
            }
        }
        if let Some(report) = &part.report {
            let place = |name: &String| {
                report
                    .run
                    .servers
                    .iter()
                    .position(|info| info.name == *name)
            };
            table
                .servers
                .sort_by_key(|name| place(name).unwrap_or(usize::MAX));
        }
        for (publication, published) in part.record.published.iter().enumerate() {
            // The metric was found when the study file was read; a newer version may have dropped it.
            let Ok(metric) = find(&published.metric) else {
                continue;
            };
            let each: Vec<Option<u32>> = match published.clients.as_slice() {
                [] => vec![None],
                clients => clients.iter().copied().map(Some).collect(),
            };
            for (place, clients) in each.into_iter().enumerate() {
                let mut cell = |server: &String| {
                    let mut cell = match published.system {
                        Some(_) => Cell {
                            server: server.clone(),
                            ..Cell::default()
                        },
                        None => measured(part, metric, server, clients, &published.unit),
                    };
                    was_published(&mut cell, published, metric, place);
                    if let (Some(then), Some(now)) = (cell.published_value, cell.measured_value) {
                        cell.ratio = (then != 0.0).then(|| now / then);
                    }
                    cell
                };
                let cells = table.servers.iter().map(&mut cell).collect();
                table.rows.push(Row {
                    metric: published.metric.clone(),
                    title: metric.label.to_owned(),
                    clients,
                    note: published.note.clone(),
                    cells,
                    unit: match published.unit.as_str() {
                        "count" | "index" | "ratio" => String::new(),
                        unit => unit.to_owned(),
                    },
                    system: published.system.clone(),
                    publication,
                });
            }
        }
        table
    }

    /// Its rows, grouped by publication.
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let together = |a: &Row, b: &Row| a.publication == b.publication;
        self.rows.chunk_by(together).map(|rows| Group { rows })
    }

    /// Whether the other table has the same publications, of one row each, so that both are rows of one table.
    fn continues_in(&self, other: &Self) -> bool {
        let headings = |table: &Self| -> Option<Vec<String>> {
            let group = |group: Group<'_>| (group.rows.len() == 1).then(|| group.heading());
            table.groups().map(group).collect()
        };
        let own = headings(self).filter(|own| !own.is_empty());
        own.is_some() && own == headings(other) && self.servers == other.servers
    }
}

/// The parts of a study, those together that publish the same values.
pub fn together<'a, 'b>(parts: &'b [PartReport<'a>]) -> impl Iterator<Item = &'b [PartReport<'a>]> {
    parts.chunk_by(|a, b| a.published.continues_in(&b.published))
}

/// The title of a part, or the metric that several parts are about.
pub fn title<'a>(parts: &'a [PartReport<'_>]) -> &'a str {
    match parts {
        [part] => &part.record.title,
        parts => &parts[0].published.rows[0].title,
    }
}

/// Reasons that are too long for a cell, each once. The cell shows the index in this list instead.
pub fn footnotes<'a>(tables: impl Iterator<Item = &'a Table>) -> Vec<&'a str> {
    let cells = tables
        .flat_map(|table| &table.rows)
        .flat_map(|row| &row.cells);
    let mut notes: Vec<&str> = Vec::new();
    for reason in cells.flat_map(Cell::reasons) {
        if reason.chars().count() > LONGEST_REASON && !notes.contains(&reason) {
            notes.push(reason);
        }
    }
    notes
}

impl Group<'_> {
    /// The heading of its rows: the metric with its unit, and a note.
    pub fn heading(&self) -> String {
        let Some(first) = self.rows.first() else {
            return String::new();
        };
        let unit = Some(&first.unit)
            .filter(|unit| !unit.is_empty())
            .map_or_else(String::new, |unit| format!(", {unit}"));
        let system = first
            .system
            .as_ref()
            .map(|system| format!("published, on {system}"));
        let notes: Vec<String> = system.into_iter().chain(first.note.clone()).collect();
        let remarks = match notes.as_slice() {
            [] => String::new(),
            notes => format!(" ({})", notes.join("; ")),
        };
        format!("{}{unit}{remarks}", first.title)
    }
}

impl Row {
    /// Its label within its group; empty for a value over all numbers of clients.
    pub fn label(&self) -> String {
        self.clients
            .map_or_else(String::new, |clients| counted(clients, "client"))
    }
}

impl Cell {
    /// The published value, for a table that ends with `footnotes`.
    pub fn published_in_table(&self, footnotes: &[&str]) -> String {
        match (&self.published, self.published_value) {
            (None, _) => ABSENT.to_owned(),
            (Some(text), Some(_)) => text.clone(),
            (Some(why), None) => reason(why, footnotes),
        }
    }

    /// The measured value, or the reason why there is none, for a table that ends with `footnotes`.
    pub fn measured_in_table(&self, footnotes: &[&str]) -> String {
        match (&self.measured, &self.why) {
            (Some(measured), _) => measured.clone(),
            (None, Some(why)) => reason(why, footnotes),
            (None, None) => ABSENT.to_owned(),
        }
    }

    /// "84 % / 93.9 %", for a table that ends with `footnotes`.
    pub fn side_by_side(&self, footnotes: &[&str]) -> String {
        let published = self.published_in_table(footnotes);
        match (&self.measured, &self.why) {
            (None, None) => published,
            _ => format!("{published} / {}", self.measured_in_table(footnotes)),
        }
    }

    /// Why values are missing.
    fn reasons(&self) -> impl Iterator<Item = &str> {
        let published = self
            .published
            .as_deref()
            .filter(|_| self.published_value.is_none());
        let measured = self.why.as_deref().filter(|_| self.measured.is_none());
        published.into_iter().chain(measured)
    }
}

/// A reason, or a reference to the footnote that gives it.
fn reason(why: &str, footnotes: &[&str]) -> String {
    match footnotes.iter().position(|note| *note == why) {
        Some(place) => format!("absent [{}]", place + 1),
        None => why.to_owned(),
    }
}

fn measured(
    part: &PartReport<'_>,
    metric: &'static Metric,
    server: &str,
    clients: Option<u32>,
    unit: &str,
) -> Cell {
    let one = metric.unit.read(1.0, unit).unwrap_or(1.0);
    let text = |value: f64| number(value / one);
    let mut cell = Cell {
        server: server.to_owned(),
        ..Cell::default()
    };
    match (metric.over_clients(), clients) {
        (None, Some(clients)) => match part.sample(metric, server, clients) {
            Ok(sample) => {
                cell.measured = Some(text(sample.value));
                cell.measured_value = Some(sample.value);
                cell.interval = sample.interval;
                cell.interval_text = sample.interval.map_or_else(String::new, |(low, high)| {
                    format!("{}–{}", text(low), text(high))
                });
            }
            Err(why) => cell.why = Some(why),
        },
        (Some(over), _) => match part.over(over, server) {
            Ok(reach) if reach.value.is_some() => {
                cell.measured = Some(reach.text);
                cell.measured_value = reach.value;
            }
            Ok(reach) => cell.why = Some(reach.text),
            Err(why) => cell.why = Some(why),
        },
        (None, None) => {}
    }
    cell
}

/// Fills in the published value.
fn was_published(cell: &mut Cell, published: &Published, metric: &'static Metric, place: usize) {
    let values = published.values.get(&cell.server);
    match values.and_then(|values| values.get(place)) {
        Some(PublishedValue::Number(value)) => {
            cell.published = Some(grouped(&value.to_string()));
            cell.published_value = metric.unit.read(*value, &published.unit).ok();
        }
        Some(PublishedValue::Absent(why)) => cell.published = Some(why.clone()),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(publication: usize, clients: u32, note: &str, cell: Cell) -> Row {
        Row {
            metric: "server_connection_mean_us".to_owned(),
            title: "Connection time".to_owned(),
            clients: Some(clients),
            note: Some(note.to_owned()),
            cells: vec![cell],
            unit: "us".to_owned(),
            system: None,
            publication,
        }
    }

    #[test]
    fn publications_that_differ_in_their_note_only_are_distinguished() {
        let rows = [
            (0, 100, "on Linux"),
            (0, 200, "on Linux"),
            (1, 100, "on Solaris"),
        ];
        let table = Table {
            servers: vec!["epoll".to_owned()],
            rows: rows
                .map(|(publication, clients, note)| {
                    row(publication, clients, note, Cell::default())
                })
                .to_vec(),
        };
        let headings: Vec<String> = table.groups().map(|group| group.heading()).collect();
        assert_eq!(
            headings,
            [
                "Connection time, us (on Linux)",
                "Connection time, us (on Solaris)"
            ]
        );
        let labels: Vec<String> = table.rows.iter().map(Row::label).collect();
        assert_eq!(labels, ["100 clients", "200 clients", "100 clients"]);
    }

    #[test]
    fn a_long_reason_is_reported_once_below_the_table() {
        let why = "the CPU has no such counter, or a hypervisor keeps it to itself";
        let of = |why: &str| Cell {
            why: Some(why.to_owned()),
            ..Cell::default()
        };
        let cells = [of(why), of("at least 5,000"), of(why)];
        let table = Table {
            servers: vec!["epoll".to_owned()],
            rows: cells.map(|cell| row(0, 1, "", cell)).to_vec(),
        };
        let notes = footnotes(std::iter::once(&table));
        assert_eq!(notes, [why]);
        let texts: Vec<String> = table
            .rows
            .iter()
            .map(|row| row.cells[0].measured_in_table(&notes))
            .collect();
        assert_eq!(texts, ["absent [1]", "at least 5,000", "absent [1]"]);
    }
}
