//! Of the probe `memory`: memory, threads and descriptors of a side's process tree.

use super::entry::of_sides;
use super::{Better, Detail, Metric, Purpose, Source, Subject, Unit, count, joined};
use crate::Trial;

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [VALUES, WITH_KERNEL];

/// What processes have, and what the kernel has for their sockets: two probes together.
const WITH_KERNEL: &[Metric] = &[Metric {
    source: Source::Trial(with_kernel),
    ..Metric::of_probe(
        "memory",
        Purpose::Timed,
        Subject::Server,
        "server_memory_with_kernel_bytes",
        "Memory with the kernel's",
        Unit::Bytes,
        Better::Lower,
        "proportional set size of the server's processes, and what the kernel's slabs of TCP sockets, their files and epoll sets \
         grew by with the clients, both ends of connections on one machine (network namespace; needs root)",
    )
}];

fn with_kernel(trial: &Trial) -> Option<f64> {
    if trial.failure.is_some() || !trial.purpose.is_timed() {
        return None;
    }
    let own = trial.server_side.as_ref()?.metrics.get("pss_bytes")?;
    let kernel = trial
        .network
        .as_ref()?
        .metrics
        .get("connection_slab_bytes")?;
    Some(own + kernel)
}

#[rustfmt::skip]
const VALUES: &[Metric] = of_sides! { "memory", Timed:
    "pss_bytes", "Memory", Bytes, Lower, "proportional set size of all processes, with all clients connected or, where each has a job, at the peak of the crowd",
        server[.aliases(&["memory", "pss"]).column(49).terminal(3).compared().of_trial()];
    "peak_bytes", "Peak memory", Bytes, Lower, "the most that the proportional set size can have been: of each process, this and what its largest resident size (VmHWM) was above that of now";
    "parent_rss_bytes", "Parent's memory", Bytes, Neutral, "resident size of the process that was started, alone, shared pages included";
    "peak_rss_bytes", "Parent's peak memory", Bytes, Neutral, "VmHWM of that process: its largest resident size so far";
    "threads", "Threads", Count, Neutral, "threads of all processes, with all clients connected or, where each has a job, at the peak of the crowd",
        server[.column(51).beside(Detail::Others(&[("server_processes", "{} proc.")]))];
    "processes", "Processes", Count, Neutral, "processes, with all clients connected or, where each has a job, at the peak of the crowd";
    "descriptors", "Descriptors", Count, Neutral, "open descriptors of all processes, with all clients connected or, where each has a job, at the peak of the crowd";
    "pss_bytes_per_client", "Memory/client", Bytes, Lower, "proportional set size that was added since no client was there, per client";
    "pss_clients", "Clients then", Count, Neutral, "clients connected when memory was read";
};
