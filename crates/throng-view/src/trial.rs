//! The trials of a run, and one trial with its clients.

use std::cmp::Ordering;

use maud::{Markup, html};

use super::address::{encoded, number, page_of, value};
use super::page::{chart, count, document, of_page, pages, scrolled, time, way_to};
use super::response::{Answer, Refused, whole};
use super::runs::RunEntry;
use throng_record::format::{ABSENT, counted, or_absent, time as duration, whole as grouped};
use throng_record::metrics::{METRICS, Metric, of_trial};
use throng_record::{Severity, Trial, read_trials};
use throng_report::figures::{Kind, Point};
use throng_report::trial_files::{OneClient, RATE, TimeSeries, read_clients};

/// Maximum number of points of a line over all clients.
const MOST_POINTS: usize = 400;

/// An order of clients: its name in URLs, its title, and the comparison.
type Order = (
    &'static str,
    &'static str,
    fn(&OneClient, &OneClient) -> Ordering,
);

const ORDERS: [Order; 4] = [
    ("number", "number", |one, other| {
        one.number.cmp(&other.number)
    }),
    ("slowest", "errors and slowest first reply", |one, other| {
        let first = |client: &OneClient| client.first_reply_us.unwrap_or(f64::INFINITY);
        let by_error = one.error.is_empty().cmp(&other.error.is_empty());
        by_error.then(first(other).total_cmp(&first(one)))
    }),
    ("fewest", "fewest replies", |one, other| {
        one.window_replies.cmp(&other.window_replies)
    }),
    ("most", "most replies", |one, other| {
        other.window_replies.cmp(&one.window_replies)
    }),
];

/// The trial with the index in a query.
pub(super) fn selected(run: &RunEntry, query: &str) -> Result<Trial, Refused> {
    let index = number(query, "index");
    let trials = read_trials(&run.directory)?.into_iter();
    let mut meant = trials.filter(|trial| Some(trial.index) == index);
    meant
        .next()
        .ok_or_else(|| Refused::missing("The run has no such trial."))
}

/// A table of trials of a run; `name` is for screen readers.
pub(super) fn table(run: &str, name: &str, trials: &[Trial]) -> Markup {
    let table = html! {
        thead { tr {
            th scope="col" { "Server" }
            th scope="col" { "Clients" }
            th.occasion scope="col" { "Trial" }
            @for metric in of_trial() { th scope="col" title=(metric.help) { (metric.label) } }
            th scope="col" { "Duration" }
        } }
        tbody { @for trial in trials { (line(run, trial)) } }
    };
    scrolled(name, &table)
}

/// A row of the table, with a link to the trial.
fn line(run: &str, trial: &Trial) -> Markup {
    let to = page_of(run, &format!("trial?index={}", trial.index));
    let occasion = trial.occasion();
    html! {
        tr {
            th scope="row" { (trial.server) }
            td { (grouped(trial.clients.into())) }
            td.occasion {
                a href=(to) aria-label=(format!("{} with {}, {occasion}", trial.server, counted(trial.clients, "client"))) { (occasion) }
                @if let Some(invalid) = trial.invalid() { small.bad { "invalid: " (invalid.text) } }
            }
            @match &trial.failure {
                Some(failure) => { td.failed colspan=(of_trial().count()) { "failed: " (failure.reason) } }
                None => { @for metric in of_trial() { td { (or_absent(metric.of(trial), |value| metric.text(value))) } } }
            }
            td { (format!("{:.1} s", trial.took_s)) }
        }
    }
}

/// The trials of a run with the server and the number of clients of a query.
pub(super) fn list(run: &RunEntry, query: &str) -> Answer {
    let (server, clients) = (value(query, "server"), number(query, "clients"));
    let mut trials = read_trials(&run.directory)?;
    trials.retain(|trial| {
        clients.is_none_or(|clients| clients == trial.clients)
            && server.as_ref().is_none_or(|server| *server == trial.server)
    });
    let page = number(query, "page").unwrap_or(1) as usize;
    let name = &run.name;
    let mut to = page_of(name, "trials?");
    let mut of = count(trials.len(), "trial");
    if let Some(server) = &server {
        to += &format!("server={}", encoded(server));
        of += &format!(" of {server}");
    }
    if let Some(clients) = clients {
        to += &format!("&clients={clients}");
        of += &format!(" with {}", counted(clients, "client"));
    }
    let facts = html! { span { (name) } span { (of) } };
    let content = html! {
        main {
            section.results aria-label="Trials" { (table(name, "Trials", of_page(&trials, page))) }
            (pages(&to, page, trials.len()))
            @if server.is_some() || clients.is_some() {
                p.links { a href=(page_of(name, "trials")) { "All trials" } }
            }
        }
    };
    Ok(whole(&document(&way_to(run), "Trials", &facts, &content)))
}

