//! Times as a load records them: a histogram that costs a request a dozen instructions.
//!
//! The buckets are those of an HdrHistogram with 3 significant digits, so that nothing is lost or
//! moved when it becomes one, which then merges, tells percentiles and is written down. That crate's
//! own recording costs six times as much, since it also keeps the extremes and checks for growth.

use hdrhistogram::Histogram;

/// Longest time told apart, an hour; longer ones count as that.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Bits of a time that are kept: 2048 steps for each doubling, at least 1024 of them in use.
const BITS: u32 = 11;
/// Buckets up to the longest time.
const BUCKETS: usize = index(LONGEST_NS) + 1;

/// Numbers of times, by their length in nanoseconds.
#[derive(Clone)]
pub(super) struct Times(Box<[u64; BUCKETS]>);

/// The bucket of a time: its highest bits, behind those of all shorter doublings.
#[inline]
const fn index(time: u64) -> usize {
    let doubling = u64::BITS - BITS - (time | ((1 << BITS) - 1)).leading_zeros();
    ((doubling as usize) << (BITS - 1)) + (time >> doubling) as usize
}

/// The shortest time in a bucket.
fn shortest(index: usize) -> u64 {
    let half = 1 << (BITS - 1);
    let doubling = (index / half).saturating_sub(1);
    ((index - doubling * half) as u64) << doubling
}

impl Default for Times {
    fn default() -> Self {
        let buckets = vec![0; BUCKETS].into_boxed_slice();
        Self(buckets.try_into().expect("there are as many as that"))
    }
}

impl Times {
    /// Counts a time.
    #[inline]
    pub(super) fn record(&mut self, time: u64) {
        self.0[index(time.min(LONGEST_NS))] += 1;
    }

    /// Counts it so many times.
    pub(super) fn record_n(&mut self, time: u64, count: u64) {
        self.0[index(time.min(LONGEST_NS))] += count;
    }

    /// Adds those of another one.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine += theirs;
        }
    }

    /// Makes it the same as another one.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.0.copy_from_slice(&other.0[..]);
    }

    /// How many were counted.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The same as everybody else writes it.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        let mut histogram =
            Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid");
        for (index, &count) in self.0.iter().enumerate() {
            if count > 0 {
                histogram.saturating_record_n(shortest(index), count);
            }
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bucket_begins_where_the_last_one_ends() {
        for index in 0..BUCKETS {
            assert_eq!(super::index(shortest(index)), index);
            if let Some(before) = shortest(index).checked_sub(1) {
                assert_eq!(super::index(before), index - 1);
            }
        }
    }

    #[test]
    fn longer_than_the_longest_counts_as_that() {
        let mut times = Times::default();
        times.record(u64::MAX);
        times.record_n(LONGEST_NS, 2);
        let histogram = times.histogram();
        assert_eq!((histogram.len(), times.len()), (3, 3));
        assert!(histogram.max() >= LONGEST_NS);
    }

    proptest! {
        #[test]
        fn it_is_the_histogram_of_the_same_times(
            values in prop::collection::vec((0..LONGEST_NS, 0_u32..42), 1..200),
        ) {
            let mut times = Times::default();
            let mut more = Times::default();
            let mut expected = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3).unwrap();
            for (place, (value, shift)) in values.into_iter().enumerate() {
                let value = value >> shift;
                expected.saturating_record(value);
                if place % 2 == 0 { times.record(value) } else { more.record(value) }
            }
            times.add(&more);
            let histogram = times.histogram();
            prop_assert_eq!(histogram.len(), expected.len());
            prop_assert_eq!(histogram.max(), expected.max());
            prop_assert_eq!(histogram.min(), expected.min());
            prop_assert!((histogram.mean() - expected.mean()).abs() < 1.0);
            for percentile in [1.0, 50.0, 90.0, 99.0, 99.9] {
                prop_assert_eq!(
                    histogram.value_at_percentile(percentile),
                    expected.value_at_percentile(percentile)
                );
            }
        }
    }
}
