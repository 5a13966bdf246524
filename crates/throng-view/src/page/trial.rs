//! The trials of a run, and one trial with its clients.

use maud::{Markup, html};

use super::chart::Chart;
use super::{document, of_page, opening, pages, time, to_run};
use crate::address::{encoded, page_of};
use crate::progress::EndedTrial;
use crate::trials::{Order, TrialDetail, TrialQuery};
use throng_record::Trial;
use throng_record::format::{ABSENT, counted, or_absent, time as duration, whole};
use throng_record::metrics::{METRICS, of_trial};
use throng_report::clients::OneClient;
use throng_report::figures::Point;
use throng_report::series::{RATE, Sample};

/// Maximum number of characters of a raw trial to show; a link leads to all of it.
const MOST_RAW: usize = 100_000;
/// Maximum number of points of a line over all clients.
const MOST_POINTS: usize = 400;

/// A table of trials of a run; `name` is for screen readers.
pub(super) fn table(run: &str, name: &str, caption: Option<&str>, trials: &[EndedTrial]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("{name}, scrollable")) {
            table {
                @if let Some(caption) = caption { caption.hidden { (caption) } }
                thead { tr {
                    th scope="col" { "Server" }
                    th scope="col" { "Clients" }
                    th.occasion scope="col" { "Trial" }
                    @for metric in of_trial() { th scope="col" title=(metric.help) { (metric.label) } }
                    th scope="col" { "Duration" }
                } }
                tbody { @for trial in trials { (line(run, trial)) } }
            }
        }
    }
}

/// A row of the table, with a link to the trial.
fn line(run: &str, trial: &EndedTrial) -> Markup {
    let to = page_of(run, &format!("trial?index={}", trial.index));
    html! {
        tr {
            th scope="row" { (trial.server) }
            td { (whole(trial.clients.into())) }
            td.occasion {
                a href=(to) aria-label=(format!("{} with {}, {}", trial.server, counted(trial.clients, "client"), trial.occasion)) { (trial.occasion) }
                @if let Some(why) = &trial.invalid { small.bad { "invalid: " (why) } }
            }
            @match &trial.failure {
                Some(why) => { td.failed colspan=(of_trial().count()) { "failed: " (why) } }
                None => { @for figure in &trial.figures { td { (figure) } } }
            }
            td { (format!("{:.1} s", trial.took_s)) }
        }
    }
}

/// Trials of a run.
pub(crate) fn list(way: &[String], selected: &TrialQuery) -> Markup {
    let name = way.last().map_or("", String::as_str);
    let shown = of_page(&selected.trials, selected.page);
    let mut to = page_of(name, "trials?");
    for (key, value) in [
        ("server", selected.server.clone()),
        (
            "clients",
            selected.clients.map(|clients| clients.to_string()),
        ),
    ] {
        if let Some(value) = value {
            to += &format!("{key}={}&", encoded(&value));
        }
    }
    let of = match (&selected.server, selected.clients) {
        (Some(server), Some(clients)) => format!("of {server} with {}", counted(clients, "client")),
        (Some(server), None) => format!("of {server}"),
        (None, Some(clients)) => format!("with {}", counted(clients, "client")),
        (None, None) => "in order of time".to_owned(),
    };
    let count = counted(
        u32::try_from(selected.trials.len()).unwrap_or(u32::MAX),
        "trial",
    );
    let below = html! { p.facts { span { (name) } span { (count) " " (of) } } };
    let body = html! {
        (opening(&to_run(way), "Trials", &below))
        main {
            section.results aria-label="Trials" { (table(name, "Trials", None, shown)) }
            (pages(to.trim_end_matches(['&', '?']), selected.page, selected.trials.len()))
            @if selected.server.is_some() || selected.clients.is_some() {
                p.links { a href=(page_of(name, "trials")) { "All trials" } }
            }
        }
    };
    document("Trials", &body)
}

