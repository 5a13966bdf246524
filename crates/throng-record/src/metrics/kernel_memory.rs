//! Metrics of the probe `kernel-memory`: kernel memory per client, and total memory per client.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Source, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [KERNEL, WHOLE];

#[rustfmt::skip]
const KERNEL: &[Metric] = of_network! { "kernel-memory", Timed:
    "kernel_bytes_per_client", "Kernel memory/client", Bytes, Lower, "kernel memory per connected client, both ends: slabs, kernel stacks and page tables (whole machine)";
};

const WHOLE: &[Metric] = &[Metric {
    source: Source::Sum(&["server_pss_bytes_per_client", "kernel_bytes_per_client"]),
    noun: Some("memory per client"),
    ..Metric::of_probe(
        "kernel-memory",
        Purpose::Timed,
        Subject::Network,
        "memory_bytes_per_client",
        "Memory/client",
        Unit::Bytes,
        Better::Lower,
        "memory per connected client: the server's processes (server_pss_bytes_per_client) and the kernel (kernel_bytes_per_client)",
    )
    .ranked()
}];
