//! The trials of a search for limits: replies and response time up to and beyond the limit.

use super::overview::of_rows;
use super::{
    Axis, Failing, Figure, FigureKind, Grouped, Kind, Point, Rank, Ranked, Series, Source, Trace,
};
use crate::limit::{Limits, SearchTrial, ServerLimit};
use throng_record::Find;
use throng_record::metrics::Better;
use throng_spec::registry::{Entry, Info};

/// A trial beyond the limit. What it was about, and what it measured, is why it failed.
const TRIAL: Failing = Failing {
    words: "the trial failed",
    has_value: true,
};

/// The trials in order with the limit; with several servers, only their limits.
pub(super) struct Search;

impl Entry for Search {
    fn info(&self) -> Info {
        Info {
            name: "search",
            summary: "Search for the limit",
        }
    }
}

impl FigureKind for Search {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let limits = source.limits?;
        let mut figure = match limits.servers.as_slice() {
            [only] => self.path(limits, only, source.place(&only.server))?,
            several => self.limits(source, limits, several)?,
        };
        let each = limits.servers.iter();
        let each: Vec<String> = each
            .map(|one| format!("{} {}", one.server, one.text()))
            .collect();
        figure.alternative = format!("Limits, {}: {}.", limits.unit(), each.join(", "));
        Some(figure)
    }
}

impl Search {
    /// The trials of one server, in order.
    fn path(&self, limits: &Limits, server: &ServerLimit, place: usize) -> Option<Figure> {
        let mut tries: Vec<&SearchTrial> = server.tries.iter().collect();
        tries.sort_by_key(|one| one.trial);
        let points: Vec<Point> = (1..)
            .zip(&tries)
            .map(|(place, one)| Point {
                failed: !one.passed,
                ..Point::new(f64::from(place), one.value as f64)
            })
            .collect();
        let last = points.last()?.x;
        let mut series = vec![Series {
            name: server.server.clone(),
            place,
            points,
            trace: Trace::Joined,
        }];
        if let Some(passed) = server.passed {
            let y = passed.value as f64;
            series.push(Series {
                name: format!("limit: {}", server.text()),
                place,
                points: vec![Point::new(1.0, y), Point::new(last, y)],
                trace: Trace::Level,
            });
        }
        let across = Axis {
            from_zero: false,
            ..Axis::linear("trial", None)
        };
        let axes = (across, Axis::logarithmic(limits.unit(), None));
        let cause = server.cause.as_ref();
        let cause = cause.map(|cause| format!("Cause of the limit: {}.", cause.sentence));
        let title = format!("Search for the limit of {}", server.server);
        Some(Figure {
            caption: cause.unwrap_or_default(),
            failure: TRIAL,
            answers: true,
            ..Figure::new(self.info().name, title, Kind::Lines, axes, series)?
        })
    }

    /// The limits of several servers, highest first, each with a line up to the lowest value that failed.
    fn limits(
        &self,
        source: &Source<'_>,
        limits: &Limits,
        servers: &[ServerLimit],
    ) -> Option<Figure> {
        let passed = |server: &ServerLimit| server.passed.map(|tried| tried.value as f64);
        let mut rows: Vec<(f64, Rank)> = servers
            .iter()
            .map(|server| {
                let failed = server.failed.map(|tried| tried.value as f64);
                let point = passed(server)
                    .filter(|passed| *passed > 0.0)
                    .map(|passed| Point {
                        low: failed.map(|_| passed),
                        high: failed,
                        ..Point::new(0.0, passed)
                    });
                let rank = Rank {
                    name: server.server.clone(),
                    place: Some(source.place(&server.server)),
                    point,
                    text: server.text(),
                    failed: false,
                    better: None,
                };
                (passed(server).unwrap_or(0.0), rank)
            })
            .collect();
        rows.sort_by(|one, other| other.0.total_cmp(&one.0));
        let causes: Vec<String> = servers
            .iter()
            .map(|server| format!("{}: {}", server.server, server.cause_text()))
            .collect();
        let caption = if servers.iter().all(|server| server.failed.is_none()) {
            "The dot is the highest value that was tried; nothing failed.".to_owned()
        } else {
            format!(
                "The dot is the limit; the line ends at the lowest value that failed. Causes: {}.",
                causes.join("; ")
            )
        };
        rows.iter().any(|(_, rank)| rank.point.is_some()).then(|| {
            let ranked = Ranked {
                title: format!(
                    "Highest value that passed, {} (higher is better)",
                    limits.unit()
                ),
                axis: Axis::logarithmic(limits.unit(), None),
                level: None,
                band: None,
                groups: vec![Grouped::apart(
                    rows.into_iter().map(|(_, rank)| rank).collect(),
                )],
            };
            Figure {
                caption,
                better: Better::Higher,
                ..of_rows(self.info().name, "Limits of all servers".to_owned(), ranked)
            }
        })
    }
}

