//! The trials or slices of one server in one metric, with one estimator for all of them.
//!
//! The estimate is the median of their own values, with the interval of that median: see [`crate::interval`]. Ratios
//! come from the same values: see [`crate::paired`]. A percentile of all requests together is another quantity, which
//! one slow trial or slice can decide. So it has its own name, and no interval.

use crate::interval::{Interval, extremes, median, median_interval};
use crate::paired::{LogRatio, log_ratio, log_ratio_of_slices, rough_ratio, unpaired_log_ratio};

/// From this many rounds apart, two rounds belong to different bursts: a single slice without replies ends none.
const PAUSE: u32 = 4;

/// The trials or slices of one server in one metric, in the order of their rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    rounds: Vec<u32>,
    values: Vec<f64>,
    is_of_slices: bool,
}

impl Sample {
    /// Trials, as (round, value).
    pub fn of_values(trials: Vec<(u32, f64)>) -> Self {
        Self::new(trials, false)
    }

    /// The slices of a trial, as (round, value).
    pub fn of_slices(slices: Vec<(u32, f64)>) -> Self {
        Self::new(slices, true)
    }

    fn new(mut values: Vec<(u32, f64)>, is_of_slices: bool) -> Self {
        values.sort_by_key(|(round, _)| *round);
        let (rounds, values) = values.into_iter().unzip();
        Self {
            rounds,
            values,
            is_of_slices,
        }
    }

