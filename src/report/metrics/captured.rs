//! What trials give whose packets were captured: figures of the flows between both sides, median over
//! flows that the capture has from SYN to end.

use super::{Better, Metric, Source, Subject, Unit, figure, metric};
use crate::record::Purpose;

/// See the module.
pub(super) const METRICS: &[Metric] = &[
    of_flows(
        "flow_throughput",
        "Throughput of a flow",
        Unit::BytesPerSecond,
        "payload of a flow in both directions over its time, median over flows",
        "flow_throughput_bytes_per_s",
        1.0,
    ),
    of_flows(
        "flow_latency",
        "Time of a flow",
        Unit::Time,
        "from a flow's first packet to its last, median over flows",
        "flow_latency_p50_s",
        1e6,
    ),
    Metric {
        better: Better::Neither,
        ..of_flows(
            "flow_packets",
            "Packets of a flow",
            Unit::Count,
            "packets of a flow in both directions, median over flows",
            "packets_per_flow",
            1.0,
        )
    },
    of_capture(
        "flow_retransmissions",
        "Sent again a flow",
        Unit::Mean,
        "segments of a flow that either side sent again, SYNs included, mean over flows",
        Source::Figures("capture", |side, _| {
            let flows = side.metrics.get("flows").filter(|flows| **flows > 0.0)?;
            Some(retransmissions(side)? / flows)
        }),
    ),
    of_capture(
        "retransmissions",
        "Sent again",
        Unit::Count,
        "segments that either side sent again, SYNs included, of all captured flows",
        Source::Figures("capture", |side, _| retransmissions(side)),
    ),
    Metric {
        better: Better::Neither,
        ..of_flows(
            "captured_share",
            "Captured",
            Unit::Ratio,
            "share of the connections that was captured; above 1000 clients not all are",
            "captured_share",
            1.0,
        )
    },
    of_flows(
        "capture_dropped",
        "Not captured",
        Unit::Count,
        "packets that the kernel dropped before they were captured: what the other figures lack",
        "capture_dropped",
        1.0,
    ),
];

fn retransmissions(side: &crate::record::Side) -> Option<f64> {
    let sent_again = |by: &str| side.metrics.get(by).copied();
    Some(sent_again("retransmissions_by_client")? + sent_again("retransmissions_by_server")?)
}

const fn of_flows(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    of: &'static str,
    factor: f64,
) -> Metric {
    let source = Source::Figure(figure("capture", of), factor);
    of_capture(name, title, unit, help, source)
}

const fn of_capture(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    source: Source,
) -> Metric {
    Metric {
        purpose: Purpose::Captured,
        ..metric(name, title, unit, help, Subject::Network, source)
    }
}
