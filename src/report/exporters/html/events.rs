//! The tables of counted events, each behind a line to open it.

use maud::{Markup, html};

use super::shown::Shown;
use crate::report::events::{Cell, Events, Mark, NOTE, tables};
use crate::report::format::counted;

/// The tables, or nothing where nothing was counted.
pub(super) fn section(report: &Shown<'_>) -> Markup {
    let tables = tables(report);
    if tables.is_empty() {
        return html! {};
    }
    html! {
        h2.later { "Counters, both sides" }
        p.hint { (NOTE) }
        @for events in &tables {
            details {
                summary { (counted(events.clients, "client")) ": " (events.side) }
                (table(report, events))
            }
        }
    }
}

fn table(report: &Shown<'_>, events: &Events<'_>) -> Markup {
    let caption = format!(
        "Events of the {}, {}",
        events.side,
        counted(events.clients, "client")
    );
    html! {
        div.scroll tabindex="0" role="region" aria-label=(report.scrolled(&caption)) {
            table.events {
                caption.hidden { (caption) }
                thead { tr { th scope="col" { "Event" } @for server in &events.servers { th scope="col" { (server) } } } }
                tbody {
                    @for row in &events.rows {
                        tr {
                            th scope="row" title=(row.note) { (row.title) }
                            @if let Some(reason) = row.for_all() {
                                td.all colspan=(row.cells.len()) { (reason) }
                            } @else {
                                @for one in &row.cells { (cell(one)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(cell: &Cell) -> Markup {
    let class = match cell.mark {
        Mark::Best => "best",
        Mark::Worst => "worse",
        Mark::None => "",
    };
    html! {
        td class=(class) {
            span.value { (cell.text) }
            @if !cell.detail.is_empty() { small { (cell.detail) } }
        }
    }
}
