//! The table of the page: rows grouped by number of clients.

use maud::{Markup, html};

use super::shown::Shown;
use super::swatch;
use crate::report::columns::{COLUMNS, Column};
use crate::report::format::counted;
use crate::report::summary::Row;

/// The section, or nothing when there are no rows.
pub(super) fn section(report: &Shown<'_>) -> Markup {
    if report.summary.rows.is_empty() {
        return html! {};
    }
    html! {
        section.results aria-labelledby=(report.named_by("results")) {
            h2 id=(report.id("results")) { "Results" }
            p.hint {
                span.mark { "Marked" } " is the best of its column, among servers that served all clients. Bars compare within one number of clients. "
                "Intervals over trials are small print; – was not measured."
            }
            (grouped(report, COLUMNS, "Results for each server and number of clients"))
        }
    }
}

/// The rows with those of `columns` that have anything to show; nothing when none has.
pub(super) fn grouped(report: &Shown<'_>, columns: &'static [Column], caption: &str) -> Markup {
    let summary = &report.summary;
    let columns: Vec<&Column> = columns
        .iter()
        .filter(|column| column.has_data(summary))
        .collect();
    if columns.is_empty() {
        return html! {};
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label=(report.scrolled(caption)) {
            table {
                caption.hidden { (caption) }
                thead {
                    tr {
                        th scope="col" { "Server" }
                        @for column in &columns { th scope="col" title=(column.note) { (column.title) } }
                    }
                }
                @for clients in summary.clients.iter().rev() {
                    tbody {
                        tr.group { th scope="rowgroup" colspan=(columns.len() + 1) { span { (counted(*clients, "client")) } } }
                        @for row in summary.rows_at(*clients) { (line(report, &columns, row)) }
                    }
                }
            }
        }
        details.columns {
            summary { "What the columns mean" }
            dl { @for column in &columns { div { dt { (column.title) } dd { (column.note) } } } }
        }
    }
}

fn line(report: &Shown<'_>, columns: &[&Column], row: &Row) -> Markup {
    let class = if row.served_all { "" } else { "partial" };
    html! {
        tr class=(class) {
            th scope="row" {
                (swatch(report, &row.server)) (row.server)
                @if row.client_limited() { small.flag { "load generator was the limit" } }
                @if !row.failures.is_empty() { small.flag title=(row.failures.join("; ")) { (counted(row.trials_failed, "trial")) " failed" } }
            }
            @for column in columns { (cell(report, column, row)) }
        }
    }
}

fn cell(report: &Shown<'_>, column: &Column, row: &Row) -> Markup {
    let best = column.is_best(row, column.best_of(&report.summary, row.clients));
    let detail = (column.detail)(row);
    let share = column
        .bar
        .then(|| (column.value)(row))
        .flatten()
        .map(|value| {
            100.0 * value
                / column
                    .greatest(&report.summary, row.clients)
                    .max(f64::MIN_POSITIVE)
        });
    html! {
        td class=(if best { "best" } else { "" }) {
            span.value { (((column.text)(row))) }
            @if !detail.is_empty() { small { (detail) } }
            @if let Some(share) = share {
                span.bar aria-hidden="true" { span style=(format!("width:{share:.1}%")) {} }
            }
        }
    }
}
