//! Loads in which each client has a job: when all were done, who failed, and from how many clients on
//! connecting fails.

#[cfg(test)]
pub(crate) mod fixture;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::columns::{Best, Column, range};
use super::format::{counted, list, number, or_absent, time, whole};
use super::histograms::{Times, merge};
use super::pace::Pacer;
use super::summary::{Quantity, Row, Summary};
use crate::record::{Completion, Load, Trial};
use crate::stats::median;

/// How the clients of a row came to an end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompletionRow {
    /// Requests of each client.
    pub requests_each: u32,
    /// Most clients there at the same time, by plan.
    pub at_once: u32,
    /// Clients done, median over trials.
    pub clients_done: f64,
    /// Clients that failed, over all trials.
    pub failed: u64,
    /// Clients that were neither when a trial ended, over all trials.
    pub not_done: u64,
    /// From the beginning until the last client was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<Quantity>,
    /// Clients done over that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients_per_s: Option<Quantity>,
    /// From when a client began to connect until it was done, over all trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_time: Option<Times>,
    /// Mean time that clients took before a request: a part of both times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_s: Option<f64>,
    /// Mean service time of a random sample of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_sample_us: Option<Quantity>,
    /// Attempts to connect that failed, by kind, over all trials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub connect_failures: BTreeMap<String, u64>,
    /// Clients that took themselves for connected and had no answer, where the accept queue overflowed:
    /// the server never heard of them. Over all trials.
    pub never_accepted: u64,
    /// Clients that may wait to be accepted, as the listening socket has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_backlog: Option<f64>,
    /// Handshakes refused since that queue was full, most in a trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_overflows: Option<f64>,
}

impl CompletionRow {
    /// From the good trials of a row; none where clients had no jobs.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub(super) fn of(good: &[(&Trial, &Load)], seed: u64) -> anyhow::Result<Option<Self>> {
        let all: Vec<(&Trial, &Completion)> = good
            .iter()
            .filter_map(|(trial, load)| Some((*trial, load.completion.as_deref()?)))
            .collect();
        let Some((_, first)) = all.first() else {
            return Ok(None);
        };
        let values = |value: fn(&Completion) -> Option<f64>| -> Vec<f64> {
            let jobs = all.iter().map(|(_, jobs)| *jobs);
            jobs.filter_map(value).collect()
        };
        let sum = |count: fn(&Completion) -> u32| {
            let jobs = all.iter().map(|(_, jobs)| *jobs);
            jobs.map(|jobs| u64::from(count(jobs))).sum()
        };
        let of_network = |name: &str| {
            let metrics = all
                .iter()
                .filter_map(|(trial, _)| trial.network.as_ref()?.metrics.get(name).copied());
            metrics.max_by(f64::total_cmp)
        };
        let mut connect_failures = BTreeMap::new();
        for (kind, count) in all.iter().flat_map(|(_, jobs)| &jobs.connect_failures) {
            *connect_failures.entry(kind.clone()).or_default() += count;
        }
        let overflowed = |trial: &Trial| {
            let network = trial.network.as_ref();
            network.is_some_and(|side| side.metrics.get("listen_overflows") > Some(&0.0))
        };
        let never_accepted = good
            .iter()
            .filter(|(trial, _)| overflowed(trial))
            .map(|(_, load)| u64::from(load.never_served.min(load.connected)))
            .sum();
        let done = values(|jobs| Some(f64::from(jobs.clients_done)));
        Ok(Some(Self {
            requests_each: first.requests_each,
            at_once: first.at_once,
            clients_done: median(&done).unwrap_or_default(),
            failed: sum(|jobs| jobs.failed),
            not_done: sum(|jobs| jobs.not_done),
            completion_s: Quantity::of(&values(|jobs| jobs.last_done_s), seed),
            clients_per_s: Quantity::of(&values(|jobs| jobs.clients_per_s), seed),
            job_time: merge(all.iter().filter_map(|(_, jobs)| jobs.job_time.as_ref()))?,
            think_s: median(&values(|jobs| jobs.think_s_mean)),
            service_sample_us: Quantity::of(
                &values(|jobs| Some(jobs.service_sample.as_ref()?.mean_us)),
                seed,
            ),
            connect_failures,
            never_accepted,
            accept_backlog: of_network("accept_backlog"),
            listen_overflows: of_network("listen_overflows"),
        }))
    }
}

/// Whether clients of this run had a job each.
pub(super) fn has_jobs(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.completion.is_some())
}

/// Whether the clients of a row took their time before a request.
pub(super) fn thinks(row: &Row) -> bool {
    let jobs = row.completion.as_ref();
    jobs.is_some_and(|jobs| jobs.think_s.is_some()) || row.paced_by == Some(Pacer::Think)
}

