//! Two runs side by side as one page.

use maud::{Markup, PreEscaped, html};

use super::comparison::{class, rows, table};
use super::{colours, document, key, plots};
use crate::record::Warning;
use crate::report::beside::{Beside, Compared, Fact, LimitBeside, Part};
use crate::report::exporters::command_line;
use crate::report::figures::beside::places;
use crate::report::format::{counted, list};
use crate::report::render::interactive;

/// Sentences that are shown at once; the others wait behind them.
const AT_ONCE: usize = 6;

/// What both are called in tables.
const HEADINGS: [&str; 2] = ["A", "B"];

/// The page.
pub(in crate::report) fn page(beside: &Beside) -> Markup {
    let servers = beside.parts.iter().map(|part| part.servers.len()).max();
    let hues = servers
        .unwrap_or(0)
        .checked_sub(1)
        .map_or(0, |last| places(last)[1] + 1);
    let body = html! {
        (opening(beside))
        main {
            (answer(beside))
            (runs(beside))
            @for part in &beside.parts { (whole_part(part)) }
            (warnings("A", &beside.a.warnings))
            (warnings("B", &beside.b.warnings))
            (repeat(beside))
        }
        footer { "Made by throng " (env!("CARGO_PKG_VERSION")) "." }
    };
    let has_figures = beside.parts.iter().any(|part| !part.figures.is_empty());
    document(&beside.title(), &colours(hues), &body, has_figures)
}

fn opening(beside: &Beside) -> Markup {
    html! {
        header.top {
            p.brand { "throng" span { "two runs side by side" } }
            h1 { (beside.title()) }
            p.question { (beside.b.question) }
            p.facts {
                @for (name, told) in [("A", &beside.a), ("B", &beside.b)] {
                    span { b { (name) } " " (told.directory) }
                    (super::ending(told.ending))
                }
            }
        }
    }
}

fn answer(beside: &Beside) -> Markup {
    let sentences = beside.sentences();
    let (first, rest) = sentences.split_at(sentences.len().min(AT_ONCE));
    html! {
        section.answer aria-labelledby="answer" {
            h2 #answer { "The answer" }
            p.lead { (beside.headline) }
            @for caveat in &beside.caveats { div.warning { p { (caveat) } } }
            @if !first.is_empty() { ul { @for sentence in first { li { (sentence) } } } }
            @if !rest.is_empty() {
                details {
                    summary { (rest.len()) " more" }
                    ul { @for sentence in rest { li { (sentence) } } }
                }
            }
            div.notes { @for note in &beside.notes { p { (note) } } }
        }
    }
}

fn runs(beside: &Beside) -> Markup {
    html! {
        section aria-labelledby="runs" {
            h2 #runs { "The two runs" }
            (facts("The two runs", &beside.told()))
            (only("Parts", &beside.only_in))
        }
    }
}

/// Facts of both beside each other; what differs says so.
fn facts(caption: &str, facts: &[Fact]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("{caption}, can be scrolled sideways")) {
            table.runs {
                caption.hidden { (caption) }
                thead {
                    tr {
                        th scope="col" { span.hidden { "What" } }
                        th scope="col" { "A" }
                        th scope="col" { "B" }
                    }
                }
                tbody {
                    @for fact in facts {
                        tr.(if fact.differs { "differs" } else { "same" }) {
                            th scope="row" {
                                (fact.name)
                                @if fact.differs { " " span.mark { (fact.word()) } }
                            }
                            td { (fact.a) }
                            td { (fact.b) }
                        }
                    }
                }
            }
        }
    }
}

fn only(what: &str, only: &[Vec<String>; 2]) -> Markup {
    html! {
        @for (name, only) in ["A", "B"].iter().zip(only) {
            @if !only.is_empty() { p { (what) " only in " (name) ": " (list(only)) "." } }
        }
    }
}

