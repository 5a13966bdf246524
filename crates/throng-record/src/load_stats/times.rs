//! Times as recorded by a load: a histogram with about a dozen instructions per value.
//!
//! The buckets are those of an HdrHistogram with 3 significant digits, so that converting to one loses nothing. The
//! `hdrhistogram` crate merges, computes percentiles and serialises. Its own recording costs six times as much, since
//! it also tracks the extremes and checks for growth.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::PARTS;
use crate::latency::{decode, encode};
use crate::{Latency, TimesOverWindow};

/// Longest distinguishable time, an hour; longer times count as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant bits of a time: 2048 steps per doubling, at least 1024 of them in use.
const BITS: u32 = 11;
/// Significant digits of times that show how a load went, but not how fast a server is.
const ROUGH_DIGITS: u8 = 2;
/// Buckets up to the longest time.
const BUCKETS: usize = index(LONGEST_NS) + 1;

/// Numbers of times, by length in nanoseconds. Serialised as an HdrHistogram (V2 deflate, base64).
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// The buckets in use, or all.
    buckets: Vec<u64>,
}

/// The bucket of a time: its highest bits, after those of all shorter doublings.
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

impl Times {
    /// All buckets.
    pub fn with_room() -> Self {
        Self {
            buckets: vec![0; BUCKETS],
        }
    }

    /// Counts a time, if there are [all buckets](Self::with_room): an increment in an array.
    #[inline]
    pub fn record_in_place(&mut self, time: u64) {
        self.buckets[index(time.min(LONGEST_NS))] += 1;
    }

    /// Counts a time.
    pub fn record(&mut self, time: u64) {
        self.record_n(time, 1);
    }

    /// Counts a time `count` times.
    pub fn record_n(&mut self, time: u64, count: u64) {
        let index = index(time.min(LONGEST_NS));
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        let sum = &mut self.buckets[index];
        *sum = sum.saturating_add(count);
    }

    /// Merges another one.
    pub fn merge(&mut self, other: &Self) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Adds the times recorded since the state `earlier` to `sum`, and updates `earlier` to the current state: one
    /// pass, without allocation.
    pub fn add_news(&self, earlier: &mut Self, sum: &mut Self) {
        let length = self.buckets.len();
        for other in [&mut *earlier, &mut *sum] {
            if other.buckets.len() < length {
                other.buckets.resize(length, 0);
            }
        }
        let others = earlier.buckets.iter_mut().zip(&mut sum.buckets);
        for (&count, (before, all)) in self.buckets.iter().zip(others) {
            if count != *before {
                *all = all.saturating_add(count.saturating_sub(*before));
                *before = count;
            }
        }
    }

    /// Resets all counts, but keeps the buckets.
    pub fn clear(&mut self) {
        self.buckets.fill(0);
    }

    /// Copies another one, without allocation.
    pub fn copy_from(&mut self, other: &Self) {
        self.buckets.clone_from(&other.buckets);
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The mean, and percentiles in ascending order, as in a [histogram](Self::histogram); 0 without values.
    pub fn mean_and_percentiles<const N: usize>(&self, percentiles: [f64; N]) -> (f64, [u64; N]) {
        let all = self.count();
        let ranks = percentiles.map(|percent| {
            let rank = (percent / 100.0 * all as f64).ceil() as u64;
            rank.max(1)
        });
        let (mut values, mut found, mut seen, mut total) = ([0; N], 0, 0_u64, 0.0);
        for (index, &count) in self.buckets.iter().enumerate() {
            if count == 0 {
                continue;
            }
            let (first, next) = (shortest(index), shortest(index + 1));
            total += (first + (next - first) / 2) as f64 * count as f64;
            seen = seen.saturating_add(count);
            while found < N && seen >= ranks[found] {
                values[found] = next - 1;
                found += 1;
            }
        }
        (total / all.max(1) as f64, values)
    }

    /// As an HdrHistogram.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram =
            Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid");
        self.record_to(&mut histogram);
        histogram
    }

    /// All values of several distributions in one histogram, in nanoseconds; `None` without values. Percentiles are
    /// never averaged.
    ///
    /// # Errors
    /// When one of them is invalid.
    pub fn merged<'a>(
        parts: impl IntoIterator<Item = &'a Latency>,
    ) -> anyhow::Result<Option<Histogram<u64>>> {
        let mut merged = Self::default();
        for part in parts {
            merged.merge(&Self::from(&part.times()?));
        }
        Ok((merged.count() > 0).then(|| merged.histogram()))
    }

    /// The statistics of all times; `None` without values.
    pub fn latency(&self) -> Option<Latency> {
        Latency::of(&self.histogram())
    }

    /// The same with 2 significant digits, in about a third of the space.
    pub fn rough_latency(&self) -> Option<Latency> {
        let mut rough =
            Histogram::new_with_bounds(1, LONGEST_NS, ROUGH_DIGITS).expect("the bounds are valid");
        self.record_to(&mut rough);
        // As readers of the record see it.
        let latency = Self::from(&rough).latency()?;
        Some(Latency {
            histogram: encode(&rough),
            ..latency
        })
    }

    fn record_to(&self, histogram: &mut Histogram<u64>) {
        for (index, &count) in self.buckets.iter().enumerate() {
            if count > 0 {
                histogram.saturating_record_n(shortest(index), count);
            }
        }
    }
}

