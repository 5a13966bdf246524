//! What was published beside what was measured.

use serde::Serialize;

use super::PartReport;
use super::metric::{AnyMetric, read};
use crate::record::{Published, PublishedValue};
use crate::report::format::counted;

/// All published figures of a part: a row for each metric and number of clients, a cell for each server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// The servers that anything was published of.
    pub servers: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A metric with one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the metric.
    pub metric: String,
    /// Its heading.
    pub title: String,
    /// Number of clients; absent for a value over all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// One for each server of the table.
    pub cells: Vec<Cell>,
}

/// A value of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// The server.
    pub server: String,
    /// What was published, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The same in the metric's own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_value: Option<f64>,
    /// What was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// The same as a number: median over trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_value: Option<f64>,
    /// Its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// The interval as text.
    #[serde(skip)]
    pub interval_text: String,
    /// What was measured over what was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Why there is no measured value, or no published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Table {
    /// The table of a part; ratios only where it ran as it is written.
    pub(super) fn of(part: &PartReport<'_>, is_scaled: bool) -> Self {
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
        for published in &part.record.published {
            // It was found when the study was read; a newer version may have dropped it.
            let Ok(metric) = AnyMetric::find(&published.metric) else {
                continue;
            };
            let each: Vec<Option<u32>> = match published.clients.as_slice() {
                [] => vec![None],
                clients => clients.iter().copied().map(Some).collect(),
            };
            for (place, clients) in each.into_iter().enumerate() {
                let cell = |server: &String| {
                    let mut cell = measured(part, metric, server, clients);
                    was_published(&mut cell, published, metric, place);
                    if let (Some(then), Some(now), false) =
                        (cell.published_value, cell.measured_value, is_scaled)
                    {
                        cell.ratio = (then != 0.0).then(|| now / then);
                    }
                    cell
                };
                table.rows.push(Row {
                    metric: published.metric.clone(),
                    title: metric.title().to_owned(),
                    clients,
                    note: published.note.clone(),
                    cells: table.servers.iter().map(cell).collect(),
                });
            }
        }
        table
    }
}

impl Row {
    /// What it is about, in words.
    pub fn heading(&self) -> String {
        match self.clients {
            Some(clients) => format!("{}, {}", self.title, counted(clients, "client")),
            None => self.title.clone(),
        }
    }
}

fn measured(part: &PartReport<'_>, metric: AnyMetric, server: &str, clients: Option<u32>) -> Cell {
    let unit = metric.unit();
    let mut cell = Cell {
        server: server.to_owned(),
        ..Cell::default()
    };
    match (metric, clients) {
        (AnyMetric::Trial(metric), Some(clients)) => match part.sample(metric, server, clients) {
            Ok(sample) => {
                cell.measured = Some(unit.text(sample.value));
                cell.measured_value = Some(sample.value);
                cell.interval = sample.interval;
                cell.interval_text = sample.interval.map_or_else(String::new, |(low, high)| {
                    format!("{}–{}", unit.text(low), unit.text(high))
                });
            }
            Err(why) => cell.why = Some(why),
        },
        (AnyMetric::Over(over), _) => match part.over(over, server) {
            Ok(reach) if reach.value.is_some() => {
                cell.measured = Some(reach.text);
                cell.measured_value = reach.value;
            }
            Ok(reach) => cell.why = Some(reach.text),
            Err(why) => cell.why = Some(why),
        },
        (AnyMetric::Trial(_), None) => {}
    }
    cell
}

fn was_published(cell: &mut Cell, published: &Published, metric: AnyMetric, place: usize) {
    match published
        .values
        .get(&cell.server)
        .and_then(|values| values.get(place))
    {
        Some(PublishedValue::Number(value)) => {
            let unit = match published.unit.as_str() {
                "count" | "index" | "ratio" => "",
                unit => unit,
            };
            cell.published = Some(format!("{value} {unit}").trim_end().to_owned());
            cell.published_value = read(metric.unit(), *value, &published.unit).ok();
        }
        Some(PublishedValue::Absent(why)) => cell.published = Some(why.clone()),
        None => {}
    }
}
