//! The trials of one server in one metric, and the value that they make together.
//!
//! A percentile of several trials is that of all their values together, never a mean or a median of the
//! trials' percentiles: two trials with 1 % of slow requests each, at different speeds, have a p99 that
//! neither of their own gives. Its interval and its ratios come from the same values: what is resampled are
//! whole trials, as everywhere (see [`crate::interval`]).

use std::sync::Arc;

use crate::interval::{
    ENOUGH_TRIALS, Interval, RESAMPLES, extremes, median_in_place, percentile_interval,
};

/// Most values whose resamples are counted and not drawn: with many more, numbers of ways overflow.
const MOST_COUNTED: usize = 200;

/// The trials of one server in one metric, in the order of their rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    rounds: Vec<u32>,
    trials: Trials,
    factor: f64,
}

/// How trials make one value.
#[derive(Debug, Clone, PartialEq)]
enum Trials {
    /// The median of these, one from each trial.
    Median(Vec<f64>),
    /// The mean of all values of all trials; each trial's mean, and how many values it has.
    Mean(Vec<(f64, f64)>),
    /// A quantile of all values of all trials.
    Quantile(f64, Arc<Distributions>),
}

/// The values of each of several trials, counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distributions {
    /// Every value that any trial has, rising.
    values: Vec<f64>,
    /// For each trial, how many of its values are no greater than each of these.
    cumulative: Vec<Vec<u64>>,
}

impl Distributions {
    /// Of trials given as their values with the count of each, rising.
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

    /// Values of all trials.
    pub fn count(&self) -> u64 {
        let totals = self.cumulative.iter().filter_map(|counts| counts.last());
        totals.sum()
    }

    /// The least value that so large a share of all values of the trials `drawn` does not exceed. A trial
    /// may be drawn more than once.
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
    /// Of trials given as (round, value): their median.
    pub fn of_values(mut trials: Vec<(u32, f64)>) -> Self {
        trials.sort_by_key(|(round, _)| *round);
        let (rounds, values) = trials.into_iter().unzip();
        Self::new(rounds, Trials::Median(values))
    }

    /// Of trials given as (round, mean, values): the mean of all values.
    pub fn of_means(mut trials: Vec<(u32, f64, u64)>) -> Self {
        trials.sort_by_key(|(round, ..)| *round);
        let rounds = trials.iter().map(|(round, ..)| *round).collect();
        let means = trials.iter().map(|(_, mean, count)| (*mean, *count as f64));
        Self::new(rounds, Trials::Mean(means.collect()))
    }

    /// A quantile of all values of trials of these rounds, which rise.
    pub fn of_quantile(rounds: Vec<u32>, quantile: f64, values: Arc<Distributions>) -> Self {
        Self::new(rounds, Trials::Quantile(quantile, values))
    }

    fn new(rounds: Vec<u32>, trials: Trials) -> Self {
        Self {
            rounds,
            trials,
            factor: 1.0,
        }
    }