/// One trial.
pub(super) fn page(run: &RunEntry, query: &str) -> Answer {
    let trial = selected(run, query)?;
    let name = &run.name;
    let mut problems = Vec::new();
    let mut unread = |error: anyhow::Error| problems.push(format!("{error:#}"));
    let series = TimeSeries::read(&run.directory, &trial);
    let series = series.map_err(&mut unread).ok();
    let clients = read_clients(&run.directory, &trial);
    let clients = clients.map_err(&mut unread).ok().flatten();
    let with_clients = counted(trial.clients, "client");
    let title = format!("{} with {with_clients}, {}", trial.server, trial.occasion());
    let alike = format!(
        "trials?server={}&clients={}",
        encoded(&trial.server),
        trial.clients
    );
    let mut up = way_to(run);
    up.push((
        page_of(name, &alike),
        format!("{} with {with_clients}", trial.server),
    ));
    let facts = html! {
        span { (name) }
        span { "trial " (trial.index + 1) }
        @if !trial.started_at.is_empty() { span { (time(&trial.started_at)) } }
        span { (format!("took {:.1} s", trial.took_s)) }
    };
    let content = html! {
        main {
            (outcome(&trial, &problems))
            @if let Some(series) = &series { (over_time(series)) }
            @match clients {
                Some(clients) => (clients_of(&page_of(name, &format!("trial?index={}", trial.index)), clients, query)),
                None => section aria-labelledby="clients" {
                    h2 #clients { "Clients" }
                    p.hint { "This trial has no file of its clients; their totals are below." }
                }
            }
            (metrics(&trial))
            section aria-labelledby="raw" {
                h2 #raw { "Raw data" }
                p.links {
                    @for (file, what) in [
                        ("trial.json", "This trial as JSON"),
                        ("clients.csv", "Its clients as CSV"),
                        ("samples.csv", "Its samples as CSV"),
                    ] {
                        a href=(page_of(name, &format!("{file}?index={}", trial.index))) download { (what) }
                    }
                }
            }
        }
    };
    Ok(whole(&document(&up, &title, &facts, &content)))
}

fn outcome(trial: &Trial, problems: &[String]) -> Markup {
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
                        @if let Some(rate) = load.window.replies_per_s { (grouped(rate)) " requests/s; " }
                        (grouped(load.served.into())) " of " (counted(load.clients, "client")) " served"
                        @let failed: u64 = load.errors.values().sum();
                        @if failed > 0 { "; " (grouped(failed as f64)) " ended with an error" }
                        "."
                    }
                    @if !load.errors.is_empty() {
                        ul { @for (kind, count) in &load.errors { li { (kind) ": " (grouped(*count as f64)) } } }
                    }
                }
                (None, None) => p.lead { "No measurements." },
            }
            @for finding in &trial.findings {
                div.warning {
                    p { @if finding.severity == Severity::Invalid { "Invalid, not counted: " } (finding.text) }
                    p.remedy { (finding.remedy) }
                }
            }
            @for problem in problems { div.warning { p { (problem) } } }
        }
    }
}

fn over_time(series: &TimeSeries) -> Markup {
    let points = |of, size: f64| -> Vec<Point> {
        let known = series
            .of(of)
            .iter()
            .filter(|sample| sample.value.is_finite());
        known
            .map(|sample| Point::new(sample.at_s, sample.value / size))
            .collect()
    };
    let x = ("time since the measurement began", Some("s"));
    let drawn = |id, title, y, lines| chart(Kind::Course, id, title, x, y, lines);
    html! {
        section aria-labelledby="time" {
            h2 #time { "Over time" }
            div.figures {
                (drawn("rate", "Requests per second", ("requests/s", None), vec![("requests/s", points(RATE, 1.0))]))
                (drawn("cpu", "CPU; 100 % is one CPU", ("CPU", Some("%")), vec![
                    ("server", points(("server", "cpu_percent"), 1.0)),
                    ("clients", points(("client", "cpu_percent"), 1.0)),
                ]))
                (drawn("memory", "Server memory", ("memory", Some("MiB")), vec![("server", points(("server", "pss_bytes"), 1_048_576.0))]))
                (drawn("established", "Established connections", ("connections", None), vec![
                    ("connections", points(("network", "established"), 1.0)),
                ]))
            }
        }
    }
}

