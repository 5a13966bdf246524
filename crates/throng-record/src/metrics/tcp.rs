//! Metrics of the probe `tcp`: the TCP traffic between clients and server.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_network! { "tcp", Timed:
    "sampled_sockets", "Sampled sockets", Count, Neutral, "client sockets sampled with TCP_INFO, for the next metrics";
    "rtt_us", "Round-trip time", Microseconds, Lower, "smoothed round-trip time, median over sampled sockets";
    "rtt_variation_us", "RTT variation", Microseconds, Lower, "mean deviation of the round-trip time, median over sampled sockets";
    "congestion_window_segments", "Congestion window", Count, Neutral, "congestion window in segments, median over sampled sockets";
    "delivery_rate_bytes_per_s", "Delivery rate", BytesPerSecond, Higher, "latest delivery rate, median over sampled sockets", [.of_rate()];
    "socket_retransmits", "Sampled retransmits", Count, Lower, "segments retransmitted over the life of the sampled sockets, in total";
    "buffer_bytes_per_socket", "Socket buffers", Bytes, Lower, "kernel memory in the buffers of an idle socket, mean over sampled sockets";
    "segments_sent", "Segments", Count, Neutral, "TCP segments sent during the measurement (network namespace, both sides)";
    "segments_retransmitted", "Retransmits", Count, Lower, "TCP segments retransmitted during the measurement (network namespace, both sides)";
    "retransmit_timeouts", "Retransmit timeouts", Count, Lower, "retransmission timeouts during the measurement (network namespace)";
    "delayed_acks", "Delayed ACKs", Count, Neutral, "acknowledgements delayed until their timer of 40 ms or more expired, during the measurement (network namespace)";
    "memory_pressures", "Memory pressure", Count, Lower, "times TCP reached its memory limit during the measurement (network namespace)";
    "receive_queue_prunes", "Receive queue prunes", Count, Lower, "times the kernel pruned a full receive buffer during the measurement (network namespace)";
    "backlog_drops", "Backlog drops", Count, Lower, "segments dropped because a socket's backlog was full, during the measurement (network namespace)";
    "orphans_max", "Max orphans", Count, Neutral, "most simultaneous sockets without a process (network namespace)";
    "socket_memory_bytes", "Socket memory", Bytes, Lower, "peak memory in the buffers of all TCP sockets (network namespace)";
    "connection_slab_bytes", "Connection slabs", Bytes, Lower, "growth of the kernel slabs of TCP sockets, open files and epoll sets (network namespace and machine; needs root)";
    "socket_slab_bytes", "Socket slabs", Bytes, Lower, "growth of the kernel slabs of TCP sockets (network namespace; needs root)";
};
