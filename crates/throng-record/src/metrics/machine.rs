//! Metrics of the probe `machine`: the whole machine.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_network! { "machine", Timed:
    "machine_busy_percent", "Machine CPU", Percent, Neutral, "CPU time of everything on the machine over elapsed time; 100 % is one CPU";
    "machine_steal_percent", "Stolen CPU", Percent, Lower, "CPU time that the hypervisor gave to others; 100 % is one CPU";
    "machine_cpu_pressure_percent", "CPU pressure", Percent, Lower, "share of time in which some task of the machine waited for a CPU (/proc/pressure/cpu)";
};
