//! How long requests took, by when they were answered: a grid of one trial of each server.

use super::{Axis, Figure, Kind, Point, Series, Source, Trace};
use throng_record::format::{counted, list, time};
use throng_record::load_stats::PARTS;
use throng_record::metrics::Better;
use throng_record::{Load, Purpose, TimesOverWindow, Trial};
use throng_spec::registry::Info;

/// More servers than this have no pictures of their own: they would be too small, and too many.
const MOST_SERVERS: usize = 4;
/// Ranges of times per cell: half a doubling.
const RANGES: usize = 2;
/// A part of the window needs this many requests for its p99.
const FOR_P99: u64 = 100;

/// The trial that stands for a server: that of the median p99.
fn typical<'a>(source: &Source<'a>, server: &str, clients: u32) -> Option<&'a Load> {
    let is_timed = |trial: &&Trial| {
        trial.server == server
            && trial.clients == clients
            && trial.purpose == Purpose::Timed
            && trial.failure.is_none()
            && trial.invalid().is_none()
    };
    let timed = source.trials.iter().filter(is_timed);
    let mut loads: Vec<(f64, &Load)> = timed
        .filter_map(|trial| trial.load.as_ref())
        .filter(|load| load.window.times.is_some())
        .filter_map(|load| Some((load.request_times()?.p99_us?, load)))
        .collect();
    loads.sort_by(|one, other| one.0.total_cmp(&other.0));
    let middle = loads.len().checked_sub(1)? / 2;
    Some(loads[middle].1)
}

/// A cell for each part of the window and range of times that has requests.
fn cells(times: &TimesOverWindow, part_s: f64) -> Vec<Point> {
    let bounds: Vec<f64> = times.from_ns.iter().map(|ns| *ns as f64 / 1e6).collect();
    let mut cells = Vec::new();
    for (part, counts) in times.counts.iter().enumerate() {
        let all = counts.iter().sum::<u64>() as f64;
        for (place, ranges) in counts.chunks(RANGES).enumerate() {
            let count = ranges.iter().sum::<u64>();
            let first = place * RANGES;
            let ends = bounds.get(first).zip(bounds.get(first + ranges.len()));
            let Some((&low, &high)) = ends.filter(|(low, _)| count > 0 && **low > 0.0) else {
                continue;
            };
            let (from, until) = (part as f64 * part_s, (part + 1) as f64 * part_s);
            cells.push(Point {
                low: Some(low),
                high: Some(high),
                cell: Some((until, count as f64 / all)),
                ..Point::new(from, (low * high).sqrt())
            });
        }
    }
    cells
}

/// The p99 of each part of the window that has enough requests: the end of its range.
fn p99(times: &TimesOverWindow, part_s: f64) -> Vec<Point> {
    let of_part = |(part, counts): (usize, &Vec<u64>)| {
        let all = counts.iter().sum::<u64>();
        let mut below = 0;
        let range = counts.iter().position(|count| {
            below += count;
            below as f64 >= 0.99 * all as f64
        });
        let end_ns = *times.from_ns.get(range.filter(|_| all >= FOR_P99)? + 1)?;
        Some(Point::new(
            (part as f64 + 0.5) * part_s,
            end_ns as f64 / 1e6,
        ))
    };
    times
        .counts
        .iter()
        .enumerate()
        .filter_map(of_part)
        .collect()
}

pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    let clients = *source.summary.clients.last()?;
    let mut typical_of: Vec<(&String, &Load, &TimesOverWindow)> = Vec::new();
    for server in &source.summary.servers {
        if let Some(load) = typical(source, server, clients)
            && let Some(times) = &load.window.times
        {
            typical_of.push((server, load, times));
        }
    }
    if typical_of.len() > MOST_SERVERS {
        return None;
    }
    let mut series = Vec::new();
    let mut words = Vec::new();
    let mut label = "latency";
    for (server, load, times) in typical_of {
        let part_s = load.window.duration_s / times.counts.len().max(1) as f64;
        if load.open_loop.is_some() {
            label = "response time";
        }
        let line = p99(times, part_s);
        let ends = || line.iter().map(|point| point.y * 1e3);
        let least = ends().reduce(f64::min);
        words.extend(
            least
                .zip(ends().reduce(f64::max))
                .map(|(least, most)| format!("{server} {} to {}", time(least), time(most))),
        );
        series.extend(source.curve(server, clients, cells(times, part_s)));
        series.extend(source.series(server, line).map(|line| Series {
            name: String::new(),
            trace: Trace::Mark,
            ..line
        }));
    }
    let axes = (
        Axis::linear("time in the measured phase", Some("s")),
        Axis::logarithmic(label, Some("ms")),
    );
    Some(Figure {
        caption: format!(
            "{}, the trial of median p99. Each column is 1/{PARTS} of it: the stronger a cell's colour, the more of its \
             requests took that long. The line is its p99.",
            counted(clients, "client")
        ),
        better: Better::Lower,
        alternative: format!("{}, p99 of its parts: {}.", info.summary, list(&words)),
        ..Figure::new(info.name, info.summary, Kind::Heat, axes, series)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::figure_of;
    use crate::fixture;
    use crate::summary::Summary;

    /// Two parts of a window: 99 requests of about 1.1 ms and one of 12 ms, then three of 6 ms.
    fn times() -> TimesOverWindow {
        TimesOverWindow {
            from_ns: vec![1_000_000, 1_200_000, 6_000_000, 12_000_000, 14_000_000],
            counts: vec![vec![90, 9, 0, 1], vec![0, 0, 3, 0]],
        }
    }

    #[test]
    fn a_cell_has_the_share_of_its_part_and_reaches_over_two_ranges() {
        let seen: Vec<_> = cells(&times(), 0.5)
            .into_iter()
            .map(|cell| {
                (
                    cell.x,
                    cell.low.unwrap(),
                    cell.high.unwrap(),
                    cell.cell.unwrap(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (0.0, 1.0, 6.0, (0.5, 0.99)),
                (0.0, 6.0, 14.0, (0.5, 0.01)),
                (0.5, 6.0, 14.0, (1.0, 1.0)),
            ]
        );
    }

    #[test]
    fn the_p99_is_of_parts_with_enough_requests() {
        let line = p99(&times(), 0.5);
        assert_eq!(line, [Point::new(0.25, 6.0)]);
    }

    #[test]
    fn a_few_servers_have_a_grid_each_and_many_have_none() {
        let (mut run, mut trials) = fixture::record();
        let drawn = |run: &_, trials: &[Trial]| {
            let summary = Summary::of(run, trials).unwrap();
            let source = Source {
                trials,
                ..Source::of(&summary)
            };
            figure_of("latency-over-time", &source)
        };
        assert!(drawn(&run, &trials).is_none());
        run.servers
            .retain(|server| ["epoll", "select"].contains(&server.name.as_str()));
        trials.retain(|trial| ["epoll", "select"].contains(&trial.server.as_str()));
        for trial in &mut trials {
            trial.load.as_mut().unwrap().window.times = Some(times());
        }
        let figure = drawn(&run, &trials).unwrap();
        assert_eq!(figure.series.len(), 4, "cells and a line of each");
        assert!(
            figure.alternative.contains("epoll 6.00 ms to 6.00 ms"),
            "{}",
            figure.alternative
        );
        for trial in &mut trials {
            trial.load.as_mut().unwrap().window.times = None;
        }
        assert!(drawn(&run, &trials).is_none());
    }
}
