//! The tables of client hosts: what each had of a load, and all of them together.

use super::Report;
use super::format::{ABSENT, counted, number, or_absent, time, whole};
use crate::record::{HostPart, Purpose, Trial};

/// What the tables are.
pub(super) const NOTE: &str = "The clients of a trial were on several hosts. The last row is the whole load: counts \
    are sums, and its percentiles are those of all times together, not means of those above.";

/// The columns.
pub(super) const COLUMNS: [&str; 10] = [
    "Client host",
    "Clients",
    "Served",
    "Replies",
    "Replies/s",
    "p50",
    "p99",
    "Errors",
    "CPU",
    "Began after",
];

/// Trials shown.
const MOST_TABLES: usize = 24;
/// Hosts shown of one.
const MOST_ROWS: usize = 64;

/// One trial's hosts.
pub(super) struct HostTable {
    /// "epoll with 1,000 clients, round 1".
    pub(super) title: String,
    /// How far apart they began, and what failed.
    pub(super) notes: Vec<String>,
    pub(super) rows: Vec<[String; COLUMNS.len()]>,
    pub(super) total: Option<[String; COLUMNS.len()]>,
}

/// The tables of a report: for each server the first trial with each number of clients, one that times it
/// before others, and each in which a host failed.
pub(super) fn tables(report: &Report<'_>) -> Vec<HostTable> {
    let mut shown: Vec<(&str, u32)> = Vec::new();
    let mut tables = Vec::new();
    let with_hosts = report.trials.iter().filter(|trial| !trial.hosts.is_empty());
    let mut trials: Vec<&Trial> = with_hosts.collect();
    trials.sort_by_key(|trial| trial.purpose != Purpose::Timed);
    for trial in trials {
        let pair = (trial.server.as_str(), trial.clients);
        let has_failed = trial.hosts.iter().any(|host| host.failure.is_some());
        if (has_failed || !shown.contains(&pair)) && tables.len() < MOST_TABLES {
            tables.push(of(trial));
        }
        if !has_failed {
            shown.push(pair);
        }
    }
    tables
}

fn of(trial: &Trial) -> HostTable {
    let clients = counted(trial.clients, "client");
    let mut notes = Vec::new();
    if let Some(skew) = trial.start_skew {
        notes.push(format!(
            "The hosts began to count replies within {}, ± {}.",
            time(skew.skew_us),
            time(skew.error_us)
        ));
    }
    for host in &trial.hosts {
        if let Some(failure) = &host.failure {
            notes.push(format!("{} failed: {}.", name(host), failure.reason));
        }
    }
    let beyond = trial.hosts.len().saturating_sub(MOST_ROWS);
    if beyond > 0 {
        notes.push(format!("The record has {beyond} hosts more."));
    }
    HostTable {
        title: format!("{} with {clients}, {}", trial.server, trial.occasion()),
        notes,
        rows: trial.hosts.iter().take(MOST_ROWS).map(row).collect(),
        total: total(trial),
    }
}

/// The machine, and its number since it may be several hosts.
fn name(host: &HostPart) -> String {
    format!("{} (rank {})", host.name, host.rank)
}

fn row(host: &HostPart) -> [String; COLUMNS.len()] {
    let count = |value: Option<u64>| or_absent(value.map(|value| value as f64), whole);
    [
        name(host),
        whole(host.clients.into()),
        count(host.served.map(u64::from)),
        count(host.replies),
        or_absent(host.replies_per_s, number),
        or_absent(host.p50_us, time),
        or_absent(host.p99_us, time),
        count(host.errors),
        or_absent(host.cpu_share, percent),
        or_absent(host.start_offset_us, time),
    ]
}

fn total(trial: &Trial) -> Option<[String; COLUMNS.len()]> {
    let load = trial.load.as_ref()?;
    let times = load.service_time.as_ref();
    Some([
        format!("all {}", trial.hosts.len()),
        whole(load.clients.into()),
        whole(load.served.into()),
        whole(load.window.replies as f64),
        number(load.window.replies_per_s),
        or_absent(times.map(|times| times.p50_us), time),
        or_absent(times.and_then(|times| times.p99_us), time),
        whole(load.errors.values().sum::<u64>() as f64),
        ABSENT.to_owned(),
        ABSENT.to_owned(),
    ])
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::Logs;
    use super::super::fixture;
    use super::*;
    use crate::record::{Failure, StartSkew};

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
                stage: "load".to_owned(),
                reason: "it was lost: no sign of life".to_owned(),
                output: String::new(),
            }),
            ..host(1)
        }];
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let tables = tables(&report);
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].rows.len(), MOST_ROWS);
        assert_eq!(
            tables[0].notes,
            [
                "The hosts began to count replies within 120 µs, ± 8.00 µs.",
                "The record has 6 hosts more."
            ]
        );
        let row = &tables[0].rows[0];
        assert_eq!(
            row.each_ref().map(String::as_str),
            [
                "lab1 (rank 1)",
                "5",
                "5",
                "1,234",
                "617",
                "12.5 µs",
                ABSENT,
                "0",
                "42 %",
                "3.00 µs"
            ]
        );
        assert_eq!(tables[0].total.as_ref().unwrap()[0], "all 70");
        assert!(tables[1].notes[0].contains("lab1 (rank 1) failed: it was lost"));
    }
}
