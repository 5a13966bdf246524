//! How long it took until every client was done, and who did not get in, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source, bare};
use crate::registry::{Entry, Info};
use crate::report::format::{list, whole};
use crate::report::summary::{Quantity, Row};

/// See the module.
pub(super) struct CompletionTime;

impl Entry for CompletionTime {
    fn info(&self) -> Info {
        Info {
            name: "completion",
            summary: "Clients against completion time",
        }
    }
}

impl FigureKind for CompletionTime {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: self.info().summary,
            caption: "Lower is better. From the first connect() until the last client was done; the time that clients think is part of it.",
            y: Axis::logarithmic("time", Some("s")),
            value: |row| row.completion.as_ref()?.completion_s,
        }
        .build(source.summary)
    }
}

/// See the module.
pub(super) struct ConnectFailures;

impl Entry for ConnectFailures {
    fn info(&self) -> Info {
        Info {
            name: "connect-failures",
            summary: "Clients that did not get in",
        }
    }
}

impl FigureKind for ConnectFailures {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let rows = || source.summary.rows.iter();
        let failed = |row: &Row| kept_out(row).is_some_and(|share| share.median > 0.0);
        if !rows().any(failed) {
            return None;
        }
        let mut figure = AgainstClients {
            id: self.info().name,
            title: self.info().summary,
            caption: "Lower is better. Clients whose attempt to connect failed, or whom the server never heard of since the queue before it was full.",
            y: Axis::linear("of all clients", Some("%")),
            value: kept_out,
        }
        .build(source.summary)?;
        let mut queues: Vec<f64> = rows()
            .filter_map(|row| row.completion.as_ref()?.accept_backlog)
            .collect();
        queues.sort_unstable_by(f64::total_cmp);
        queues.dedup();
        if !queues.is_empty() {
            let rooms: Vec<String> = queues.into_iter().map(whole).collect();
            figure.caption += &format!(" Room for {} in that queue.", list(&rooms));
        }
        Some(figure)
    }
}

/// Percent of the clients, over all trials.
fn kept_out(row: &Row) -> Option<Quantity> {
    let jobs = row.completion.as_ref()?;
    let clients = f64::from(row.clients) * f64::from(row.trials_ok);
    let failed = jobs.connect_failures.values().sum::<u64>() + jobs.never_accepted;
    (clients > 0.0).then(|| bare(100.0 * failed as f64 / clients))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::completion::fixture;
    use crate::report::summary::Summary;

    #[test]
    fn who_did_not_get_in_is_a_share_of_all_with_the_room_of_the_queue() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source {
            summary: &summary,
            clients: &[],
            series: &[],
            trials: &[],
            limits: None,
        };
        let figure = ConnectFailures.build(&source).unwrap();
        assert!(figure.caption.ends_with("Room for 5 in that queue."));
        let ends: Vec<(&str, f64)> = figure
            .series
            .iter()
            .map(|series| (series.name.as_str(), series.points.last().unwrap().y))
            .collect();
        // Ten refused and five never heard of, of a thousand.
        assert!(ends.contains(&("fork", 1.5)), "{ends:?}");
        assert!(ends.contains(&("epoll", 0.0)), "{ends:?}");
    }
}
