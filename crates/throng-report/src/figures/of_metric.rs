//! Metrics of the catalogue against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source};
use crate::summary::Row;
use throng_record::metrics::{Better, Metric, Quantity, named};
use throng_registry::{Entry, Info};

/// A metric against the number of clients. Its axis is named as its column in tables.
pub(crate) struct OfMetric {
    id: &'static str,
    title: &'static str,
    metric: &'static str,
    /// The unit of the axis, and how many of the metric's own it is.
    unit: Option<(&'static str, f64)>,
    scale: Scale,
    of_each: OfEach,
    /// What else there is to know than what the metric is.
    note: &'static str,
}

#[derive(Clone, Copy)]
enum Scale {
    Linear,
    /// Linear, and not from 0 on.
    Index,
    Logarithmic,
}

/// What its value is divided by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OfEach {
    Server,
    Client,
}

const fn figure(
    id: &'static str,
    title: &'static str,
    metric: &'static str,
    scale: Scale,
) -> OfMetric {
    OfMetric {
        id,
        title,
        metric,
        unit: None,
        scale,
        of_each: OfEach::Server,
        note: "",
    }
}

impl OfMetric {
    pub(crate) const REQUESTS: Self = Self {
        unit: Some(("per second", 1.0)),
        note: " Every reply was checked.",
        ..figure(
            "throughput",
            "Requests per second",
            "requests_per_s",
            Scale::Linear,
        )
    };
    pub(crate) const COMPLETION: Self = Self {
        unit: Some(("s", 1.0)),
        ..figure(
            "completion",
            "Completion time",
            "completion_s",
            Scale::Logarithmic,
        )
    };
    pub(crate) const CPU: Self = Self {
        unit: Some(("µs", 1.0)),
        ..figure(
            "cpu-per-request",
            "Server CPU per request",
            "server_cpu_us_per_request",
            Scale::Linear,
        )
    };
    pub(crate) const REQUESTS_PER_CPU: Self = Self {
        unit: Some(("per CPU second", 1.0)),
        ..figure(
            "requests-per-cpu-second",
            "Requests per second of server CPU",
            "requests_per_server_cpu_s",
            Scale::Linear,
        )
    };
    pub(crate) const SYSCALLS: Self = Self {
        note: " A server that waits once for many clients pays less for each.",
        ..figure(
            "syscalls-per-request",
            "System calls per request as clients grow",
            "server_syscalls_per_request",
            Scale::Logarithmic,
        )
    };
    pub(crate) const INSTRUCTIONS: Self = figure(
        "instructions",
        "Server instructions per request",
        "server_instructions_per_request",
        Scale::Linear,
    );
    pub(crate) const P50: Self = Self {
        unit: Some(("ms", 1e3)),
        ..figure(
            "latency-p50",
            "Latency, median",
            "latency_p50_us",
            Scale::Logarithmic,
        )
    };
    pub(crate) const P99: Self = Self {
        unit: Some(("ms", 1e3)),
        ..figure(
            "latency-p99",
            "Latency, 99th percentile",
            "latency_p99_us",
            Scale::Logarithmic,
        )
    };
    pub(crate) const FIRST_ANSWER: Self = Self {
        unit: Some(("ms", 1e3)),
        note: " Steps near 1 s and 3 s are lost connection requests sent again.",
        ..figure(
            "first-answer",
            "Longest wait for the first answer",
            "first_answer_max_us",
            Scale::Logarithmic,
        )
    };
    pub(crate) const FLOW_THROUGHPUT: Self = Self {
        unit: Some(("KiB/s", 1024.0)),
        ..figure(
            "flow-throughput",
            "Throughput of a flow on the wire",
            "flow_throughput_bytes_per_s",
            Scale::Logarithmic,
        )
    };
    pub(crate) const FLOW_TIME: Self = Self {
        unit: Some(("s", 1.0)),
        note: " Connections that last as long as the load differ in how late they begin.",
        ..figure(
            "flow-time",
            "Time of a flow on the wire",
            "flow_latency_p50_s",
            Scale::Logarithmic,
        )
    };
    pub(crate) const MEMORY: Self = Self {
        unit: Some(("MiB", 1_048_576.0)),
        note: " The kernel's socket buffers are not in it.",
        ..figure(
            "memory",
            "Memory of the server",
            "server_pss_bytes",
            Scale::Logarithmic,
        )
    };
    pub(crate) const MEMORY_PER_CLIENT: Self = Self {
        unit: Some(("KiB per client", 1024.0)),
        of_each: OfEach::Client,
        note: " On the left it is mostly the program itself, on the right mostly what another client costs.",
        ..figure(
            "memory-per-client",
            "Memory of the server per client",
            "server_pss_bytes",
            Scale::Logarithmic,
        )
    };
    pub(crate) const FAIRNESS: Self = figure(
        "fairness",
        "Evenness of service",
        "fairness_jain",
        Scale::Index,
    );

    fn metric(&self) -> &'static Metric {
        named(self.metric).expect("figures show metrics of the catalogue")
    }

    fn value(&self, row: &Row) -> Option<Quantity> {
        let (_, factor) = self.unit.unwrap_or(("", 1.0));
        let each = match self.of_each {
            OfEach::Server => 1.0,
            OfEach::Client => f64::from(row.clients),
        };
        Some(row.quantity(self.metric)?.times(1.0 / factor / each))
    }

    fn axis(&self) -> Axis {
        let (label, unit) = (self.metric().label, self.unit.map(|(unit, _)| unit));
        match self.scale {
            Scale::Linear => Axis::linear(label, unit),
            Scale::Index => Axis {
                from_zero: false,
                ..Axis::linear(label, unit)
            },
            Scale::Logarithmic => Axis::logarithmic(label, unit),
        }
    }

    /// Which value is good, and what the metric is.
    fn caption(&self) -> String {
        let metric = self.metric();
        let better = match metric.better {
            Better::Higher => "Higher is better. ",
            Better::Lower => "Lower is better. ",
            Better::Neutral => "",
        };
        let each = match self.of_each {
            OfEach::Server => "",
            OfEach::Client => ", over the number of clients",
        };
        let mut help = metric.help.to_owned();
        help[..1].make_ascii_uppercase();
        format!("{better}{help}{each}.{}", self.note)
    }

    pub(crate) fn against_clients(&self) -> AgainstClients<'_> {
        AgainstClients {
            id: self.id,
            title: self.title.to_owned(),
            caption: self.caption(),
            y: self.axis(),
            value: Box::new(|row| self.value(row)),
            combine: self.metric().combine,
        }
    }
}

impl Entry for OfMetric {
    fn info(&self) -> Info {
        Info {
            name: self.id,
            summary: self.title,
        }
    }
}

impl FigureKind for OfMetric {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        self.against_clients().build(source.summary)
    }
}
