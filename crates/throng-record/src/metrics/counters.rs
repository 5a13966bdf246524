//! Metrics of the probe `counters`: hardware and kernel events of a side, in separate trials, from when all clients
//! are connected until their last replies.

use super::entry::{of_sides, per_request};
use super::{Better, Detail, Metric, Purpose, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 4] = [REQUESTS, PER_REQUEST, RATIOS, TOTALS];

const REQUESTS: &[Metric] = &[Metric {
    purpose: Purpose::Profiled,
    probe: Some("counters"),
    ..Metric::of_load(
        "counted_requests",
        "Requests counted",
        Unit::Count,
        Better::Neutral,
        "requests answered while events were counted: all but each client's first",
        |load| Some(load.replies_while_counting() as f64),
    )
}];

#[rustfmt::skip]
const PER_REQUEST: &[Metric] = per_request! { "counters", Profiled:
    "instructions" of "instructions" * 1.0, "Instructions", Mean, Lower, "instructions retired, kernel included", server[.column(54).detail(Detail::Others(&[("client_instructions_per_request", "clients {}")])).cost()];
    "user_instructions" of "user_instructions" * 1.0, "User instructions", Mean, Lower, "instructions retired in user mode", server[.cost()];
    "cycles" of "cycles" * 1.0, "Cycles", Mean, Lower, "CPU cycles", server[.cost()];
    "stalled_cycles_frontend" of "stalled_cycles_frontend" * 1.0, "Front-end stalls", Mean, Lower, "cycles without an instruction to issue", server[.cost()];
    "stalled_cycles_backend" of "stalled_cycles_backend" * 1.0, "Back-end stalls", Mean, Lower, "cycles without an instruction to retire", server[.cost()];
    "branches" of "branches" * 1.0, "Branches", Mean, Lower, "branches retired", server[.cost()];
    "branch_misses" of "branch_misses" * 1.0, "Branch misses", Mean, Lower, "mispredicted branches", server[.cost()];
    "cache_references" of "cache_references" * 1.0, "Cache references", Mean, Lower, "last-level cache accesses", server[.cost()];
    "cache_misses" of "cache_misses" * 1.0, "Cache misses", Mean, Lower, "last-level cache misses", server[.cost()];
    "context_switches" of "context_switches" * 1.0, "Context switches", Mean, Lower, "context switches", server[.cost()];
    "cpu_migrations" of "cpu_migrations" * 1.0, "CPU migrations", Mean, Lower, "moves of a thread to another CPU", server[.cost()];
    "page_faults" of "page_faults" * 1.0, "Page faults", Mean, Lower, "page faults", server[.cost()];
    "task_clock_us" of "task_clock_ns" * 1e-3, "Task clock", Microseconds, Lower, "CPU time while events were counted, which is longer than without counting", server[.cost()];
};

#[rustfmt::skip]
const RATIOS: &[Metric] = of_sides! { "counters", Profiled:
    "instructions_per_cycle", "Instructions/cycle", Ratio, Higher, "instructions retired per CPU cycle", needs &["instructions", "cycles"], server[.cost()];
    "branch_miss_rate_percent", "Branch-miss rate", Percent, Lower, "mispredicted branches, of all branches", needs &["branches", "branch_misses"], server[.cost()];
    "cpus_used", "CPUs used", Ratio, Neutral, "CPU time over elapsed time", needs &["task_clock_ns"], server[.cost()];
    "cpu_ghz", "GHz", Ratio, Neutral, "CPU cycles per nanosecond of CPU time", needs &["cycles", "task_clock_ns"], server[.cost()];
    "counted_share", "Counted", Ratio, Neutral, "share of the time that the hardware counters ran; counts are scaled up if they were shared", needs &["cycles"], server[.cost()];
};

#[rustfmt::skip]
const TOTALS: &[Metric] = of_sides! { "counters", Profiled:
    "cycles", "Cycles", Count, Lower, "CPU cycles";
    "instructions", "Instructions", Count, Lower, "instructions retired, kernel included";
    "user_instructions", "User instructions", Count, Lower, "instructions retired in user mode";
    "branches", "Branches", Count, Lower, "branches retired";
    "branch_misses", "Branch misses", Count, Lower, "mispredicted branches";
    "cache_references", "Cache references", Count, Lower, "last-level cache accesses";
    "cache_misses", "Cache misses", Count, Lower, "last-level cache misses";
    "stalled_cycles_frontend", "Front-end stalls", Count, Lower, "cycles without an instruction to issue";
    "stalled_cycles_backend", "Back-end stalls", Count, Lower, "cycles without an instruction to retire";
    "task_clock_ns", "Task clock", Nanoseconds, Lower, "CPU time while events were counted";
    "context_switches", "Context switches", Count, Lower, "context switches";
    "cpu_migrations", "CPU migrations", Count, Lower, "moves of a thread to another CPU";
    "page_faults", "Page faults", Count, Lower, "page faults";
};
