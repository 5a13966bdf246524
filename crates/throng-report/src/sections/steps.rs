//! The steps of sessions: a table for each number of clients, with a row per step and server.

use crate::Report;
use crate::document::{Block, Cell, Column, Role, Row, Table};
use throng_record::format::{ABSENT, counted};
use throng_record::metrics::{METRICS, Metric, Values};

/// A note above the tables.
const NOTE: &str = "Each client repeats these steps. Times are from sending a request to its complete reply; a session's time \
    is from when it was due, or began, until its last reply.";

/// The metrics of a step, by name.
const SHOWN: [&str; 4] = [
    "requests_per_s",
    "latency_p50_us",
    "latency_p99_us",
    "errors",
];
/// The metrics of whole sessions in the same columns.
const OF_SESSIONS: [&str; 4] = [
    "sessions_per_s",
    "session_p50_us",
    "session_p99_us",
    "sessions_failed",
];

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let loads = report.summary.clients.iter().rev();
    let tables: Vec<Block> = loads
        .filter_map(|clients| table(report, *clients))
        .collect();
    if tables.is_empty() {
        return tables;
    }
    let note = Block::paragraph(Role::Hint, NOTE);
    std::iter::once(note).chain(tables).collect()
}

/// The steps with a number of clients; `None` without any.
fn table(report: &Report<'_>, clients: u32) -> Option<Block> {
    let rows: Vec<_> = report.summary.rows_at(clients).collect();
    let steps = &rows.iter().find(|row| !row.steps.is_empty())?.steps;
    let of_one = |place: usize| {
        rows.iter().filter_map(move |row| {
            let step = row.steps.get(place)?;
            Some(made(&step.name, &row.server, &step.metrics, SHOWN))
        })
    };
    let whole = rows
        .iter()
        .map(|row| made("whole session", &row.server, &row.metrics, OF_SESSIONS));
    let made = (0..steps.len()).flat_map(of_one).chain(whole).collect();
    let values = ["Per second", "p50", "p99", "Failed"].map(Column::number);
    let columns = ["Step", "Server"]
        .map(Column::text)
        .into_iter()
        .chain(values);
    let about = format!("Steps, {}", counted(clients, "client"));
    Some(Block::Table(Table::of(about, columns.collect(), made)))
}

/// A row of metrics, each with its interval.
fn made(step: &str, server: &str, values: &Values, names: [&str; 4]) -> Row {
    let cell = |name: &str| {
        let metric = METRICS.iter().find(|metric| metric.name == name);
        let found = metric.and_then(|metric| Some((metric, values.quantity(name)?)));
        found.map_or_else(
            || Cell::plain(ABSENT),
            |(of_step, quantity)| of_quantity(of_step, quantity),
        )
    };
    let cells = std::iter::once(Cell::plain(server)).chain(names.map(cell));
    Row::of(step.to_owned(), cells.collect())
}

fn of_quantity(metric: &Metric, quantity: throng_record::metrics::Quantity) -> Cell {
    Cell::plain(metric.text(quantity.value)).with(metric.range(quantity).unwrap_or_default())
}
