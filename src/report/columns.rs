//! The columns of the tables in the page and the Markdown, in reading order.

use super::completion::{CLIENTS_PER_S, COMPLETION, DONE, SAMPLE};
use super::costs::{INSTRUCTIONS, NOT_HERE, SYSTEM_CALLS};
use super::format::{ABSENT, bytes, hundredths, index, number, or_absent, time, whole};
use super::summary::{Quantity, Row, Summary};

/// One column.
pub(super) struct Column {
    /// Heading.
    pub(super) title: &'static str,
    /// What it means, with its unit.
    pub(super) note: &'static str,
    /// What a reader sees.
    pub(super) text: fn(&Row) -> String,
    /// Smaller text beside it: an interval, a share.
    pub(super) detail: fn(&Row) -> String,
    /// The value by which the best of a group is found, and its bar drawn.
    pub(super) value: fn(&Row) -> Option<f64>,
    /// Which value is best.
    pub(super) best: Best,
    /// Whether a bar shows the value.
    pub(super) bar: bool,
}

/// Which value of a column is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Best {
    Highest,
    Lowest,
    /// Not a matter of better and worse.
    None,
}

/// The columns after the server's name.
pub(super) const COLUMNS: &[Column] = &[
    Column {
        title: "Served",
        note: "clients that had at least one verified answer, of those wanted; median over trials",
        text: |row| {
            // Elsewhere those who are done are told.
            let served = row.served.filter(|_| row.completion.is_none());
            or_absent(served, |served| {
                format!("{}/{}", whole(served), whole(f64::from(row.clients)))
            })
        },
        detail: |row| match row.trials_failed {
            0 => String::new(),
            failed => format!("{failed} failed"),
        },
        value: |row| row.served,
        best: Best::None,
        bar: false,
    },
    DONE,
    COMPLETION,
    CLIENTS_PER_S,
    Column {
        title: "Replies/s",
        note: "verified replies a second; median over trials, with its 95 % interval",
        text: |row| of_quantity(row.replies_per_s, number),
        detail: |row| range(row.replies_per_s, number),
        value: |row| Some(row.replies_per_s?.median),
        best: Best::Highest,
        bar: true,
    },
    Column {
        title: "CPU/reply",
        note: "user and system time of the server's whole process tree for one reply; median over trials, with its 95 % interval",
        text: |row| of_quantity(row.server_side.cpu_us_per_reply, time),
        detail: |row| range(row.server_side.cpu_us_per_reply, number),
        value: |row| Some(row.server_side.cpu_us_per_reply?.median),
        best: Best::Lowest,
        bar: true,
    },
    Column {
        title: "In kernel",
        note: "share of the server's CPU time spent in the kernel",
        text: |row| or_absent(kernel_share(row), |share| format!("{:.0} %", share * 100.0)),
        detail: nothing,
        value: |_| None,
        best: Best::None,
        bar: false,
    },
    Column {
        title: "Replies/CPU s",
        note: "verified replies for one second of server CPU",
        text: |row| of_quantity(row.replies_per_server_cpu_s, number),
        detail: nothing,
        value: |row| Some(row.replies_per_server_cpu_s?.median),
        best: Best::Highest,
        bar: false,
    },
    Column {
        title: "CPU used",
        note: "CPU of server and load generator; 100 % is one CPU",
        text: |row| {
            or_absent(row.server_side.cpu_percent, |percent| {
                format!("{percent:.0} %")
            })
        },
        detail: |row| {
            row.client_side
                .cpu_percent
                .map_or_else(String::new, |percent| format!("clients {percent:.0} %"))
        },
        value: |_| None,
        best: Best::None,
        bar: false,
    },
    Column {
        title: "p50",
        note: "median service time: from sending a request to its whole reply; trials merged",
        text: |row| or_absent(row.service_time.map(|times| times.p50_us), time),
        detail: nothing,
        value: |row| Some(row.service_time?.p50_us),
        best: Best::Lowest,
        bar: false,
    },
    Column {
        title: "p90",
        note: "90th percentile of the service time",
        text: |row| or_absent(row.service_time.map(|times| times.p90_us), time),
        detail: nothing,
        value: |row| Some(row.service_time?.p90_us),
        best: Best::Lowest,
        bar: false,
    },
    Column {
        title: "p99",
        note: "99th percentile of the service time",
        text: |row| or_absent(row.service_time.and_then(|times| times.p99_us), time),
        detail: nothing,
        value: |row| row.service_time?.p99_us,
        best: Best::Lowest,
        bar: false,
    },
    Column {
        title: "Slowest",
        note: "longest service time",
        text: |row| or_absent(row.service_time.map(|times| times.max_us), time),
        detail: nothing,
        value: |row| Some(row.service_time?.max_us),
        best: Best::Lowest,
        bar: false,
    },
    SAMPLE,
    Column {
        title: "First answer",
        note: "longest wait of a client from connect() to its first reply; beside it, until it was connected",
        text: |row| or_absent(row.first_answer_max_us, time),
        detail: |row| {
            row.connect_max_us
                .map_or_else(String::new, |connect| format!("connect {}", time(connect)))
        },
        value: |row| row.first_answer_max_us,
        best: Best::Lowest,
        bar: false,
    },
    Column {
        title: "Memory",
        note: "proportional set size of the server's process tree",
        text: |row| or_absent(row.server_side.pss_bytes, bytes),
        detail: nothing,
        value: |row| row.server_side.pss_bytes,
        best: Best::Lowest,
        bar: false,
    },
    Column {
        title: "Threads",
        note: "threads of the server; beside it, its processes",
        text: |row| or_absent(row.server_side.threads, whole),
        detail: |row| {
            row.server_side
                .processes
                .map_or_else(String::new, |processes| {
                    format!("{} proc.", whole(processes))
                })
        },
        value: |_| None,
        best: Best::None,
        bar: false,
    },
    Column {
        title: "Switches/reply",
        note: "context switches of the server for one reply because it waited; beside it, because its turn was over",
        text: |row| or_absent(row.server_side.voluntary_switches_per_reply, hundredths),
        detail: |row| {
            row.server_side
                .involuntary_switches_per_reply
                .map_or_else(String::new, |switches| {
                    format!("+ {}", hundredths(switches))
                })
        },
        value: |row| row.server_side.voluntary_switches_per_reply,
        best: Best::Lowest,
        bar: false,
    },
    SYSTEM_CALLS,
    INSTRUCTIONS,
    Column {
        title: "Fairness",
        note: "Jain's index over the served clients: 1 when all got the same; beside it, fewest to most replies of a client",
        text: |row| or_absent(row.fairness.map(|fairness| fairness.jain.median), index),
        detail: |row| {
            row.fairness.map_or_else(String::new, |fairness| {
                let range = format!(
                    "{}–{}",
                    whole(fairness.min as f64),
                    whole(fairness.max as f64)
                );
                if fairness.starved == 0 {
                    range
                } else {
                    format!("{range}, {} starved", fairness.starved)
                }
            })
        },
        value: |row| Some(row.fairness?.jain.median),
        best: Best::Highest,
        bar: false,
    },
    Column {
        title: "Errors",
        note: "clients that ended with an error, all trials together; beside it, requests not answered",
        text: |row| match row.trials_ok {
            0 => ABSENT.to_owned(),
            _ => whole(row.errors.values().sum::<u64>() as f64),
        },
        detail: |row| {
            let mut kinds: Vec<String> = row
                .errors
                .iter()
                .map(|(kind, count)| format!("{kind} {count}"))
                .collect();
            if row.requests > row.verified {
                kinds.push(format!(
                    "{} unanswered",
                    whole((row.requests - row.verified) as f64)
                ));
            }
            kinds.join(", ")
        },
        value: |_| None,
        best: Best::None,
        bar: false,
    },
];