    /// So many times it.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        self.factor *= factor;
        self
    }

    /// The same trials as if of another run: nothing is paired by round.
    #[must_use]
    pub fn apart(mut self) -> Self {
        for round in &mut self.rounds {
            *round ^= 1 << 31;
        }
        self
    }

    /// Number of trials.
    pub fn trials(&self) -> usize {
        self.rounds.len()
    }

    /// What each trial gives by itself, by round.
    pub fn by_round(&self) -> Vec<(u32, f64)> {
        let own = (0..self.trials()).map(|trial| self.of(&[trial]));
        self.rounds.iter().copied().zip(own).collect()
    }

    /// What all trials give together; none without trials.
    pub fn estimate(&self) -> Option<f64> {
        let all: Vec<usize> = (0..self.trials()).collect();
        (!all.is_empty()).then(|| self.of(&all))
    }

    /// That with its 95 % interval; none with fewer than 2 trials, or a value that is not finite.
    pub fn interval(&self, seed: u64) -> Option<Interval> {
        let values: Vec<f64> = self
            .by_round()
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        if values.len() < 2 || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let estimate = self.estimate()?;
        let (low, high) = extremes(&values);
        if values.len() < ENOUGH_TRIALS || low.total_cmp(&high).is_eq() {
            return Some(Interval {
                estimate,
                low,
                high,
            });
        }
        if matches!(self.trials, Trials::Median(_)) && values.len() <= MOST_COUNTED {
            return Some(median_interval(estimate, values));
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let mut drawn = vec![0; values.len()];
        let resampled = (0..RESAMPLES)
            .map(|_| {
                drawn.fill_with(|| random.usize(..values.len()));
                self.of(&drawn)
            })
            .collect();
        Some(percentile_interval(estimate, resampled))
    }

    /// The ratio of this one's value to the other's, with its 95 % interval.
    ///
    /// The ratio of what both give over all trials, because it is what a reader gets who divides the two
    /// values in a table. When both have the same rounds, whole rounds are resampled: trials of a round ran
    /// close in time, so a slow spell of the machine falls on both and cancels. Otherwise each side is
    /// resampled alone.
    ///
    /// `None` with fewer than 2 trials on a side, or a value that is not finite and above 0.
    pub fn ratio(&self, other: &Self, seed: u64) -> Option<Interval> {
        let own = |sample: &Self| -> Option<Vec<f64>> {
            let values = sample.by_round().into_iter().map(|(_, value)| value);
            let values: Vec<f64> = values.collect();
            let usable = |value: &f64| value.is_finite() && *value > 0.0;
            (values.len() >= 2 && values.iter().all(usable)).then_some(values)
        };
        let (a, b) = (own(self)?, own(other)?);
        let estimate = self.estimate()? / other.estimate()?;
        if a.len().min(b.len()) < ENOUGH_TRIALS {
            let ((a_low, a_high), (b_low, b_high)) = (extremes(&a), extremes(&b));
            return Some(Interval {
                estimate,
                low: a_low / b_high,
                high: a_high / b_low,
            });
        }
        let paired = self.rounds == other.rounds;
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut drawn_a, mut drawn_b) = (vec![0; a.len()], vec![0; b.len()]);
        let resampled = (0..RESAMPLES)
            .map(|_| {
                drawn_a.fill_with(|| random.usize(..a.len()));
                if paired {
                    drawn_b.copy_from_slice(&drawn_a);
                } else {
                    drawn_b.fill_with(|| random.usize(..b.len()));
                }
                self.of(&drawn_a) / other.of(&drawn_b)
            })
            .collect();
        Some(percentile_interval(estimate, resampled))
    }

    /// What these trials give together; at least one, each as often as it is drawn.
    fn of(&self, drawn: &[usize]) -> f64 {
        self.factor
            * match &self.trials {
                Trials::Median(values) => {
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

/// The percentile bootstrap interval of a median without drawing anything: with which chance each pair of
/// values is in the middle of a resample follows from counting.
fn median_interval(estimate: f64, mut values: Vec<f64>) -> Interval {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as i32;
    let half = (n + 1) / 2;
    // That at least `half` of n draws are among the k least.
    let up_to = |k: i32| -> f64 {
        let share = f64::from(k) / f64::from(n);
        let of = |j: i32| binomial(n, j) * share.powi(j) * (1.0 - share).powi(n - j);
        (half..=n).map(of).sum()
    };
    let mut medians: Vec<(f64, f64)> = Vec::new();
    for low in 1..=n {
        let mut alone = up_to(low) - up_to(low - 1);
        if n % 2 == 0 {
            let step = |k: i32| (f64::from(k) / f64::from(n)).powi(half);
            for high in low + 1..=n {
                let chance = binomial(n, half)
                    * (step(low) - step(low - 1))
                    * (step(n - high + 1) - step(n - high));
                let value = |rank: i32| values[rank as usize - 1];
                medians.push((f64::midpoint(value(low), value(high)), chance));
                alone -= chance;
            }
        }
        medians.push((values[low as usize - 1], alone));
    }
    medians.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let end = |mut from: Box<dyn Iterator<Item = &(f64, f64)> + '_>| {
        let mut sum = 0.0;
        let beyond = from.find(|(_, chance)| {
            sum += chance;
            sum > 0.025
        });
        beyond.map_or(estimate, |(value, _)| *value)
    };
    Interval {
        estimate,
        low: end(Box::new(medians.iter())).min(estimate),
        high: end(Box::new(medians.iter().rev())).max(estimate),
    }
}

/// In how many ways `k` of `n` can be chosen.
fn binomial(n: i32, k: i32) -> f64 {
    (1..=k).fold(1.0, |ways, i| ways * f64::from(n - k + i) / f64::from(i))
}

/// The median over trials with its interval; `None` with fewer than 2 finite values.
pub fn bootstrap_median(values: &[f64], seed: u64) -> Option<Interval> {
    Sample::of_values((0..).zip(values.iter().copied()).collect()).interval(seed)
}

/// The [ratio](Sample::ratio) of the medians of `a` and `b`, each trial given as (round, value).
pub fn bootstrap_ratio(a: &[(u32, f64)], b: &[(u32, f64)], seed: u64) -> Option<Interval> {
    Sample::of_values(a.to_vec()).ratio(&Sample::of_values(b.to_vec()), seed)
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
    fn a_percentile_is_that_of_all_values_and_no_median_of_percentiles() {
        // 2 % of the requests of one trial are slow, of all 400 it is less than 1 %.
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
        let interval = mean.times(2.0).interval(1).unwrap();
        assert!((interval.low - 20.0).abs() < 1e-12 && (interval.high - 100.0).abs() < 1e-12);
    }

    #[test]
    fn a_median_has_the_interval_that_drawing_gives() {
        let mut random = fastrand::Rng::with_seed(3);
        for n in 5..=12 {
            let values: Vec<f64> = (0..n).map(|_| random.f64()).collect();
            let mut drawn: Vec<f64> = (0..40_000)
                .map(|_| {
                    let mut drawn: Vec<f64> = (0..n).map(|_| values[random.usize(..n)]).collect();
                    median_in_place(&mut drawn)
                })
                .collect();
            drawn.sort_unstable_by(f64::total_cmp);
            let interval = Sample::of_values(rounds(&values)).interval(1).unwrap();
            let share = |value: f64| {
                let below = drawn.partition_point(|one| *one < value - 1e-12);
                let up_to = drawn.partition_point(|one| *one <= value + 1e-12);
                (below as f64 / 40_000.0, up_to as f64 / 40_000.0)
            };
            let ((low, up_to_low), (high, up_to_high)) =
                (share(interval.low), share(interval.high));
            assert!(
                low < 0.028 && up_to_low > 0.022,
                "{n}: {low} to {up_to_low}"
            );
            assert!(
                high < 0.978 && up_to_high > 0.972,
                "{n}: {high} to {up_to_high}"
            );
        }
    }

    #[test]
    fn rounds_of_another_run_are_not_paired() {
        let a = Sample::of_values(rounds(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let paired = a.ratio(&a, 1).unwrap();
        assert!((paired.low - 1.0).abs() < 1e-12 && (paired.high - 1.0).abs() < 1e-12);
        let unpaired = a.ratio(&a.clone().apart(), 1).unwrap();
        assert!(unpaired.low < 0.9 && unpaired.high > 1.1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_trials_give_together_lies_within_what_they_give(
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
            let interval = sample.interval(1).expect("there are two trials");
            prop_assert!(interval.holds(estimate) && low <= interval.low && interval.high <= high);
            // The definition, spelt out.
            let mut all: Vec<f64> = trials.iter().flatten()
                .flat_map(|(value, count)| std::iter::repeat_n(*value, *count as usize)).collect();
            all.sort_unstable_by(f64::total_cmp);
            let rank = (share * all.len() as f64).ceil() as usize;
            prop_assert!((all[rank.max(1) - 1] - estimate).abs() < 1e-12);
        }
    }
}
