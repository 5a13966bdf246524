//! The ratio of two servers from paired measurements.
//!
//! A pair holds one value of each server, taken within the same round, so disturbances of the whole machine cancel.
//! The estimate is the 20 % trimmed mean of the pairs' log ratios, with Yuen's interval (K. K. Yuen, "The two-sample
//! trimmed t for unequal population variances", Biometrika 61 (1974); R. R. Wilcox, "Introduction to Robust Estimation
//! and Hypothesis Testing"). Its standard error comes from the winsorised variance, and the degrees of freedom of
//! Student's t are the number of remaining values, minus one. A burst of activity by another process moves a few pairs
//! far away; these are trimmed.
//! `tests/intervals.rs` compares it with other estimators by simulation; docs/measuring.md shows the result.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::Interval;

/// Fewest pairs for an interval: with fewer, none has its nominal coverage in simulation.
pub const FEWEST_PAIRS: usize = 6;

/// Fewest pairs before the stopping rule may stop. With fewer, the estimated spread is unreliable, and the rule would
/// stop when the spread happens to be small.
pub const FEWEST_TO_STOP: usize = 30;

/// Share of the values trimmed at each end.
const TRIMMED: f64 = 0.2;

/// Fewest pairs for estimating the correlation between neighbours.
const FEWEST_FOR_CORRELATION: usize = 20;

/// Upper bound of the estimated correlation between neighbours.
const GREATEST_CORRELATION: f64 = 0.9;

/// A standard error from n values is too small by this divided by n. Found by simulation: without this correction,
/// intervals cover 94.1 % with 6 normal values and 94.3 % with 10.
const FEW: f64 = 0.35;

/// The stopping rule requires an interval narrower by this divided by n, since it tends to stop when the estimated
/// spread is too small. (Chow and Robbins add 1/n to the variance for the same reason.)
const EARLY: f64 = 4.0;

/// Two starts of the same program differ by this: the standard deviation of the logarithm of their ratio. The
/// addresses of code and data differ between starts, and so do cache misses. (T. Mytkowicz and others, "Producing
/// wrong data without doing anything obviously wrong!", ASPLOS 2009; T. Kalibera and R. Jones, "Rigorous benchmarking
/// in reasonable time", ISMM 2013.) Measured by comparing a server with itself: docs/measuring.md. With 2,000 clients it
/// is lost in the noise of sampling.
pub const BETWEEN_STARTS: f64 = 0.003;

/// Level of two-sided intervals.
pub const LEVEL: f64 = 0.95;

/// The power for [`LogRatio::smallest_difference`].
const POWER: f64 = 0.8;

/// The logarithm of a ratio of two servers, with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatio {
    /// Natural logarithm of the ratio.
    pub log: f64,
    /// Its standard error.
    pub error: f64,
    /// The part of it that more pairs do not reduce.
    pub floor: f64,
    /// Degrees of freedom of Student's t.
    pub freedom: f64,
    /// Number of pairs; for servers that were not measured together, the smaller number of values.
    pub pairs: usize,
}

/// The ratio a/b from pairs (a, b) in the order in which they were measured.
///
/// `None` with fewer than [`FEWEST_PAIRS`], if any value is negative or not a number, or if more than the trimmed
/// share of pairs have a zero.
pub fn log_ratio(pairs: &[(f64, f64)]) -> Option<LogRatio> {
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| a.ln() - b.ln()).collect();
    let mean = TrimmedMean::of(&logs)?;
    Some(LogRatio {
        log: mean.value,
        error: mean.error,
        floor: 0.0,
        freedom: mean.freedom,
        pairs: pairs.len(),
    })
}

/// [`log_ratio`] from slices of servers that started once each: see [`BETWEEN_STARTS`].
pub fn log_ratio_of_slices(pairs: &[(f64, f64)]) -> Option<LogRatio> {
    log_ratio(pairs).map(|ratio| ratio.of_single_starts(2))
}

