//! The table of results: a row for each server, grouped by number of clients.

use crate::Report;
use crate::columns::{self, Column};
use crate::document::{
    self, Block, Cell, Cells, Group, NOT_IN_TERMINAL, Role, Section, Table, Tone,
};
use crate::summary::Row;
use throng_record::format::{ABSENT, counted};
use throng_record::metrics::{Quantity, Unit};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let table = table(
        report,
        &columns::results(),
        "Results by server and number of clients",
    )?;
    let hint = format!("{} –: not measured.", estimator(report));
    let blocks = vec![
        Block::paragraph(Role::Hint, hint.trim()),
        Block::Table(table),
    ];
    let section = Section::of("results", "Results", blocks)?;
    Some(if super::comparison::is_in_terminal(report) {
        // The tables of pairs say the same.
        section.except(&[document::Medium::Terminal])
    } else {
        section
    })
}

/// What the values of the table are.
fn estimator(report: &Report<'_>) -> String {
    let columns = columns::results();
    let metrics = columns.iter().filter_map(|column| column.metric());
    let rows = report.summary.rows.iter();
    let shown = rows.flat_map(|row| metrics.clone().filter_map(|one| row.quantity(one.name)));
    let shown: Vec<Quantity> = shown.collect();
    let of_slices = shown.iter().any(|one| one.is_of_slices);
    let whole = if of_slices {
        " Values without an interval are of the whole trial."
    } else {
        ""
    };
    Quantity::estimator(shown) + whole
}

/// The table of all rows, with those of `columns` that have anything to show; `None` if no column has.
pub(super) fn table(report: &Report<'_>, columns: &[Column], caption: &str) -> Option<Table> {
    let summary = &report.summary;
    let with_data = columns.iter().filter(|column| column.has_data(summary));
    let columns: Vec<&Column> = with_data.collect();
    if summary.rows.is_empty()
        || (columns.is_empty() && summary.rows.iter().any(|row| row.trials_ok > 0))
    {
        return None;
    }
    let mut headings = vec![document::Column::text("Server")];
    headings.extend(columns.iter().map(|column| heading(column)));
    let groups = summary.clients.iter().rev().map(|clients| Group {
        title: counted(*clients, "client"),
        rows: summary
            .rows_at(*clients)
            .map(|row| line(report, &columns, row))
            .collect(),
    });
    Some(Table {
        caption: caption.to_owned(),
        columns: headings,
        groups: groups.collect(),
        best_of: "its group, among servers that served all clients",
    })
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
    let cells = if row.trials_ok == 0 {
        let reason = row.failures.first().map_or(ABSENT, String::as_str);
        Cells::None(format!("failed: {reason}"))
    } else {
        Cells::Each(
            columns
                .iter()
                .map(|column| cell(report, column, row))
                .collect(),
        )
    };
    document::Row {
        name: super::server(report, &row.server),
        flags,
        is_quiet: !row.served_all,
        cells,
    }
}

fn cell(report: &Report<'_>, column: &Column, row: &Row) -> Cell {
    let (summary, clients) = (&report.summary, row.clients);
    let greatest = column.greatest(summary, clients).max(f64::MIN_POSITIVE);
    let value = column.value(row).filter(|_| column.bar());
    let of_clients = column
        .metric()
        .is_some_and(|metric| metric.unit == Unit::Clients);
    let tone = if report.grade.is_usable() && column.is_best(row, column.best_of(summary, clients))
    {
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