/// Clients of a load that had all that they came for.
pub(super) fn served(load: &Load) -> u32 {
    let done = load.completion.as_deref().map(|jobs| jobs.clients_done);
    done.unwrap_or(load.served)
}

/// Clients done of those wanted.
pub(super) const DONE: Column = Column {
    title: "Done",
    note: "clients that made all their requests, of those wanted; median over trials; beside it, those who did not, all trials together",
    text: |row| {
        or_absent(
            row.completion.as_ref().map(|jobs| jobs.clients_done),
            |done| format!("{}/{}", whole(done), whole(f64::from(row.clients))),
        )
    },
    detail: |row| {
        let parts = row.completion.as_ref().map(|jobs| {
            [(jobs.failed, "failed"), (jobs.not_done, "not done")]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{} {what}", whole(count as f64)))
                .collect::<Vec<_>>()
        });
        parts.unwrap_or_default().join(", ")
    },
    value: |_| None,
    best: Best::None,
    bar: false,
};

/// When the last one was.
pub(super) const COMPLETION: Column = Column {
    title: "Completion",
    note: "from the first connect() until the last client was done, think time included; median over trials, with its 95 % interval",
    text: |row| {
        let seconds = completion_s(row);
        or_absent(seconds, |seconds| time(seconds * 1e6))
    },
    detail: |row| {
        let quantity = row.completion.as_ref().and_then(|jobs| jobs.completion_s);
        range(quantity, |seconds| time(seconds * 1e6))
    },
    value: completion_s,
    best: Best::Lowest,
    bar: true,
};

/// The same as a rate.
pub(super) const CLIENTS_PER_S: Column = Column {
    title: "Clients/s",
    note: "clients done over the completion time; median over trials, with its 95 % interval",
    text: |row| or_absent(clients_per_s(row), number),
    detail: |row| {
        let quantity = row.completion.as_ref().and_then(|jobs| jobs.clients_per_s);
        range(quantity, number)
    },
    value: clients_per_s,
    best: Best::Highest,
    bar: false,
};

/// A random sample, as studies have it that kept no more.
pub(super) const SAMPLE: Column = Column {
    title: "Mean of 50",
    note: "mean service time of 50 requests at random; median over trials. All requests are in p50, p90 and p99",
    text: |row| {
        let sample = row
            .completion
            .as_ref()
            .and_then(|jobs| jobs.service_sample_us);
        or_absent(sample.map(|sample| sample.median), time)
    },
    detail: |_| String::new(),
    value: |row| Some(row.completion.as_ref()?.service_sample_us?.median),
    best: Best::Lowest,
    bar: false,
};

/// Seconds until the last client was done.
pub(super) fn completion_s(row: &Row) -> Option<f64> {
    Some(row.completion.as_ref()?.completion_s?.median)
}

fn clients_per_s(row: &Row) -> Option<f64> {
    Some(row.completion.as_ref()?.clients_per_s?.median)
}

/// "Not done with 64 clients, all trials together: iterative 31 (connect-timeout); select 3 (reset)."
pub(super) fn failed(summary: &Summary, clients: u32) -> Option<String> {
    let of_row = |row: &Row| {
        let jobs = row.completion.as_ref()?;
        let mut parts = Vec::new();
        if jobs.failed > 0 {
            let kinds: Vec<&str> = row.errors.keys().map(String::as_str).collect();
            parts.push(format!("{} ({})", whole(jobs.failed as f64), list(&kinds)));
        }
        if jobs.not_done > 0 {
            parts.push(format!("{} that still waited", whole(jobs.not_done as f64)));
        }
        (!parts.is_empty()).then(|| format!("{} {}", row.server, list(&parts)))
    };
    let failed: Vec<String> = summary.rows_at(clients).filter_map(of_row).collect();
    (!failed.is_empty()).then(|| {
        format!(
            "Not done with {}, all trials together: {}.",
            counted(clients, "client"),
            failed.join("; ")
        )
    })
}

/// The smallest number of clients with which some did not get in: `connect()` failed, or the handshake
/// was complete on their side only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstConnectFailure {
    /// The server.
    pub server: String,
    /// The number; none: all numbers that were tried went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// The largest number below it, or of all, with which everybody connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_with: Option<u32>,
}

