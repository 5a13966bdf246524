//! The trials of one server in one metric, and their combined value.
//!
//! A percentile of several trials is the percentile of all their values merged, never a mean or median of the trials'
//! percentiles. The p99 of two trials with 1 % of slow requests each, at different speeds, can be the p99 of neither.
//! Intervals and ratios come from the values of single trials: see [`crate::interval`] and [`crate::paired`].

use std::sync::Arc;

use crate::interval::{Interval, extremes, median_in_place, median_interval};
use crate::paired::{LogRatio, log_ratio, log_ratio_of_slices, rough_ratio, unpaired_log_ratio};

/// The trials of one server in one metric, in the order of their rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    rounds: Vec<u32>,
    trials: Trials,
    factor: f64,
}

/// How trials are combined into one value.
#[derive(Debug, Clone, PartialEq)]
enum Trials {
    /// The median of one value per trial.
    Median(Vec<f64>),
    /// The mean of all values of all trials, from each trial's mean and number of values.
    Mean(Vec<(f64, f64)>),
    /// A quantile of all values of all trials.
    Quantile(f64, Arc<Distributions>),
    /// The overall value, and the value of each slice.
    Slices(f64, Vec<f64>),
}

/// The values of several trials, as cumulative counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distributions {
    /// Every value that occurs in any trial, ascending.
    values: Vec<f64>,
    /// For each trial, how many of its values are at most each of `values`.
    cumulative: Vec<Vec<u64>>,
}

impl Distributions {
    /// From each trial's values with their counts, ascending.
    pub fn new(trials: &[Vec<(f64, u64)>]) -> Self {
        let mut values: Vec<f64> = trials.iter().flatten().map(|(value, _)| *value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let cumulative = trials.iter().map(|trial| {
            let mut counted = trial.iter().peekable();
            let mut sum = 0;
            let up_to = |value: &f64| {
                while let Some((_, count)) = counted.next_if(|(own, _)| own <= value) {
                    sum += count;
                }
                sum
            };
            values.iter().map(up_to).collect()
        });
        Self {
            cumulative: cumulative.collect(),
            values,
        }
    }

    /// Number of values in all trials.
    pub fn count(&self) -> u64 {
        let totals = self.cumulative.iter().filter_map(|counts| counts.last());
        totals.sum()
    }

    /// The quantile of all values of the trials `drawn`, by nearest rank. A trial may be drawn more than once.
    fn quantile(&self, quantile: f64, drawn: &[usize]) -> f64 {
        let up_to = |place: usize| -> u64 {
            let counts = drawn.iter().map(|trial| self.cumulative[*trial][place]);
            counts.sum()
        };
        let Some(last) = self.values.len().checked_sub(1) else {
            return f64::NAN;
        };
        let rank = ((quantile * up_to(last) as f64).ceil() as u64).max(1);
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = usize::midpoint(low, high);
            if up_to(middle) < rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.values[low]
    }
}

impl Sample {
    /// The median of trials, as (round, value).
    pub fn of_values(mut trials: Vec<(u32, f64)>) -> Self {
        trials.sort_by_key(|(round, _)| *round);
        let (rounds, values) = trials.into_iter().unzip();
        Self::new(rounds, Trials::Median(values))
    }

    /// The mean of all values of trials, as (round, mean, number of values).
    pub fn of_means(mut trials: Vec<(u32, f64, u64)>) -> Self {
        trials.sort_by_key(|(round, ..)| *round);
        let rounds = trials.iter().map(|(round, ..)| *round).collect();
        let means = trials.iter().map(|(_, mean, count)| (*mean, *count as f64));
        Self::new(rounds, Trials::Mean(means.collect()))
    }

    /// A quantile of all values of the trials of `rounds`, which must ascend.
    pub fn of_quantile(rounds: Vec<u32>, quantile: f64, values: Arc<Distributions>) -> Self {
        Self::new(rounds, Trials::Quantile(quantile, values))
    }

    /// A trial in slices: its overall value, and the slices' values as (round, value).
    pub fn of_slices(whole: f64, slices: Vec<(u32, f64)>) -> Self {
        let (rounds, values) = slices.into_iter().unzip();
        Self::new(rounds, Trials::Slices(whole, values))
    }

    fn new(rounds: Vec<u32>, trials: Trials) -> Self {
        Self {
            rounds,
            trials,
            factor: 1.0,
        }
    }

    /// All values multiplied by a factor.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        self.factor *= factor;
        self
    }

    /// Number of trials, or of slices.
    pub fn trials(&self) -> usize {
        self.rounds.len()
    }

    /// The value of each trial, by round.
    pub fn by_round(&self) -> Vec<(u32, f64)> {
        self.rounds.iter().copied().zip(self.own()).collect()
    }

    /// The combined value of all trials; `None` without trials.
    pub fn estimate(&self) -> Option<f64> {
        if let Trials::Slices(whole, _) = self.trials {
            return Some(self.factor * whole);
        }
        let all: Vec<usize> = (0..self.trials()).collect();
        (!all.is_empty()).then(|| self.of(&all))
    }

    /// The estimate with a 95 % interval; `None` with fewer than 6 trials, or a value that is not finite. See
    /// [`median_interval`].
    pub fn interval(&self) -> Option<Interval> {
        let estimate = self.estimate()?;
        let own = median_interval(&self.own())?;
        // The value of all trials merged can be outside the range of the trials' own values.
        Some(Interval {
            estimate,
            low: own.low.min(estimate),
            high: own.high.max(estimate),
        })
    }

