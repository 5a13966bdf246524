//! Loads with a job per client: completion time, failed clients, and the number of clients at which connecting starts
//! to fail.

#[cfg(test)]
pub(crate) mod fixture;

use std::collections::BTreeMap;

use serde::Serialize;

use throng_record::{Load, Trial};

/// How the clients of a row ended. The other values are metrics of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompletionRow {
    /// Requests per client.
    pub requests_each: u32,
    /// The planned maximum number of simultaneous clients.
    pub at_once: u32,
    /// Failed attempts to connect, by kind, over all trials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub connect_failures: BTreeMap<String, u64>,
    /// Clients that considered themselves connected but got no reply, in trials in which the accept queue overflowed:
    /// the server never saw them. Summed over all trials.
    pub never_accepted: u64,
}

impl CompletionRow {
    /// Sums up the good trials of a row; `None` if clients had no jobs, or each lived for a time: then the time until
    /// all are done says nothing about a server.
    pub(super) fn of(good: &[(&Trial, &Load)]) -> Option<Self> {
        let all = || {
            good.iter()
                .filter_map(|(_, load)| load.completion.as_deref())
        };
        let first = all().next()?;
        let requests_each = first.requests_each?;
        let mut connect_failures = BTreeMap::new();
        for (kind, count) in all().flat_map(|jobs| &jobs.connect_failures) {
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
        Some(Self {
            requests_each,
            at_once: first.at_once,
            connect_failures,
            never_accepted,
        })
    }
}

/// Clients of a load that finished their job; without jobs, clients that were served.
pub(super) fn served(load: &Load) -> u32 {
    let done = load.completion.as_deref().map(|jobs| jobs.clients_done);
    done.unwrap_or(load.served)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::terminal;
    use crate::summary::Summary;
    use crate::{Logs, Report, sections};

    fn summary(change: impl Fn(&mut Trial)) -> (Summary, String) {
        let (run, mut trials) = fixture::record();
        trials.iter_mut().for_each(change);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let sentences: Vec<&str> = report.answer.sentences().collect();
        (report.summary.clone(), sentences.join("\n"))
    }

    #[test]
    fn the_answer_says_who_was_first_and_who_did_not_get_in() {
        insta::assert_snapshot!(summary(|_| ()).1);
    }

    #[test]
    fn the_table_has_their_columns_and_not_those_of_others() {
        let (run, trials) = fixture::record();
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let text = terminal::text(&sections::of_run(&report), 200, false);
        for title in ["Done", "Completion", "Clients/s"] {
            assert!(text.contains(title), "{text}");
        }
        for title in ["Served", "Fairness"] {
            assert!(!text.contains(title), "{text}");
        }
    }

    #[test]
    fn servers_with_unfinished_clients_are_not_ranked() {
        let (summary, _) = summary(|_| ());
        let row = |server: &str, clients| {
            let mut rows = summary.rows_at(clients);
            rows.find(|row| row.server == server).unwrap()
        };
        assert!(row("fork", 10).served_all && !row("fork", 1000).served_all);
        let fork = row("fork", 1000);
        assert_eq!(fork.value("clients_failed"), Some(70.0));
        assert_eq!(fork.value("clients_unfinished"), Some(35.0));
        assert!(summary.scaling.is_empty());
    }

    #[test]
    fn no_client_is_rejected_if_the_queue_has_room() {
        let (summary, answer) = summary(|trial| {
            trial.network = None;
            let jobs = trial.load.as_mut().unwrap().completion.as_mut().unwrap();
            jobs.connect_failures.clear();
        });
        assert!(!answer.contains("get in"));
        let first = &summary.first_connect_failures[0];
        assert_eq!((first.clients, first.none_with), (None, Some(1000)));
    }
}
