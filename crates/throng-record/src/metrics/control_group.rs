//! Of the probe `control-group`: what the kernel counts of a side in a control group of its own.

use super::entry::{of_sides, per_request};
use super::{Better, Metric, Purpose, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [PER_REQUEST, VALUES];

#[rustfmt::skip]
const PER_REQUEST: &[Metric] = per_request! { "control-group", Timed:
    "counted_cpu_us" of "counted_cpu_ms" * 1e3, "CPU, counted by the kernel", Microseconds, Lower, "CPU time of everything that was ever in the control group, however short it lived";
};

#[rustfmt::skip]
const VALUES: &[Metric] = of_sides! { "control-group", Timed:
    "counted_cpu_ms", "CPU time, counted by the kernel", Milliseconds, Lower, "CPU time in the steady part of everything that was ever in the control group";
    "counted_cpu_user_ms", "User CPU time, counted by the kernel", Milliseconds, Lower, "of it, in user mode";
    "counted_cpu_system_ms", "System CPU time, counted by the kernel", Milliseconds, Lower, "of it, in the kernel";
    "charged_bytes", "Charged memory", Bytes, Lower, "memory that the kernel charges to the control group, its own for processes and sockets included, file contents not; at the end of the trial, with all clients connected",
        server[.column(50)];
    "charged_peak_bytes", "Most charged memory", Bytes, Lower, "the most of it that was seen, also where each client has a job";
};