    /// All values multiplied by a factor.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        for value in &mut self.values {
            *value *= factor;
        }
        self
    }

    /// Number of trials, or of slices.
    pub fn trials(&self) -> usize {
        self.values.len()
    }

    /// Whether its values are those of slices: the server started only once.
    pub fn is_of_slices(&self) -> bool {
        self.is_of_slices
    }

    /// The value of each trial or slice, by round.
    pub fn by_round(&self) -> Vec<(u32, f64)> {
        let rounds = self.rounds.iter().copied();
        rounds.zip(self.values.iter().copied()).collect()
    }

    /// The median; `None` without values.
    pub fn estimate(&self) -> Option<f64> {
        median(&self.values)
    }

    /// The median with its 95 % interval; `None` with fewer than 6 values, or a value that is not finite.
    pub fn interval(&self) -> Option<Interval> {
        median_interval(&self.values)
    }

    /// The smallest and the largest value; `None` with fewer than 2 values.
    pub fn range(&self) -> Option<(f64, f64)> {
        let is_finite = self.values.iter().all(|value| value.is_finite());
        (self.trials() >= 2 && is_finite).then(|| extremes(&self.values))
    }

    /// The ratio of this sample to another of the same run, paired by round. Trials of a round ran close in time, so a
    /// slow phase of the machine affects both and cancels.
    ///
    /// `None` with fewer than 6 pairs: see [`log_ratio`].
    pub fn ratio(&self, other: &Self) -> Option<LogRatio> {
        let pairs = self.pairs(other);
        if self.is_of_slices && other.is_of_slices {
            log_ratio_of_slices(&pairs)
        } else {
            log_ratio(&pairs)
        }
    }

    /// Like [`Self::ratio`], for a server that took part in a few consecutive rounds at a time. Such rounds share
    /// disturbances, so the mean of each burst is one value.
    ///
    /// `None` with fewer than 6 bursts.
    pub fn ratio_of_bursts(&self, other: &Self) -> Option<LogRatio> {
        if !self.is_of_slices {
            return self.ratio(other);
        }
        let mut bursts: Vec<(u32, Vec<(f64, f64)>)> = Vec::new();
        for (round, pair) in self.pairs_by_round(other) {
            match bursts.last_mut() {
                Some((last, pairs)) if round - *last < PAUSE => {
                    *last = round;
                    pairs.push(pair);
                }
                _ => bursts.push((round, vec![pair])),
            }
        }
        let mean = |pairs: &Vec<(f64, f64)>| {
            let logs: f64 = pairs.iter().map(|(own, theirs)| (own / theirs).ln()).sum();
            ((logs / pairs.len() as f64).exp(), 1.0)
        };
        let means: Vec<(f64, f64)> = bursts.iter().map(|(_, pairs)| mean(pairs)).collect();
        log_ratio_of_slices(&means)
    }

    /// The ratio of this sample to a sample of another run, whose rounds are unrelated.
    pub fn unpaired_ratio(&self, other: &Self) -> Option<LogRatio> {
        let ratio = unpaired_log_ratio(&self.values, &other.values)?;
        let sides = u32::from(self.is_of_slices) + u32::from(other.is_of_slices);
        Some(ratio.of_single_starts(sides))
    }

    /// The ratio from any number of trials, without an interval.
    pub fn rough_ratio(&self, other: &Self) -> Option<f64> {
        match self.pairs(other).as_slice() {
            [] => self.rough_unpaired_ratio(other),
            pairs => rough_ratio(pairs),
        }
    }

    /// Like [`Self::rough_ratio`], for samples of different runs.
    pub fn rough_unpaired_ratio(&self, other: &Self) -> Option<f64> {
        let ratio = self.estimate()? / other.estimate()?;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }

    /// The values of both samples in their common rounds.
    pub fn pairs(&self, other: &Self) -> Vec<(f64, f64)> {
        let pairs = self.pairs_by_round(other);
        pairs.map(|(_, pair)| pair).collect()
    }

    fn pairs_by_round(&self, other: &Self) -> impl Iterator<Item = (u32, (f64, f64))> {
        self.by_round().into_iter().filter_map(|(round, value)| {
            let index = other.rounds.binary_search(&round).ok()?;
            Some((round, (value, other.values[index])))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[f64]) -> Vec<(u32, f64)> {
        (0..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn ratios_pair_common_rounds() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let a = Sample::of_values(rounds(&values));
        let mut twice = rounds(&values.map(|value| value / 2.0));
        twice.remove(3);
        let b = Sample::of_values(twice);
        let paired = a.ratio(&b).unwrap();
        assert_eq!(paired.pairs, 6);
        assert!((paired.interval(0.95).high - 2.0).abs() < 1e-9);
        let apart = a.unpaired_ratio(&a).unwrap().interval(0.95);
        assert!(apart.low < 0.9 && apart.high > 1.1);
    }

    #[test]
    fn few_trials_have_a_range_and_a_ratio_but_no_interval() {
        let (a, b) = (
            Sample::of_values(rounds(&[2.0, 4.0, 3.0])),
            Sample::of_values(rounds(&[1.0, 2.0, 1.5])),
        );
        assert_eq!((a.interval(), a.ratio(&b)), (None, None));
        assert_eq!(a.range(), Some((2.0, 4.0)));
        assert!((a.rough_ratio(&b).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(Sample::of_values(rounds(&[2.0])).range(), None);
        let none = Sample::of_values(Vec::new());
        assert_eq!((none.estimate(), none.trials()), (None, 0));
    }

    /// Pairs of the same burst share a disturbance as large as their own noise. As separate pairs, their intervals would be too narrow.
    #[test]
    fn intervals_of_bursts_cover_95_percent_if_neighbours_share_disturbances() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut noise = move || 0.1 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0);
        let held = (0..2000)
            .filter(|_| {
                let (mut own, mut other) = (Vec::new(), Vec::new());
                for burst in 0..10 {
                    let shared = noise();
                    for round in [15 * burst + 1, 15 * burst + 2] {
                        own.push((round, (shared + noise()).exp()));
                        other.push((round, 1.0));
                    }
                }
                let [own, other] = [own, other].map(Sample::of_slices);
                let ratio = own.ratio_of_bursts(&other).unwrap();
                assert_eq!(ratio.pairs, 10);
                ratio.interval(0.95).holds(1.0)
            })
            .count();
        assert!(held >= 1860, "{held} of 2000");
    }

    #[test]
    fn one_bad_slice_moves_neither_the_estimate_nor_its_interval() {
        let mut values = vec![2.9, 2.5, 2.7, 2.6, 2.8, 2.4, 2.55, 2.65, 2.75, 2.85, 2.45];
        let quiet = Sample::of_slices(rounds(&values)).interval().unwrap();
        values[0] = 290.0;
        let bad = Sample::of_slices(rounds(&values)).interval().unwrap();
        assert_eq!(bad, quiet);
        assert!(bad.holds(bad.estimate));
    }
}
