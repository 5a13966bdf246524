//! The columns of the table that says what a request costs, in the trials in which that was counted.

use super::columns::{Best, Column};
use super::counted::Costs;
use super::format::{ABSENT, hundredths, or_absent, time};
use super::summary::Row;

/// What stands for a figure that this machine cannot give.
pub(super) const NOT_HERE: &str = "not here";
/// Where the figures come from.
pub(super) const NOTE: &str = "Counted in trials of their own, and divided by the replies of these (of several, the median): \
    counting makes each system call take a longer way and slows a virtual machine's wake-ups many times \
    over, so rates and times come from trials without. Small print is what the clients spent.";
/// System calls that are told by name in a cell.
const MOST_CALLS: usize = 7;

/// A column of a figure that both sides have, the clients' in small print.
macro_rules! cost {
    ($title:literal, $note:literal, $figure:literal, $text:expr) => {
        Column {
            title: $title,
            note: $note,
            text: |row| server(row, $figure, $text),
            detail: |row| clients(row, $figure, $text),
            value: |row| of_server(row)?.figure($figure),
            best: Best::Lowest,
            bar: false,
        }
    };
}

/// The columns after the server's name, all for one reply if they do not say otherwise.
pub(super) const COSTS: &[Column] = &[
    SYSTEM_CALLS,
    INSTRUCTIONS,
    cost!(
        "In user mode",
        "of these instructions, those in user mode",
        "user_instructions",
        hundredths
    ),
    cost!(
        "Cycles",
        "cycles of the CPU for one reply",
        "cycles",
        hundredths
    ),
    Column {
        best: Best::None,
        ..cost!(
            "Instructions/cycle",
            "instructions for each cycle: how well the CPU is kept busy",
            "instructions_per_cycle",
            hundredths
        )
    },
    cost!(
        "Stalled, front",
        "cycles for one reply in which no instruction could be begun",
        "stalled_cycles_frontend",
        hundredths
    ),
    cost!(
        "Stalled, back",
        "cycles for one reply in which none could be completed",
        "stalled_cycles_backend",
        hundredths
    ),
    cost!("Branches", "branches for one reply", "branches", hundredths),
    cost!(
        "Branch misses",
        "branches for one reply that the CPU foresaw wrongly",
        "branch_misses",
        hundredths
    ),
    cost!(
        "Cache references",
        "accesses for one reply to the last level of cache",
        "cache_references",
        hundredths
    ),
    cost!(
        "Cache misses",
        "of these, accesses that had to go to memory",
        "cache_misses",
        hundredths
    ),
    cost!(
        "Switches",
        "times for one reply that a CPU was given to another thread",
        "context_switches",
        hundredths
    ),
    Column {
        best: Best::None,
        ..cost!(
            "Migrations",
            "times for one reply that a thread moved to another CPU",
            "cpu_migrations",
            hundredths
        )
    },
    Column {
        best: Best::None,
        ..cost!(
            "Page faults",
            "page faults for one reply",
            "page_faults",
            hundredths
        )
    },
    Column {
        best: Best::None,
        ..cost!(
            "CPU time",
            "time on a CPU for one reply while it was counted, which takes longer than without",
            "task_clock_ns",
            |nanoseconds| time(nanoseconds / 1e3)
        )
    },
    Column {
        best: Best::None,
        ..cost!(
            "CPUs used",
            "time on a CPU over elapsed time",
            "cpus_used",
            hundredths
        )
    },
    Column {
        best: Best::None,
        ..cost!(
            "GHz",
            "cycles for each nanosecond on a CPU",
            "cpu_ghz",
            hundredths
        )
    },
    Column {
        best: Best::None,
        ..cost!(
            "Counted",
            "part of the time in which the CPU's counters were ours; its figures are scaled up from it",
            "counted_share",
            |share| format!("{:.0} %", share * 100.0)
        )
    },
    Column {
        title: "Calls by name",
        note: "the server's system calls for one reply, most frequent first",
        text: |row| or_absent_calls(of_server(row)),
        detail: |_| String::new(),
        value: |_| None,
        best: Best::None,
        bar: false,
    },
];

/// System calls for one reply.
pub(super) const SYSTEM_CALLS: Column = cost!(
    "System calls/reply",
    "system calls of the server for one reply, counted in a trial of its own; beside it, of the clients",
    "syscalls",
    hundredths
);

/// Instructions for one reply.
pub(super) const INSTRUCTIONS: Column = cost!(
    "Instructions/reply",
    "instructions of the server for one reply, kernel included, counted in a trial of its own; beside it, of the clients",
    "instructions",
    hundredths
);

fn of_server(row: &Row) -> Option<&Costs> {
    Some(&row.counted.as_ref()?.server)
}

fn server(row: &Row, figure: &str, text: fn(f64) -> String) -> String {
    let Some(costs) = of_server(row) else {
        return ABSENT.to_owned();
    };
    match costs.figure(figure) {
        None if costs.cannot(figure) => NOT_HERE.to_owned(),
        value => or_absent(value, text),
    }
}

fn clients(row: &Row, figure: &str, text: fn(f64) -> String) -> String {
    let counted = row.counted.as_ref();
    let value = counted.and_then(|counted| counted.client.figure(figure));
    value.map_or_else(String::new, |value| format!("clients {}", text(value)))
}

/// "recvfrom 1.00, sendto 1.00, epoll_pwait 0.03".
fn or_absent_calls(costs: Option<&Costs>) -> String {
    let mut calls = costs.map_or_else(Vec::new, Costs::calls);
    calls.retain(|(_, each)| *each >= 0.005);
    if calls.is_empty() {
        return ABSENT.to_owned();
    }
    let more = calls.len().saturating_sub(MOST_CALLS);
    calls.truncate(MOST_CALLS);
    let mut named: Vec<String> = calls
        .iter()
        .map(|(name, each)| format!("{name} {}", hundredths(*each)))
        .collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Purpose;
    use crate::registry::Unsupported;
    use crate::report::fixture;
    use crate::report::summary::Summary;

    #[test]
    fn what_this_machine_cannot_count_is_not_here_and_never_0() {
        let (run, mut trials) = fixture::record();
        for trial in trials
            .iter_mut()
            .filter(|trial| trial.purpose == Purpose::Counted)
        {
            let side = trial.server_side.as_mut().unwrap();
            side.metrics.remove("instructions");
            let why = Unsupported {
                reason: "no".to_owned(),
                remedy: "yes".to_owned(),
            };
            side.unavailable
                .insert("counters: instructions".to_owned(), why);
        }
        let summary = Summary::of(&run, &trials).unwrap();
        let row = summary.rows_at(100).next().unwrap();
        assert_eq!((INSTRUCTIONS.text)(row), NOT_HERE);
        assert!(!INSTRUCTIONS.has_data(&summary));
        assert!(SYSTEM_CALLS.has_data(&summary));
        trials.retain(|trial| trial.purpose.is_timed());
        let summary = Summary::of(&run, &trials).unwrap();
        assert!(COSTS.iter().all(|column| !column.has_data(&summary)));
    }

    #[test]
    fn calls_are_told_by_name_most_frequent_first() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let row = summary.rows_at(100).find(|row| row.server == "epoll");
        let text = or_absent_calls(of_server(row.unwrap()));
        assert_eq!(text, "recvfrom 1.00, sendto 1.00, epoll_pwait 0.20");
    }
}
