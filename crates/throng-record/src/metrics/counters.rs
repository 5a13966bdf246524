//! Of the probe `counters`: events that the CPU and the kernel counted of a side, in trials of their own,
//! from when the clients were let go until their last replies.

use super::entry::{of_sides, per_request};
use super::{Better, Detail, Metric, Purpose, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 4] = [REQUESTS, PER_REQUEST, RATIOS, TOTALS];

const REQUESTS: &[Metric] = &[Metric {
    purpose: Purpose::Profiled,
    ..Metric::of_load(
        "counted_requests",
        "Requests counted",
        Unit::Count,
        Better::Neutral,
        "requests answered while events were counted: all but the first one of each client",
        |load| Some(load.replies_while_counting() as f64),
    )
}];

#[rustfmt::skip]
const PER_REQUEST: &[Metric] = per_request! { "counters", Profiled:
    "instructions" of "instructions" * 1.0, "Instructions", Mean, Lower, "instructions completed, kernel included", server[.column(54).beside(Detail::Others(&[("client_instructions_per_request", "clients {}")])).cost()];
    "user_instructions" of "user_instructions" * 1.0, "User instructions", Mean, Lower, "instructions completed in user mode", server[.cost()];
    "cycles" of "cycles" * 1.0, "Cycles", Mean, Lower, "cycles of the CPU", server[.cost()];
    "stalled_cycles_frontend" of "stalled_cycles_frontend" * 1.0, "Stalled, front", Mean, Lower, "cycles without an instruction to begin", server[.cost()];
    "stalled_cycles_backend" of "stalled_cycles_backend" * 1.0, "Stalled, back", Mean, Lower, "cycles in which no instruction could be completed", server[.cost()];
    "branches" of "branches" * 1.0, "Branches", Mean, Lower, "branches completed", server[.cost()];
    "branch_misses" of "branch_misses" * 1.0, "Branch misses", Mean, Lower, "branches predicted wrongly", server[.cost()];
    "cache_references" of "cache_references" * 1.0, "Cache references", Mean, Lower, "accesses to the last level of cache", server[.cost()];
    "cache_misses" of "cache_misses" * 1.0, "Cache misses", Mean, Lower, "accesses that the last level of cache did not have", server[.cost()];
    "context_switches" of "context_switches" * 1.0, "Context switches", Mean, Lower, "times a CPU was given to another thread", server[.cost()];
    "cpu_migrations" of "cpu_migrations" * 1.0, "CPU migrations", Mean, Lower, "times a thread moved to another CPU", server[.cost()];
    "page_faults" of "page_faults" * 1.0, "Page faults", Mean, Lower, "page faults", server[.cost()];
    "task_clock_us" of "task_clock_ns" * 1e-3, "Task clock", Microseconds, Lower, "time on a CPU while events were counted, which takes longer than without", server[.cost()];
};

#[rustfmt::skip]
const RATIOS: &[Metric] = of_sides! { "counters", Profiled:
    "instructions_per_cycle", "Instructions/cycle", Ratio, Higher, "instructions per cycle: how well the CPU is kept busy", needs &["instructions", "cycles"], server[.cost()];
    "cpus_used", "CPUs used", Ratio, Neutral, "time on a CPU over elapsed time", needs &["task_clock_ns"], server[.cost()];
    "cpu_ghz", "GHz", Ratio, Neutral, "cycles per nanosecond on a CPU", needs &["cycles", "task_clock_ns"], server[.cost()];
    "counted_share", "Counted", Ratio, Neutral, "where the CPU's counters had to be shared: the part of the time they counted, from which the figures are scaled", needs &["cycles"], server[.cost()];
};

#[rustfmt::skip]
const TOTALS: &[Metric] = of_sides! { "counters", Profiled:
    "cycles", "Cycles", Count, Lower, "cycles of the CPU";
    "instructions", "Instructions", Count, Lower, "instructions completed, kernel included";
    "user_instructions", "User instructions", Count, Lower, "instructions completed in user mode";
    "branches", "Branches", Count, Lower, "branches completed";
    "branch_misses", "Branch misses", Count, Lower, "branches predicted wrongly";
    "cache_references", "Cache references", Count, Lower, "accesses to the last level of cache";
    "cache_misses", "Cache misses", Count, Lower, "accesses that the last level of cache did not have";
    "stalled_cycles_frontend", "Stalled, front", Count, Lower, "cycles without an instruction to begin";
    "stalled_cycles_backend", "Stalled, back", Count, Lower, "cycles in which no instruction could be completed";
    "task_clock_ns", "Task clock", Nanoseconds, Lower, "time on a CPU";
    "context_switches", "Context switches", Count, Lower, "times a CPU was given to another thread";
    "cpu_migrations", "CPU migrations", Count, Lower, "times a thread moved to another CPU";
    "page_faults", "Page faults", Count, Lower, "page faults";
};
