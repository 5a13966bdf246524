//! Metrics of the catalogue against the number of clients.

use super::{AgainstClients, Axis, Failing, Figure, FigureKind, Source};
use crate::summary::Row;
use throng_record::metrics::{Better, Metric, Quantity, named};
use throng_spec::registry::{Entry, Info};

/// A metric against the number of clients. Its axis has the same name as its column in tables.
pub(crate) struct MetricFigure {
    id: &'static str,
    title: &'static str,
    metric: &'static str,
    /// The caption, in addition to which direction is better.
    note: &'static str,
    /// Addition to the caption of lines.
    pub(super) of_lines: &'static str,
}

const fn figure(id: &'static str, title: &'static str, metric: &'static str) -> MetricFigure {
    MetricFigure {
        id,
        title,
        metric,
        note: "",
        of_lines: "",
    }
}

impl MetricFigure {
    pub(crate) const REQUESTS: Self = Self {
        of_lines: "A falling line: throughput drops as clients are added.",
        ..figure("throughput", "Requests per second", "requests_per_s")
    };
    pub(crate) const COMPLETION: Self = Self {
        note: "Time until the last client finished.",
        ..figure("completion", "Completion time", "completion_s")
    };
    pub(crate) const CPU: Self = Self {
        of_lines: "A rising line: each request costs more as clients are added.",
        ..figure(
            "cpu-per-request",
            "Server CPU per request",
            "server_cpu_us_per_request",
        )
    };
    pub(crate) const P99: Self = Self {
        note: "One request in 100 took longer.",
        ..figure("latency-p99", "p99 latency", "latency_p99_us")
    };
    pub(crate) const FLOW_THROUGHPUT: Self = figure(
        "flow-throughput",
        "Throughput per flow, from captured packets",
        "flow_throughput_bytes_per_s",
    );

    fn metric(&self) -> &'static Metric {
        named(self.metric).expect("figures show metrics of the catalogue")
    }

    fn value(&self, row: &Row) -> Option<Quantity> {
        let (_, factor) = self.metric().axis_unit(f64::INFINITY);
        Some(row.quantity(self.metric)?.times(1.0 / factor))
    }

    fn axis(&self) -> Axis {
        let (label, (unit, _)) = (self.metric().label, self.metric().axis_unit(f64::INFINITY));
        Axis::logarithmic(label, unit)
    }

    /// Which direction is better, and what to look for.
    fn caption(&self) -> String {
        let better = match self.metric().better {
            Better::Higher => "Higher is better.",
            Better::Lower => "Lower is better.",
            Better::Neutral => "",
        };
        [better, self.note].join(" ").trim().to_owned()
    }

    pub(crate) fn against_clients(&self) -> AgainstClients<'_> {
        AgainstClients {
            id: self.id,
            title: self.title.to_owned(),
            caption: self.caption(),
            of_lines: self.of_lines,
            y: self.axis(),
            value: Box::new(|row| self.value(row)),
            better: self.metric().better,
            failure: Failing::UNSERVED,
        }
    }
}

impl Entry for MetricFigure {
    fn info(&self) -> Info {
        Info {
            name: self.id,
            summary: self.title,
        }
    }
}

impl FigureKind for MetricFigure {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        self.against_clients().build(source)
    }
}