/// The ratio a/b of values that were not measured together: Yuen's test for two samples, with the degrees of
/// freedom of Welch.
///
/// `None` if either side is insufficient: see [`log_ratio`].
pub fn unpaired_log_ratio(a: &[f64], b: &[f64]) -> Option<LogRatio> {
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let (left, right) = (TrimmedMean::of(&logs(a))?, TrimmedMean::of(&logs(b))?);
    let (of_left, of_right) = (left.error.powi(2), right.error.powi(2));
    let both = of_left + of_right;
    let freedom = if both > 0.0 {
        both.powi(2) / (of_left.powi(2) / left.freedom + of_right.powi(2) / right.freedom)
    } else {
        left.freedom.min(right.freedom)
    };
    Some(LogRatio {
        log: left.value - right.value,
        error: both.sqrt(),
        floor: 0.0,
        freedom,
        pairs: a.len().min(b.len()),
    })
}

/// The ratio a/b from any number of pairs, without an interval. Ignores pairs with a zero.
pub fn rough_ratio(pairs: &[(f64, f64)]) -> Option<f64> {
    let mut logs: Vec<f64> = pairs
        .iter()
        .map(|(a, b)| a.ln() - b.ln())
        .filter(|log| log.is_finite())
        .collect();
    logs.sort_unstable_by(f64::total_cmp);
    let trimmed = (TRIMMED * logs.len() as f64) as usize;
    let kept = &logs[trimmed..logs.len() - trimmed];
    let ratio = (kept.iter().sum::<f64>() / kept.len() as f64).exp();
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

impl LogRatio {
    /// Adds the error of `sides` servers that started only once: see [`BETWEEN_STARTS`], which is of two. The values
    /// of a server that started for each of them have that error already.
    pub(crate) fn of_single_starts(self, sides: u32) -> Self {
        let floor = BETWEEN_STARTS * (f64::from(sides) / 2.0).sqrt();
        Self {
            error: self.error.hypot(floor),
            floor,
            ..self
        }
    }

    pub fn ratio(&self) -> f64 {
        self.log.exp()
    }

    /// The ratio's two-sided interval at `level`, such as 0.95.
    pub fn interval(&self, level: f64) -> Interval {
        let half = self.quantile(f64::midpoint(1.0, level)) * self.error;
        Interval {
            estimate: self.ratio(),
            low: (self.log - half).exp(),
            high: (self.log + half).exp(),
        }
    }

    /// Half the width of the logarithm's 95 % interval: 0.01 is ±1 %.
    pub fn half_width(&self) -> f64 {
        self.quantile(f64::midpoint(1.0, LEVEL)) * self.error
    }

    /// The two-sided p-value of a ratio of 1.
    pub fn p_value(&self) -> f64 {
        self.p_beyond(0.0)
    }

    /// The two-sided p-value of a ratio that differs from 1 by at most the share `least`.
    pub fn p_beyond(&self, least: f64) -> f64 {
        (2.0 * self.above(self.log.abs() - least.ln_1p())).min(1.0)
    }

    /// The p-value of a ratio that differs from 1 by the share `margin` or more: two one-sided tests. If it
    /// is small, the servers are equivalent. (D. J. Schuirmann, "A comparison of the two one-sided tests
    /// procedure and the power approach", Journal of Pharmacokinetics and Biopharmaceutics 15 (1987))
    pub fn p_equivalent(&self, margin: f64) -> f64 {
        self.above(margin.ln_1p() - self.log.abs())
    }

    /// The one-sided p-value of "the ratio is at least `ratio`": if it is small, the ratio is below.
    pub fn p_below(&self, ratio: f64) -> f64 {
        self.above(ratio.ln() - self.log)
    }

    /// The one-sided p-value of "the ratio is at most `ratio`".
    pub fn p_above(&self, ratio: f64) -> f64 {
        self.above(self.log - ratio.ln())
    }

    /// Whether there are enough pairs for an interval with this half width (0.01 is ±1 %).
    ///
    /// The sequential rule of Y. S. Chow and H. Robbins, "On the asymptotic theory of fixed-width sequential
    /// confidence intervals for the mean", Annals of Mathematical Statistics 36 (1965): stop at the first number of
    /// pairs with an interval that is narrow enough. It depends only on the spread, never on the ratio itself, so
    /// stopping does not favour a difference.
    pub fn is_enough(&self, half_width: f64) -> bool {
        let early = 1.0 + EARLY / self.pairs as f64;
        self.pairs >= FEWEST_TO_STOP && self.half_width() * early <= half_width
    }

    /// The smallest difference that the same number of pairs with the same spread detects in 80 of 100 runs, as a
    /// share: 0.03 is 3 %.
    pub fn smallest_difference(&self) -> f64 {
        (self.quantiles_of_power() * self.error).exp_m1()
    }

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Number of pairs needed to detect a difference of this share (0.03 is 3 %) in 80 of 100 runs, with the same
    /// spread; `None` if no number of pairs is enough.
    pub fn rounds_needed(&self, difference: f64) -> Option<usize> {
        let floor = self.floor.powi(2);
        let wanted = (difference.ln_1p() / self.quantiles_of_power()).powi(2) - floor;
        // The part above the floor shrinks with the root of the number of pairs.
        let pairs = (self.pairs as f64 * (self.error.powi(2) - floor) / wanted).ceil();
        (wanted > 0.0).then(|| (pairs as usize).max(FEWEST_PAIRS))
    }

    fn quantiles_of_power(&self) -> f64 {
        self.quantile(f64::midpoint(1.0, LEVEL)) + self.quantile(POWER)
    }

    fn quantile(&self, share: f64) -> f64 {
        self.student().inverse_cdf(share)
    }

    /// The probability that an estimate exceeds the true value by more than `difference`.
    fn above(&self, difference: f64) -> f64 {
        if self.error > 0.0 {
            self.student().sf(difference / self.error)
        } else if difference > 0.0 {
            0.0
        } else {
            0.5
        }
    }

    fn student(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.freedom).expect("degrees of freedom are positive")
    }
}