/// The clients of a trial, at the URL `to`: two distributions, then a table of all clients.
fn clients_of(to: &str, mut clients: Vec<OneClient>, query: &str) -> Markup {
    let asked = value(query, "order").unwrap_or_default();
    let (order, _, by) = ORDERS
        .into_iter()
        .find(|(name, ..)| *name == asked)
        .unwrap_or(ORDERS[0]);
    clients.sort_by(by);
    let sorted = |of: &dyn Fn(&OneClient) -> Option<f64>| -> Vec<Point> {
        let mut values: Vec<f64> = clients.iter().filter_map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        let step = values.len().div_ceil(MOST_POINTS).max(1);
        let last = values.len().saturating_sub(1);
        let values = values.iter().enumerate();
        let kept = values.filter(|(index, _)| index % step == 0 || *index == last);
        kept.map(|(index, value)| Point::new(index as f64 + 1.0, *value))
            .collect()
    };
    let drawn = |id, title, y, points| {
        let x = ("clients, sorted", None);
        chart(Kind::Course, id, title, x, y, vec![("each client", points)])
    };
    let failed = clients.iter().filter(|client| !client.error.is_empty());
    let page = number(query, "page").unwrap_or(1) as usize;
    let table = html! {
        thead { tr {
            @for heading in ["Client", "Connected at", "Connect time", "First reply", "Replies, measured", "All replies"] {
                th scope="col" { (heading) }
            }
            th.text scope="col" { "Error" }
        } }
        tbody { @for client in of_page(&clients, page) { (one(client)) } }
    };
    html! {
        section aria-labelledby="clients" {
            h2 #clients { "Clients" }
            p.hint { (count(clients.len(), "client")) ", " (failed.count()) " ended with an error." }
            div.figures {
                (drawn("replies", "Replies per client", ("replies", None), sorted(&|client| client.window_replies.map(|replies| replies as f64))))
                (drawn("first", "Time to the first reply", ("first reply", Some("ms")), sorted(&|client| client.first_reply_us.map(|us| us / 1e3))))
            }
            nav.sorts #each aria-label="Order of clients" {
                "Sort by "
                @for (name, title, _) in ORDERS {
                    a href=(format!("{to}&order={name}#each")) aria-current=[(name == order).then_some("true")] { (title) } " "
                }
            }
            (scrolled("Clients", &table))
            (pages(&format!("{to}&order={order}"), page, clients.len()))
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
            td { (or_absent(client.window_replies.map(|replies| replies as f64), grouped)) }
            td { (grouped(client.replies as f64)) }
            td.text.bad { @if client.error.is_empty() { span.quiet { "none" } } @else { (client.error) } }
        }
    }
}

/// Every metric of the trial.
fn metrics(trial: &Trial) -> Markup {
    let known = METRICS
        .iter()
        .filter_map(|metric| Some((metric, metric.of(trial)?)));
    let known: Vec<(&Metric, f64)> = known.collect();
    html! {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_in_the_order_that_was_asked_for() {
        let client = |number, first_reply_us, window_replies, error: &str| OneClient {
            number,
            first_reply_us,
            window_replies: Some(window_replies),
            error: error.to_owned(),
            ..OneClient::default()
        };
        let mut clients = [
            client(0, Some(5.0), 3, ""),
            client(1, None, 0, ""),
            client(2, Some(9.0), 7, ""),
            client(3, Some(1.0), 5, "refused"),
        ];
        for ((name, _, by), numbers) in
            ORDERS
                .into_iter()
                .zip([[0, 1, 2, 3], [3, 1, 2, 0], [1, 0, 3, 2], [2, 3, 0, 1]])
        {
            clients.sort_by(by);
            let found = clients.each_ref().map(|client| client.number);
            assert_eq!(found, numbers, "{name}");
        }
    }
}
