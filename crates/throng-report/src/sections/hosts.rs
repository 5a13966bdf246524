//! The share of each client host in a load, and the total.

use crate::Report;
use crate::document::{Block, Cell, Column, Role, Row, Table};
use throng_record::format::{counted, number, or_absent, time, whole};
use throng_record::metrics::named;
use throng_record::{HostPart, Purpose, Trial};

/// A note above the tables.
const NOTE: &str = "Clients ran on several hosts. The last row is the whole load: counts are sums, and percentiles are of all \
    requests, not means of the rows above.";

/// The maximum number of trials shown.
const MOST_TABLES: usize = 24;
/// The maximum number of hosts shown per trial.
const MOST_ROWS: usize = 64;

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let note = Block::paragraph(Role::Hint, NOTE);
    let trials = trials(report).into_iter();
    std::iter::once(note).chain(trials.map(of)).collect()
}

/// The trials shown: the first for each server and number of clients, preferably a timed one, and every trial in which
/// a host failed.
fn trials<'a>(report: &'a Report<'_>) -> Vec<&'a Trial> {
    let mut pairs: Vec<(&str, u32)> = Vec::new();
    let mut shown = Vec::new();
    let with_hosts = report.trials.iter().filter(|trial| !trial.hosts.is_empty());
    let mut trials: Vec<&Trial> = with_hosts.collect();
    trials.sort_by_key(|trial| trial.purpose != Purpose::Timed);
    for trial in trials {
        let pair = (trial.server.as_str(), trial.clients);
        let has_failed = trial.hosts.iter().any(|host| host.failure.is_some());
        if (has_failed || !pairs.contains(&pair)) && shown.len() < MOST_TABLES {
            shown.push(trial);
        }
        if !has_failed {
            pairs.push(pair);
        }
    }
    shown
}

/// The headings, with the catalogue's labels for its metrics.
fn headings() -> [&'static str; 10] {
    let label = |name| named(name).map_or(name, |metric| metric.label);
    [
        "Client host",
        "Clients",
        label("clients_served"),
        "Requests",
        label("requests_per_s"),
        label("latency_p50_us"),
        label("latency_p99_us"),
        label("errors"),
        "CPU",
        "Start offset",
    ]
}

fn of(trial: &Trial) -> Block {
    let clients = counted(trial.clients, "client");
    let title = format!("{} with {clients}, {}", trial.server, trial.occasion());
    let hosts = trial.hosts.iter().take(MOST_ROWS);
    let rows = hosts
        .map(|host| row(host.label(), host))
        .chain(total(trial))
        .collect();
    let caption = format!("Client hosts, {title}");
    let table = Table::of(caption, headings().map(Column::number).to_vec(), rows);
    let mut blocks = notes(trial);
    blocks.push(Block::Table(table));
    Block::Fold(title.into(), blocks)
}

/// The start skew of the hosts, and failures.
fn notes(trial: &Trial) -> Vec<Block> {
    let mut notes = Vec::new();
    if let Some(skew) = trial.start_skew {
        notes.push(format!(
            "The hosts began to measure within {}, ± {}.",
            time(skew.skew_us),
            time(skew.error_us)
        ));
    }
    for host in &trial.hosts {
        if let Some(failure) = &host.failure {
            notes.push(format!("{} failed: {}.", host.label(), failure.reason));
        }
    }
    let beyond = trial.hosts.len().saturating_sub(MOST_ROWS);
    if beyond > 0 {
        notes.push(format!("The record has {beyond} more hosts."));
    }
    let all = notes.into_iter();
    all.map(|note| Block::paragraph(Role::Body, note)).collect()
}

fn row(name: String, host: &HostPart) -> Row {
    let count = |value: Option<u64>| or_absent(value.map(|value| value as f64), whole);
    let cells = [
        whole(host.clients.into()),
        count(host.served.map(u64::from)),
        count(host.replies),
        or_absent(host.replies_per_s, number),
        or_absent(host.p50_us, time),
        or_absent(host.p99_us, time),
        count(host.errors),
        or_absent(host.cpu_share, percent),
        or_absent(host.start_offset_us, time),
    ];
    Row::of(name, cells.map(Cell::plain).to_vec())
}

/// The whole load, like a host.
fn total(trial: &Trial) -> Option<Row> {
    let load = trial.load.as_ref()?;
    let times = load.service_time.as_ref();
    let whole = HostPart {
        clients: load.clients,
        served: Some(load.served),
        replies: Some(load.window.replies),
        replies_per_s: load.window.replies_per_s,
        p50_us: times.map(|times| times.p50_us),
        p99_us: times.and_then(|times| times.p99_us),
        errors: Some(load.errors.values().sum()),
        ..HostPart::default()
    };
    Some(row(format!("all {}", trial.hosts.len()), &whole))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logs, fixture};
    use throng_record::format::ABSENT;
    use throng_record::{FailedStage, Failure, StartSkew};

    #[test]
    fn hosts_are_shown_with_their_whole_and_with_what_failed() {
        let (run, mut trials) = fixture::record();
        let host = |rank| HostPart {
            name: format!("lab{rank}"),
            rank,
            clients: 5,
            served: Some(5),
            replies: Some(1234),
            replies_per_s: Some(617.0),
            p50_us: Some(12.5),
            errors: Some(0),
            cpu_share: Some(0.42),
            start_offset_us: Some(3.0),
            ..HostPart::default()
        };
        trials.truncate(2);
        trials[0].hosts = (1..=70).map(host).collect();
        trials[0].start_skew = Some(StartSkew {
            skew_us: 120.0,
            error_us: 8.0,
        });
        trials[1].hosts = vec![HostPart {
            failure: Some(Failure {
                stage: FailedStage::Load,
                reason: "it was lost: no sign of life".to_owned(),
                output: String::new(),
                signal: None,
            }),
            ..host(1)
        }];
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let of_trial = |place: usize| match of(super::trials(&report)[place]) {
            Block::Fold(_, blocks) => blocks,
            other => panic!("{other:?}"),
        };
        assert_eq!(super::trials(&report).len(), 2);
        let [skew, more, Block::Table(table)] = &of_trial(0)[..] else {
            panic!("two notes and a table");
        };
        let note = |text: &str| Block::paragraph(Role::Body, text);
        let began = "The hosts began to measure within 120 µs, ± 8.00 µs.";
        assert_eq!(*skew, note(began));
        assert_eq!(*more, note("The record has 6 more hosts."));
        let rows = &table.groups[0].rows;
        assert_eq!(rows.len(), MOST_ROWS + 1);
        let cells = [
            "5", "5", "1,234", "617", "12.5 µs", ABSENT, "0", "42 %", "3.00 µs",
        ];
        let expected = Row::of("lab1 (rank 1)", cells.map(Cell::plain).to_vec());
        assert_eq!(rows[0], expected);
        assert_eq!(rows[MOST_ROWS].name.words(), "all 70");
        let failed = note("lab1 (rank 1) failed: it was lost: no sign of life.");
        assert_eq!(of_trial(1)[0], failed);
    }
}
