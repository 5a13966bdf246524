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
                div.pairs { @for pair in comparison.all_pairs() { (table(pair, "", [&pair.reference, &pair.server])) } }
            }
        }
    }
}

/// A pair under these two headings; `within` names what it is a part of, where a page has several.
pub(super) fn table(pair: &Pair, within: &str, headings: [&str; 2]) -> Markup {
    let clients = counted(pair.clients, "client");
    let name = format!(
        "{within}{} beside {}, {clients}",
        pair.server, pair.reference
    );
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) {
            table.pair {
                caption { (pair.server) " beside " (pair.reference) ", " (clients) }
                (rows(headings, &pair.measures))
            }
        }
    }
}

/// The heading and the lines of such a table.
pub(super) fn rows([reference, server]: [&str; 2], measures: &[Measured]) -> Markup {
    html! {
        thead {
            tr {
                th scope="col" { span.hidden { "Measure" } }
                th scope="col" { (reference) }
                th scope="col" { (server) }
                th scope="col" { "Ratio (95 %)" }
                th scope="col" { (server) " is" }
            }
        }
        tbody { @for measured in measures { (line(measured)) } }
    }
}

/// How a verdict looks, beside what it says.
pub(super) fn class(verdict: Word) -> &'static str {
    match verdict {
        Word::Better => "better",
        Word::Worse => "worse",
        Word::NotDistinguishable | Word::Withheld => "level",
    }
}

fn line(measured: &Measured) -> Markup {
    let [reference, value, ratio, verdict] = measured.cells();
    html! {
        tr {
            th scope="row" { (measured.title) }
            td { (reference) }
            td { (value) }
            td { (ratio) }
            td.(class(measured.verdict)) title=[measured.why.as_ref()] { (verdict) }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::record::Comparison as Asked;
    use crate::report::{Logs, Report, fixture};

    #[test]
    fn every_table_of_several_numbers_of_clients_has_a_name_of_its_own() {
        let (mut run, trials) = fixture::record();
        run.comparison = Some(Asked {
            reference: "epoll".to_owned(),
            ..Asked::default()
        });
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let page = sections(&report.comparison.expect("one was asked for")).into_string();
        let names = page.split("aria-label=\"").skip(1);
        let names: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
        let different: BTreeSet<&&str> = names.iter().collect();
        assert!(names.len() > 10, "{names:?}");
        assert_eq!(different.len(), names.len(), "{names:?}");
    }
}
