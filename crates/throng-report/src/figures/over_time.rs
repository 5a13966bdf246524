//! Time series of one trial per server, at the largest number of clients.

use super::{Axis, Figure, FigureKind, Kind, Part, Point, Series, Source, Trace};
use crate::series::{FIRST_TENTH, LAST_TENTH, RATE, Sample};
use throng_record::format::counted;
use throng_spec::registry::{Entry, Info};

/// One measurement over time.
pub(super) struct OverTime {
    info: Info,
    caption: &'static str,
    /// Side and metric.
    metric: (&'static str, &'static str),
    /// A second measurement, drawn dotted.
    diff: Option<(&'static str, &'static str)>,
    y: Axis,
    factor: f64,
    /// The metrics that it is about.
    numbers: &'static [&'static str],
}

impl OverTime {
    /// Connections, starting with the first SYN.
    pub(super) const ESTABLISHED: Self = Self {
        info: Info {
            name: "established",
            summary: "Established connections",
        },
        caption: "Connections as counted by the server's kernel; dotted, by the clients.",
        metric: ("network", "established"),
        diff: Some(("client", "connected")),
        y: Axis::linear("connections", None),
        factor: 1.0,
        numbers: &["clients_connected", "established_max"],
    };

    /// Requests per second.
    pub(super) const RATE: Self = Self {
        info: Info {
            name: "rate-over-time",
            summary: "Requests per second over time",
        },
        caption: "A flat line is a steady server; a rising line was still warming up.",
        metric: RATE,
        diff: None,
        y: Axis::linear("Requests/s", None),
        factor: 1.0,
        numbers: &["requests_per_s"],
    };

    /// Clients served over time.
    pub(super) const SERVED: Self = Self {
        info: Info {
            name: "served-over-time",
            summary: "Early and late clients",
        },
        caption: "Replies to the first tenth of clients to connect, over the mean; dotted, to the last tenth. Even service: both at 1.",
        metric: FIRST_TENTH,
        diff: Some(LAST_TENTH),
        y: Axis::linear("replies / mean", None),
        factor: 1.0,
        numbers: &["early_over_late"],
    };

    pub(super) const SERVER_CPU: Self = Self {
        info: Info {
            name: "server-cpu-over-time",
            summary: "Server CPU",
        },
        caption: "All server processes; 100 % is one CPU.",
        metric: ("server", "cpu_percent"),
        diff: None,
        y: Axis::linear("CPU", Some("%")),
        factor: 1.0,
        numbers: &["server_cpu_percent"],
    };

    /// CPU of the load generator.
    pub(super) const CLIENT_CPU: Self = Self {
        info: Info {
            name: "client-cpu-over-time",
            summary: "Load generator CPU",
        },
        caption: "100 % is one CPU.",
        metric: ("client", "cpu_percent"),
        diff: None,
        y: Axis::linear("CPU", Some("%")),
        factor: 1.0,
        numbers: &["client_cpu_percent"],
    };

    /// Memory of the server.
    pub(super) const MEMORY: Self = Self {
        info: Info {
            name: "memory-over-time",
            summary: "Server memory",
        },
        caption: "Proportional set size of all processes.",
        metric: ("server", "pss_bytes"),
        diff: None,
        y: Axis::linear("memory", Some("MiB")),
        factor: 1.0 / (1 << 20) as f64,
        numbers: &["server_pss_bytes", "server_peak_bytes"],
    };

    fn series(&self, source: &Source<'_>) -> Vec<Series> {
        let mut all = Vec::new();
        for log in source.series {
            let mut add = |metric, trace| {
                let points = points(log.of(metric), self.factor);
                if !points.is_empty() {
                    all.push(source.curve(&log.server, log.clients, points, trace));
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
    /// Whether there is anything to see. Usually all connections are established, which is not worth a figure.
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
                "{summary} during one trial per server, {}.",
                match source.limits {
                    Some(_) => "at its limit".to_owned(),
                    None => counted(clients, "client"),
                }
            ),
            caption: self.caption.to_owned(),
            part: Part::Detail,
            numbers: source.numbers(
                self.numbers,
                source
                    .series
                    .iter()
                    .map(|log| (log.server.as_str(), log.clients)),
            ),
            ..Figure::new(name, title, Kind::Course, axes, series)?
        })
    }
}
