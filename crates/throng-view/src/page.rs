//! The pages: all runs, one that runs, and what went wrong. They are whole without their script, which keeps
//! them up to date, sorts and filters.

use maud::{DOCTYPE, Markup, html};

use super::address::encoded;
use super::progress::Progress;
use super::runs::{Listed, Listing, State};
use throng_record::format::{ABSENT, counted};
use throng_record::metrics::of_trial;

/// What a browser is asked to refuse: all but what comes from here, and no script or style within a page.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                 img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Servers and numbers of clients that are named before the rest is only counted.
const NAMED: usize = 6;

/// Columns of the list by which it can be sorted.
const SORTED: [&str; 7] = [
    "State", "Started", "Study", "Servers", "Clients", "Trials", "Warnings",
];

fn document(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – throng" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
            }
            body { (body) }
        }
    }
}

fn opening(title: &str, below: &Markup) -> Markup {
    html! {
        header.top {
            p.brand { "throng" span { "network servers under many concurrent clients" } }
            h1 { (title) }
            (below)
        }
    }
}

fn footer() -> Markup {
    html! { footer { "throng " (env!("CARGO_PKG_VERSION")) ", for this machine alone; nothing is written." } }
}

/// All runs of a directory.
pub(super) fn list(directory: &str, listing: &Listing) -> Markup {
    let runs = &listing.runs;
    let running = runs
        .iter()
        .filter(|run| run.state == State::Running)
        .count();
    let below = html! {
        p.facts {
            span { (directory) }
            span #count { (counted(runs.len() as u32, "run")) }
            span #running { (running) " running" }
        }
    };
    let body = html! {
        (opening("Runs", &below))
        main {
            @if runs.is_empty() {
                p.hint { "There is no run yet. " code { "throng run" } " makes one." }
            }
            form.runs action="/compare" method="get" {
                div.tools {
                    label.filter hidden { "Filter " input type="search" id="filter" autocomplete="off"; }
                    button type="submit" { "Put two side by side" }
                    span #chosen role="status" {}
                }
                section.results aria-label="Runs" {
                    div.scroll tabindex="0" role="region" aria-label="Runs, can be scrolled sideways" {
                        table.list {
                            caption.hidden { "Runs, the newest first" }
                            thead {
                                tr {
                                    th scope="col" { "Run" }
                                    @for title in SORTED { th scope="col" { (title) } }
                                }
                            }
                            tbody { @for run in runs { (line(run)) } }
                        }
                    }
                }
            }
            @if listing.left_out > 0 { p.hint { (listing.left_out) " older ones are not listed." } }
        }
        (footer())
    };
    document("Runs", &body)
}

fn line(run: &Listed) -> Markup {
    let address = encoded(&run.name);
    html! {
        tr data-run=(run.name) data-state=(run.state.text()) data-words=(run.servers.join(" ")) {
            th scope="row" {
                @if run.state == State::Broken || run.study.is_empty() {
                    (run.name)
                } @else {
                    input type="checkbox" name="run" value=(run.name) aria-label=(format!("{} for a comparison", run.name));
                    a href=(format!("/run/{address}/report.html")) { (run.name) }
                }
            }
            td {
                span.state.(class(run.state)) { (run.state.text()) }
                @if run.state == State::Running && run.problem.is_none() {
                    " " a href=(format!("/run/{address}/")) { "watch" span.hidden { " " (run.name) } }
                }
            }
            td data-value=(run.started_at) {
                @if run.started_at.is_empty() { (ABSENT) } @else { time datetime=(run.started_at) { (time(&run.started_at)) } }
            }
            td.words {
                @if let Some(problem) = &run.problem { span.problem { (problem) } }
                @else { (run.study) @if run.parts > 0 { small { (counted(run.parts, "part")) } } }
            }
            td.words data-value=(run.servers.len()) { (some(&run.servers)) }
            td.words data-value=(run.clients.last().copied().unwrap_or(0)) { @if run.clients.is_empty() { (ABSENT) } @else { (some(&run.clients)) } }
            td data-value=(run.trials) {
                (run.trials) @if let Some(planned) = run.planned { @if planned != run.trials || run.state != State::Finished { " of " (planned) } }
                @if let (State::Running, Some(planned)) = (run.state, run.planned) {
                    progress max=(planned.max(1)) value=(run.trials.min(planned)) aria-label=(format!("Trials of {}", run.name)) {}
                }
            }
            td data-value=(run.warnings) { @if run.warnings > 0 { (run.warnings) } @else { "none" } }
        }
    }
}