/// p-values adjusted for the number of comparisons (S. Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 6 (1979)). If all below 0.05 count as differences, the probability
/// that any of them is wrong is at most 5 %.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut greatest = 0.0_f64;
    for (place, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - place) as f64;
        greatest = greatest.max(p_values[index] * left).min(1.0);
        adjusted[index] = greatest;
    }
    adjusted
}

/// A 20 % trimmed mean.
struct TrimmedMean {
    value: f64,
    error: f64,
    freedom: f64,
}

impl TrimmedMean {
    /// The trimmed mean of values in the order of measurement. Trimmed values may be infinite.
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count < FEWEST_PAIRS || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        let trimmed = (TRIMMED * count as f64) as usize;
        let left = count - 2 * trimmed;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let kept = &sorted[trimmed..count - trimmed];
        let (least, greatest) = (kept[0], kept[left - 1]);
        if !least.is_finite() || !greatest.is_finite() {
            return None;
        }
        let winsorised: Vec<f64> = values.iter().map(|v| v.clamp(least, greatest)).collect();
        let middle = winsorised.iter().sum::<f64>() / count as f64;
        let squares: f64 = winsorised.iter().map(|v| (v - middle).powi(2)).sum();
        let variance = squares / (left as f64 * (left as f64 - 1.0));
        Some(Self {
            value: kept.iter().sum::<f64>() / left as f64,
            error: (variance * inflation(&winsorised, middle, squares)).sqrt()
                * (1.0 + FEW / count as f64),
            freedom: left as f64 - 1.0,
        })
    }
}

/// The factor by which correlation between pairs inflates the variance of their mean: between neighbours, or over many
/// pairs if servers drift slowly. Returns the larger one.
fn inflation(values: &[f64], middle: f64, squares: f64) -> f64 {
    if values.len() < FEWEST_FOR_CORRELATION || squares <= 0.0 {
        return 1.0;
    }
    let count = values.len() as f64;
    // Corrected for the bias of -(1 + 3r)/n (F. H. C. Marriott and J. A. Pope, "Bias in the estimation of
    // autocorrelations", Biometrika 41 (1954)).
    let correlation = |lag: usize| {
        let products = values
            .iter()
            .zip(&values[lag..])
            .map(|(one, other)| (one - middle) * (other - middle));
        let raw = products.sum::<f64>() / squares;
        raw + (1.0 + 3.0 * raw) / count
    };
    neighbours(correlation(1), count).max(drift(correlation, count))
}

