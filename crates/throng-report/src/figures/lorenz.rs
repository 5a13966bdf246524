//! The Lorenz curve of the replies to clients: which share of all replies the clients got that got least.

use super::{Axis, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use crate::clients::ClientLog;
use crate::summary::has_jobs;
use throng_record::format::list;
use throng_registry::{Entry, Info};

pub(super) struct Lorenz;

/// Points of a curve: one for each hundredth of the clients.
const POINTS: usize = 100;

impl Entry for Lorenz {
    fn info(&self) -> Info {
        Info {
            name: "lorenz",
            summary: "Shares of the replies (Lorenz curve)",
        }
    }
}

/// The curve of these replies, in percent; none where there is nothing to share, or nobody to share with.
fn curve(log: &ClientLog) -> Option<Vec<Point>> {
    let mut replies: Vec<u64> = log
        .rows
        .iter()
        .filter_map(|row| row.window_replies)
        .collect();
    replies.sort_unstable();
    let total: u64 = replies.iter().sum();
    if total == 0 || replies.len() < 2 {
        return None;
    }
    let mut sums = vec![0];
    for count in &replies {
        sums.push(sums[sums.len() - 1] + count);
    }
    let steps = POINTS.min(replies.len());
    let point = |step: usize| {
        let clients = step * replies.len() / steps;
        let percent = |part: f64, whole: f64| part / whole * 100.0;
        Point::new(
            percent(clients as f64, replies.len() as f64),
            percent(sums[clients] as f64, total as f64),
        )
    };
    Some((0..=steps).map(point).collect())
}

/// What the half of the clients with fewest replies got, in words.
fn half(name: &str, points: &[Point]) -> Option<String> {
    let middle = points.iter().rfind(|point| point.x <= 50.0)?;
    Some(format!("{name} {:.0} %", middle.y))
}

impl FigureKind for Lorenz {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        if has_jobs(&source.summary.rows) {
            return None; // each got what it came for
        }
        let series: Vec<Series> = source
            .clients
            .iter()
            .filter_map(|log| {
                Some(Series {
                    name: log.server.clone(),
                    place: source.place(&log.server)?,
                    points: curve(log)?,
                    trace: Trace::Joined,
                })
            })
            .collect();
        let halves = series
            .iter()
            .filter_map(|series| half(&series.name, &series.points));
        let halves = list(&halves.collect::<Vec<_>>());
        let Info { name, summary } = self.info();
        let axes = (
            Axis::linear("clients, fewest replies first", Some("%")),
            Axis::linear("share of all replies", Some("%")),
        );
        Some(Figure {
            caption: "Clients in order of their replies, fewest first, and the share of all replies that they got \
                      together; one trial of each server. A straight line from corner to corner is even service; \
                      the further a curve sags below it, the more some clients got at the cost of others. \
                      Clients that were never served are not in it."
                .to_owned(),
            alternative: format!(
                "Shares of the replies. The half of the clients that got fewest had of all replies: {halves}."
            ),
            ..Figure::new(name, summary, Kind::Course, axes, series)?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ClientRow;

    fn log(replies: &[u64]) -> ClientLog {
        let row = |count: &u64| ClientRow {
            window_replies: Some(*count),
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

    fn places(replies: &[u64]) -> Vec<(u32, u32)> {
        let points = curve(&log(replies)).unwrap();
        let rounded = |point: &Point| (point.x.round() as u32, point.y.round() as u32);
        points.iter().map(rounded).collect()
    }

    #[test]
    fn even_service_is_a_straight_line_and_what_one_gets_alone_an_angle() {
        assert_eq!(
            places(&[5, 5, 5, 5]),
            [(0, 0), (25, 25), (50, 50), (75, 75), (100, 100)]
        );
        assert_eq!(
            places(&[0, 9, 0, 0]),
            [(0, 0), (25, 0), (50, 0), (75, 0), (100, 100)]
        );
        assert_eq!(places(&[6, 2, 1, 1])[2], (50, 20));
    }

    #[test]
    fn many_clients_make_no_more_points_and_none_make_no_curve() {
        let many: Vec<u64> = (1..=12_345).collect();
        let points = curve(&log(&many)).unwrap();
        assert_eq!(points.len(), POINTS + 1);
        assert!((points[POINTS].y - 100.0).abs() < 1e-9);
        let half = points[POINTS / 2];
        assert!((half.y - 25.0).abs() < 0.1, "{half:?}");
        assert!(curve(&log(&[0, 0])).is_none() && curve(&log(&[7])).is_none());
    }
}
