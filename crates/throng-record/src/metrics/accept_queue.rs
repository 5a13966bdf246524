//! Metrics of the probe `accept-queue`: clients in the accept queue, and dropped handshakes.

use super::entry::of_network;
use super::{Better, Combine, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_network! { "accept-queue", Timed:
    "accept_backlog", "Accept queue size", Count, Neutral, "clients that may wait in the accept queue: the listen() backlog, capped by somaxconn";
    "listeners", "Listening sockets", Count, Neutral, "listening sockets on the server's port";
    "accept_queue_max", "Max accept queue", Count, Lower, "most clients seen in the accept queue at once", [.combined(Combine::Greatest)];
    "accept_queue_mean", "Mean accept queue", Mean, Lower, "mean number of clients in the accept queue";
    "listen_overflows", "Accept queue overflows", Count, Lower, "handshakes dropped because the accept queue was full (whole load)", [.combined(Combine::Greatest)];
    "listen_drops", "Handshakes dropped", Count, Lower, "handshakes that the server's listening sockets dropped for any reason (whole load)", [.combined(Combine::Greatest)];
    "syn_queue_drops", "SYNs dropped", Count, Lower, "SYNs dropped because the SYN queue was full (network namespace, whole load)", [.combined(Combine::Greatest)];
    "syn_queue_cookies", "SYN cookies", Count, Lower, "SYNs answered with a cookie because the SYN queue was full (network namespace, whole load)", [.combined(Combine::Greatest)];
    "syn_retransmits", "SYN retransmits", Count, Lower, "SYNs and SYN-ACKs retransmitted (network namespace, whole load)", [.combined(Combine::Greatest)];
    "overflow_aborts", "Overflow resets", Count, Lower, "connections reset because the accept queue was full, with tcp_abort_on_overflow (network namespace, whole load)", [.combined(Combine::Greatest)];
};
