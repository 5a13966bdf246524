//! Times as a load records them: a histogram that costs a request a dozen instructions.
//!
//! The buckets are those of an HdrHistogram with 3 significant digits, so that nothing is lost or
//! moved when it becomes one, which then merges, tells percentiles and is written down. That crate's
//! own recording costs six times as much, since it also keeps the extremes and checks for growth.

use hdrhistogram::Histogram;

use crate::record::TimesOverWindow;

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

/// Times a few of which count as alike, so that there is room for each part of the window by itself: four
/// ranges a doubling.
const RANGE_BITS: u32 = BITS - 3;
const RANGES: usize = (BUCKETS >> RANGE_BITS) + 1;

/// Numbers of times by the part of the window in which they came.
pub(super) struct TimesByPart<const PARTS: usize>(Box<[[u64; RANGES]]>);

impl<const PARTS: usize> Default for TimesByPart<PARTS> {
    fn default() -> Self {
        Self(vec![[0; RANGES]; PARTS].into_boxed_slice())
    }
}

impl<const PARTS: usize> TimesByPart<PARTS> {
    /// Counts a time that came in a part.
    #[inline]
    pub(super) fn record(&mut self, part: usize, time: u64) {
        self.0[part][index(time.min(LONGEST_NS)) >> RANGE_BITS] += 1;
    }

    /// Adds those of another one.
    pub(super) fn add(&mut self, other: &Self) {
        let theirs = other.0.iter().flatten();
        for (mine, theirs) in self.0.iter_mut().flatten().zip(theirs) {
            *mine += theirs;
        }
    }

    /// What was written down.
    pub(super) fn of(recorded: &TimesOverWindow) -> Self {
        let mut times = Self::default();
        for (part, counts) in times.0.iter_mut().zip(&recorded.counts) {
            for (&from, count) in recorded.from_ns.iter().zip(counts) {
                part[index(from.min(LONGEST_NS)) >> RANGE_BITS] += count;
            }
        }
        times
    }

    /// The same as it is written down, from the shortest range in use to the longest; none when it is empty.
    pub(super) fn recorded(&self) -> Option<TimesOverWindow> {
        let is_used = |range: &usize| self.0.iter().any(|part| part[*range] > 0);
        let first = (0..RANGES).find(is_used)?;
        let last = (first..RANGES).rfind(is_used)?;
        Some(TimesOverWindow {
            from_ns: (first..=last + 1)
                .map(|range| shortest(range << RANGE_BITS))
                .collect(),
            counts: self
                .0
                .iter()
                .map(|part| part[first..=last].to_vec())
                .collect(),
        })
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
    fn by_part_they_lie_in_the_range_that_is_written_down() {
        let mut times = TimesByPart::<3>::default();
        assert_eq!(times.recorded(), None);
        for (part, time) in [
            (0, 5_000),
            (2, 5_000),
            (2, 999),
            (2, 1_000_000),
            (1, u64::MAX),
        ] {
            let mut alone = TimesByPart::<3>::default();
            alone.record(part, time);
            let recorded = alone.recorded().unwrap();
            let [from, to] = recorded.from_ns[..] else {
                panic!("one range: {recorded:?}");
            };
            let time = time.min(LONGEST_NS);
            assert!(from <= time && time < to, "{from} {time} {to}");
            // A quarter of a doubling, but for what is shorter than a microsecond.
            assert!(to - from <= (from / 4).max(256), "{from} {to}");
            times.add(&alone);
        }
        let recorded = times.recorded().unwrap();
        let again = TimesByPart::<3>::of(&recorded).recorded();
        assert_eq!(again.as_ref(), Some(&recorded));
        assert!(recorded.from_ns.is_sorted());
        let sums: Vec<u64> = recorded
            .counts
            .iter()
            .map(|part| part.iter().sum())
            .collect();
        assert_eq!(sums, [1, 1, 3]);
        let ranges = recorded.from_ns.len() - 1;
        assert!(recorded.counts.iter().all(|part| part.len() == ranges));
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
