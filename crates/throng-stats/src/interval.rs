//! Medians and ratios over trials, with 95 % intervals.
//!
//! The unit that is resampled is the trial, never the request: requests of one trial share one
//! server process, one placement in memory and one stretch of the machine's time, so they are not
//! independent, and an interval over them is far too narrow (Hoefler & Belli, "Scientific
//! Benchmarking of Parallel Computing Systems", SC 2015, rules 5 to 8).
//!
//! From [`ENOUGH_TRIALS`] trials on, intervals are percentile bootstrap intervals (Efron &
//! Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13). Below that a bootstrap has
//! too few distinct resamples to mean anything (three trials give ten) and comes out too narrow.
//! So with two to four trials the interval is the widest the trials allow:
//!
//! - of a median: least to greatest value, which holds the true median in 1 - 2^(1-n) of cases:
//!   50 % with 2 trials, 75 % with 3, 87.5 % with 4;
//! - of a ratio: least `a` over greatest `b` to greatest `a` over least `b`. It leaves out 1 only
//!   when all trials of one lie beyond all of the other, which two equal servers do by chance in
//!   2 of C(2n, n) cases: see [`false_alarm_rate`].
//!
//! One trial gives no interval at all.

use serde::Serialize;

/// Trials from which on the bootstrap is used.
pub const ENOUGH_TRIALS: usize = 5;

/// Resamples drawn; the 2.5 % ends then rest on 100 of them each.
pub(super) const RESAMPLES: usize = 4000;

/// An estimate and the 95 % interval around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate from all trials.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies within, ends included.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// What the ratio of two servers allows to be said of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The first is better.
    Better,
    /// The first is worse.
    Worse,
    /// The trials do not tell the two apart.
    NotDistinguishable,
}

impl Verdict {
    /// The verdict on `a` from the interval of a / b. Without an interval (fewer than 2 trials),
    /// and when the interval holds 1, nothing can be told apart.
    pub fn of_ratio(ratio: Option<Interval>, higher_is_better: bool) -> Self {
        Self::beyond(0.0, ratio, higher_is_better)
    }

    /// The same where two equal servers came out apart by the share `floor`: whatever is not beyond
    /// that is not told apart either.
    pub fn beyond(floor: f64, ratio: Option<Interval>, higher_is_better: bool) -> Self {
        let (above, below) = (1.0 + floor, 1.0 / (1.0 + floor));
        match ratio {
            Some(ratio) if ratio.low > above && higher_is_better => Self::Better,
            Some(ratio) if ratio.low > above => Self::Worse,
            Some(ratio) if ratio.high < below && higher_is_better => Self::Worse,
            Some(ratio) if ratio.high < below => Self::Better,
            _ => Self::NotDistinguishable,
        }
    }
}

/// The middle value, or the mean of the two middle ones; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    Some(median_in_place(&mut sorted))
}

/// How often two equal servers would be told apart by chance, with `trials` of each: 2 / C(2n, n)
/// below [`ENOUGH_TRIALS`], nominally 5 % from there on; below 2 trials nothing is ever told apart.
pub fn false_alarm_rate(trials: usize) -> f64 {
    if trials < 2 {
        return 0.0;
    }
    if trials >= ENOUGH_TRIALS {
        return 0.05;
    }
    let combinations =
        (1..=trials).fold(1.0, |product, k| product * (trials + k) as f64 / k as f64);
    2.0 / combinations
}

pub(super) fn median_in_place(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

pub(super) fn extremes(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        })
}

