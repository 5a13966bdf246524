//! Of the probe `kernel-memory`: kernel memory per client, and total memory per client.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Side, Source, Subject, Unit, count, joined};
use crate::Trial;

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [KERNEL, WHOLE];

#[rustfmt::skip]
const KERNEL: &[Metric] = of_network! { "kernel-memory", Timed:
    "kernel_bytes_per_client", "Kernel memory/client", Bytes, Lower, "kernel memory per connected client, both ends: slabs, kernel stacks and page tables (whole machine)";
};

const WHOLE: &[Metric] = &[Metric {
    source: Source::Trial(whole),
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
}];

fn whole(trial: &Trial) -> Option<f64> {
    let of = |side: &Option<Side>, name: &str| side.as_ref()?.metrics.get(name).copied();
    let user = of(&trial.server_side, "pss_bytes_per_client")?;
    Some(user + of(&trial.network, "kernel_bytes_per_client")?)
}
