//! The trials of a run, and one trial with its clients.

use std::cmp::Ordering;

use maud::{Markup, html};

use super::address::{encoded, number, page_of, value};
use super::page::{chart, count, document, of_page, pages, time, way_to};
use super::response::{Answer, Refused, whole};
use super::runs::RunEntry;
use throng_record::format::{counted, or_absent, time as duration, whole as grouped};
use throng_record::metrics::{METRICS, Metric, of_trial};
use throng_record::{Severity, Trial, read_trials};
use throng_report::document::html::blocks;
use throng_report::document::{Block, Cell, Column, Role, Row, Style, Table, Text, Tone};
use throng_report::figures::{Axis, Kind, Point};
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

/// A table of trials of a run, each with a link to its page.
pub(super) fn table(run: &str, trials: &[Trial]) -> Markup {
    let rows = trials.iter().map(|trial| row(run, trial)).collect();
    let mut columns = vec![Column::text("Trial")];
    columns.extend(of_trial().map(column));
    columns.push(Column::number("Duration"));
    blocks(&[Block::Table(Table::of("Trials", columns, rows))])
}

fn row(run: &str, trial: &Trial) -> Row {
    let clients = counted(trial.clients, "client");
    let to = page_of(run, &format!("trial?index={}", trial.index));
    let name = format!("{} with {clients}, {}", trial.server, trial.occasion());
    let values = of_trial().map(|metric| Cell::plain(metric.shown_of(trial)));
    let took = Cell::plain(format!("{:.1} s", trial.took_s));
    let mut row = Row::of(Text::default().then(name, Style::Page(to)), Vec::new());
    let invalid = trial.invalid().into_iter();
    row.flags = invalid
        .map(|why| format!("invalid: {}", why.text))
        .collect();
    match &trial.failure {
        Some(failure) => row.why = format!("failed: {}", failure.reason),
        None => row.cells = values.chain([took]).collect(),
    }
    row
}

/// The column of a metric.
pub(super) fn column(metric: &Metric) -> Column {
    Column {
        note: metric.help.to_owned(),
        ..Column::number(metric.label)
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
            section.results aria-label="Trials" { (table(name, of_page(&trials, page))) }
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
    let series = TimeSeries::read(&run.directory, &trial)
        .map_err(&mut unread)
        .ok();
    let clients = read_clients(&run.directory, &trial)
        .map_err(&mut unread)
        .ok()
        .flatten();
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
    let mut all = Vec::new();
    if let Some(failure) = &trial.failure {
        let lead = format!("Failed ({}): {}", failure.stage, failure.reason);
        all.push(Block::paragraph(Role::Lead, lead));
        all.extend((!failure.output.is_empty()).then(|| Block::Code(failure.output.clone())));
    } else if let Some(load) = &trial.load {
        let rate = load.window.replies_per_s.map_or_else(String::new, |rate| {
            format!("{} requests/s; ", grouped(rate))
        });
        let (served, clients) = (grouped(load.served.into()), counted(load.clients, "client"));
        let failures = load.errors.values().sum::<u64>() as f64;
        let failed = if failures > 0.0 {
            format!("; {} ended with an error", grouped(failures))
        } else {
            String::new()
        };
        let lead = format!("{rate}{served} of {clients} served{failed}.");
        all.push(Block::paragraph(Role::Lead, lead));
        let errors = load.errors.iter();
        all.push(Block::list(errors.map(|(kind, count)| {
            format!("{kind}: {}", grouped(*count as f64))
        })));
    } else {
        all.push(Block::paragraph(Role::Lead, "No measurements."));
    }
    all.extend(trial.findings.iter().map(|finding| {
        let invalid = if finding.severity == Severity::Invalid {
            "Invalid, not counted: "
        } else {
            ""
        };
        Block::Warning(format!("{invalid}{}", finding.text), finding.remedy.clone())
    }));
    let each = problems.iter();
    all.extend(each.map(|problem| Block::Warning(problem.clone(), String::new())));
    html! {
        section.answer aria-labelledby="outcome" { h2 #outcome { "Result" } (blocks(&all)) }
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
    let x = Axis::linear("time since the measurement began", Some("s"));
    let drawn = |id, title, (label, unit), lines| {
        let y = Axis::linear(label, unit);
        chart(Kind::Course, id, title, x.clone(), y, lines)
    };
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
        let numbered = values.iter().enumerate();
        let kept = numbered.filter(|(index, _)| index % step == 0 || *index == last);
        kept.map(|(index, value)| Point::new(index as f64 + 1.0, *value))
            .collect()
    };
    let drawn = |id, title, (label, unit), points| {
        let (x, y) = (
            Axis::linear("clients, sorted", None),
            Axis::linear(label, unit),
        );
        chart(Kind::Course, id, title, x, y, vec![("each client", points)])
    };
    let failed = clients.iter().filter(|client| !client.error.is_empty());
    let page = number(query, "page").unwrap_or(1) as usize;
    let mut columns = [
        "Client",
        "Connected at",
        "Connect time",
        "First reply",
        "Replies, measured",
        "All replies",
    ]
    .map(Column::number)
    .to_vec();
    columns.push(Column::text("Error"));
    let rows = of_page(&clients, page).iter().map(one).collect();
    let table = Block::Table(Table::of("Clients", columns, rows));
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
            (blocks(&[table]))
            (pages(&format!("{to}&order={order}"), page, clients.len()))
        }
    }
}

fn one(client: &OneClient) -> Row {
    let times = [
        client.connected_at_us,
        client.connect_us,
        client.first_reply_us,
    ]
    .map(|time| or_absent(time, duration));
    let measured = client.window_replies.map(|replies| replies as f64);
    let replies = [or_absent(measured, grouped), grouped(client.replies as f64)];
    let error = if client.error.is_empty() {
        Cell::plain("none").toned(Tone::Quiet)
    } else {
        Cell::plain(&client.error).toned(Tone::Bad)
    };
    let cells = times.into_iter().chain(replies).map(Cell::plain);
    Row::of(client.number.to_string(), cells.chain([error]).collect())
}

/// Every metric of the trial.
fn metrics(trial: &Trial) -> Markup {
    let known = METRICS.iter().filter(|metric| metric.of(trial).is_some());
    let facts: Vec<(Text, Text)> = known
        .map(|metric| (metric.label.into(), metric.shown_of(trial).into()))
        .collect();
    let summary = format!("{} metrics", facts.len());
    let all = Block::Fold(summary.into(), vec![Block::Facts(facts)]);
    html! {
        section aria-labelledby="metrics" { h2 #metrics { "All metrics" } (blocks(&[all])) }
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
