//! The page of a run: its answer, its progress while it runs, its servers and loads, and links to its files.

use maud::{Markup, html};

use super::chart::Chart;
use super::{
    badge, document, grade, large, numbers, opening, picture, some, time, to_history, to_run,
};
use crate::address::{encoded, page_of};
use crate::glances::GlanceState;
use crate::progress::Progress;
use crate::run_entry::{RunEntry, State};
use throng_record::format::{ABSENT, counted, whole};
use throng_record::metrics::of_trial;
use throng_record::{LivePoint, LiveTrial};
use throng_report::figures::Point;
use throng_report::summary::{Row, Summary};

/// The input of the page.
pub(crate) struct RunPage {
    pub(crate) progress: Progress,
    pub(crate) glanced: GlanceState,
    /// The names of the runs that contain it, followed by its own.
    pub(crate) way: Vec<String>,
    /// The parts of a study.
    pub(crate) parts: Vec<(RunEntry, GlanceState)>,
    /// Its numbers; `None` for a study, and if they are unreadable.
    pub(crate) summary: Option<Summary>,
}

/// The page.
pub(crate) fn page(opened: &RunPage) -> Markup {
    let run = &opened.progress.run;
    let name = run.name.as_str();
    let title = if run.question.is_empty() {
        name
    } else {
        &run.question
    };
    let below = html! {
        p.facts {
            span { b { (name) } }
            @if !run.study.is_empty() { span { (run.study) } }
            @if !run.started_at.is_empty() { span { time datetime=(run.started_at) { (time(&run.started_at)) } } }
            @if !run.servers.is_empty() { span { (some(&run.servers)) } }
            @if !run.machine.is_empty() { span { (run.machine) } }
            @if !run.throng.is_empty() { span { "throng " (run.throng) } }
        }
    };
    let is_known = run.problem.is_none() && !run.study.is_empty();
    let up = to_run(&opened.way[..opened.way.len().saturating_sub(1)]);
    let body = html! {
        (opening(&up, title, &below))
        main {
            @if run.state != State::Running { (answer(opened)) }
            (live(&opened.progress))
            @if is_known {
                p.links {
                    a.main href=(page_of(name, "report.html")) {
                        @if run.state == State::Running { "Report of the trials so far" } @else { "Full report" }
                    }
                    @if opened.parts.is_empty() { a href=(page_of(name, "trials")) { "All trials" } }
                    a href=(page_of(name, if run.parts > 0 { "study.json" } else { "run.json" })) { "Raw: settings and machine" }
                    @if opened.parts.is_empty() { a href=(page_of(name, "trials.jsonl")) { "Raw: trials" } }
                }
            }
            (parts(opened))
            @if let Some(summary) = &opened.summary { (servers(name, summary)) }
        }
    };
    document(name, &body)
}

fn answer(opened: &RunPage) -> Markup {
    let run = &opened.progress.run;
    html! {
        section.answer aria-labelledby="answer" {
            h2 #answer { "The answer" }
            @if let Some(problem) = &run.problem { div.warning { p { (problem) } } }
            @match &opened.glanced {
                GlanceState::Known(glance) => {
                    p.lead { (glance.sentence) }
                    p.of {
                        @if run.state != State::Finished { (badge(run.state)) }
                        (grade(glance))
                        @if let Some(cause) = &glance.cause { span { (cause) } }
                    }
                    @if let Some(small) = &glance.strip {
                        @if small.is_of_verdicts() {
                            ul.claims { @for mark in &small.marks {
                                li { span.(match mark.good { Some(true) => "good", Some(false) => "bad", None => "quiet" }) { (mark.text) } " " (mark.name) }
                            } }
                            @if small.left_out > 0 { p.fine { (small.left_out) " more in the report." } }
                        } @else { figure.glance { (large(small)) } }
                    }
                },
                GlanceState::Failed(why) => @if run.problem.is_none() { div.warning { p { (why) } } },
                GlanceState::Waiting => {},
            }
        }
    }
}

fn parts(opened: &RunPage) -> Markup {
    if opened.parts.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="parts" {
            h2 #parts { "Parts" }
            ul.list {
                @for (part, glanced) in &opened.parts {
                    li.run {
                        div.says {
                            p.sentence {
                                @match glanced.known() {
                                    Some(glance) => (glance.sentence),
                                    None => (part.question),
                                }
                            }
                            p.of {
                                a href=(page_of(&part.name, "")) { (part.name.rsplit('/').next().unwrap_or_default()) }
                                @if part.state != State::Finished { (badge(part.state)) }
                                @if let Some(glance) = glanced.known() { (grade(glance)) }
                                span { (some(&part.servers)) }
                                span { (numbers(&part.clients)) " clients" }
                            }
                        }
                        div.drawn {
                            @if let Some(small) = glanced.known().and_then(|glance| glance.strip.as_ref()) { (picture(small)) small { (small.title) } }
                        }
                    }
                }
            }
        }
    }
}

