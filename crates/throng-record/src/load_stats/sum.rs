//! A sum of times.

use serde::{Deserialize, Serialize};

/// The number and sum of times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub total: u64,
}

impl Sum {
    /// Adds a time.
    pub fn add(&mut self, time: u64) {
        self.merge(Self {
            count: 1,
            total: time,
        });
    }

    /// Merges another one.
    pub fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
    }

    /// Their mean in seconds; `None` without any.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64 / 1e9)
    }
}
