//! Of the probe `capture`: packets and flows as they were captured, in trials of their own.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Side, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [SUMS, VALUES];

#[rustfmt::skip]
const VALUES: &[Metric] = of_network! { "capture", Captured:
    "captured_share", "Captured", Ratio, Neutral, "share of the connections that was captured, chosen by the clients' ports; above 1000 clients not all are";
    "flows", "Flows", Count, Neutral, "connections in the capture";
    "complete_flows", "Complete flows", Count, Neutral, "of them, those captured from SYN to end";
    "refused_flows", "Refused flows", Count, Lower, "of all, those that the server answered with a reset";
    "unanswered_flows", "Unanswered flows", Count, Lower, "those whose SYN was never answered";
    "flows_reset_by_client", "Flows reset by clients", Count, Lower, "those that the client ended with a reset";
    "flows_reset_by_server", "Flows reset by the server", Count, Lower, "those that the server ended with a reset";
    "packets", "Packets", Count, Neutral, "TCP packets in both directions";
    "wire_bytes", "Bytes on the wire", Bytes, Neutral, "their bytes, headers included";
    "payload_bytes", "Payload", Bytes, Neutral, "their bytes without headers, sent again or not";
    "flow_throughput_bytes_per_s", "Flow throughput", BytesPerSecond, Higher, "payload in both directions over a flow's time; median of complete flows", [.of_rate()];
    "flow_latency_p50_s", "Flow time p50", Seconds, Lower, "from a flow's first packet to its last; median of complete flows";
    "flow_latency_p99_s", "Flow time p99", Seconds, Lower, "the same, 99th percentile; from 100 flows on";
    "handshake_p50_us", "Handshake p50", Microseconds, Lower, "from the first SYN to the ACK that ends the handshake; median";
    "handshake_p99_us", "Handshake p99", Microseconds, Lower, "the same, 99th percentile; from 100 flows on";
    "packets_per_flow", "Packets/flow", Mean, Neutral, "packets in both directions; median of complete flows";
    "retransmissions_by_client", "Retransmissions by clients", Count, Lower, "segments that clients sent again, as Wireshark counts them, SYNs included";
    "retransmissions_by_server", "Retransmissions by the server", Count, Lower, "segments that the server sent again";
    "syn_retransmissions", "SYN retransmissions", Count, Lower, "SYNs sent again";
    "out_of_order", "Out of order", Count, Lower, "segments that came late but were not sent again";
    "resets_by_client", "Resets by clients", Count, Neutral, "resets that clients sent";
    "resets_by_server", "Resets by the server", Count, Lower, "resets that the server sent";
    "capture_dropped", "Not captured", Count, Lower, "packets that the kernel dropped before they were captured: what the other values lack";
    "capture_duplicates", "Captured twice", Count, Neutral, "packets captured twice, counted once";
};

const SUMS: &[Metric] = &[
    Metric::of_probe(
        "capture",
        Purpose::Captured,
        Subject::Network,
        "retransmissions",
        "Retransmissions",
        Unit::Count,
        Better::Lower,
        "segments that either side sent again, SYNs included, of all captured flows",
    )
    .values(|side, _| retransmissions(side)),
    Metric::of_probe(
        "capture",
        Purpose::Captured,
        Subject::Network,
        "retransmissions_per_flow",
        "Retransmissions/flow",
        Unit::Mean,
        Better::Lower,
        "segments of a flow that either side sent again, SYNs included, mean over flows",
    )
    .values(|side, _| {
        let flows = side.metrics.get("flows").filter(|flows| **flows > 0.0)?;
        Some(retransmissions(side)? / flows)
    }),
];

fn retransmissions(side: &Side) -> Option<f64> {
    let sent_again = |by: &str| side.metrics.get(by).copied();
    Some(sent_again("retransmissions_by_client")? + sent_again("retransmissions_by_server")?)
}