impl FirstConnectFailure {
    /// Of each server whose clients had a job each.
    pub(super) fn of_run(servers: &[String], rows: &[Row]) -> Vec<Self> {
        let of_server = |server: &String| {
            let jobs = |row: &Row| Some((row.clients, row.completion.clone()?));
            let tried: Vec<(u32, CompletionRow)> = rows
                .iter()
                .filter(|row| row.server == *server)
                .filter_map(jobs)
                .collect();
            let failing = tried
                .iter()
                .position(|(_, jobs)| !jobs.connect_failures.is_empty() || jobs.never_accepted > 0);
            let well = &tried[..failing.unwrap_or(tried.len())];
            (!tried.is_empty()).then(|| Self {
                server: server.clone(),
                clients: failing.map(|place| tried[place].0),
                none_with: well.last().map(|(clients, _)| *clients),
            })
        };
        servers.iter().filter_map(of_server).collect()
    }
}

/// From how many clients on some do not get in, and what the accept queue has to do with it.
pub(super) fn connecting(summary: &Summary) -> Option<String> {
    let (failing, well): (Vec<_>, Vec<_>) = summary
        .first_connect_failures
        .iter()
        .partition(|first| first.clients.is_some());
    if failing.is_empty() {
        return None;
    }
    let told = failing.iter().filter_map(|first| {
        let clients = first.clients?;
        let mut text = format!(
            "from {} on with {}",
            counted(clients, "client"),
            first.server
        );
        if let Some(none_with) = first.none_with {
            let _ = write!(text, " (not with {})", whole(f64::from(none_with)));
        }
        Some(text)
    });
    let mut text = format!("Clients did not get in {}", list(&told.collect::<Vec<_>>()));
    if !well.is_empty() {
        let names: Vec<&str> = well.iter().map(|first| first.server.as_str()).collect();
        let _ = write!(text, ", and never with {}", list(&names));
    }
    text.push('.');
    if let Some(queue) = accept_queue(summary, &failing) {
        let _ = write!(text, " {queue}");
    }
    Some(text)
}

/// "The accept queue holds 5 clients and was full: ..."
fn accept_queue(summary: &Summary, failing: &[&FirstConnectFailure]) -> Option<String> {
    let row = |first: &&FirstConnectFailure| {
        summary
            .rows
            .iter()
            .find(|row| row.server == first.server && Some(row.clients) == first.clients)
    };
    let jobs = || {
        let rows = failing.iter().filter_map(row);
        rows.filter_map(|row| Some((row.server.as_str(), row.completion.as_ref()?)))
    };
    let backlog = jobs().find_map(|(_, jobs)| jobs.accept_backlog)?;
    let overflows: Vec<String> = jobs()
        .filter_map(|(server, jobs)| Some((server, jobs.listen_overflows?)))
        .map(|(server, count)| format!("{} times with {server}", whole(count)))
        .collect();
    Some(format!(
        "The accept queue has room for {} clients; in one trial it overflowed up to {}. A SYN that \
         finds it full is dropped and sent again after 1 s; where the end of a handshake is dropped, only \
         the client takes it for complete.",
        whole(backlog),
        list(&overflows)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::answer::Answer;
    use crate::report::terminal;

    fn summary(change: impl Fn(&mut Trial)) -> Summary {
        let (run, mut trials) = fixture::record();
        trials.iter_mut().for_each(change);
        Summary::of(&run, &trials).unwrap()
    }

    fn answer(summary: &Summary) -> String {
        let answer = Answer::of(summary);
        answer.sentences().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_answer_says_who_was_first_and_who_did_not_get_in() {
        insta::assert_snapshot!(answer(&summary(|_| ())));
    }

    #[test]
    fn the_table_has_their_columns_and_not_those_of_others() {
        let text = terminal::table(&summary(|_| ()), 200, false);
        for title in ["Done", "Completion", "Clients/s"] {
            assert!(text.contains(title), "{text}");
        }
        for title in ["Served", "Fairness"] {
            assert!(!text.contains(title), "{text}");
        }
    }

    #[test]
    fn who_is_not_done_is_not_ranked() {
        let summary = summary(|_| ());
        let row = |server: &str, clients| {
            let mut rows = summary.rows_at(clients);
            rows.find(|row| row.server == server).unwrap()
        };
        assert!(row("fork", 10).served_all && !row("fork", 1000).served_all);
        let jobs = row("fork", 1000).completion.as_ref().unwrap();
        assert_eq!((jobs.failed, jobs.not_done), (30, 15));
        assert!(summary.scaling.is_empty());
    }

    #[test]
    fn nobody_failed_to_get_in_where_the_queue_had_room() {
        let summary = summary(|trial| {
            trial.network = None;
            let jobs = trial.load.as_mut().unwrap().completion.as_mut().unwrap();
            jobs.connect_failures.clear();
        });
        assert!(!answer(&summary).contains("get in"));
        let first = &summary.first_connect_failures[0];
        assert_eq!((first.clients, first.none_with), (None, Some(1000)));
    }
}
