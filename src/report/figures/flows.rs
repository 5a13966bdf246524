//! Flows as captured on the wire: how much each carried, and how long it took, against the number of
//! clients. Only where trials were captured.

use super::{AgainstClients, Axis, Figure, FigureKind, Source, scaled};
use crate::registry::{Entry, Info};

/// Payload of a flow over its time.
pub(super) struct FlowThroughput;

impl Entry for FlowThroughput {
    fn info(&self) -> Info {
        Info {
            name: "flow-throughput",
            summary: "Throughput of a flow on the wire",
        }
    }
}

impl FigureKind for FlowThroughput {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Throughput of a flow on the wire",
            caption: "Higher is better. Payload in both directions over the time from a connection's first packet to its last: the median connection, as tcpdump captured it, in trials that are not timed.",
            y: Axis::logarithmic("throughput", Some("KiB/s")),
            value: |row| {
                let wire = row.wire.as_ref()?;
                Some(scaled(wire.flow_throughput_bytes_per_s?, 1.0 / 1024.0))
            },
        }
        .build(source.summary)
    }
}

/// From first to last packet.
pub(super) struct FlowLatency;

impl Entry for FlowLatency {
    fn info(&self) -> Info {
        Info {
            name: "flow-latency",
            summary: "Time of a flow on the wire",
        }
    }
}

impl FigureKind for FlowLatency {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        AgainstClients {
            id: self.info().name,
            title: "Time of a flow on the wire",
            caption: "From a connection's first packet to its last: the median connection, as tcpdump captured it, in trials that are not timed. Connections that last as long as the load differ in how late they begin.",
            y: Axis::logarithmic("time", Some("s")),
            value: |row| row.wire.as_ref()?.flow_latency_s,
        }
        .build(source.summary)
    }
}
