//! Clients that failed to connect, against the number of clients.

use super::{AgainstClients, Axis, Failing, Figure, FigureKind, Source};
use crate::summary::Row;
use throng_record::format::{list, whole};
use throng_record::metrics::{Better, Quantity};
use throng_spec::registry::{Entry, Info};

pub(super) struct ConnectFailures;

impl Entry for ConnectFailures {
    fn info(&self) -> Info {
        Info {
            name: "connect-failures",
            summary: "Clients that failed to connect",
        }
    }
}

impl FigureKind for ConnectFailures {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let rows = || source.summary.rows.iter();
        let failed = |row: &Row| kept_out(row).is_some_and(|share| share.value > 0.0);
        if !rows().any(failed) {
            return None;
        }
        let mut figure = AgainstClients {
            id: self.info().name,
            title: self.info().summary.to_owned(),
            caption: "Clients that could not connect, or never left the accept queue.".to_owned(),
            of_lines: "",
            y: Axis::linear("of all clients", Some("%")),
            value: Box::new(kept_out),
            better: Better::Lower,
            failure: Failing {
                has_value: true,
                ..Failing::UNSERVED
            },
        }
        .build(source)?;
        let mut queues: Vec<f64> = rows()
            .filter(|row| row.completion.is_some())
            .filter_map(|row| row.value("accept_backlog"))
            .collect();
        queues.sort_unstable_by(f64::total_cmp);
        queues.dedup();
        if !queues.is_empty() {
            let rooms: Vec<String> = queues.into_iter().map(whole).collect();
            figure.caption += &format!(" It holds {}.", list(&rooms));
        }
        Some(figure)
    }
}

/// Clients that failed to connect, or were never accepted, in percent of all clients over all trials.
fn kept_out(row: &Row) -> Option<Quantity> {
    let jobs = row.completion.as_ref()?;
    let clients = f64::from(row.clients) * f64::from(row.trials_ok);
    let failed = jobs.connect_failures.values().sum::<u64>() + jobs.never_accepted;
    (clients > 0.0).then(|| Quantity::bare(100.0 * failed as f64 / clients))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::fixture;
    use crate::summary::Summary;

    #[test]
    fn rejected_clients_are_a_share_of_all() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source::of(&summary);
        let figure = ConnectFailures.build(&source).unwrap();
        assert!(figure.caption.ends_with("It holds 5."));
        let ends: Vec<(&str, f64)> = figure
            .series
            .iter()
            .map(|series| (series.name.as_str(), series.points.last().unwrap().y))
            .collect();
        // Ten refused and five never accepted, out of a thousand.
        assert!(ends.contains(&("fork", 1.5)), "{ends:?}");
        assert!(ends.contains(&("epoll", 0.0)), "{ends:?}");
    }
}