impl From<&Histogram<u64>> for Times {
    fn from(histogram: &Histogram<u64>) -> Self {
        let mut times = Self::default();
        for step in histogram.iter_recorded() {
            // Buckets may be wider than ours.
            let time = histogram.median_equivalent(step.value_iterated_to());
            times.record_n(time, step.count_at_value());
        }
        times
    }
}

impl PartialEq for Times {
    fn eq(&self, other: &Self) -> bool {
        let (short, long) = if self.buckets.len() < other.buckets.len() {
            (&self.buckets, &other.buckets)
        } else {
            (&other.buckets, &self.buckets)
        };
        let (same, beyond) = long.split_at(short.len());
        same == short && beyond.iter().all(|count| *count == 0)
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.count() {
            0 => serializer.serialize_str(""),
            _ => serializer.serialize_str(&encode(&self.histogram())),
        }
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        let histogram = decode(&text).map_err(de::Error::custom)?;
        Ok(Self::from(&histogram))
    }
}

/// Times in coarse ranges, to have a histogram per part of the window: four ranges per doubling.
const RANGE_BITS: u32 = BITS - 3;
const RANGES: usize = (BUCKETS >> RANGE_BITS) + 1;

/// Numbers of times by the part of the window in which they arrived. Serialised as [`TimesOverWindow`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "TimesOverWindow")]
pub struct TimesByPart {
    /// Empty, or one per part.
    parts: Vec<[u64; RANGES]>,
}

impl TimesByPart {
    /// All buckets of all parts.
    pub fn with_room() -> Self {
        Self {
            parts: vec![[0; RANGES]; PARTS],
        }
    }

    /// Counts a time of a part, if there are [all buckets](Self::with_room): an increment in an array.
    #[inline]
    pub fn record_in_place(&mut self, part: usize, time: u64) {
        self.parts[part][index(time.min(LONGEST_NS)) >> RANGE_BITS] += 1;
    }

    /// Counts a time of a part.
    pub fn record(&mut self, part: usize, time: u64) {
        self.record_n(part, index(time.min(LONGEST_NS)) >> RANGE_BITS, 1);
    }

    fn record_n(&mut self, part: usize, range: usize, count: u64) {
        self.parts.resize(PARTS, [0; RANGES]);
        if let Some(ranges) = self.parts.get_mut(part) {
            ranges[range] = ranges[range].saturating_add(count);
        }
    }

    /// Merges another one.
    pub fn merge(&mut self, other: &Self) {
        if other.parts.is_empty() {
            return;
        }
        self.parts.resize(PARTS, [0; RANGES]);
        let theirs = other.parts.iter().flatten();
        for (mine, other_part) in self.parts.iter_mut().flatten().zip(theirs) {
            *mine = mine.saturating_add(*other_part);
        }
    }

    /// The serialised form, from the shortest range in use to the longest; `None` if empty.
    pub fn recorded(&self) -> Option<TimesOverWindow> {
        let is_used = |range: &usize| self.parts.iter().any(|part| part[*range] > 0);
        let first = (0..RANGES).find(is_used)?;
        let last = (first..RANGES).rfind(is_used)?;
        Some(TimesOverWindow {
            from_ns: (first..=last + 1)
                .map(|range| shortest(range << RANGE_BITS))
                .collect(),
            counts: self
                .parts
                .iter()
                .map(|part| part[first..=last].to_vec())
                .collect(),
        })
    }
}

impl From<TimesOverWindow> for TimesByPart {
    fn from(recorded: TimesOverWindow) -> Self {
        let mut times = Self::default();
        for (part, counts) in recorded.counts.iter().enumerate() {
            for (&from, &count) in recorded.from_ns.iter().zip(counts) {
                times.record_n(part, index(from.min(LONGEST_NS)) >> RANGE_BITS, count);
            }
        }
        times
    }
}

impl Serialize for TimesByPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.recorded().unwrap_or_default().serialize(serializer)
    }
}