/// (1 + r)/(1 - r) for a first-order autoregression. An r within its own standard error counts as 0.
fn neighbours(correlation: f64, count: f64) -> f64 {
    if correlation < 1.0 / count.sqrt() {
        return 1.0;
    }
    let correlation = correlation.min(GREATEST_CORRELATION);
    (1.0 + correlation) / (1.0 - correlation)
}

/// 1 + 2 Σ (1 - k/(L + 1)) r_k over the first L = √n lags (M. S. Bartlett, "Periodogram analysis and continuous
/// spectra", Biometrika 37 (1950)). A sum within its own standard error counts as 0.
fn drift(correlation: impl Fn(usize) -> f64, count: f64) -> f64 {
    let lags = count.sqrt() as usize;
    let weight = |lag: usize| 1.0 - lag as f64 / (lags as f64 + 1.0);
    let sum: f64 = (1..=lags).map(|lag| weight(lag) * correlation(lag)).sum();
    let squares: f64 = (1..=lags).map(|lag| weight(lag).powi(2)).sum();
    if sum < (squares / count).sqrt() {
        return 1.0;
    }
    1.0 + 2.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(ratios: &[f64]) -> Vec<(f64, f64)> {
        ratios.iter().map(|ratio| (5.0 * ratio, 5.0)).collect()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    /// The ten logarithms 1 to 10: two are trimmed at each end, and the mean of 3 to 8 is 5.5. Winsorised, their
    /// squares sum to 2 · (3 · 2.5² + 1.5² + 0.5²) = 42.5, over 6 · 5.
    #[test]
    fn a_case_worked_by_hand() {
        let ratios: Vec<f64> = (1..=10).map(|log| f64::from(log).exp()).collect();
        let found = log_ratio(&pairs(&ratios)).unwrap();
        assert!(close(found.log, 5.5) && close(found.freedom, 5.0));
        assert!(
            close(found.error, (42.5_f64 / 30.0).sqrt() * 1.035),
            "{found:?}"
        );
        // The 97.5 % point of Student's t with 5 degrees of freedom is 2.570582.
        let half = found.interval(0.95).high.ln() - 5.5;
        assert!((half - 2.570_582 * found.error).abs() < 1e-5);
        assert!((found.half_width() - half).abs() < 1e-9);
    }

    #[test]
    fn few_pairs_have_no_interval() {
        assert_eq!(log_ratio(&pairs(&[1.1; 5])), None);
        assert!(log_ratio(&pairs(&[1.1; 6])).is_some());
        assert_eq!(unpaired_log_ratio(&[1.0; 6], &[1.0; 5]), None);
    }

    #[test]
    fn zeros_are_outliers_and_nan_is_rejected() {
        let mut some = pairs(&[1.0, 1.1, 1.2, 1.0, 1.1, 1.2]);
        let without = log_ratio(&some).unwrap();
        some[0].0 = 0.0;
        assert!(log_ratio(&some).unwrap().log >= without.log);
        some[3].0 = 0.0;
        assert_eq!(log_ratio(&some), None, "more than are trimmed");
        some[3].0 = f64::NAN;
        assert_eq!(log_ratio(&some), None);
        some[3].0 = -1.0;
        assert_eq!(log_ratio(&some), None);
    }

    #[test]
    fn values_without_spread_are_certain() {
        let found = log_ratio(&pairs(&[1.5; 8])).unwrap();
        assert!(close(found.ratio(), 1.5) && close(found.p_value(), 0.0));
        assert!(
            close(found.p_equivalent(0.02), 1.0 - 0.0),
            "{}",
            found.p_equivalent(0.02)
        );
        let same = log_ratio(&pairs(&[1.0; 8])).unwrap();
        assert!(close(same.p_value(), 1.0) && close(same.p_equivalent(0.02), 0.0));
    }

    #[test]
    fn a_drift_common_to_both_cancels() {
        let b = [100.0, 120.0, 140.0, 160.0, 180.0, 200.0];
        let drifting: Vec<(f64, f64)> = b.iter().map(|b| (b * 1.1, *b)).collect();
        let paired = log_ratio(&drifting).unwrap().interval(0.95);
        assert!((paired.low - 1.1).abs() < 1e-9 && (paired.high - 1.1).abs() < 1e-9);
        let a: Vec<f64> = b.iter().map(|b| b * 1.1).collect();
        assert!(
            unpaired_log_ratio(&a, &b)
                .unwrap()
                .interval(0.95)
                .holds(1.0)
        );
    }

    #[test]
    fn tests_and_interval_agree() {
        let found = log_ratio(&pairs(&[1.01, 1.02, 1.04, 1.0, 1.03, 1.02, 0.99, 1.02])).unwrap();
        let p = found.p_value();
        assert!(
            found.interval(1.0 - p).holds(1.0 + 1e-12) || found.interval(1.0 - p).low < 1.0 + 1e-9
        );
        assert!(!found.interval(1.0 - p - 1e-6).holds(1.0));
        // Two one-sided tests at 5 % are the 90 % interval within the margin.
        let wide = found.interval(0.9).high - 1.0;
        assert!((found.p_equivalent(wide) - 0.05).abs() < 1e-6);
    }

    #[test]
    fn the_number_of_rounds_needed_for_a_difference() {
        let found = LogRatio {
            log: 0.0,
            error: 0.01,
            floor: 0.0,
            freedom: 59.0,
            pairs: 100,
        };
        let seen = found.smallest_difference();
        // 2.001 + 0.848 standard errors.
        assert!((seen - 0.0289).abs() < 2e-4, "{seen}");
        assert_eq!(found.rounds_needed(seen), Some(100));
        let half = found.rounds_needed(seen.ln_1p() / 2.0_f64);
        let four_times = half.is_some_and(|rounds| rounds.abs_diff(400) < 12);
        assert!(
            four_times,
            "half the difference takes four times the rounds"
        );
        let of_one_start = LogRatio {
            floor: 0.005,
            ..found
        };
        assert_eq!(of_one_start.rounds_needed(seen), Some(100));
        assert!(of_one_start.rounds_needed(0.02) > found.rounds_needed(0.02));
        assert_eq!(of_one_start.rounds_needed(0.01), None);
    }

    #[test]
    fn narrow_intervals_stop_but_never_early() {
        let narrow = LogRatio {
            log: 0.3,
            error: 0.001,
            floor: 0.0,
            freedom: 11.0,
            pairs: 20,
        };
        assert!(!narrow.is_enough(0.01));
        assert!(
            LogRatio {
                pairs: 40,
                ..narrow
            }
            .is_enough(0.01)
        );
        assert!(
            !LogRatio {
                pairs: 40,
                error: 0.1,
                ..narrow
            }
            .is_enough(0.01)
        );
    }

    /// The example of Holm's procedure in R's `p.adjust`.
    #[test]
    fn holm_as_in_r() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!(close(*found, wanted), "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
        assert!(holm(&[0.9, 0.8]).iter().all(|p| *p <= 1.0));
    }

    proptest! {
        #[test]
        fn swapping_servers_inverts_the_ratio(ratios in prop::collection::vec(0.1..10.0_f64, 6..40)) {
            let there = log_ratio(&pairs(&ratios)).unwrap();
            let turned: Vec<(f64, f64)> = pairs(&ratios).into_iter().map(|(a, b)| (b, a)).collect();
            let back = log_ratio(&turned).unwrap();
            prop_assert!((there.log + back.log).abs() < 1e-9);
            prop_assert!((there.error - back.error).abs() < 1e-9);
            prop_assert!(there.interval(0.95).holds(there.ratio()));
            let p = there.p_value();
            prop_assert!((0.0..=1.0).contains(&p));
        }
    }
}