/// Share of the server's CPU time spent in the kernel.
pub(super) fn kernel_share(row: &Row) -> Option<f64> {
    let (user, system) = (
        row.server_side.cpu_user_us_per_reply?,
        row.server_side.cpu_system_us_per_reply?,
    );
    (user + system > 0.0).then(|| system / (user + system))
}

impl Column {
    /// The best value among the rows of a group that served all clients, unless all are alike.
    pub(super) fn best_of(&self, summary: &Summary, clients: u32) -> Option<f64> {
        let values: Vec<f64> = summary
            .rows_at(clients)
            .filter(|row| row.served_all)
            .filter_map(|row| (self.value)(row))
            .collect();
        if values
            .iter()
            .all(|value| value.total_cmp(&values[0]).is_eq())
        {
            return None;
        }
        match self.best {
            Best::Highest => values.into_iter().max_by(f64::total_cmp),
            Best::Lowest => values.into_iter().min_by(f64::total_cmp),
            Best::None => None,
        }
    }

    /// Whether `row` has the best value of its group.
    pub(super) fn is_best(&self, row: &Row, best: Option<f64>) -> bool {
        row.served_all
            && matches!(((self.value)(row), best), (Some(value), Some(best)) if value.total_cmp(&best).is_eq())
    }

    /// Whether any row has anything to show.
    pub(super) fn has_data(&self, summary: &Summary) -> bool {
        let says = |row| ![ABSENT, NOT_HERE].contains(&&*(self.text)(row));
        summary.rows.iter().any(says)
    }

    /// The greatest value over all rows, for bars.
    pub(super) fn greatest(&self, summary: &Summary, clients: u32) -> f64 {
        summary
            .rows_at(clients)
            .filter_map(|row| (self.value)(row))
            .fold(0.0, f64::max)
    }
}

fn of_quantity(quantity: Option<Quantity>, text: fn(f64) -> String) -> String {
    or_absent(quantity.map(|quantity| quantity.median), text)
}

pub(super) fn range(quantity: Option<Quantity>, text: fn(f64) -> String) -> String {
    quantity.map_or_else(String::new, |quantity| {
        match (quantity.low, quantity.high) {
            (Some(low), Some(high)) => format!("{}–{}", text(low), text(high)),
            _ => String::new(),
        }
    })
}

fn nothing(_: &Row) -> String {
    String::new()
}
