//! The table of scalability of the page.

use maud::{Markup, html};

use super::shown::Shown;
use super::swatch;
use crate::report::scalability::columns::{columns, missing};

/// The section, or nothing when the run has too few numbers of clients.
pub(super) fn section(report: &Shown<'_>) -> Markup {
    let columns = columns(&report.summary);
    if columns.is_empty() {
        return html! {};
    }
    let missing = missing(&report.summary);
    html! {
        section aria-labelledby=(report.named_by("scalability")) {
            h2 id=(report.id("scalability")) { "Scalability" }
            p.hint { "How rate and cost change with the number of clients n. Small print is the 95 % interval over trials." }
            div.scroll tabindex="0" role="region" aria-label=(report.scrolled("Scalability")) {
                table {
                    caption.hidden { "How the rate and the cost of each server change with the number of clients" }
                    thead {
                        tr {
                            th scope="col" { "Server" }
                            @for column in &columns { th scope="col" title=(column.note) { (column.title) } }
                        }
                    }
                    tbody {
                        @for one in &report.summary.scaling {
                            tr {
                                th scope="row" { (swatch(report, &one.server)) (one.server) }
                                @for column in &columns {
                                    @let detail = (column.detail)(one);
                                    td { span.value { ((column.text)(one)) } @if !detail.is_empty() { small { (detail) } } }
                                }
                            }
                        }
                    }
                }
            }
            @if !missing.is_empty() {
                ul.missing { @for (server, why) in &missing { li { b { (server) } ": " (why) } } }
            }
            details.columns {
                summary { "What the columns mean" }
                dl { @for column in &columns { div { dt { (column.title) } dd { (column.note) } } } }
            }
        }
    }
}
