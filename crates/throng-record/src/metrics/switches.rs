//! Metrics of the probe `switches`: context switches, waits for a CPU and page faults of a side's process tree.

use super::entry::{of_sides, of_values};
use crate::Slice;

use super::{Better, Detail, Load, Metric, Purpose, Side, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 2] = [PER_REQUEST, VALUES];

#[rustfmt::skip]
const PER_REQUEST: &[Metric] = of_values! { "switches", Timed:
    "voluntary_switches_per_request", "Switches/request", Mean, Lower, "voluntary context switches, in which a thread waits, per request", |side, load| per_request(side, load, "voluntary_switches_per_s"),
        server[.column(52).detail(Detail::Others(&[("server_involuntary_switches_per_request", "+ {}")])).terminal(12)];
    "involuntary_switches_per_request", "Involuntary switches/request", Mean, Lower, "involuntary context switches, in which a thread is preempted, per request", |side, load| per_request(side, load, "involuntary_switches_per_s");
    "cpu_wait_us_per_request", "CPU wait/request", Microseconds, Lower, "time that threads were ready to run but waited for a CPU, per request; threads that ended are missed", |side, load| Some(1e6 * per_request(side, load, "threads_waiting_for_cpu")?),
        server[.in_slices(Slice::server_cpu_wait_us_per_request)];
};

#[rustfmt::skip]
const VALUES: &[Metric] = of_sides! { "switches", Timed:
    "voluntary_switches_per_s", "Switches/s", PerSecond, Neutral, "voluntary context switches per second";
    "involuntary_switches_per_s", "Involuntary switches/s", PerSecond, Neutral, "involuntary context switches per second";
    "threads_waiting_for_cpu", "Threads waiting for a CPU", Mean, Neutral, "threads that were ready to run but waited for a CPU, on average";
    "minor_faults_per_s", "Minor faults/s", PerSecond, Neutral, "minor page faults per second, served from memory";
    "major_faults_per_s", "Major faults/s", PerSecond, Neutral, "major page faults per second, read from disk";
};

fn per_request(side: &Side, load: &Load, of_rate: &str) -> Option<f64> {
    let (per_s, requests_per_s) = (side.metrics.get(of_rate)?, load.window.replies_per_s?);
    (requests_per_s > 0.0).then(|| per_s / requests_per_s)
}