    /// The smallest and the largest value of any trial; `None` with fewer than 2 trials.
    pub fn range(&self) -> Option<(f64, f64)> {
        let own = self.own();
        (own.len() >= 2 && own.iter().all(|value| value.is_finite())).then(|| extremes(&own))
    }

    /// The ratio of this sample to another of the same run, paired by round. Trials of a round ran close in time, so a
    /// slow phase of the machine affects both and cancels.
    ///
    /// `None` with fewer than 6 pairs: see [`log_ratio`].
    pub fn ratio(&self, other: &Self) -> Option<LogRatio> {
        let pairs = self.pairs(other);
        match (&self.trials, &other.trials) {
            (Trials::Slices(..), Trials::Slices(..)) => log_ratio_of_slices(&pairs),
            _ => log_ratio(&pairs),
        }
    }

    /// The ratio of this sample to a sample of another run, whose rounds are unrelated.
    pub fn unpaired_ratio(&self, other: &Self) -> Option<LogRatio> {
        let ratio = unpaired_log_ratio(&self.own(), &other.own())?;
        Some(match (&self.trials, &other.trials) {
            (Trials::Slices(..), Trials::Slices(..)) => ratio.of_single_starts(),
            _ => ratio,
        })
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
        let others = other.by_round();
        let of_round = |round: u32| {
            let place = others
                .binary_search_by_key(&round, |(round, _)| *round)
                .ok()?;
            Some(others[place].1)
        };
        let own = self.by_round().into_iter();
        own.filter_map(|(round, value)| Some((value, of_round(round)?)))
            .collect()
    }

    fn own(&self) -> Vec<f64> {
        (0..self.trials()).map(|trial| self.of(&[trial])).collect()
    }

    /// The combined value of the trials in `drawn`, at least one. Each counts as often as it is drawn.
    fn of(&self, drawn: &[usize]) -> f64 {
        self.factor
            * match &self.trials {
                Trials::Median(values) | Trials::Slices(_, values) => {
                    let mut values: Vec<f64> = drawn.iter().map(|trial| values[*trial]).collect();
                    median_in_place(&mut values)
                }
                Trials::Mean(means) => {
                    let of = |trial: &usize| means[*trial];
                    let sum: f64 = drawn.iter().map(of).map(|(mean, n)| mean * n).sum();
                    sum / drawn.iter().map(of).map(|(_, n)| n).sum::<f64>()
                }
                Trials::Quantile(quantile, values) => values.quantile(*quantile, drawn),
            }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rounds(values: &[f64]) -> Vec<(u32, f64)> {
        (0..).zip(values.iter().copied()).collect()
    }

    fn quantile(trials: &[Vec<(f64, u64)>], quantile: f64) -> Sample {
        let rounds = (0..trials.len() as u32).collect();
        Sample::of_quantile(rounds, quantile, Arc::new(Distributions::new(trials)))
    }

    #[test]
    fn a_percentile_is_of_all_values_and_not_a_median_of_percentiles() {
        // 2 % of the requests of one trial are slow, but less than 1 % of all 400.
        let quick = vec![(1.0, 100)];
        let slow = vec![(1.0, 98), (50.0, 2)];
        let p99 = quantile(&[slow.clone(), quick.clone(), quick.clone(), quick], 0.99);
        assert!((p99.estimate().unwrap() - 1.0).abs() < 1e-12);
        let p99 = quantile(&[slow.clone(), vec![(2.0, 50)]], 0.99);
        assert!((p99.estimate().unwrap() - 50.0).abs() < 1e-12);
        assert!((quantile(&[slow], 0.5).estimate().unwrap() - 1.0).abs() < 1e-12);
        let none = quantile(&[], 0.5);
        assert_eq!((none.estimate(), none.trials()), (None, 0));
    }

    #[test]
    fn a_mean_weighs_trials_by_their_values() {
        let mean = Sample::of_means(vec![(0, 10.0, 300), (1, 50.0, 100)]);
        assert!((mean.estimate().unwrap() - 20.0).abs() < 1e-12);
        let (low, high) = mean.times(2.0).range().unwrap();
        assert!((low - 20.0).abs() < 1e-12 && (high - 100.0).abs() < 1e-12);
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
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_combined_value_lies_within_those_of_its_trials(
            trials in prop::collection::vec(prop::collection::vec((1_u32..1000, 1_u64..50), 1..20), 2..8),
            share in 0.01..1.0_f64,
        ) {
            let trials: Vec<Vec<(f64, u64)>> = trials.into_iter().map(|mut trial| {
                trial.sort_unstable();
                trial.into_iter().map(|(value, count)| (f64::from(value), count)).collect()
            }).collect();
            let sample = quantile(&trials, share);
            let own: Vec<f64> = sample.by_round().into_iter().map(|(_, value)| value).collect();
            let (low, high) = extremes(&own);
            let estimate = sample.estimate().expect("there are trials");
            prop_assert!(low <= estimate && estimate <= high);
            if let Some(interval) = sample.interval() {
                prop_assert!(interval.holds(estimate) && low <= interval.low && interval.high <= high);
            }
            // By definition.
            let mut all: Vec<f64> = trials.iter().flatten()
                .flat_map(|(value, count)| std::iter::repeat_n(*value, *count as usize)).collect();
            all.sort_unstable_by(f64::total_cmp);
            let rank = (share * all.len() as f64).ceil() as usize;
            prop_assert!((all[rank.max(1) - 1] - estimate).abs() < 1e-12);
        }
    }
}
