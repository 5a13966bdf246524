//! The columns of the table of tries.

use super::Try;
use crate::report::format::{bytes, number, or_absent, time, whole};

/// A column.
pub struct Column {
    /// Heading.
    pub title: &'static str,
    /// Its cell.
    pub text: fn(&Try) -> String,
}

impl Column {
    /// Whether any of `tries` has something to show in it.
    pub fn has_data(&self, tries: &[Try]) -> bool {
        let mut cells = tries.iter().map(self.text);
        cells.any(|cell| cell != crate::report::format::ABSENT)
    }
}

fn percent(value: Option<f64>) -> String {
    or_absent(value, |percent| format!("{percent:.0} %"))
}

/// Every column, from left to right, after what was tried and before the verdict.
pub const COLUMNS: &[Column] = &[
    Column {
        title: "Served",
        text: |one| {
            let served = one.served.map(f64::from);
            or_absent(served, |served| {
                format!("{} of {}", whole(served), whole(f64::from(one.clients)))
            })
        },
    },
    Column {
        title: "Errors",
        text: |one| or_absent(one.errors.map(|errors| errors as f64), whole),
    },
    Column {
        title: "Replies/s",
        text: |one| or_absent(one.replies_per_s, number),
    },
    Column {
        title: "p50",
        text: |one| or_absent(one.p50_us, time),
    },
    Column {
        title: "p99",
        text: |one| or_absent(one.p99_us, time),
    },
    Column {
        title: "Server CPU",
        text: |one| percent(one.server_cpu_percent),
    },
    Column {
        title: "Client CPU",
        text: |one| percent(one.client_cpu_percent),
    },
    Column {
        title: "Memory",
        text: |one| or_absent(one.memory_bytes, bytes),
    },
];