/// "2026-01-01 12:00:00".
fn time(started_at: &str) -> String {
    let short: String = started_at.chars().take(19).collect();
    short.replace('T', " ")
}

/// As many as can be read at a glance.
fn some<T: ToString>(all: &[T]) -> String {
    let mut words: Vec<String> = all.iter().take(NAMED).map(T::to_string).collect();
    if all.len() > NAMED {
        words.push(format!("{} more", all.len() - NAMED));
    }
    words.join(", ")
}

fn class(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Finished => "finished",
        State::Interrupted | State::HostLost | State::ServerFailed | State::Unfinished => "cut",
        State::Broken => "broken",
    }
}

/// How one run goes.
pub(super) fn progress(progress: &Progress) -> Markup {
    let run = &progress.run;
    let below = html! {
        @if !run.question.is_empty() { p.question { (run.question) } }
        p.facts {
            span.state.(class(run.state)) #state { (run.state.text()) }
            @if !run.study.is_empty() { span { (run.study) } }
            @if !run.started_at.is_empty() { span { "since " time datetime=(run.started_at) { (time(&run.started_at)) } } }
            @if !run.servers.is_empty() { span { (some(&run.servers)) } }
        }
    };
    let address = encoded(&run.name);
    let body = html! {
        (opening(&run.name, &below))
        main #live data-state=(run.state.text()) {
            section.answer aria-labelledby="progress" {
                h2 #progress { "Progress" }
                p.lead #words role="status" { (progress.words()) }
                @if let Some(percent) = progress.percent {
                    progress.wide max="100" value=(percent) aria-label="Trials done" {}
                }
                @if let Some(part) = &progress.part { p { "Part " b { (part) } "." } }
                @if let Some(problem) = &run.problem { div.warning { p { (problem) } } }
                @if let Some(unread) = &progress.unread { div.warning { p { (unread) } } }
            }
            (trials(progress))
            p.links {
                @if run.problem.is_none() && !run.study.is_empty() {
                    a href=(format!("/run/{address}/report.html")) {
                        @if run.state == State::Running { "The report of the trials until now" } @else { "The report" }
                    }
                    " "
                }
                a href="/" { "All runs" }
            }
        }
        (footer())
    };
    document(&run.name, &body)
}

fn trials(progress: &Progress) -> Markup {
    if progress.last.is_empty() {
        return html! {};
    }
    html! {
        section.results aria-labelledby="last" {
            h2 #last { "The last trials" }
            div.scroll tabindex="0" role="region" aria-label="The last trials, can be scrolled sideways" {
                table {
                    caption.hidden { "The last trials, the last one first" }
                    thead {
                        tr {
                            th scope="col" { "Server" }
                            th scope="col" { "Clients" }
                            th.occasion scope="col" { "Trial" }
                            @for metric in of_trial() { th scope="col" title=(metric.help) { (metric.label) } }
                            th scope="col" { "Took" }
                        }
                    }
                    tbody {
                        @for trial in &progress.last {
                            tr {
                                th scope="row" { (trial.server) }
                                td { (trial.clients) }
                                td.occasion { (trial.occasion) }
                                @match &trial.failure {
                                    Some(why) => { td.failed colspan=(of_trial().count()) { "failed: " (why) } }
                                    None => { @for figure in &trial.figures { td { (figure) } } }
                                }
                                td { (format!("{:.1} s", trial.took_s)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What is shown instead of a page.
pub(super) fn refusal(title: &str, why: &str) -> Markup {
    let body = html! {
        (opening(title, &html! {}))
        main {
            section.answer aria-label="What went wrong" { p.lead { (why) } }
            p.links { a href="/" { "All runs" } }
        }
        (footer())
    };
    document(title, &body)
}