/// The 2.5th and 97.5th percentile of the resampled estimates, by nearest rank, widened to the estimate
/// where it lies outside.
pub(super) fn percentile_interval(estimate: f64, mut resampled: Vec<f64>) -> Interval {
    resampled.sort_unstable_by(f64::total_cmp);
    let tail = resampled.len() / 40;
    Interval {
        estimate,
        low: resampled[tail].min(estimate),
        high: resampled[resampled.len() - 1 - tail].max(estimate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{bootstrap_median, bootstrap_ratio};
    use proptest::prelude::*;

    fn rounds(values: &[f64]) -> Vec<(u32, f64)> {
        (0..).zip(values.iter().copied()).collect()
    }

    fn same(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn few_trials_give_their_whole_range_and_one_gives_nothing() {
        let interval = bootstrap_median(&[10.0, 12.0, 11.0], 1).unwrap();
        assert!(
            same(interval.estimate, 11.0) && same(interval.low, 10.0) && same(interval.high, 12.0)
        );
        assert_eq!(bootstrap_median(&[10.0], 1), None);
        assert_eq!(bootstrap_median(&[10.0, f64::NAN], 1), None);
    }

    #[test]
    fn the_mouse_data_of_efron_and_tibshirani() {
        // Table 2.1: survival of 7 treated mice, median 94; its bootstrap standard error of 37.83
        // (table 2.2) makes an interval that reaches far to both sides.
        let treated = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0];
        let interval = bootstrap_median(&treated, 7).unwrap();
        assert!(same(interval.estimate, 94.0));
        assert!(
            same(interval.low, 23.0) && same(interval.high, 141.0),
            "{interval:?}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values = [5.0, 6.0, 7.0, 8.0, 9.0, 30.0];
        assert_eq!(bootstrap_median(&values, 3), bootstrap_median(&values, 3));
    }

    #[test]
    fn pairing_by_round_cancels_a_drift_common_to_both() {
        let b = [100.0, 120.0, 140.0, 160.0, 180.0, 200.0];
        let a: Vec<f64> = b.iter().map(|value| value * 1.1).collect();
        let paired = bootstrap_ratio(&rounds(&a), &rounds(&b), 1).unwrap();
        assert!((paired.low - 1.1).abs() < 1e-9 && (paired.high - 1.1).abs() < 1e-9);
        let shifted: Vec<_> = rounds(&a).into_iter().map(|(r, v)| (r + 9, v)).collect();
        let unpaired = bootstrap_ratio(&shifted, &rounds(&b), 1).unwrap();
        assert!(unpaired.holds(1.0), "{unpaired:?}");
    }

    #[test]
    fn with_three_trials_only_separate_ranges_are_told_apart() {
        let ratio = bootstrap_ratio(
            &rounds(&[20.0, 21.0, 22.0]),
            &rounds(&[10.0, 11.0, 10.5]),
            1,
        );
        let interval = ratio.unwrap();
        assert!(same(interval.low, 20.0 / 11.0) && same(interval.high, 2.2));
        assert_eq!(Verdict::of_ratio(ratio, true), Verdict::Better);
        assert_eq!(Verdict::of_ratio(ratio, false), Verdict::Worse);
        let overlapping = bootstrap_ratio(
            &rounds(&[20.0, 21.0, 10.9]),
            &rounds(&[10.0, 11.0, 10.5]),
            1,
        );
        assert_eq!(
            Verdict::of_ratio(overlapping, true),
            Verdict::NotDistinguishable
        );
    }

    #[test]
    fn what_two_equal_servers_differ_by_is_no_difference() {
        let ratio = bootstrap_ratio(&rounds(&[1.03, 1.04, 1.05]), &rounds(&[1.0, 1.0, 1.0]), 1);
        assert_eq!(Verdict::beyond(0.02, ratio, true), Verdict::Better);
        assert_eq!(
            Verdict::beyond(0.04, ratio, true),
            Verdict::NotDistinguishable
        );
    }

    #[test]
    fn one_trial_is_never_told_apart() {
        let ratio = bootstrap_ratio(&[(0, 5.0)], &rounds(&[1.0, 1.0]), 1);
        assert_eq!(ratio, None);
        assert_eq!(Verdict::of_ratio(ratio, true), Verdict::NotDistinguishable);
    }

    #[test]
    fn false_alarms_follow_from_counting_orders() {
        assert!(same(false_alarm_rate(2), 1.0 / 3.0));
        assert!(same(false_alarm_rate(3), 0.1));
        assert!(same(false_alarm_rate(4), 2.0 / 70.0));
    }

    /// How often of 200 times two servers whose true ratio is `ratio` are told apart, with five
    /// trials each, 5 % of noise, and 20 % more that falls on a whole round.
    fn told_apart(ratio: f64) -> usize {
        let mut random = fastrand::Rng::with_seed(1);
        // The sum of 12 uniform values less 6 is close to a standard normal one.
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        (0..200)
            .filter(|&time| {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                for round in 0..5 {
                    let spell = 0.2 * normal();
                    a.push((round, ratio * (spell + 0.05 * normal()).exp()));
                    b.push((round, (spell + 0.05 * normal()).exp()));
                }
                let verdict = Verdict::of_ratio(bootstrap_ratio(&a, &b, time), true);
                verdict != Verdict::NotDistinguishable
            })
            .count()
    }

    #[test]
    fn equal_servers_are_told_apart_as_seldom_as_is_said_and_unequal_ones_mostly() {
        let alarms = told_apart(1.0);
        assert!(alarms <= 200 * 8 / 100, "{alarms} false alarms of 200");
        let found = told_apart(1.2);
        assert!(found >= 200 * 9 / 10, "{found} of 200 differences found");
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_estimate(values in prop::collection::vec(0.1..1e6_f64, 2..12), seed: u64) {
            let interval = bootstrap_median(&values, seed).unwrap();
            prop_assert!(interval.holds(interval.estimate));
        }

        #[test]
        fn a_server_against_itself_is_not_distinguishable(values in prop::collection::vec(0.1..1e6_f64, 2..12), seed: u64) {
            let ratio = bootstrap_ratio(&rounds(&values), &rounds(&values), seed);
            prop_assert_eq!(Verdict::of_ratio(ratio, true), Verdict::NotDistinguishable);
        }
    }
}
