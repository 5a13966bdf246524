//! The trials of a search for limits: replies and response time up to and beyond the limit.

use super::overview::of_rows;
use super::{Axis, Failing, Figure, Kind, OfSection, Point, Rank, Ranked, Series, Source, Trace};
use crate::limit::{Limits, SearchTrial, ServerLimit};
use throng_record::Find;
use throng_record::metrics::Better;
use throng_spec::registry::Info;

/// A trial beyond the limit. What it was about, and what it measured, is why it failed.
const TRIAL: Failing = Failing {
    words: "the trial failed",
    has_value: true,
};

/// "epoll 1,200, poll at least 4,000".
fn each_limit(limits: &Limits) -> String {
    let each: Vec<String> = limits
        .servers
        .iter()
        .map(|one| format!("{} {}", one.server, one.text()))
        .collect();
    each.join(", ")
}

/// Limits that differ by more than this factor have a logarithmic axis.
const SPREAD: f64 = 10.0;

/// The limits of several servers. Of one, its times up to the limit say more.
pub(super) fn search(info: Info, source: &Source<'_>) -> Option<Figure> {
    let limits = source.limits.filter(|limits| limits.servers.len() > 1)?;
    Some(Figure {
        alternative: format!("Limits, {}: {}.", limits.unit(), each_limit(limits)),
        ..all_limits(info, source, limits)?
    })
}

/// The limits of several servers, highest first, each with a line up to the lowest value that failed.
fn all_limits(info: Info, source: &Source<'_>, limits: &Limits) -> Option<Figure> {
    let passed = |server: &ServerLimit| server.passed.map_or(0.0, |tried| tried.value as f64);
    let servers = limits.best_first();
    if servers.iter().all(|server| passed(server) <= 0.0) {
        return None;
    }
    let rank = |server: &&ServerLimit| {
        let failed = server.failed.map(|tried| tried.value as f64);
        let point = Point {
            low: failed.map(|_| passed(server)),
            high: failed,
            ..Point::new(0.0, passed(server))
        };
        Rank {
            point: (point.y > 0.0).then_some(point),
            ..source.rank(&server.server, server.text())
        }
    };
    let unit = limits.unit();
    let most = servers.first().map_or(0.0, |server| passed(server));
    let is_near = |server: &&ServerLimit| passed(server) * SPREAD >= most;
    let axis = if servers.iter().all(is_near) {
        Axis::linear(unit, None)
    } else {
        Axis::logarithmic(unit, None)
    };
    let ranked = Ranked::of(
        format!("Highest value that passed, {unit} (higher is better)"),
        axis,
        servers.iter().map(rank).collect(),
    );
    let caption = if servers.iter().all(|server| server.failed.is_none()) {
        "The dot is the highest value that was tried; nothing failed.".to_owned()
    } else {
        "The dot is the limit; the line ends at the lowest value that failed.".to_owned()
    };
    Some(Figure {
        caption,
        better: Better::Higher,
        ..of_rows(info, "Limits of all servers".to_owned(), ranked)
    })
}

/// Served clients or requests, against the values that were tried.
pub(super) fn served(info: Info, source: &Source<'_>) -> Option<Figure> {
    let (label, metric) = match source.limits?.find {
        Find::Clients => ("clients served", "clients_served"),
        Find::Rate => ("Requests/s", "requests_per_s"),
        Find::Sessions => ("Sessions/s", "sessions_per_s"),
    };
    let caption = "Served, against what the load asked for.";
    let y = Axis::logarithmic(label, None);
    against_tried(info, source, caption, y, |one| one.value_of(metric))
}

/// The p99 latency, against the values that were tried.
pub(super) fn p99(info: Info, source: &Source<'_>) -> Option<Figure> {
    let label = match source.limits?.find {
        Find::Clients => "latency",
        Find::Rate | Find::Sessions => "response time",
    };
    let caption = "One request in 100 took longer.";
    let y = Axis::logarithmic(label, Some("ms"));
    let figure = against_tried(info, source, caption, y, |one| {
        one.p99_us().map(|us| us / 1e3)
    })?;
    let section = match source.limits?.servers.as_slice() {
        [_] => OfSection::Answer,
        _ => figure.section,
    };
    Some(Figure { section, ..figure })
}

/// One measurement against the values that were tried.
fn against_tried(
    info: Info,
    source: &Source<'_>,
    caption: &str,
    y: Axis,
    value: impl Fn(&SearchTrial) -> Option<f64>,
) -> Option<Figure> {
    let limits = source.limits?;
    let point = |one: &SearchTrial| {
        let height = value(one).filter(|height| height.is_finite() && *height > 0.0)?;
        Some(Point {
            failed: !one.passed,
            ..Point::new(one.value as f64, height)
        })
    };
    let mut series: Vec<Series> = Vec::new();
    for server in &limits.servers {
        let points: Vec<Point> = server.tries.iter().filter_map(point).collect();
        let mark = mark(server, &points);
        series.extend(source.series(&server.server, points));
        series.extend(mark.into_iter().filter_map(|mark| {
            let line = source.series(&server.server, mark)?;
            let trace = Trace::Mark;
            let name = match limits.servers.len() {
                1 => format!("limit: {}", server.text()),
                _ => String::new(),
            };
            Some(Series {
                name,
                trace,
                ..line
            })
        }));
    }
    let marked = if limits.servers.iter().any(|server| server.failed.is_some()) {
        "the limit"
    } else {
        "the highest value that passed"
    };
    let sentence = if series.iter().any(|one| one.trace == Trace::Mark) {
        format!(" The vertical line is {marked}.")
    } else {
        String::new()
    };
    let (title, unit) = (info.summary, limits.unit());
    let axes = (Axis::logarithmic(unit, None), y);
    Some(Figure {
        caption: format!("{caption}{sentence}"),
        failure: TRIAL,
        alternative: format!("{title}, against {unit}. Limits: {}.", each_limit(limits)),
        ..Figure::new(info.name, title, Kind::Lines, axes, series)?
    })
}

/// A vertical line at the limit of a server.
fn mark(server: &ServerLimit, points: &[Point]) -> Option<Vec<Point>> {
    let x = server.passed?.value as f64;
    let heights = || points.iter().map(|point| point.y);
    let least = heights().min_by(f64::total_cmp)?;
    let most = heights().max_by(f64::total_cmp)?;
    (least < most).then(|| vec![Point::new(x, least), Point::new(x, most)])
}
