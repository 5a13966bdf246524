//! The servers of the page beside the one that they are compared with, and what was demanded.

use maud::{Markup, html};

use crate::report::comparison::{Comparison, Measured, Pair, Word};
use crate::report::format::counted;

/// The sections, or nothing when nothing was compared.
pub(super) fn sections(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.demands.is_empty() { (demands(comparison)) }
        @if comparison.all_pairs().next().is_some() {
            section.results aria-labelledby="comparison" {
                h2 #comparison { "Comparison" }
                p.hint {
                    "Medians over trials. The ratio is the second server's value over the first one's, with its 95 % interval over trials; an interval that holds 1 tells nothing apart."
                }
                div.pairs { @for pair in comparison.all_pairs() { (table(pair)) } }
            }
        }
    }
}

fn table(pair: &Pair) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("{} beside {}", pair.server, pair.reference)) {
            table.pair {
                caption { (pair.server) " beside " (pair.reference) ", " (counted(pair.clients, "client")) }
                thead {
                    tr {
                        th scope="col" { span.hidden { "Measure" } }
                        th scope="col" { (pair.reference) }
                        th scope="col" { (pair.server) }
                        th scope="col" { "Ratio (95 %)" }
                        th scope="col" { (pair.server) " is" }
                    }
                }
                tbody { @for measured in &pair.measures { (line(measured)) } }
            }
        }
    }
}

fn line(measured: &Measured) -> Markup {
    let [reference, value, ratio, verdict] = measured.cells();
    let class = match measured.verdict {
        Word::Better => "better",
        Word::Worse => "worse",
        Word::NotDistinguishable | Word::Withheld => "level",
    };
    html! {
        tr {
            th scope="row" { (measured.title) }
            td { (reference) }
            td { (value) }
            td { (ratio) }
            td.(class) title=[measured.why.as_ref()] { (verdict) }
        }
    }
}

fn demands(comparison: &Comparison) -> Markup {
    let missed = comparison
        .demands
        .iter()
        .filter(|judged| judged.missed)
        .count();
    html! {
        section aria-labelledby="thresholds" {
            h2 #thresholds { "Thresholds" }
            p.hint {
                @if missed == 0 { "All of them were met." }
                @else { (missed) " of " (comparison.demands.len()) " were missed." }
            }
            div.scroll tabindex="0" role="region" aria-label="Thresholds, can be scrolled sideways" {
                table.demands {
                    thead {
                        tr {
                            th scope="col" { "Server" }
                            th scope="col" { "Clients" }
                            th scope="col" { "Fail if" }
                            th scope="col" { "Seen" }
                            th scope="col" { span.hidden { "Verdict" } }
                        }
                    }
                    tbody {
                        @for judged in &comparison.demands {
                            tr {
                                th scope="row" { (judged.server) }
                                td { (judged.clients) }
                                td { (judged.demand) }
                                td { (judged.seen) }
                                td.(if judged.missed { "worse" } else { "better" }) { (judged.word()) }
                            }
                        }
                    }
                }
            }
        }
    }
}
