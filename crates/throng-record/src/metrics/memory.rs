//! Of the probe `memory`: memory, threads and descriptors of a side's process tree.

use super::entry::of_sides;
use super::{Better, Detail, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_sides! { "memory", Timed:
    "pss_bytes", "Memory", Bytes, Lower, "proportional set size of all processes, with all clients connected or, where each has a job, at the peak of the crowd",
        server[.aliases(&["memory", "pss"]).column(49).terminal(3).compared().of_trial()];
    "peak_bytes", "Peak memory", Bytes, Lower, "the most that the proportional set size can have been: of each process, this and what its largest resident size (VmHWM) was above that of now";
    "parent_rss_bytes", "Parent's memory", Bytes, Neutral, "resident size of the process that was started, alone, shared pages included";
    "peak_rss_bytes", "Parent's peak memory", Bytes, Neutral, "VmHWM of that process: its largest resident size so far";
    "threads", "Threads", Count, Neutral, "threads of all processes, with all clients connected or, where each has a job, at the peak of the crowd",
        server[.column(51).beside(Detail::Others(&[("server_processes", "{} proc.")]))];
    "processes", "Processes", Count, Neutral, "processes, with all clients connected or, where each has a job, at the peak of the crowd";
    "descriptors", "Descriptors", Count, Neutral, "open descriptors of all processes, with all clients connected or, where each has a job, at the peak of the crowd";
    "pss_clients", "Clients then", Count, Neutral, "clients connected when memory was read";
};
