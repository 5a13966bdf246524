//! Replies per client at the largest number of clients, fewest first.

use super::{Axis, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use crate::clients::ClientLog;
use crate::summary::has_jobs;
use throng_record::format::{counted, list};
use throng_spec::registry::{Entry, Info};

pub(super) struct Fairness;

/// Lines end where a client got more than this multiple of the mean. Otherwise a server that serves few clients would
/// flatten the lines of all others.
const MOST: f64 = 4.0;

/// Points of a curve: one per hundredth of the clients.
const POINTS: usize = 100;

impl Entry for Fairness {
    fn info(&self) -> Info {
        Info {
            name: "fairness",
            summary: "Replies per client, fewest first",
        }
    }
}

/// Replies at each percentile of the clients, relative to the mean. `None` without replies, or with one client. A
/// client that was never served counts as one with no replies.
fn curve(log: &ClientLog) -> Option<Vec<Point>> {
    let replies = log.rows.iter().map(|row| row.window_replies.unwrap_or(0));
    let mut replies: Vec<u64> = replies.collect();
    replies.sort_unstable();
    let mean = replies.iter().sum::<u64>() as f64 / replies.len().max(1) as f64;
    if mean <= 0.0 || replies.len() < 2 {
        return None;
    }
    let last = replies.len() - 1;
    let steps = POINTS.min(last);
    let point = |step: usize| {
        let client = step * last / steps;
        let percent = 100.0 * client as f64 / last as f64;
        Point::new(percent, replies[client] as f64 / mean)
    };
    Some((0..=steps).map(point).collect())
}

/// The share of the least-served client, in words.
fn poorest(series: &Series) -> Option<String> {
    let least = series.points.first()?;
    Some(format!("{} {:.0} %", series.name, 100.0 * least.y))
}

impl FigureKind for Fairness {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        if has_jobs(&source.summary.rows) {
            return None; // each client got what it came for
        }
        let servers = source.clients.iter();
        let mut series: Vec<Series> = servers
            .filter_map(|log| {
                Some(source.curve(&log.server, log.clients, curve(log)?, Trace::Joined))
            })
            .collect();
        let words: Vec<String> = series.iter().filter_map(poorest).collect();
        let drawn = |series: &[Series]| series.iter().map(|one| one.points.len()).sum::<usize>();
        let all = drawn(&series);
        for one in &mut series {
            one.points.retain(|point| point.y <= MOST);
        }
        let ends = drawn(&series) < all;
        let unserved = series.iter().any(|one| one.points[0].y <= 0.0);
        let mut caption = "A flat line at 1 is even service.".to_owned();
        if unserved {
            caption += " Where a line is at 0, clients got nothing.";
        }
        if ends {
            caption += " Lines end where a client got over 4 times the mean.";
        }
        let Info { name, summary } = self.info();
        let axes = (
            Axis {
                from_zero: false,
                ..Axis::linear("clients, fewest replies first", Some("%"))
            },
            Axis::linear("replies / mean", None),
        );
        let clients = source.clients.first()?.clients;
        Some(Figure {
            caption,
            alternative: format!(
                "{summary}, with {}, in the trial of median fairness. Least-served client, in percent of the mean: {}.",
                counted(clients, "client"),
                list(&words)
            ),
            numbers: source.numbers(
                &["fairness_jain", "clients_starved", "clients_served"],
                source
                    .clients
                    .iter()
                    .map(|log| (log.server.as_str(), log.clients)),
            ),
            ..Figure::new(name, summary, Kind::Course, axes, series)?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ClientRow;

    fn log(replies: &[Option<u64>]) -> ClientLog {
        let row = |count: &Option<u64>| ClientRow {
            window_replies: *count,
            ..ClientRow::default()
        };
        ClientLog {
            server: "epoll".to_owned(),
            clients: replies.len() as u32,
            round: 0,
            total: replies.len(),
            rows: replies.iter().map(row).collect(),
        }
    }

    fn heights(replies: &[Option<u64>]) -> Vec<f64> {
        let points = curve(&log(replies)).unwrap();
        points.iter().map(|point| point.y).collect()
    }

    #[test]
    fn even_service_is_level_and_who_got_nothing_is_on_the_floor() {
        assert_eq!(heights(&[Some(5); 3]), [1.0, 1.0, 1.0]);
        assert_eq!(
            heights(&[Some(4), None, Some(0), Some(4)]),
            [0.0, 0.0, 2.0, 2.0]
        );
    }

    #[test]
    fn lines_end_where_they_would_press_the_others_flat() {
        let mut greedy = vec![Some(0); 99];
        greedy.push(Some(500));
        let logs = [log(&greedy), log(&[Some(5); 100])];
        let (run, trials) = crate::fixture::record();
        let summary = crate::summary::Summary::of(&run, &trials).unwrap();
        let source = Source {
            clients: &logs,
            ..Source::of(&summary)
        };
        let figure = Fairness.build(&source).unwrap();
        let ends: Vec<usize> = figure.series.iter().map(|one| one.points.len()).collect();
        assert_eq!(ends, [99, 100]);
        assert!(figure.caption.ends_with("over 4 times the mean."));
    }

    #[test]
    fn many_clients_make_no_more_points_and_none_make_no_curve() {
        let many: Vec<Option<u64>> = (1..=12_345).map(Some).collect();
        let points = curve(&log(&many)).unwrap();
        assert_eq!(points.len(), POINTS + 1);
        assert!((points[POINTS].x - 100.0).abs() < 1e-9);
        assert!((points[POINTS / 2].y - 1.0).abs() < 0.02);
        assert!(curve(&log(&[Some(0), None])).is_none() && curve(&log(&[Some(7)])).is_none());
    }
}
