//! What trials give in which events are counted: totals of both sides from when the clients were let
//! go until their last replies, and the same for each reply.

use super::{Better, Figure, Metric, Source, Subject, Unit, figure, joined, metric, of_load};
use crate::record::{Load, Purpose};

/// Both sides' total of a figure, and both for each reply.
macro_rules! events {
    ($($name:literal, $title:literal, $help:literal, $probe:literal: $figure:literal in $unit:ident by $factor:literal;)*) => {
        &[$(
            counted(concat!("server_", $name), concat!("Server: ", $title), Unit::$unit, concat!($help, " of the server"), Subject::Server, Source::Figure(figure($probe, $figure), $factor)),
            counted(concat!("client_", $name), concat!("Clients: ", $title), Unit::$unit, concat!($help, " of the load generator"), Subject::LoadGenerator, Source::Figure(figure($probe, $figure), $factor)),
            counted(concat!("server_", $name, "_per_reply"), concat!("Server: ", $title, "/reply"), each(Unit::$unit), concat!($help, " of the server for one reply"), Subject::Server, Source::EachReply(figure($probe, $figure), $factor)),
            counted(concat!("client_", $name, "_per_reply"), concat!("Clients: ", $title, "/reply"), each(Unit::$unit), concat!($help, " of the load generator for one reply"), Subject::LoadGenerator, Source::EachReply(figure($probe, $figure), $factor)),
        )*]
    };
}

/// Both sides' value of a figure that does not grow with the number of replies.
macro_rules! ratios {
    ($($name:literal, $title:literal, $help:literal, $figure:literal of $needs:expr, $better:ident;)*) => {
        &[$(
            Metric {
                better: Better::$better,
                ..counted(concat!("server_", $name), concat!("Server: ", $title), Unit::Ratio, concat!($help, ", of the server"), Subject::Server, Source::Figure(Figure { needs: &$needs, ..figure("counters", $figure) }, 1.0))
            },
            Metric {
                better: Better::$better,
                ..counted(concat!("client_", $name), concat!("Clients: ", $title), Unit::Ratio, concat!($help, ", of the load generator"), Subject::LoadGenerator, Source::Figure(Figure { needs: &$needs, ..figure("counters", $figure) }, 1.0))
            },
        )*]
    };
}

/// See the module.
pub(super) const METRICS: &[Metric] = &ALL;

const ALL: [Metric; 1 + EVENTS.len() + RATIOS.len()] = joined(&[&[REPLIES], EVENTS, RATIOS]);

const REPLIES: Metric = Metric {
    purpose: Purpose::Counted,
    better: Better::Neither,
    ..of_load(
        "counted_replies",
        "Replies counted",
        Unit::Count,
        "replies while events were counted: all but the first one to each client",
        |load: &Load| Some(load.replies_while_counting() as f64),
    )
};

#[rustfmt::skip]
const EVENTS: &[Metric] = events! {
    "cycles", "cycles", "cycles of the CPU", "counters": "cycles" in Count by 1.0;
    "instructions", "instructions", "instructions completed, kernel included,", "counters": "instructions" in Count by 1.0;
    "user_instructions", "user instructions", "instructions completed in user mode", "counters": "user_instructions" in Count by 1.0;
    "branches", "branches", "branches completed", "counters": "branches" in Count by 1.0;
    "branch_misses", "branch misses", "branches foreseen wrongly", "counters": "branch_misses" in Count by 1.0;
    "cache_references", "cache references", "accesses to the last level of cache", "counters": "cache_references" in Count by 1.0;
    "cache_misses", "cache misses", "accesses that the last level of cache did not have", "counters": "cache_misses" in Count by 1.0;
    "stalled_front", "stalled, front", "cycles without an instruction to begin", "counters": "stalled_cycles_frontend" in Count by 1.0;
    "stalled_back", "stalled, back", "cycles in which no instruction could be completed", "counters": "stalled_cycles_backend" in Count by 1.0;
    "task_clock", "task clock", "time on a CPU", "counters": "task_clock_ns" in Time by 1e-3;
    "context_switches", "context switches", "context switches", "counters": "context_switches" in Count by 1.0;
    "migrations", "CPU migrations", "times a thread moved to another CPU", "counters": "cpu_migrations" in Count by 1.0;
    "page_faults", "page faults", "page faults", "counters": "page_faults" in Count by 1.0;
    "syscalls", "system calls", "system calls", "syscalls": "syscalls" in Count by 1.0;
};

#[rustfmt::skip]
const RATIOS: &[Metric] = ratios! {
    "instructions_per_cycle", "instructions/cycle", "instructions for each cycle", "instructions_per_cycle" of ["instructions", "cycles"], Higher;
    "cpus_used", "CPUs used", "time on a CPU over elapsed time", "cpus_used" of ["task_clock_ns"], Neither;
    "ghz", "GHz", "cycles for each nanosecond on a CPU", "cpu_ghz" of ["cycles", "task_clock_ns"], Neither;
};

/// A number of things for each reply is a mean; a time stays one.
const fn each(unit: Unit) -> Unit {
    match unit {
        Unit::Count => Unit::Mean,
        unit => unit,
    }
}

const fn counted(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    subject: Subject,
    source: Source,
) -> Metric {
    Metric {
        purpose: Purpose::Counted,
        ..metric(name, title, unit, help, subject, source)
    }
}