/// One trial.
pub(crate) fn page(way: &[String], looked: &TrialDetail) -> Markup {
    let trial = &looked.trial;
    let name = way.last().map_or("", String::as_str);
    let clients = counted(trial.clients, "client");
    let title = format!("{} with {clients}, {}", trial.server, trial.occasion());
    let mut up = to_run(way);
    let own = format!(
        "trials?server={}&clients={}",
        encoded(&trial.server),
        trial.clients
    );
    up.push((
        page_of(name, &own),
        format!("{} with {clients}", trial.server),
    ));
    let below = html! {
        p.facts {
            span { (name) }
            span { "trial " (trial.index + 1) }
            @if !trial.started_at.is_empty() { span { time datetime=(trial.started_at) { (time(&trial.started_at)) } } }
            span { (format!("took {:.1} s", trial.took_s)) }
        }
    };
    let body = html! {
        (opening(&up, &title, &below))
        main {
            (outcome(looked))
            (over_time(looked))
            (clients_of(name, looked))
            (metrics(trial))
            (raw(name, looked))
        }
    };
    document(&title, &body)
}

fn outcome(looked: &TrialDetail) -> Markup {
    let trial = &looked.trial;
    html! {
        section.answer aria-labelledby="outcome" {
            h2 #outcome { "Result" }
            @match (&trial.failure, &trial.load) {
                (Some(failure), _) => {
                    p.lead { "Failed (" (failure.stage) "): " (failure.reason) }
                    @if !failure.output.is_empty() { pre { (failure.output) } }
                }
                (None, Some(load)) => {
                    p.lead {
                        @if let Some(rate) = load.window.replies_per_s { (whole(rate)) " requests/s; " }
                        (whole(load.served.into())) " of " (counted(load.clients, "client")) " served"
                        @let failed: u64 = load.errors.values().sum();
                        @if failed > 0 { "; " (whole(failed as f64)) " ended with an error" }
                        "."
                    }
                    @if !load.errors.is_empty() {
                        ul { @for (kind, count) in &load.errors { li { (kind) ": " (whole(*count as f64)) } } }
                    }
                }
                (None, None) => p.lead { "No measurements." },
            }
            @if let Some(invalid) = &trial.invalid { div.warning { p { "Invalid, not counted: " (invalid.reason) } } }
            @for warning in &trial.warnings { div.warning { p { (warning.message) } p.remedy { (warning.remedy) } } }
            @for problem in &looked.problems { div.warning { p { (problem) } } }
        }
    }
}

fn over_time(looked: &TrialDetail) -> Markup {
    let Some(series) = &looked.series else {
        return html! {};
    };
    let points = |samples: &[Sample]| -> Vec<Point> {
        let known = samples.iter().filter(|sample| sample.value.is_finite());
        known
            .map(|sample| Point::new(sample.at_s, sample.value))
            .collect()
    };
    let chart = |id, title, y, lines: Vec<(&'static str, (&str, &str))>| {
        let lines = lines.into_iter();
        let lines = lines.map(|(name, of)| (name, points(series.of(of))));
        let known = lines.filter(|(_, points)| !points.is_empty());
        let x = ("time since the measurement began", Some("s"));
        Chart::course(id, title, x, y, known.collect()).draw()
    };
    let rate = chart(
        "rate",
        "Requests per second",
        ("requests/s", None),
        vec![("requests/s", RATE)],
    );
    let cpu = chart(
        "cpu",
        "CPU; 100 % is one CPU",
        ("CPU", Some("%")),
        vec![
            ("server", ("server", "cpu_percent")),
            ("clients", ("client", "cpu_percent")),
        ],
    );
    let established = chart(
        "established",
        "Established connections",
        ("connections", None),
        vec![("connections", ("network", "established"))],
    );
    html! {
        @if !(rate.0.is_empty() && cpu.0.is_empty() && established.0.is_empty()) {
            section aria-labelledby="time" {
                h2 #time { "Over time" }
                div.figures { (rate) (cpu) (established) }
            }
        }
    }
}

