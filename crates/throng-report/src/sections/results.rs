//! The tables of results and of costs: a row for each server, grouped by number of clients.

use crate::Report;
use crate::columns::{self, COSTS_NOTE, Column};
use crate::document::{self, Block, Cell, NOT_IN_TERMINAL, Role, Table, Tone};
use crate::summary::Row;
use throng_record::format::{ABSENT, counted};
use throng_record::metrics::{Detail, Quantity, Unit};

/// Columns with this number, and with greater ones, are details.
const FIRST_DROPPED: u8 = 8;

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let caption = "Results by server and number of clients";
    let table = table(report, &columns::results(), caption);
    let text = format!("{} –: not measured.", estimator(report));
    let hint = Block::paragraph(Role::Hint, text.trim());
    [hint].into_iter().chain(table).collect()
}

/// The results of the only server, a row for each value that leads in a terminal and a column for each number of clients.
pub(super) fn of_one_server(report: &Report<'_>) -> Option<Block> {
    let summary = &report.summary;
    let is_only = report.run.servers.len() == 1 && summary.rows.iter().any(|row| row.trials_ok > 0);
    let columns = columns::results().into_iter().filter(|column| {
        let leads = matches!(column, Column::Result(_, shown) if shown.terminal.is_some_and(|drop| drop < FIRST_DROPPED));
        leads && column.has_data(summary)
    });
    let rows = columns.map(|column| {
        let has_interval =
            matches!(column, Column::Result(_, shown) if matches!(shown.detail, Detail::Interval));
        let cells = summary.rows.iter().map(|row| {
            let made = cell(report, &column, row);
            Cell {
                bar: None,
                tone: Tone::Plain,
                detail: if has_interval {
                    made.detail
                } else {
                    String::new()
                },
                ..made
            }
        });
        document::Row::of(column.title(), cells.collect())
    });
    let each = summary
        .rows
        .iter()
        .map(|row| counted(row.clients, "client"));
    let headings =
        std::iter::once(document::Column::text("")).chain(each.map(document::Column::number));
    is_only.then(|| Block::Table(Table::of("Results", headings.collect(), rows.collect())))
}

/// Costs per request, from trials that count events.
pub(super) fn costs(report: &Report<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::paragraph(Role::Hint, COSTS_NOTE)];
    let mut rows = report.summary.rows.iter();
    if rows.any(|row| row.value("counted_requests").is_some()) {
        let caption = "Cost per request by server and number of clients";
        blocks.extend(table(report, &columns::costs(), caption));
    }
    blocks.extend(report.not_here.iter().map(|(what, why)| {
        let text = format!("Not measured on this machine: {what}: {}", why.reason);
        Block::Warning(text, why.remedy.clone())
    }));
    blocks
}

/// What the values of the table are.
fn estimator(report: &Report<'_>) -> String {
    let columns = columns::results();
    let metrics = columns.iter().filter_map(|column| column.metric());
    let rows = report.summary.rows.iter();
    let shown: Vec<Quantity> = rows
        .flat_map(|row| metrics.clone().filter_map(|one| row.quantity(one.name)))
        .collect();
    let of_slices = shown.iter().any(|one| one.is_of_slices);
    let whole = if of_slices {
        " Values without an interval are of the whole trial."
    } else {
        ""
    };
    Quantity::estimator(shown) + whole
}

/// The table of all rows, with those of `columns` that have anything to show; `None` if no column has.
fn table(report: &Report<'_>, columns: &[Column], caption: &str) -> Option<Block> {
    let summary = &report.summary;
    let with_data = columns.iter().filter(|column| column.has_data(summary));
    let shown: Vec<&Column> = with_data.collect();
    if shown.is_empty() && summary.rows.iter().any(|row| row.trials_ok > 0) {
        return None;
    }
    let mut headings = vec![document::Column::text("Server")];
    headings.extend(shown.iter().map(|column| heading(column)));
    let groups = summary.clients.iter().rev().map(|clients| {
        let rows = summary
            .rows_at(*clients)
            .map(|row| line(report, &shown, row));
        (counted(*clients, "client"), rows.collect())
    });
    Some(Block::Table(Table {
        best_of: "its group, among servers that served all clients, or ties with it",
        ..Table::in_groups(caption, headings, groups)
    }))
}

fn heading(column: &Column) -> document::Column {
    let drop = match column {
        Column::Result(_, shown) => shown.terminal,
        Column::Cost(_) | Column::Calls => None,
    };
    document::Column {
        note: column.note(),
        drop: drop.unwrap_or(NOT_IN_TERMINAL),
        is_text: matches!(column, Column::Calls),
        ..document::Column::number(column.title())
    }
}

fn line(report: &Report<'_>, columns: &[&Column], row: &Row) -> document::Row {
    let mut flags = Vec::new();
    if row.client_limited() {
        flags.push("load generator was the limit".to_owned());
    }
    if row.trials_failed > 0 {
        flags.push(format!("{} failed", counted(row.trials_failed, "trial")));
    }
    let mut line = document::Row {
        flags,
        is_quiet: !row.served_all,
        ..document::Row::of(super::server(report, &row.server), Vec::new())
    };
    if row.trials_ok == 0 {
        let reason = row.failures.first().map_or(ABSENT, String::as_str);
        line.why = format!("failed: {reason}");
    } else {
        let each = columns.iter();
        line.cells = each.map(|column| cell(report, column, row)).collect();
    }
    line
}

fn cell(report: &Report<'_>, column: &Column, row: &Row) -> Cell {
    let (summary, clients) = (&report.summary, row.clients);
    let greatest = column.greatest(summary, clients).max(f64::MIN_POSITIVE);
    let value = column.value(row).filter(|_| column.bar());
    let of_clients = column
        .metric()
        .is_some_and(|metric| metric.unit == Unit::Clients);
    let is_best = column.metric().is_some_and(|metric| {
        let ranking = report.comparison.ranking(clients, metric.name);
        ranking.is_some_and(|ranking| ranking.sets_apart(&row.server))
    });
    let tone = if report.grade.is_usable() && is_best {
        Tone::Best
    } else if of_clients && !row.served_all {
        Tone::Bad
    } else {
        Tone::Plain
    };
    Cell {
        text: column.text(row),
        detail: column.detail(row),
        tone,
        bar: value.map(|value| value / greatest),
    }
}
