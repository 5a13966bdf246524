//! Metrics of the probe `control-group`: the kernel's accounting of a side in its own control group.

use super::entry::{of_cpu, of_sides, per_request};
use super::{Better, Metric, Purpose, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [&CPU, MEMORY];

const CPU: [Metric; count(&CPU_PARTS)] = of_cpu(joined(&CPU_PARTS));

const CPU_PARTS: [&[Metric]; 2] = [PER_REQUEST, TIMES];

#[rustfmt::skip]
const PER_REQUEST: &[Metric] = per_request! { "control-group", Timed:
    "counted_cpu_us" of "counted_cpu_ms" * 1e3, "Cgroup CPU", Microseconds, Lower, "CPU time of the control group, short-lived processes included";
};

#[rustfmt::skip]
const TIMES: &[Metric] = of_sides! { "control-group", Timed:
    "counted_cpu_ms", "Cgroup CPU time", Milliseconds, Lower, "CPU time of the control group during the measurement, short-lived processes included";
    "counted_cpu_user_ms", "Cgroup user CPU time", Milliseconds, Lower, "CPU time of the control group in user mode";
    "counted_cpu_system_ms", "Cgroup system CPU time", Milliseconds, Lower, "CPU time of the control group in the kernel";
};

#[rustfmt::skip]
const MEMORY: &[Metric] = of_sides! { "control-group", Timed:
    "charged_bytes", "Cgroup memory", Bytes, Lower, "memory of the control group at the end of the trial, kernel memory included, file cache excluded",
        server[.column(50)];
    "charged_peak_bytes", "Peak cgroup memory, seen", Bytes, Lower, "highest memory of the control group seen during the trial";
};
