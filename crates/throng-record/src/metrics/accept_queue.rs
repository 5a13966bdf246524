//! Of the probe `accept-queue`: clients that wait to be accepted, and those that were refused.

use super::entry::of_network;
use super::{Better, Combine, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_network! { "accept-queue", Timed:
    "accept_backlog", "Accept queue", Count, Neutral, "clients that may wait in a listening socket: what was asked for, or somaxconn if that is less";
    "listeners", "Listening sockets", Count, Neutral, "listening sockets on the server's port";
    "accept_queue_max", "Longest accept queue", Count, Lower, "most clients seen waiting to be accepted; between looks there may have been more", [.combined(Combine::Greatest)];
    "accept_queue_mean", "Mean accept queue", Mean, Lower, "clients waiting to be accepted, mean over all looks";
    "listen_overflows", "Accept queue overflows", Count, Lower, "handshakes refused since the accept queue was full (network namespace, life of the load)", [.combined(Combine::Greatest)];
    "listen_drops", "Handshakes dropped", Count, Lower, "handshakes refused for any reason (network namespace, life of the load)", [.combined(Combine::Greatest)];
    "syn_queue_drops", "SYNs dropped", Count, Lower, "SYNs dropped since too many handshakes were open (network namespace, life of the load)", [.combined(Combine::Greatest)];
    "syn_queue_cookies", "SYN cookies", Count, Lower, "SYNs answered with a cookie since too many handshakes were open (network namespace, life of the load)", [.combined(Combine::Greatest)];
    "syn_retransmits", "SYNs sent again", Count, Lower, "SYNs, and answers to them, that were sent again (network namespace, life of the load)", [.combined(Combine::Greatest)];
    "overflow_aborts", "Overflow resets", Count, Lower, "clients reset since the accept queue was full, where tcp_abort_on_overflow is set (network namespace, life of the load)", [.combined(Combine::Greatest)];
};
