//! The page of a run: its answer, its progress while it runs, its servers and loads, and links to its files.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use maud::{Markup, html};
use serde::Serialize;

use super::address::{encoded, page_of};
use super::list::{says, standing};
use super::page::{above, badge, chart, document, some, time, to_history};
use super::response::{Response, whole};
use super::runs::{RunEntry, Runs, State};
use super::so_far;
use super::trial::column;
use throng_record::format::{ABSENT, counted, span, whole as grouped};
use throng_record::metrics::{Metric, of_trial};
use throng_record::{self as record, LivePoint, LiveTrial, SideBySide, Trial, Trials, read_live};
use throng_report::document::html::blocks;
use throng_report::document::{Block, Cell, Column, Role, Row, Style, Table, Text};
use throng_report::figures::{Axis, Kind, Point};
use throng_report::summary::{self, Summary};

/// The most finished trials in the progress.
const LATEST: usize = 10;
/// Bytes to read at the end of the trial file; a trial takes about 20,000 bytes.
const END: u64 = 1 << 20;

/// The progress of a run, from its record.
#[derive(Debug, Serialize)]
pub(super) struct Progress {
    #[serde(flatten)]
    run: RunEntry,
    /// The share done, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u64>,
    /// The remaining time, while the run is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_s: Option<f64>,
    /// The name of the record of these trials: the run, or one of its parts.
    current: String,
    /// The servers, if they are measured side by side now.
    #[serde(skip)]
    side_by_side: Option<SideBySide>,
    /// The running trial, with its values over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<(LiveTrial, Vec<LivePoint>)>,
    /// The latest trials while the run is active, newest first.
    last: Vec<Trial>,
    /// The servers so far.
    #[serde(skip)]
    servers: Markup,
    /// Why the latest trials cannot be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<String>,
}

