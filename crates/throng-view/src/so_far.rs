//! The servers of a run that is not over yet.

use maud::{Markup, html};

use super::runs::RunEntry;
use throng_record::format::{ABSENT, counted, number, or_absent, time};
use throng_record::metrics::{METRICS, Metric, Quantity, named};
use throng_record::{SideBySide, Trial};
use throng_report::document::html::blocks;
use throng_report::document::{Block, Cell, Column, Row, Table, Tone};

/// "poll is ahead so far, with 2.53 (2.40–2.66) times the rate of thread."; `None` before there are enough rounds.
pub(super) fn ahead(seen: &SideBySide) -> Option<String> {
    let reference = &seen.reference;
    let with_ratio = || {
        let servers = seen.servers.iter();
        servers.filter_map(|server| Some((server, server.ratio?)))
    };
    with_ratio().next()?;
    // The distance from 1 grows with the advantage.
    let advantage = |ratio: &Quantity| ratio.value.ln().abs();
    let better = with_ratio().filter(|(server, _)| seen.is_better(server) == Some(true));
    let ahead = better.max_by(|(_, one), (_, other)| advantage(one).total_cmp(&advantage(other)));
    let worse = || with_ratio().all(|(server, _)| seen.is_better(server) == Some(false));
    let noun = compared_by(seen).map_or_else(String::new, Metric::noun);
    Some(match ahead {
        Some((server, ratio)) => {
            let (name, times) = (&server.name, ratio.as_ratio());
            format!("{name} is ahead so far, with {times} times the {noun} of {reference}.")
        }
        None if worse() => format!("{reference} is ahead so far."),
        None => format!("By {noun}, no server is better than {reference} so far."),
    })
}

/// The metric of the ratios.
fn compared_by(seen: &SideBySide) -> Option<&'static Metric> {
    named(if seen.is_by_cpu {
        "server_cpu_us_per_request"
    } else {
        "requests_per_s"
    })
}

/// The servers that are measured side by side.
pub(super) fn side_by_side(seen: &SideBySide) -> Markup {
    let label = |name| named(name).map_or(name, |metric: &Metric| metric.label);
    let mut columns = vec![Column::text("Server")];
    for name in [
        "requests_per_s",
        "latency_p50_us",
        "latency_p99_us",
        "server_cpu_us_per_request",
    ] {
        columns.push(Column::number(label(name)));
    }
    let ratio = format!(
        "{} relative to {} (95 %)",
        compared_by(seen).map_or("", |metric| metric.label),
        seen.reference
    );
    columns.push(Column::number(ratio));
    let rates = seen
        .servers
        .iter()
        .filter_map(|server| server.requests_per_s);
    let most = rates.fold(0.0, f64::max);
    let rows = seen.servers.iter().map(|server| {
        let times = [server.p50_us, server.p99_us, server.cpu_us_per_request];
        let mut cells = vec![with_bar(
            or_absent(server.requests_per_s, number),
            server.requests_per_s,
            most,
        )];
        cells.extend(times.map(|value| Cell::plain(or_absent(value, time))));
        let tone = match seen.is_better(server) {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Quiet,
        };
        cells.push(match server.ratio {
            Some(measured) => Cell::plain(measured.as_ratio()).toned(tone),
            None if server.name == seen.reference => Cell::plain("reference"),
            None => Cell::plain(ABSENT),
        });
        Row::of(server.name.as_str(), cells)
    });
    let title = match seen.rounds {
        0 => "Each server as it warms up".to_owned(),
        rounds => format!("Side by side, after {}", counted(rounds, "round")),
    };
    let hint = "Values are medians of the latest slices; a ratio is over all rounds. Green is better, red worse.";
    section(&title, hint, columns, rows.collect())
}

/// The latest of these trials, newest first, of each server with each number of clients.
pub(super) fn latest_trials(run: &RunEntry, trials: &[Trial]) -> Markup {
    let all_have = |metric: &&Metric| {
        let mut done = trials.iter().filter(|trial| trial.failure.is_none());
        done.all(|trial| metric.of(trial).is_some())
    };
    let speeds = || METRICS.iter().filter(|metric| metric.is_speed());
    let Some(speed) = speeds().find(all_have).or(speeds().next()) else {
        return Markup::default();
    };
    let latest = |server: &str, clients: u32| {
        let mut of = trials.iter();
        of.find(|trial| trial.server == server && trial.clients == clients)
    };
    let mut columns = vec![Column::text("Server")];
    columns.extend(
        run.clients
            .iter()
            .map(|clients| Column::number(counted(*clients, "client"))),
    );
    let rows = run.servers.iter().map(|server| {
        let cells = run.clients.iter().map(|clients| {
            let of_all = run
                .servers
                .iter()
                .filter_map(|other| speed.of(latest(other, *clients)?));
            match latest(server, *clients) {
                None => Cell::plain(""),
                Some(trial) if trial.failure.is_some() => Cell::plain("failed"),
                Some(trial) => with_bar(
                    speed.shown_of(trial),
                    speed.of(trial),
                    of_all.fold(0.0, f64::max),
                )
                .with(detail(trial)),
            }
        });
        Row::of(server.as_str(), cells.collect())
    });
    let title = format!("Latest trials: {}", speed.label.to_lowercase());
    section(&title, "", columns, rows.collect())
}

fn section(title: &str, hint: &str, columns: Vec<Column>, rows: Vec<Row>) -> Markup {
    html! {
        section.results aria-labelledby="servers" {
            h2 #servers { (title) }
            @if !hint.is_empty() { p.hint { (hint) } }
            (blocks(&[Block::Table(Table::of(title, columns, rows))]))
        }
    }
}

fn with_bar(text: String, value: Option<f64>, most: f64) -> Cell {
    Cell {
        bar: value.filter(|_| most > 0.0).map(|value| value / most),
        ..Cell::plain(text)
    }
}

/// What is to be known beside the speed: the p99 latency, and whether the trial is invalid.
fn detail(trial: &Trial) -> String {
    let p99 = named("latency_p99_us").filter(|metric| metric.of(trial).is_some());
    let mut words: Vec<String> = Vec::new();
    words.extend(p99.map(|metric| format!("p99 {}", metric.shown_of(trial))));
    words.extend(trial.invalid().map(|_| "invalid".to_owned()));
    words.join(", ")
}
