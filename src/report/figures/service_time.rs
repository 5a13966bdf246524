//! Service time, from sending a request to its whole reply, against the number of clients.

use super::{AgainstClients, Axis, Figure, FigureKind, Source, bare, scaled};
use crate::registry::{Entry, Info};
use crate::report::summary::{Quantity, Row};

/// One percentile of the service time.
pub(super) struct ServiceTime {
    info: Info,
    caption: &'static str,
    value: fn(&Row) -> Option<Quantity>,
}

impl ServiceTime {
    /// The median.
    pub(super) const MEDIAN: Self = Self {
        info: Info {
            name: "service-time-p50",
            summary: "Service time, median",
        },
        caption: "Lower is better. From sending a request to its whole reply; half of all requests took longer. All trials together.",
        value: |row| Some(milliseconds(row.service_time?.p50_us)),
    };

    /// The 99th percentile.
    pub(super) const P99: Self = Self {
        info: Info {
            name: "service-time-p99",
            summary: "Service time, 99th percentile",
        },
        caption: "Lower is better. From sending a request to its whole reply; one request in a hundred took longer. All trials together.",
        value: |row| Some(milliseconds(row.service_time?.p99_us?)),
    };
}

impl Entry for ServiceTime {
    fn info(&self) -> Info {
        self.info
    }
}

impl FigureKind for ServiceTime {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info.name,
            title: self.info.summary,
            caption: self.caption,
            y: Axis::logarithmic("time", Some("ms")),
            value: self.value,
        }
        .build(source.summary)
    }
}

fn milliseconds(microseconds: f64) -> Quantity {
    scaled(bare(microseconds), 1e-3)
}
