//! What was tried of each server in a search for its limit.

use maud::{Markup, html};

use super::shown::Shown;
use super::swatch;
use crate::report::format::whole;
use crate::report::limit::{COLUMNS, Column, Limits, ServerLimit, Try};

/// The section: the limits, then all tries of each server.
pub(super) fn section(report: &Shown<'_>, limits: &Limits) -> Markup {
    html! {
        section.results aria-labelledby=(report.named_by("limits")) {
            h2 id=(report.id("limits")) { "Limits" }
            p.hint {
                "Each line is a trial. What held and what broke next to each other are the limit; both were tried again."
            }
            @if limits.servers.len() > 1 { (overview(report, limits)) }
            @for server in &limits.servers { (tries(report, limits, server)) }
        }
    }
}

/// The servers beside each other.
fn overview(report: &Shown<'_>, limits: &Limits) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(report.scrolled("Limits of all servers")) {
            table.demands {
                thead {
                    tr {
                        th scope="col" { "Server" }
                        th scope="col" { "Holds, " (limits.unit()) }
                        th scope="col" { "What gave way first" }
                    }
                }
                tbody {
                    @for server in &limits.servers {
                        tr {
                            th scope="row" { (swatch(report, &server.server)) (server.server) }
                            td { (server.text()) }
                            td { @if let Some(cause) = &server.cause { (cause.sentence) } }
                        }
                    }
                }
            }
        }
    }
}

fn tries(report: &Shown<'_>, limits: &Limits, server: &ServerLimit) -> Markup {
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column| column.has_data(&server.tries))
        .collect();
    html! {
        h3 { (swatch(report, &server.server)) (server.server) ": " (server.text()) }
        div.scroll tabindex="0" role="region" aria-label=(report.scrolled(&format!("What was tried of {}", server.server))) {
            table.tries {
                thead {
                    tr {
                        th scope="col" { (limits.unit()) }
                        @for column in &columns { th scope="col" { (column.title) } }
                        th scope="col" { span.hidden { "Verdict" } }
                        th scope="col" { span.hidden { "Why" } }
                    }
                }
                tbody { @for one in &server.tries { (line(&columns, one)) } }
            }
        }
    }
}

fn line(columns: &[&Column], one: &Try) -> Markup {
    html! {
        tr {
            th scope="row" { (whole(one.value as f64)) }
            @for column in columns { td { ((column.text)(one)) } }
            td.(if one.held { "better" } else { "worse" }) { (one.verdict()) }
            td.why { (one.reasons.join("; ")) }
        }
    }
}