/// Every server and number of clients.
fn servers(name: &str, summary: &Summary) -> Markup {
    let metrics: Vec<_> = of_trial()
        .filter(|metric| {
            let mut rows = summary.rows.iter();
            rows.any(|row| row.value(metric.name).is_some())
        })
        .collect();
    let trials = |row: &Row| {
        let of = format!("server={}&clients={}", encoded(&row.server), row.clients);
        page_of(name, &format!("trials?{of}"))
    };
    html! {
        @if !summary.rows.is_empty() {
            section.results aria-labelledby="servers" {
                h2 #servers { "Servers and loads" }
                p.hint { "Medians over trials or slices with 95 % intervals, or the range of fewer than 6. The number of trials links to the trials, the name to the history of the server." }
                div.scroll tabindex="0" role="region" aria-label="Servers and loads, scrollable" {
                    table {
                        thead { tr {
                            th scope="col" { "Server" }
                            th scope="col" { "Clients" }
                            th scope="col" { "Trials" }
                            @for metric in &metrics { th scope="col" title=(metric.help) { (metric.label) } }
                        } }
                        tbody {
                            @for row in summary.rows.iter().rev() {
                                tr {
                                    th scope="row" { a href=(to_history(&row.server, Some(row.clients))) { (row.server) } }
                                    td { (whole(row.clients.into())) }
                                    td {
                                        a href=(trials(row)) aria-label=(format!("{} trials of {} with {}", row.trials_ok + row.trials_failed, row.server, counted(row.clients, "client"))) { (row.trials_ok + row.trials_failed) }
                                        @if row.trials_failed > 0 { small.bad { (row.trials_failed) " failed" } }
                                    }
                                    @for metric in &metrics {
                                        td {
                                            @match row.quantity(metric.name) {
                                                Some(quantity) => {
                                                    (metric.text(quantity.value))
                                                    @if let Some(range) = metric.range(quantity) { small { (range) } }
                                                },
                                                None => (ABSENT),
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
    }
}

/// The progress of a run, refreshed while it runs.
pub(crate) fn live(progress: &Progress) -> Markup {
    let run = &progress.run;
    let is_running = run.state == State::Running;
    html! {
        div #live data-state=(run.state.text()) data-live=(page_of(&run.name, "live")) {
            @if is_running {
                section.answer aria-labelledby="progress" {
                    h2 #progress { "Progress" }
                    p.lead #words role="status" { (progress.words()) }
                    p.of {
                        (badge(run.state))
                        @if let Some(part) = &progress.part { span { "part " b { (part) } } }
                        @if let Some((trial, points)) = &progress.now { (now(trial, points)) }
                    }
                    @if let Some(percent) = progress.percent {
                        progress.wide max="100" value=(percent) aria-label="Trials done" {}
                    }
                    @if let Some(problem) = &run.problem { div.warning { p { (problem) } } }
                }
                @if let Some((_, points)) = &progress.now { (charts(points)) }
                (last(progress))
            }
            @if let Some(unread) = &progress.unread { div.warning { p { (unread) } } }
        }
    }
}

/// The running trial as text.
fn now(trial: &LiveTrial, points: &[LivePoint]) -> Markup {
    let last = points.last();
    html! {
        span {
            "now " b { (trial.server) } " with " (counted(trial.clients, "client")) ", " (trial.occasion)
            @if let Some(last) = last { ", " (last.phase) }
        }
        @if let Some(ratios) = last.and_then(|last| last.ratios.as_ref()) { span { (ratios) } }
    }
}

/// The running trial as charts.
fn charts(points: &[LivePoint]) -> Markup {
    let line = |of: &dyn Fn(&LivePoint) -> Option<f64>| -> Vec<Point> {
        let known = points.iter().filter(|point| point.ratios.is_none());
        let known = known.filter_map(|point| Some((point.at_s, of(point)?)));
        known
            .filter(|(at, value)| at.is_finite() && value.is_finite())
            .map(|(at, value)| Point::new(at, value))
            .collect()
    };
    let x = ("time since the trial began", Some("s"));
    let chart = |id, title, y, lines| Chart::course(id, title, x, y, lines).draw();
    html! {
        section.now aria-label="Running trial" {
            h2 { "Running trial" }
            div.figures {
                (chart("live-rate", "Requests per second", ("requests/s", None), vec![("requests/s", line(&|point| point.replies_per_s))]))
                (chart("live-p99", "p99 latency so far", ("p99", Some("ms")), vec![("p99", line(&|point| point.p99_us.map(|us| us / 1e3)))]))
                (chart("live-cpu", "CPU; 100 % is one CPU", ("CPU", Some("%")), vec![
                    ("server", line(&|point| point.server_cpu_percent)),
                    ("clients", line(&|point| point.client_cpu_percent)),
                ]))
                (chart("live-clients", "Clients", ("clients", None), vec![
                    ("connected", line(&|point| Some(point.connected as f64))),
                    ("served", line(&|point| Some(point.served as f64))),
                ]))
            }
        }
    }
}

fn last(progress: &Progress) -> Markup {
    if progress.last.is_empty() {
        return html! {};
    }
    html! {
        section.results aria-labelledby="last" {
            h2 #last { "Latest trials" }
            (super::trial::table(&progress.current, "Latest trials", Some("Latest trials, newest first"), &progress.last))
        }
    }
}
