//! Metrics of the probe `memory`: memory, threads and descriptors of a side's process tree.

use super::entry::of_sides;
use super::{Better, Detail, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_sides! { "memory", Timed:
    "pss_bytes", "Memory", Bytes, Lower, "proportional set size (PSS) of all processes with all clients connected, or at peak concurrency if each client has a job",
        server[.called("memory").aliases(&["memory", "pss"]).column(49).terminal(3).compared().ranked().of_trial()];
    "memory_high_hits", "Memory slowdowns", Count, Neutral, "times the kernel slowed down its control group for using too much memory (memory.high)";
    "peak_bytes", "Peak memory", Bytes, Lower, "upper bound of the peak PSS: PSS plus how far each process's VmHWM exceeds its current resident set";
    "parent_rss_bytes", "Parent RSS", Bytes, Neutral, "resident set size of the process that throng started, shared pages included";
    "peak_rss_bytes", "Parent peak RSS", Bytes, Neutral, "peak resident set size (VmHWM) of the process that throng started";
    "threads", "Threads", Count, Neutral, "threads of all processes with all clients connected",
        server[.column(51).detail(Detail::Others(&[("server_processes", "{} proc.")]))];
    "processes", "Processes", Count, Neutral, "processes with all clients connected";
    "descriptors", "Descriptors", Count, Neutral, "open file descriptors of all processes with all clients connected";
    "pss_bytes_per_client", "Process memory/client", Bytes, Lower, "growth of the PSS per connected client",
        server[.called("process memory per client")];
    "pss_clients", "Clients at reading", Count, Neutral, "clients connected when memory was read";
};
