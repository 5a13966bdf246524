//! What a search for limits tried: replies and response time against what was asked for, up to the limit
//! and beyond.

use super::{Axis, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use crate::limit::{Limits, ServerLimit, Try};
use throng_record::Find;
use throng_registry::{Entry, Info};

/// One measurement against what was tried.
pub(super) struct AgainstTried {
    info: Info,
    title: &'static str,
    caption: &'static str,
    y: fn(Find) -> Axis,
    value: fn(Find, &Try) -> Option<f64>,
}

impl AgainstTried {
    /// Who was served.
    pub(super) const SERVED: Self = Self {
        info: Info {
            name: "limit-served",
            summary: "What was served of what was asked for",
        },
        title: "Served",
        caption: "Where a line leaves the diagonal, not all was served.",
        y: |find| match find {
            Find::Clients => Axis::logarithmic("clients served", None),
            Find::Rate => Axis::logarithmic("Requests/s", None),
        },
        value: |find, one| match find {
            Find::Clients => one.value_of("clients_served"),
            Find::Rate => one.value_of("requests_per_s"),
        },
    };

    /// How long 99 of 100 requests took.
    pub(super) const P99: Self = Self {
        info: Info {
            name: "limit-p99",
            summary: "99th percentile up to the limit",
        },
        title: "99 of 100 requests take up to",
        caption: "Lower is better.",
        y: |find| match find {
            Find::Clients => Axis::logarithmic("latency", Some("ms")),
            Find::Rate => Axis::logarithmic("response time", Some("ms")),
        },
        value: |_, one| one.p99_us().map(|us| us / 1e3),
    };

    fn series(&self, limits: &Limits) -> Vec<Series> {
        let mut all = Vec::new();
        for (place, server) in limits.servers.iter().enumerate() {
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
                place,
                points,
                trace,
            };
            all.push(series(points, Trace::Joined));
            all.extend(mark.map(|mark| series(mark, Trace::Mark)));
        }
        all
    }

    fn point(&self, find: Find, one: &Try) -> Option<Point> {
        let y = (self.value)(find, one)?;
        let drawable = y.is_finite() && (y > 0.0 || !(self.y)(find).log);
        drawable.then_some(Point {
            partial: !one.held,
            ..Point::new(one.value as f64, y)
        })
    }
}

/// An upright line at what the server held.
fn mark(server: &ServerLimit, points: &[Point]) -> Option<Vec<Point>> {
    let x = server.held?.value as f64;
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
        let series = self.series(limits);
        let each: Vec<String> = limits
            .servers
            .iter()
            .map(|server| format!("{} {}", server.server, server.text()))
            .collect();
        let axes = (
            Axis::logarithmic(limits.unit(), None),
            (self.y)(limits.find),
        );
        Some(Figure {
            caption: format!(
                "{} Hollow: the trial broke. The upright line is the limit.",
                self.caption
            ),
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
