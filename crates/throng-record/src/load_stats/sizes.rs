//! Sizes of replies' bodies.

use serde::{Deserialize, Serialize};

use super::Times;
use crate::ReplyBytes;

/// Numbers of replies by body size in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeStats {
    /// As a histogram with 3 significant digits.
    sizes: Times,
    least: Option<u64>,
    most: Option<u64>,
    total: u64,
}

impl SizeStats {
    /// Counts `count` replies with a body of `bytes` bytes.
    pub fn record(&mut self, bytes: u64, count: u64) {
        self.sizes.record_n(bytes, count);
        self.least = super::least(self.least, Some(bytes));
        self.most = self.most.max(Some(bytes));
        self.total = self.total.saturating_add(bytes.saturating_mul(count));
    }

    /// Merges another one.
    pub(super) fn merge(&mut self, other: &Self) {
        self.sizes.merge(&other.sizes);
        self.least = super::least(self.least, other.least);
        self.most = self.most.max(other.most);
        self.total = self.total.saturating_add(other.total);
    }

    /// The statistics; `None` without replies.
    pub(super) fn summary(&self) -> Option<ReplyBytes> {
        let (min, max) = (self.least?, self.most?);
        let replies = self.sizes.count();
        let (_, [p50, p99]) = self.sizes.mean_and_percentiles([50.0, 99.0]);
        Some(ReplyBytes {
            replies,
            min,
            p50: p50.clamp(min, max),
            p99: p99.clamp(min, max),
            max,
            mean: self.total as f64 / replies.max(1) as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_summed_up() {
        assert_eq!(SizeStats::default().summary(), None);
        let mut one = SizeStats::default();
        one.record(5, 98);
        let mut other = SizeStats::default();
        other.record(10_000_000_001, 1);
        other.record(0, 1);
        one.merge(&other);
        one.merge(&SizeStats::default());
        let sizes = one.summary().unwrap();
        assert_eq!(
            (sizes.replies, sizes.min, sizes.p50, sizes.max),
            (100, 0, 5, 10_000_000_001)
        );
        assert_eq!(sizes.p99, 5);
        assert!((sizes.mean - 100_000_004.91).abs() < 1e-3, "{sizes:?}");
        let mut same = SizeStats::default();
        same.record(123_457, 3);
        let same = same.summary().unwrap();
        assert_eq!(
            (same.min, same.p50, same.p99, same.max),
            (123_457, 123_457, 123_457, 123_457)
        );
    }
}
