//! A study of several parts as one page: claims first, then what was published beside what was measured,
//! then each part as it stands on its own page.

use maud::{Markup, html};

use super::shown::Shown;
use super::{colours, document, ending, sections};
use crate::report::exporters::command_line;
use crate::report::format::counted;
use crate::report::study::claims::{Finding, Judged};
use crate::report::study::published::{Cell, Table};
use crate::report::study::{PartReport, StudyReport};

/// The page.
pub(super) fn page(report: &StudyReport<'_>) -> Markup {
    let reports = || report.parts.iter().filter_map(|part| part.report.as_ref());
    let servers = reports().map(|report| report.run.servers.len()).max();
    let body = html! {
        (opening(report))
        main {
            (answer(report))
            (published(report))
            @for part in &report.parts { (whole_part(part)) }
            section aria-labelledby="study-repeat" {
                h2 #study-repeat { "How to repeat all of it" }
                pre { (command_line(&report.study.arguments)) }
                p.hint { "This page comes from study.json and the directories of its parts beside it; summary.json has its numbers." }
            }
        }
        footer { "Made by throng " (report.study.throng_version) "." }
    };
    let has_figures = reports().any(|report| !report.figures.is_empty());
    document(
        &report.study.name,
        &colours(servers.unwrap_or(0)),
        &body,
        has_figures,
    )
}

fn opening(report: &StudyReport<'_>) -> Markup {
    let study = report.study;
    let trials = report.parts.iter().filter_map(|part| part.report.as_ref());
    let trials: u32 = trials.map(|report| report.summary.trials_run).sum();
    let host = report
        .parts
        .iter()
        .find_map(|part| Some(&part.report.as_ref()?.run.host));
    html! {
        header.top {
            p.brand { "throng" span { "how a server holds up under a crowd" } }
            h1 { (study.name) }
            p.question { (study.question) }
            @if let Some(summary) = &study.summary { p.summary { (summary) } }
            p.facts {
                span { (counted(study.parts.len() as u32, "part")) }
                span { (counted(study.claims.len() as u32, "claim")) }
                span { (counted(trials, "trial")) }
                @if let Some(host) = host { span { (host.kernel) ", " (counted(host.cpus, "CPU")) } }
                span { time datetime=(study.started_at) { (study.started_at) } }
                (ending(report.ending()))
            }
            @if let Some(note) = report.scale_note() { div.warning { p { b { (note) } } } }
        }
    }
}

fn answer(report: &StudyReport<'_>) -> Markup {
    html! {
        section.answer aria-labelledby="study-answer" {
            h2 #study-answer { "The answer" }
            @if !report.claims.is_empty() {
                dl.claims { @for claim in &report.claims { (judged(claim)) } }
            }
            ul {
                @for part in &report.parts {
                    li {
                        a href=(format!("#part-{}", part.record.name)) { (part.record.title) } ": "
                        @match (&part.record.skipped, &part.report) {
                            (Some(why), _) => { "not run here: " (why) "." }
                            (None, Some(report)) if report.trials.is_empty() => { "not run yet." }
                            (None, Some(report)) => (report.answer.headline.first().map_or("", String::as_str)),
                            (None, None) => "not run.",
                        }
                    }
                }
            }
        }
    }
}

fn judged(claim: &Judged) -> Markup {
    html! {
        div {
            dt { span.verdict.(class(claim.verdict)) { (claim.verdict.text()) } }
            dd {
                p.claim { (claim.text) }
                p { (claim.sentence) }
                @if let Some(why) = &claim.why { p.why { (why) } }
                details {
                    summary { (counted(claim.checks.len() as u32, "check")) }
                    @for check in &claim.checks {
                        p { code { (check.text) } " " span.(class(check.verdict)) { (check.verdict.text()) } }
                        ul {
                            @for one in &check.evidence { li { (one.sentence) " " span.(class(one.verdict)) { (one.verdict.text()) } } }
                            @for why in &check.missing { li { "Not looked at: " (why) } }
                        }
                    }
                }
            }
        }
    }
}

fn class(finding: Finding) -> &'static str {
    match finding {
        Finding::Confirmed => "confirmed",
        Finding::Refuted => "refuted",
        Finding::NotDistinguishable | Finding::NotChecked => "open",
    }
}

fn published(report: &StudyReport<'_>) -> Markup {
    let with = || {
        report
            .parts
            .iter()
            .filter(|part| !part.published.rows.is_empty())
    };
    if with().next().is_none() {
        return html! {};
    }
    html! {
        section.results aria-labelledby="published" {
            h2 #published { "Published and measured" }
            p.hint {
                @if let Some(source) = &report.study.source { "Published: " (source) ". " }
                "Measured: here; median over trials, with its 95 % interval in small print, and the ratio to what was published."
            }
            @for part in with() {
                @if report.parts.len() > 1 { h3 { (part.record.title) } }
                (table(&part.published, &part.record.title))
            }
        }
    }
}

fn table(table: &Table, title: &str) -> Markup {
    let footnotes = table.footnotes();
    let columns = 1 + 2 * table.servers.len();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("Published and measured, {title}, can be scrolled sideways")) {
            table.published {
                caption.hidden { "Published and measured figures: " (title) }
                thead {
                    tr {
                        th scope="col" rowspan="2" { "Figure" }
                        @for server in &table.servers { th.pair-of scope="colgroup" colspan="2" { (server) } }
                    }
                    tr { @for _ in &table.servers { th scope="col" { "published" } th scope="col" { "measured" } } }
                }
                @for group in table.groups() {
                    @let in_one = group.in_one();
                    tbody {
                        @if in_one.is_none() { tr.group { th scope="rowgroup" colspan=(columns) { span { (group.heading()) } } } }
                        @for row in group.rows {
                            tr {
                                th scope="row" { (in_one.clone().unwrap_or_else(|| row.label())) }
                                @for cell in &row.cells { (pair(cell, &footnotes)) }
                            }
                        }
                    }
                }
            }
        }
        @if !footnotes.is_empty() {
            ul.missing { @for (place, note) in (1..).zip(&footnotes) { li { "[" (place) "] " (note) "." } } }
        }
    }
}

fn pair(cell: &Cell, footnotes: &[&str]) -> Markup {
    let measured = cell.measured_in_table(footnotes);
    html! {
        td.was { (cell.published_in_table(footnotes)) }
        @if cell.measured.is_some() {
            td {
                span.value { (measured) }
                @if !cell.interval_text.is_empty() { small { (cell.interval_text) } }
                @if let Some(ratio) = cell.ratio_text() { small { "× " (ratio) } }
            }
        } @else {
            td.reason title=[&cell.why] { (measured) }
        }
    }
}

fn whole_part(part: &PartReport<'_>) -> Markup {
    let (record, name) = (part.record, &part.record.name);
    html! {
        article.part id=(format!("part-{name}")) aria-label=(record.title) {
            h2.part id=(format!("title-{name}")) { (record.title) }
            p.question { (record.question) }
            @if let Some(why) = &record.skipped { div.warning { p { "Not run here: " (why) "." } } }
            @for left_out in &record.left_out { div.warning { p { (left_out.words()) "." } } }
            @if !record.scaled.is_empty() {
                p.hint { "Not as written: " (record.scaled.join(", ")) "." }
            }
            @if let Some(report) = &part.report {
                p.hint { a href=(format!("{name}/report.html")) { "This part on a page of its own" } }
                (sections(&Shown::part(report, name)))
            }
        }
    }
}