fn whole_part(part: &Part) -> Markup {
    match &part.name {
        None => sections(part, "", ""),
        Some(name) => {
            let title = part.title.as_deref().unwrap_or(name);
            html! {
                article.part aria-label=(title) {
                    h2.part { (title) }
                    (sections(part, &format!("{name}-"), &format!("{title}: ")))
                }
            }
        }
    }
}

/// What is said of a part, the ids of whose figures begin with `prefix` and whose names with `within`.
fn sections(part: &Part, prefix: &str, within: &str) -> Markup {
    html! {
        @if !part.limits.is_empty() {
            section.results aria-label=(format!("{within}Limits")) {
                h2 { "Limits" }
                p.hint { "The most that held. A limit is higher only where what broke in one run held in the other; a search is one, so the ratio has no interval." }
                (limits(&part.limits, within))
            }
        }
        @if !part.pairs.is_empty() {
            section.results aria-label=(format!("{within}Comparison")) {
                h2 { "Comparison" }
                p.hint {
                    "Medians over trials. The ratio is the value in B over that in A, with its 95 % interval over trials; an interval that holds 1 tells nothing apart, and with fewer than five trials it is the widest that they allow."
                }
                div.pairs { @for compared in &part.pairs { (pair(compared, within)) } }
            }
        }
        @if !part.figures.is_empty() {
            section aria-label=(format!("{within}Figures")) data-figures=(prefix) {
                script type="application/json" { (PreEscaped(interactive::data(&part.figures))) }
                h2 { "Figures" }
                (key(part.servers.iter().enumerate().map(|(place, name)| (places(place).to_vec(), name.as_str()))))
                (plots(prefix, &|_| "the tables do not".to_owned(), part.figures.iter()))
            }
        }
        section aria-label=(format!("{within}How both were made")) {
            h2 { "How both were made" }
            (only("Servers and numbers of clients", &part.only_in))
            (facts(&format!("{within}How both were made"), &part.facts))
        }
    }
}

fn pair(compared: &Compared, within: &str) -> Markup {
    let (pair, more) = (&compared.pair, &compared.more);
    let clients = counted(pair.clients, "client");
    let name = format!("{within}more metrics of {}, {clients}", compared.server);
    html! {
        div {
            (table(pair, within, HEADINGS))
            @if let Some(why) = &pair.not_compared { p.hint { "Not compared: " (why) "." } }
            @if !more.is_empty() {
                details {
                    summary { "More metrics of " (compared.server) ", " (clients) }
                    div.scroll tabindex="0" role="region" aria-label=(name) {
                        table.pair { (rows(HEADINGS, more)) }
                    }
                }
            }
        }
    }
}

fn limits(limits: &[LimitBeside], within: &str) -> Markup {
    let unit = limits.first().map_or("", |limit| limit.unit);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("{within}limits of both, can be scrolled sideways")) {
            table.pair {
                thead {
                    tr {
                        th scope="col" { "Server, " (unit) }
                        th scope="col" { "A" }
                        th scope="col" { "B" }
                        th scope="col" { "Ratio" }
                        th scope="col" { "B is" }
                    }
                }
                tbody {
                    @for limit in limits {
                        @let [a, b, ratio, verdict] = limit.cells();
                        tr {
                            th scope="row" { (limit.server) }
                            td { (a) }
                            td { (b) }
                            td { (ratio) }
                            td.(class(limit.verdict)) title=[limit.why.as_ref()] { (verdict) }
                        }
                    }
                }
            }
        }
    }
}

fn warnings(name: &str, warnings: &[Warning]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            section aria-label=(format!("Warnings of {name}")) {
                h2 { "Warnings of " (name) }
                @for warning in warnings {
                    div.warning { p { (warning.message) } p.remedy { (warning.remedy) } }
                }
            }
        }
    }
}

fn repeat(beside: &Beside) -> Markup {
    html! {
        section aria-labelledby="repeat" {
            h2 #repeat { "How to repeat" }
            @for (name, told) in [("A", &beside.a), ("B", &beside.b)] {
                h3 { (name) }
                pre { (command_line(&told.arguments)) }
            }
            p.hint { "This page comes from the records of both alone." }
        }
    }
}