/// Its clients: two distributions, then a table of all clients.
fn clients_of(name: &str, looked: &TrialDetail) -> Markup {
    let trial = &looked.trial;
    let Some(clients) = &looked.clients else {
        return html! {
            section aria-labelledby="clients" {
                h2 #clients { "Clients" }
                p.hint { "This trial has no file of its clients; their totals are below." }
            }
        };
    };
    let to = page_of(name, &format!("trial?index={}", trial.index));
    let sorted = |of: &dyn Fn(&OneClient) -> Option<f64>| -> Vec<Point> {
        let mut values: Vec<f64> = clients.iter().filter_map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        let step = values.len().div_ceil(MOST_POINTS).max(1);
        let last = values.len().saturating_sub(1);
        let values = values.iter().enumerate();
        let kept = values.filter(|(place, _)| place % step == 0 || *place == last);
        kept.map(|(place, value)| Point::new(place as f64 + 1.0, *value))
            .collect()
    };
    let chart = |id, title: &str, caption: &str, y, points| {
        Chart {
            caption: caption.to_owned(),
            ..Chart::course(
                id,
                title,
                ("clients, sorted", None),
                y,
                vec![("each client", points)],
            )
        }
        .draw()
    };
    let first = clients.iter().filter_map(|client| client.first_reply_us);
    let (unit, factor) = match first.fold(0.0, f64::max) {
        longest if longest < 1e6 => ("ms", 1e-3),
        _ => ("s", 1e-6),
    };
    let failed = clients.iter().filter(|client| !client.error.is_empty());
    let shown = of_page(clients, looked.page);
    let count = |count: usize| counted(u32::try_from(count).unwrap_or(u32::MAX), "client");
    html! {
        section aria-labelledby="clients" {
            h2 #clients { "Clients" }
            p.hint { (count(clients.len())) ", " (failed.count()) " ended with an error." }
            div.figures {
                (chart("replies", "Replies per client", "A flat line is even service.", ("replies", None), sorted(&|client| client.window_replies.map(|replies| replies as f64))))
                (chart("first", "Time to the first reply", "A steep end: some clients waited far longer than others.", ("first reply", Some(unit)), sorted(&|client| client.first_reply_us.map(|us| us * factor))))
            }
            nav.sorts aria-label="Order of clients" {
                "Sort by "
                @for order in Order::ALL {
                    a href=(format!("{to}&order={}#each", order.name())) aria-current=[(order == looked.order).then_some("true")] { (order.title()) } " "
                }
            }
            div.scroll #each tabindex="0" role="region" aria-label="Clients, scrollable" {
                table {
                    thead { tr {
                        th scope="col" { "Client" }
                        th scope="col" { "Connected at" }
                        th scope="col" { "Connect time" }
                        th scope="col" { "First reply" }
                        th scope="col" { "Replies, measured" }
                        th scope="col" { "All replies" }
                        th.text scope="col" { "Error" }
                    } }
                    tbody { @for client in shown { (one(client)) } }
                }
            }
            (pages(&format!("{to}&order={}", looked.order.name()), looked.page, clients.len()))
        }
    }
}

fn one(client: &OneClient) -> Markup {
    let of = |time: Option<f64>| or_absent(time, duration);
    html! {
        tr {
            th scope="row" { (client.number) }
            td { (of(client.connected_at_us)) }
            td { (of(client.connect_us)) }
            td { (of(client.first_reply_us)) }
            td { (or_absent(client.window_replies.map(|replies| replies as f64), whole)) }
            td { (whole(client.replies as f64)) }
            td.text.bad { @if client.error.is_empty() { span.quiet { "none" } } @else { (client.error) } }
        }
    }
}

/// Every metric of the trial.
fn metrics(trial: &Trial) -> Markup {
    let known: Vec<_> = METRICS
        .iter()
        .filter_map(|metric| Some((metric, metric.of(trial)?)))
        .collect();
    html! {
        @if !known.is_empty() {
            section aria-labelledby="metrics" {
                h2 #metrics { "All metrics" }
                details {
                    summary { (known.len()) " metrics" }
                    dl { @for (metric, value) in &known {
                        div { dt title=(metric.help) { (metric.label) } dd { @if value.is_finite() { (metric.text(*value)) } @else { (ABSENT) } } }
                    } }
                }
            }
        }
    }
}

fn raw(name: &str, looked: &TrialDetail) -> Markup {
    let index = looked.trial.index;
    let shown: String = looked.raw.chars().take(MOST_RAW).collect();
    html! {
        section aria-labelledby="raw" {
            h2 #raw { "Raw data" }
            p.links {
                a href=(page_of(name, &format!("trial.json?index={index}"))) download { "This trial as JSON" }
                @if looked.clients.is_some() { a href=(page_of(name, &format!("clients.csv?index={index}"))) download { "Its clients as CSV" } }
                @if looked.has_samples { a href=(page_of(name, &format!("samples.csv?index={index}"))) download { "Its samples as CSV" } }
            }
            details {
                summary { "Its line in trials.jsonl" }
                pre tabindex="0" { (shown) @if shown.len() < looked.raw.len() { "…" } }
            }
        }
    }
}
