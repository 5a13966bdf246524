//! What was measured over the time of one trial of each server, at the largest number of clients.

use super::{Axis, Figure, FigureKind, Kind, Part, Point, Series, Source, Trace};
use crate::series::{FIRST_TENTH, LAST_TENTH, RATE, Sample};
use throng_record::format::counted;
use throng_registry::{Entry, Info};

/// One measurement over time.
pub(super) struct OverTime {
    info: Info,
    caption: &'static str,
    /// Side and metric.
    metric: (&'static str, &'static str),
    /// What is drawn dotted beside it, where there is such a thing.
    diff: Option<(&'static str, &'static str)>,
    y: Axis,
    factor: f64,
}

impl OverTime {
    /// Connections, from the first SYN on.
    pub(super) const ESTABLISHED: Self = Self {
        info: Info {
            name: "established",
            summary: "Established connections",
        },
        caption: "Connections as the server's kernel counts them; dotted, as the clients do.",
        metric: ("network", "established"),
        diff: Some(("client", "connected")),
        y: Axis::linear("connections", None),
        factor: 1.0,
    };

    /// Requests per second.
    pub(super) const RATE: Self = Self {
        info: Info {
            name: "rate-over-time",
            summary: "Requests per second over time",
        },
        caption: "A level line is a steady server; a rising one was not warm yet.",
        metric: RATE,
        diff: None,
        y: Axis::linear("Requests/s", None),
        factor: 1.0,
    };

    /// Who is served.
    pub(super) const SERVED: Self = Self {
        info: Info {
            name: "served-over-time",
            summary: "Early and late clients",
        },
        caption: "Replies to the first tenth of the clients over the mean client's; dotted, to the last tenth. Both at 1: even.",
        metric: FIRST_TENTH,
        diff: Some(LAST_TENTH),
        y: Axis::linear("replies, of the mean client's", None),
        factor: 1.0,
    };

    pub(super) const SERVER_CPU: Self = Self {
        info: Info {
            name: "server-cpu-over-time",
            summary: "CPU of the server",
        },
        caption: "The whole process tree; 100 % is one CPU.",
        metric: ("server", "cpu_percent"),
        diff: None,
        y: Axis::linear("CPU", Some("%")),
        factor: 1.0,
    };

    /// CPU of the load generator.
    pub(super) const CLIENT_CPU: Self = Self {
        info: Info {
            name: "client-cpu-over-time",
            summary: "CPU of the clients",
        },
        caption: "The load generator's; 100 % is one CPU.",
        metric: ("client", "cpu_percent"),
        diff: None,
        y: Axis::linear("CPU", Some("%")),
        factor: 1.0,
    };

    /// Memory of the server.
    pub(super) const MEMORY: Self = Self {
        info: Info {
            name: "memory-over-time",
            summary: "Memory of the server",
        },
        caption: "Proportional set size of the whole process tree.",
        metric: ("server", "pss_bytes"),
        diff: None,
        y: Axis::linear("memory", Some("MiB")),
        factor: 1.0 / (1 << 20) as f64,
    };

    fn series(&self, source: &Source<'_>) -> Vec<Series> {
        let mut all = Vec::new();
        for log in source.series {
            let Some(place) = source.place(&log.server) else {
                continue;
            };
            let mut add = |metric, trace| {
                let points = points(log.of(metric), self.factor);
                if !points.is_empty() {
                    all.push(Series {
                        name: log.server.clone(),
                        place,
                        points,
                        trace,
                    });
                }
            };
            add(self.metric, Trace::Joined);
            if let Some(metric) = self.diff {
                add(metric, Trace::Dotted);
            }
        }
        all
    }
}

impl OverTime {
    /// Whether there is anything to see: connections are all there as a rule.
    fn says_something(&self, series: &[Series], source: &Source<'_>) -> bool {
        let wanted = source.series.first().map_or(0, |log| log.clients);
        let is_missing = |point: &Point| point.x >= 0.0 && point.y < f64::from(wanted);
        self.metric != Self::ESTABLISHED.metric
            || series.iter().flat_map(|one| &one.points).any(is_missing)
    }
}

fn points(samples: &[Sample], factor: f64) -> Vec<Point> {
    let samples = samples.iter().filter(|sample| sample.value.is_finite());
    samples
        .map(|sample| Point::new(sample.at_s, sample.value * factor))
        .collect()
}

impl Entry for OverTime {
    fn info(&self) -> Info {
        self.info
    }
}

impl FigureKind for OverTime {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let series = self.series(source);
        if !self.says_something(&series, source) {
            return None;
        }
        let clients = source.series.first()?.clients;
        let Info { name, summary } = self.info;
        let axes = (Axis::OF_A_TRIAL, self.y.clone());
        let title = if summary.ends_with("over time") {
            summary.to_owned()
        } else {
            format!("{summary} over time")
        };
        Some(Figure {
            alternative: format!(
                "{summary} over the time of one trial of each server, {}.",
                match source.limits {
                    Some(_) => "at its limit".to_owned(),
                    None => counted(clients, "client"),
                }
            ),
            caption: self.caption.to_owned(),
            part: Part::Detail,
            ..Figure::new(name, title, Kind::Course, axes, series)?
        })
    }
}
