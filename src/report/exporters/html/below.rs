//! The table of response times below the maximum.

use maud::{Markup, html};

use super::shown::Shown;
use super::swatch;
use crate::report::below::{NOTE, Table};
use crate::report::format::counted;

/// The section, or nothing when nothing was tried below its maximum.
pub(super) fn section(report: &Shown<'_>) -> Markup {
    let Some(table) = Table::of(&report.summary) else {
        return html! {};
    };
    html! {
        section aria-labelledby=(report.named_by("below")) {
            h2 id=(report.id("below")) { "Below the maximum" }
            p.hint { (NOTE) }
            div.scroll tabindex="0" role="region" aria-label=(report.scrolled("Below the maximum")) {
                table {
                    caption.hidden { "Response times of each server at parts of the rate that it reached" }
                    thead {
                        tr {
                            th scope="col" { "Server" }
                            @for title in &table.titles { th scope="col" { (title) } }
                        }
                    }
                    @for (clients, lines) in table.groups.iter().rev() {
                        tbody {
                            tr.group { th scope="rowgroup" colspan=(table.titles.len() + 1) { span { (counted(*clients, "client")) } } }
                            @for (server, cells) in lines {
                                tr {
                                    th scope="row" { (swatch(report, server)) (server) }
                                    @for cell in cells {
                                        td { span.value { (cell.text) } @if !cell.detail.is_empty() { small { (cell.detail) } } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
