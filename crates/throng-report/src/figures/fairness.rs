//! Replies per client at the largest number of clients, fewest first.

use super::{Axis, Figure, Kind, Point, Series, Source};
use crate::summary::has_jobs;
use crate::trial_files::ClientLog;
use throng_record::format::{counted, list, whole};
use throng_spec::registry::Info;

/// Lines end where a client got more than this multiple of the mean. Otherwise a server that serves few clients would
/// flatten the lines of all others.
const MOST: f64 = 4.0;

/// Points of a curve: one per hundredth of the clients.
const POINTS: usize = 100;

/// Replies at each percentile of the clients, relative to the mean. `None` without replies, or with one client. A
/// client that was never served counts as one with no replies.
fn curve(log: &ClientLog) -> Option<Vec<Point>> {
    let mut replies = log.replies.clone();
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

pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    if has_jobs(&source.summary.rows) {
        return None; // each client got what it came for
    }
    let logs = source.clients.iter();
    let mut series: Vec<Series> = logs
        .clone()
        .filter_map(|log| source.curve(&log.server, log.clients, curve(log)?))
        .collect();
    let words: Vec<String> = series.iter().filter_map(poorest).collect();
    let drawn = |lines: &[Series]| lines.iter().map(|one| one.points.len()).sum::<usize>();
    let all = drawn(&series);
    for one in &mut series {
        one.points.retain(|point| point.y <= MOST);
    }
    let mut caption = "A flat line at 1 is even service.".to_owned();
    if series.iter().any(|one| one.points[0].y <= 0.0) {
        caption += " Where a line is at 0, clients got nothing.";
    }
    if drawn(&series) < all {
        caption += " Lines end where a client got over 4 times the mean.";
    }
    let x = Axis {
        from_zero: false,
        ..Axis::linear("clients, fewest replies first", Some("%"))
    };
    let axes = (x, Axis::linear("replies / mean", None));
    let metrics = ["fairness_jain", "clients_starved", "clients_served"];
    Some(Figure {
        caption,
        alternative: format!(
            "{}, with {}, in the trial of median fairness. Least-served client, in percent of the mean: {}.",
            info.summary,
            counted(source.clients.first()?.clients, "client"),
            list(&words)
        ),
        numbers: source.numbers(&metrics, logs.map(|log| (log.server.as_str(), log.clients))),
        ..Figure::new(info.name, info.summary, Kind::Course, axes, series)?
    })
}

/// Every client as a dot: its replies since it connected, in the order in which clients connected.
pub(super) fn in_order(info: Info, source: &Source<'_>) -> Option<Figure> {
    if has_jobs(&source.summary.rows) {
        return None; // each client got what it came for
    }
    let logs = source.clients.iter();
    let dots = |log: &ClientLog| -> Vec<Point> {
        let numbered = (1_u32..).zip(&log.in_order);
        numbered
            .map(|(place, replies)| Point::new(f64::from(place), *replies as f64))
            .collect()
    };
    let series: Vec<Series> = logs
        .clone()
        .filter(|log| log.in_order.len() > 1)
        .filter_map(|log| source.curve(&log.server, log.clients, dots(log)))
        .collect();
    let words: Vec<String> = series
        .iter()
        .map(|series| {
            let replies = || series.points.iter().map(|point| point.y);
            let least = replies().fold(f64::INFINITY, f64::min);
            let most = replies().fold(0.0, f64::max);
            format!("{} {} to {}", series.name, whole(least), whole(most))
        })
        .collect();
    let got_nothing = series
        .iter()
        .flat_map(|one| &one.points)
        .any(|dot| dot.y <= 0.0);
    let mut caption =
        "Each dot is a client. Dots that fall to the right favour early clients.".to_owned();
    if got_nothing {
        caption += " Those on the lower edge got nothing.";
    }
    let axes = (
        Axis::linear("clients, first to connect first", None),
        Axis::logarithmic("replies", None),
    );
    let metrics = [
        "early_over_late_life",
        "requests_per_client_max_over_min_life",
    ];
    Some(Figure {
        caption,
        alternative: format!(
            "{}, with {}, in the trial of median fairness. Least and most replies: {}.",
            info.summary,
            counted(source.clients.first()?.clients, "client"),
            list(&words)
        ),
        numbers: source.numbers(&metrics, logs.map(|log| (log.server.as_str(), log.clients))),
        ..Figure::new(info.name, info.summary, Kind::Dots, axes, series)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::figure_of;

    fn log(replies: &[u64]) -> ClientLog {
        ClientLog {
            server: "epoll".to_owned(),
            clients: replies.len() as u32,
            replies: replies.to_vec(),
            in_order: replies.to_vec(),
        }
    }

    fn drawn(name: &str, clients: &[ClientLog]) -> Figure {
        let (run, trials) = crate::fixture::record();
        let summary = crate::summary::Summary::of(&run, &trials).unwrap();
        let source = Source {
            clients,
            ..Source::of(&summary)
        };
        figure_of(name, &source).unwrap()
    }

    fn heights(replies: &[u64]) -> Vec<f64> {
        let points = curve(&log(replies)).unwrap();
        points.iter().map(|point| point.y).collect()
    }

    #[test]
    fn even_service_is_level_and_who_got_nothing_is_on_the_floor() {
        assert_eq!(heights(&[5; 3]), [1.0, 1.0, 1.0]);
        assert_eq!(heights(&[4, 0, 0, 4]), [0.0, 0.0, 2.0, 2.0]);
    }

    #[test]
    fn lines_end_where_they_would_press_the_others_flat() {
        let mut greedy = vec![0; 99];
        greedy.push(500);
        let figure = drawn("fairness", &[log(&greedy), log(&[5; 100])]);
        let ends: Vec<usize> = figure.series.iter().map(|one| one.points.len()).collect();
        assert_eq!(ends, [99, 100]);
        assert!(figure.caption.ends_with("over 4 times the mean."));
    }

    #[test]
    fn every_client_is_a_dot_and_none_is_cut() {
        let mut greedy = vec![10; 99];
        greedy.push(500_000);
        let figure = drawn("fairness-order", &[log(&greedy), log(&[5, 0])]);
        let dots: Vec<usize> = figure.series.iter().map(|one| one.points.len()).collect();
        assert_eq!(dots, [100, 2]);
        assert!(
            figure.caption.ends_with("got nothing."),
            "{}",
            figure.caption
        );
        assert!(figure.alternative.contains("10 to 500,000"));
    }

    #[test]
    fn many_clients_make_no_more_points_and_none_make_no_curve() {
        let many: Vec<u64> = (1..=12_345).collect();
        let points = curve(&log(&many)).unwrap();
        assert_eq!(points.len(), POINTS + 1);
        assert!((points[POINTS].x - 100.0).abs() < 1e-9);
        assert!((points[POINTS / 2].y - 1.0).abs() < 0.02);
        assert!(curve(&log(&[0, 0])).is_none() && curve(&log(&[7])).is_none());
    }
}