impl Progress {
    pub(super) fn of(run: RunEntry) -> Self {
        let is_running = run.state == State::Running;
        // Parts run one after the other, so the last part with trials is the running one.
        let begun = run.parts.iter().rev().find(|part| part.trials > 0);
        let current = begun.or(run.parts.first()).unwrap_or(&run).clone();
        let read = is_running.then(|| last_trials(&current.directory));
        let (mut last, unread) = match read.transpose() {
            Ok(last) => (last.unwrap_or_default(), None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        // The next part may already be running although its first trial has not ended.
        let mut writing = run.parts.iter().rev().chain([&run]).filter(|_| is_running);
        let now = writing.find_map(|part| read_live(&part.directory));
        drop(writing);
        let side_by_side = now.as_ref().and_then(|(_, points)| {
            let mut latest = points.iter().rev();
            latest.find_map(|point| point.side_by_side.clone())
        });
        let newest = now.as_ref().and_then(|(_, points)| points.last());
        let left_s = newest.and_then(|point| point.left_s);
        let share = newest.and_then(|point| point.share);
        let planned = run.planned.filter(|planned| *planned > 0);
        let servers = match &side_by_side {
            Some(seen) => so_far::side_by_side(seen),
            None => so_far::latest_trials(&current, &last),
        };
        last.truncate(LATEST);
        let of_trials = || planned.map(|all| run.trials.min(all) * 100 / all);
        Self {
            percent: share.map_or_else(of_trials, |share| Some((share * 100.0) as u64)),
            side_by_side,
            left_s,
            current: current.name,
            now,
            last,
            servers,
            unread,
            run,
        }
    }

    /// The progress as text: "trial 7 of 66, 9 %, about 2m 10s left".
    fn words(&self) -> String {
        let trials = self.run.trials;
        let mut words = vec![match (&self.side_by_side, self.run.planned) {
            (Some(seen), _) if seen.rounds == 0 => "warm-up".to_owned(),
            (Some(seen), _) => format!("round {}", grouped(seen.rounds.into())),
            (None, Some(planned)) => format!("trial {} of {planned}", (trials + 1).min(planned)),
            (None, None) => format!("trial {}", trials + 1),
        }];
        words.extend(self.percent.map(|percent| format!("{percent} %")));
        words.extend(self.left_s.and_then(|left| {
            let time = Duration::try_from_secs_f64(left).ok()?;
            Some(format!("about {} left", span(time)))
        }));
        words.join(", ")
    }
}

/// The complete trials at the end of a running record, whose file is never compressed, newest first.
fn last_trials(directory: &Path) -> anyhow::Result<Vec<Trial>> {
    let Some(file) = Trials::open(directory)? else {
        return Ok(Vec::new());
    };
    let from = file.metadata().len().saturating_sub(END);
    let mut end = Vec::new();
    file.lines_from(from)?.read_to_end(&mut end)?;
    let mut lines: Vec<&[u8]> = end.split(|byte| *byte == b'\n').collect();
    // After the last newline there is either nothing or an incomplete line. If reading did not begin at the start of
    // the file, the first line is the rest of an earlier one.
    lines.pop();
    if from > 0 && !lines.is_empty() {
        lines.remove(0);
    }
    let read = |line: &&[u8]| -> anyhow::Result<Trial> {
        let trial = std::str::from_utf8(line)
            .ok()
            .and_then(|line| record::parse(file.path(), 1, line).ok());
        // The line number would require reading the whole file.
        trial.context("a line of trials.jsonl is not a trial; the report says which and why")
    };
    lines.iter().rev().map(read).collect()
}

/// The page.
pub(super) fn page(runs: &Runs, mut run: RunEntry) -> Response {
    runs.add_glance(&mut run);
    for part in &mut run.parts {
        runs.add_glance(part);
    }
    let name = run.name.clone();
    let title = if run.question.is_empty() {
        &name
    } else {
        &run.question
    };
    let facts = html! {
        span { b { (name) } }
        @if !run.study.is_empty() { span { (run.study) } }
        @if !run.started_at.is_empty() { span { (time(&run.started_at)) } }
        @if !run.servers.is_empty() { span { (some(&run.servers)) } }
        @if !run.machine.is_empty() { span { (run.machine) } }
        @if !run.throng.is_empty() { span { "throng " (run.throng) } }
    };
    let is_known = run.problem.is_none() && !run.study.is_empty();
    let content = html! {
        main {
            @if run.state != State::Running { (answer(&run)) }
            (live(&Progress::of(run.clone())))
            @if is_known {
                p.links {
                    a.main href=(page_of(&name, "report.html")) {
                        @if run.state == State::Running { "Report of the trials so far" } @else { "Full report" }
                    }
                    @if run.parts.is_empty() { a href=(page_of(&name, "trials")) { "All trials" } }
                    a href=(page_of(&name, if run.parts.is_empty() { "run.json" } else { "study.json" })) { "Raw: settings and machine" }
                    @if run.parts.is_empty() { a href=(page_of(&name, "trials.jsonl")) { "Raw: trials" } }
                }
            }
            @if !run.parts.is_empty() {
                section aria-labelledby="parts" {
                    h2 #parts { "Parts" }
                    ul.list { @for part in &run.parts { li.run { (says(part, last_name(&part.name))) } } }
                }
            }
            @if run.parts.is_empty() && run.is_read() { (servers(&run)) }
        }
    };
    whole(&document(&above(&run), title, &facts, &content))
}

fn answer(run: &RunEntry) -> Markup {
    let glance = run.glance.as_ref().map(|glance| glance.as_ref());
    let problems: Vec<Block> = [run.problem.as_ref(), glance.and_then(Result::err)]
        .into_iter()
        .flatten()
        .map(|problem| Block::Warning(problem.clone(), String::new()))
        .collect();
    html! {
        section.answer aria-labelledby="answer" {
            h2 #answer { "The answer" }
            (blocks(&problems))
            @if let Some(Ok(glance)) = glance {
                p.lead { (glance.sentence) }
                p.of {
                    (standing(run))
                    @if let Some(cause) = &glance.cause { span { (cause) } }
                }
            }
        }
    }
}

fn last_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// Every server and number of clients; nothing if the numbers are unreadable, which the answer says.
fn servers(run: &RunEntry) -> Markup {
    let read = || -> anyhow::Result<Summary> {
        let trials = record::read_trials(&run.directory)?;
        Summary::of(&record::read(&run.directory)?, &trials)
    };
    let Some(summary) = read().ok().filter(|summary| !summary.rows.is_empty()) else {
        return html! {};
    };
    let is_known = |metric: &&Metric| {
        summary
            .rows
            .iter()
            .any(|row| row.value(metric.name).is_some())
    };
    let metrics: Vec<&Metric> = of_trial().filter(is_known).collect();
    let mut columns = vec![Column::text("Server"), Column::number("Trials")];
    columns.extend(metrics.iter().map(|metric| column(metric)));
    let row = |row: &summary::Row| {
        let of = format!("server={}&clients={}", encoded(&row.server), row.clients);
        let trials = page_of(&run.name, &format!("trials?{of}"));
        let clients = counted(row.clients, "client");
        let name = Text::default()
            .then(
                &row.server,
                Style::Page(to_history(&row.server, row.clients)),
            )
            .plain(" with ")
            .then(clients, Style::Page(trials));
        let failed = match row.trials_failed {
            0 => String::new(),
            failed => format!("{failed} failed"),
        };
        let number = grouped((row.trials_ok + row.trials_failed).into());
        let values = metrics
            .iter()
            .map(|metric| match row.quantity(metric.name) {
                Some(found) => Cell::plain(metric.text(found.value))
                    .with(metric.range(found).unwrap_or_default()),
                None => Cell::plain(ABSENT),
            });
        let count = Cell::plain(number).with(failed);
        Row::of(name, std::iter::once(count).chain(values).collect())
    };
    let rows = summary.rows.iter().rev().map(row).collect();
    let hint = "Medians over trials or slices with 95 % intervals, or the range of fewer than 6. The name of a server links to its history, its clients to the trials.";
    let all = [
        Block::paragraph(Role::Hint, hint),
        Block::Table(Table::of("Servers and loads", columns, rows)),
    ];
    html! {
        section.results aria-labelledby="servers" {
            h2 #servers { "Servers and loads" }
            (blocks(&all))
        }
    }
}

/// The progress of a run, refreshed while it runs.
pub(super) fn live(progress: &Progress) -> Markup {
    let run = &progress.run;
    html! {
        div #live data-state=(run.state.text()) data-live=(page_of(&run.name, "live")) {
            @if run.state == State::Running {
                section.answer aria-labelledby="progress" {
                    h2 #progress { "Progress" }
                    p.lead #words role="status" { (progress.words()) }
                    @if let Some(ahead) = progress.side_by_side.as_ref().and_then(so_far::ahead) { p { (ahead) } }
                    p.of {
                        (badge(run.state))
                        @if progress.current != run.name { span { "part " b { (last_name(&progress.current)) } } }
                        @match &progress.now {
                            Some((trial, _)) if progress.side_by_side.is_some() => span { "with " (counted(trial.clients, "client")) }
                            Some((trial, points)) => (now(trial, points))
                            None => {}
                        }
                    }
                    @if let Some(percent) = progress.percent {
                        progress.wide max="100" value=(percent) aria-label="Trials done" {}
                    }
                }
                (progress.servers)
                @if let Some((_, points)) = progress.now.as_ref().filter(|_| progress.side_by_side.is_none()) { (charts(points)) }
            }
            @if let Some(unread) = &progress.unread { div.warning { p { (unread) } } }
        }
    }
}

/// The running trial as text.
fn now(trial: &LiveTrial, points: &[LivePoint]) -> Markup {
    let phase = points.last().map_or("", |point| &point.phase);
    html! {
        span {
            "now " b { (trial.server) } " with " (counted(trial.clients, "client")) ", " (trial.occasion)
            @if !phase.is_empty() { ", " (phase) }
        }
    }
}

/// The running trial as charts, once there is something to draw.
fn charts(points: &[LivePoint]) -> Markup {
    if points.len() < 2 {
        return html! {};
    }
    let line = |of: &dyn Fn(&LivePoint) -> Option<f64>| -> Vec<Point> {
        let known = points
            .iter()
            .filter_map(|point| Some((point.at_s, of(point)?)));
        known
            .filter(|(at, value)| at.is_finite() && value.is_finite())
            .map(|(at, value)| Point::new(at, value))
            .collect()
    };
    let x = Axis::linear("time since the trial began", Some("s"));
    let drawn = |id, title, (label, unit), lines| {
        let y = Axis::linear(label, unit);
        chart(Kind::Course, id, title, x.clone(), y, lines)
    };
    html! {
        section.now aria-label="Running trial" {
            h2 { "Running trial" }
            div.figures {
                (drawn("live-rate", "Requests per second", ("requests/s", None), vec![("requests/s", line(&|point| point.replies_per_s))]))
                (drawn("live-p99", "p99 latency so far", ("p99", Some("ms")), vec![("p99", line(&|point| point.p99_us.map(|us| us / 1e3)))]))
                (drawn("live-cpu", "CPU; 100 % is one CPU", ("CPU", Some("%")), vec![
                    ("server", line(&|point| point.server_cpu_percent)),
                    ("clients", line(&|point| point.client_cpu_percent)),
                ]))
                (drawn("live-clients", "Clients", ("clients", None), vec![
                    ("connected", line(&|point| Some(point.connected as f64))),
                    ("served", line(&|point| Some(point.served as f64))),
                ]))
            }
        }
    }
}