impl PartialEq for TimesByPart {
    fn eq(&self, other: &Self) -> bool {
        self.recorded() == other.recorded()
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
        let mut times = TimesByPart::with_room();
        assert_eq!(times.recorded(), None);
        for (part, time) in [
            (0, 5_000),
            (2, 5_000),
            (2, 999),
            (2, 1_000_000),
            (1, u64::MAX),
        ] {
            let mut alone = TimesByPart::default();
            alone.record(part, time);
            let recorded = alone.recorded().unwrap();
            let [from, to] = recorded.from_ns[..] else {
                panic!("one range: {recorded:?}");
            };
            let time = time.min(LONGEST_NS);
            assert!(from <= time && time < to, "{from} {time} {to}");
            // A quarter of a doubling, except below a microsecond.
            assert!(to - from <= (from / 4).max(256), "{from} {to}");
            times.merge(&alone);
        }
        let recorded = times.recorded().unwrap();
        assert_eq!(TimesByPart::from(recorded.clone()), times);
        assert!(recorded.from_ns.is_sorted());
        let sums: Vec<u64> = recorded
            .counts
            .iter()
            .map(|part| part.iter().sum())
            .collect();
        assert_eq!((&sums[..3], sums.len()), (&[1, 1, 3][..], PARTS));
        let ranges = recorded.from_ns.len() - 1;
        assert!(recorded.counts.iter().all(|part| part.len() == ranges));
    }

    #[test]
    fn new_times_are_added_once() {
        let (mut times, mut earlier, mut sum) = <(Times, Times, Times)>::default();
        for round in 1..=3 {
            times.record_n(1000 * round, round);
            times.record(5);
            times.add_news(&mut earlier, &mut sum);
            assert_eq!(sum, times);
        }
        sum.clear();
        times.add_news(&mut earlier, &mut sum);
        assert_eq!(sum.count(), 0);
        times.record(7);
        times.add_news(&mut earlier, &mut sum);
        assert_eq!(sum.mean_and_percentiles([50.0]), (7.0, [7]));
        assert_eq!(
            Times::default().mean_and_percentiles([50.0, 99.0]),
            (0.0, [0, 0])
        );
    }

    #[test]
    fn longer_than_the_longest_counts_as_that() {
        let mut times = Times::default();
        times.record(u64::MAX);
        times.record_n(LONGEST_NS, 2);
        let histogram = times.histogram();
        assert_eq!((histogram.len(), times.count()), (3, 3));
        assert!(histogram.max() >= LONGEST_NS);
    }

    proptest! {
        #[test]
        fn it_is_the_histogram_of_the_same_times(
            values in prop::collection::vec((0..LONGEST_NS, 0_u32..42), 1..200),
        ) {
            let mut times = Times::with_room();
            let mut more = Times::default();
            let mut expected = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3).unwrap();
            for (place, (value, shift)) in values.into_iter().enumerate() {
                let value = value >> shift;
                expected.saturating_record(value);
                if place % 2 == 0 { times.record_in_place(value) } else { more.record(value) }
            }
            times.merge(&more);
            let histogram = times.histogram();
            prop_assert_eq!(&Times::from(&histogram), &times);
            let written = serde_json::to_string(&times).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Times>(&written).unwrap(), &times);
            prop_assert_eq!(histogram.len(), expected.len());
            prop_assert_eq!(histogram.max(), expected.max());
            prop_assert_eq!(histogram.min(), expected.min());
            prop_assert!((histogram.mean() - expected.mean()).abs() < 1.0);
            let (mean, percentiles) = times.mean_and_percentiles([50.0, 90.0, 99.0]);
            let is_near = (mean - expected.mean()).abs() <= expected.mean() * 1e-9;
            prop_assert!(is_near, "{} {}", mean, expected.mean());
            prop_assert_eq!(
                percentiles,
                [50.0, 90.0, 99.0].map(|percent| expected.value_at_percentile(percent))
            );
            for percentile in [1.0, 50.0, 90.0, 99.0, 99.9] {
                prop_assert_eq!(
                    histogram.value_at_percentile(percentile),
                    expected.value_at_percentile(percentile)
                );
            }
            let (exact, rough) = (times.latency().unwrap(), times.rough_latency().unwrap());
            let merged = Latency::of(&Times::merged([&rough]).unwrap().unwrap()).unwrap();
            prop_assert_eq!((merged.p50_us, merged.max_us), (rough.p50_us, rough.max_us));
            prop_assert_eq!((merged.count, merged.mean_us), (exact.count, rough.mean_us));
            for (exact, rough) in [
                (exact.min_us, rough.min_us),
                (exact.mean_us, rough.mean_us),
                (exact.p50_us, rough.p50_us),
                (exact.p90_us, rough.p90_us),
                (exact.max_us, rough.max_us),
            ] {
                prop_assert!((exact - rough).abs() <= exact * 0.01 + 0.001, "{} {}", exact, rough);
            }
        }
    }
}