/// One measurement against the values that were tried.
pub(super) struct AgainstTried {
    info: Info,
    title: &'static str,
    caption: &'static str,
    y: fn(Find) -> Axis,
    value: fn(Find, &SearchTrial) -> Option<f64>,
}

impl AgainstTried {
    /// Served clients.
    pub(super) const SERVED: Self = Self {
        info: Info {
            name: "limit-served",
            summary: "Served up to the limit",
        },
        title: "Served up to the limit",
        caption: "Served, against what the load asked for.",
        y: |find| match find {
            Find::Clients => Axis::logarithmic("clients served", None),
            Find::Rate => Axis::logarithmic("Requests/s", None),
        },
        value: |find, one| match find {
            Find::Clients => one.value_of("clients_served"),
            Find::Rate => one.value_of("requests_per_s"),
        },
    };

    /// The p99 latency.
    pub(super) const P99: Self = Self {
        info: Info {
            name: "limit-p99",
            summary: "p99 latency up to the limit",
        },
        title: "p99 latency up to the limit",
        caption: "One request in 100 took longer.",
        y: |find| match find {
            Find::Clients => Axis::logarithmic("latency", Some("ms")),
            Find::Rate => Axis::logarithmic("response time", Some("ms")),
        },
        value: |_, one| one.p99_us().map(|us| us / 1e3),
    };

    fn series(&self, source: &Source<'_>, limits: &Limits) -> Vec<Series> {
        let mut all = Vec::new();
        for server in &limits.servers {
            let points: Vec<Point> = server
                .tries
                .iter()
                .filter_map(|one| self.point(limits.find, one))
                .collect();
            if points.is_empty() {
                continue;
            }
            let mark = mark(server, &points);
            let series = |points, trace| Series {
                name: server.server.clone(),
                place: source.place(&server.server),
                points,
                trace,
            };
            all.push(series(points, Trace::Joined));
            all.extend(mark.map(|mark| series(mark, Trace::Mark)));
        }
        all
    }

    fn point(&self, find: Find, one: &SearchTrial) -> Option<Point> {
        let y = (self.value)(find, one)?;
        let drawable = y.is_finite() && (y > 0.0 || !(self.y)(find).log);
        drawable.then_some(Point {
            failed: !one.passed,
            ..Point::new(one.value as f64, y)
        })
    }
}

/// A vertical line at the limit of a server.
fn mark(server: &ServerLimit, points: &[Point]) -> Option<Vec<Point>> {
    let x = server.passed?.value as f64;
    let heights = || points.iter().map(|point| point.y);
    let (least, most) = (
        heights().min_by(f64::total_cmp)?,
        heights().max_by(f64::total_cmp)?,
    );
    (least < most).then(|| vec![Point::new(x, least), Point::new(x, most)])
}

impl Entry for AgainstTried {
    fn info(&self) -> Info {
        self.info
    }
}

impl FigureKind for AgainstTried {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let limits = source.limits?;
        let series = self.series(source, limits);
        let each: Vec<String> = limits
            .servers
            .iter()
            .map(|server| format!("{} {}", server.server, server.text()))
            .collect();
        let marked = if limits.servers.iter().any(|server| server.failed.is_some()) {
            "the limit"
        } else {
            "the highest value that passed"
        };
        let marked = if series.iter().any(|one| one.trace == Trace::Mark) {
            format!(" The vertical line is {marked}.")
        } else {
            String::new()
        };
        let axes = (
            Axis::logarithmic(limits.unit(), None),
            (self.y)(limits.find),
        );
        Some(Figure {
            caption: format!("{}{marked}", self.caption),
            failure: TRIAL,
            alternative: format!(
                "{}, against {}. Limits: {}.",
                self.title,
                limits.unit(),
                each.join(", ")
            ),
            ..Figure::new(self.info.name, self.title, Kind::Lines, axes, series)?
        })
    }
}
