//! Of the probe `tcp`: what TCP did between clients and server.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_network! { "tcp", Timed:
    "sampled_sockets", "Sampled sockets", Count, Neutral, "clients' sockets that the kernel was asked about; what follows is of them";
    "rtt_us", "Round-trip time", Microseconds, Lower, "smoothed round-trip time as the clients' kernel has it, median over sockets";
    "rtt_variation_us", "Round-trip variation", Microseconds, Lower, "its mean deviation, median over sockets";
    "congestion_window_segments", "Congestion window", Count, Neutral, "segments that may be on their way, median over sockets";
    "delivery_rate_bytes_per_s", "Delivery rate", BytesPerSecond, Higher, "latest rate of delivery, median over sockets", [.of_rate()];
    "socket_retransmits", "Sampled retransmits", Count, Lower, "segments sent again over the life of these sockets, added up";
    "buffer_bytes_per_socket", "Socket buffers", Bytes, Lower, "kernel memory in the buffers of an idle socket, mean";
    "segments_sent", "Segments", Count, Neutral, "TCP segments sent in the steady part (network namespace, both sides)";
    "segments_retransmitted", "Retransmits", Count, Lower, "segments sent again in the steady part (network namespace, both sides)";
    "retransmit_timeouts", "Retransmit timeouts", Count, Lower, "times a sender waited in vain for an acknowledgement in the steady part (network namespace)";
    "delayed_acks", "Delayed ACKs", Count, Neutral, "acknowledgements sent only when a timer of 40 ms or more ran out, in the steady part (network namespace)";
    "memory_pressures", "Memory pressures", Count, Lower, "times TCP came to the limit of its memory in the steady part (network namespace)";
    "receive_queue_prunes", "Receive queue prunes", Count, Lower, "times a full receive buffer was squeezed in the steady part (network namespace)";
    "backlog_drops", "Backlog drops", Count, Lower, "segments dropped since a socket's backlog was full in the steady part (network namespace)";
    "orphans_max", "Most orphans", Count, Neutral, "most sockets at once that no process has any more (network namespace)";
    "socket_memory_bytes", "Socket memory", Bytes, Lower, "most memory in the buffers of all TCP sockets at once (network namespace)";
    "connection_slab_bytes", "Connection slabs", Bytes, Lower, "memory that was added for the clients in the slabs of TCP sockets, of open files and of epoll sets (network namespace and machine; needs root)";
    "socket_slab_bytes", "Socket slabs", Bytes, Lower, "memory for the TCP sockets themselves that was added for the clients (network namespace; needs root)";
};
