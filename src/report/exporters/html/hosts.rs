//! The tables of client hosts, each behind a line to open it.

use maud::{Markup, html};

use super::shown::Shown;
use crate::report::hosts::{COLUMNS, HostTable, NOTE, tables};

/// The tables, or nothing where all clients were on one host.
pub(super) fn section(report: &Shown<'_>) -> Markup {
    let tables = tables(report);
    if tables.is_empty() {
        return html! {};
    }
    html! {
        h2.later { "Client hosts" }
        p.hint { (NOTE) }
        @for (place, hosts) in tables.iter().enumerate() {
            details open[place == 0] {
                summary { (hosts.title) }
                @for note in &hosts.notes { p.hint { (note) } }
                (table(report, hosts))
            }
        }
    }
}

fn table(report: &Shown<'_>, hosts: &HostTable) -> Markup {
    let caption = format!("Client hosts, {}", hosts.title);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(report.scrolled(&caption)) {
            table.events {
                caption.hidden { (caption) }
                thead { tr { @for column in COLUMNS { th scope="col" { (column) } } } }
                tbody {
                    @for row in hosts.rows.iter().chain(&hosts.total) {
                        tr {
                            th scope="row" { (row[0]) }
                            @for cell in &row[1..] { td { span.value { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}
