//! Metrics of the probe `capture`: captured packets and flows, in separate trials.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Side, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [SUMS, VALUES];

#[rustfmt::skip]
const VALUES: &[Metric] = of_network! { "capture", Captured:
    "captured_share", "Captured", Ratio, Neutral, "share of the connections that was captured: above 1,000 clients a sample, by client port";
    "flows", "Flows", Count, Neutral, "TCP connections in the capture";
    "complete_flows", "Complete flows", Count, Neutral, "connections captured from SYN to end";
    "refused_flows", "Refused flows", Count, Lower, "connections that the server refused with a reset";
    "unanswered_flows", "Unanswered flows", Count, Lower, "connections whose SYN got no reply";
    "flows_reset_by_client", "Flows reset by clients", Count, Lower, "connections that the client reset";
    "flows_reset_by_server", "Flows reset by the server", Count, Lower, "connections that the server reset";
    "packets", "Packets", Count, Neutral, "TCP packets captured, in both directions";
    "wire_bytes", "Bytes on the wire", Bytes, Neutral, "bytes of all captured packets, headers included";
    "payload_bytes", "Payload", Bytes, Neutral, "bytes of all captured packets without headers, retransmissions included";
    "flow_throughput_bytes_per_s", "Flow throughput", BytesPerSecond, Higher, "payload in both directions over the duration of a flow, median over complete flows", [.of_rate()];
    "flow_latency_p50_s", "Flow duration p50", Seconds, Lower, "median time from the first to the last packet of a complete flow";
    "flow_latency_p99_s", "Flow duration p99", Seconds, Lower, "99th percentile of flow duration; needs 100 flows";
    "handshake_p50_us", "TCP handshake p50", Microseconds, Lower, "median time from the first SYN to the last ACK of a TCP handshake";
    "handshake_p99_us", "TCP handshake p99", Microseconds, Lower, "99th percentile of TCP handshake time; needs 100 flows";
    "packets_per_flow", "Packets/flow", Mean, Neutral, "packets in both directions, median over complete flows";
    "retransmissions_by_client", "Client retransmissions", Count, Lower, "segments that clients retransmitted, SYNs included, as Wireshark counts them";
    "retransmissions_by_server", "Server retransmissions", Count, Lower, "segments that the server retransmitted";
    "syn_retransmissions", "SYN retransmissions", Count, Lower, "SYNs retransmitted";
    "out_of_order", "Out of order", Count, Lower, "segments that arrived out of order without a retransmission";
    "resets_by_client", "Client resets", Count, Neutral, "resets that clients sent";
    "resets_by_server", "Server resets", Count, Lower, "resets that the server sent";
    "capture_dropped", "Not captured", Count, Lower, "packets that the kernel dropped before capture; the other values lack them";
    "capture_duplicates", "Captured twice", Count, Neutral, "packets captured twice; they count once";
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
        "segments that either side retransmitted, SYNs included, in all captured flows",
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
        "segments per flow that either side retransmitted, SYNs included, mean over flows",
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
