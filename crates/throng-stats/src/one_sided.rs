//! One-sided p-values of whether one server's value is below a multiple of another's.
//!
//! With 6 or more pairs, they come from the ratio of the two servers (see [`crate::paired`]). The spread of 3 to 5
//! trials is unknown, so the exact permutation test decides (R. A. Fisher, "The Design of Experiments", 1935): of all
//! ways to divide `n + m` trials between two servers, only one gives the `n` lowest to the first. The p-value is small
//! only if the trials do not overlap. Fewer than 3 trials are inconclusive.

use crate::paired::{LogRatio, log_ratio};
use crate::sample::Sample;

/// Fewest trials that can be conclusive.
pub const FEWEST_TRIALS: usize = 3;

/// A sample, and what it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    ratio: Option<LogRatio>,
    own: Vec<f64>,
    other: Other,
}

#[derive(Debug, Clone, PartialEq)]
enum Other {
    Trials(Vec<f64>),
    Number(f64),
}

impl Against {
    /// Compares with another sample: either of the same run, so that rounds form pairs, or of another run.
    pub fn sample(one: &Sample, other: &Sample, is_same_run: bool) -> Self {
        let ratio = if is_same_run {
            one.ratio(other)
        } else {
            one.unpaired_ratio(other)
        };
        Self {
            ratio,
            own: values(one),
            other: Other::Trials(values(other)),
        }
    }

    /// Compares with a number.
    pub fn number(one: &Sample, number: f64) -> Self {
        let own = values(one);
        let pairs: Vec<(f64, f64)> = own.iter().map(|value| (*value, number)).collect();
        let has_logs = number > 0.0 && own.iter().all(|value| *value > 0.0);
        Self {
            ratio: has_logs.then(|| log_ratio(&pairs)).flatten(),
            own,
            other: Other::Number(number),
        }
    }

    /// The ratio, if there are at least 6 pairs.
    pub fn ratio(&self) -> Option<LogRatio> {
        self.ratio
    }

    /// Number of trials; if both sides have trials, the smaller number.
    pub fn trials(&self) -> usize {
        match &self.other {
            Other::Trials(other) => self.own.len().min(other.len()),
            Other::Number(_) => self.own.len(),
        }
    }

    /// The p-value of "the ratio is at least `factor`": small if the first is below `factor` times the second.
    pub fn p_below(&self, factor: f64) -> f64 {
        let alike = |own: f64, other: f64| factor > 1.0 && are_zero(own, other);
        let is_below = |own, other| own < other || alike(own, other);
        self.p(factor, LogRatio::p_below, is_below)
    }

    /// The p-value of "the ratio is at most `factor`": small if the first is above `factor` times the second.
    pub fn p_above(&self, factor: f64) -> f64 {
        let alike = |own: f64, other: f64| factor < 1.0 && are_zero(own, other);
        let is_above = |own, other| own > other || alike(own, other);
        self.p(factor, LogRatio::p_above, is_above)
    }

    fn p(
        &self,
        factor: f64,
        by_ratio: fn(&LogRatio, f64) -> f64,
        is_beyond: impl Fn(f64, f64) -> bool,
    ) -> f64 {
        if let Some(ratio) = &self.ratio {
            return by_ratio(ratio, factor);
        }
        if self.trials() < FEWEST_TRIALS {
            return 1.0;
        }
        let all = |other: f64| self.own.iter().all(|own| is_beyond(*own, factor * other));
        let count = self.own.len() as i32;
        match &self.other {
            // The sign test: each trial is on one side with a chance of 1/2.
            Other::Number(number) if all(*number) => 0.5_f64.powi(count),
            Other::Trials(others) if others.iter().all(|other| all(*other)) => {
                let (own, other) = (self.own.len() as u32, others.len() as u32);
                let ways = (1..=own).map(|place| f64::from(other + place) / f64::from(place));
                1.0 / ways.product::<f64>()
            }
            _ => 1.0,
        }
    }
}

/// Two zeros are within any margin of each other.
fn are_zero(own: f64, other: f64) -> bool {
    own.abs().max(other.abs()) <= 0.0
}

fn values(sample: &Sample) -> Vec<f64> {
    let by_round = sample.by_round().into_iter();
    by_round.map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::of_values((0..).zip(values.iter().copied()).collect())
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn few_trials_use_the_exact_permutation_test() {
        let (low, high) = (sample(&[1.0, 1.1, 1.2]), sample(&[2.0, 2.1, 2.2]));
        let against = Against::sample(&low, &high, true);
        assert!(close(against.p_below(1.0), 1.0 / 20.0));
        assert!(close(against.p_above(1.0), 1.0));
        // 1.2 is above half of 2.2.
        assert!(close(against.p_below(0.5), 1.0));
        let five = Against::sample(&sample(&[1.0; 5]), &sample(&[2.0; 5]), true);
        assert!(close(five.p_below(1.0), 1.0 / 252.0));
        let zeros = Against::sample(&sample(&[0.0; 5]), &sample(&[0.0; 5]), true);
        assert!(close(zeros.p_below(1.2), 1.0 / 252.0) && close(zeros.p_above(0.8), 1.0 / 252.0));
        assert!(close(zeros.p_below(1.0), 1.0) && close(zeros.p_above(1.2), 1.0));
        let two = Against::sample(&sample(&[1.0; 2]), &sample(&[2.0; 5]), true);
        assert!(close(two.p_below(1.0), 1.0));
    }

    #[test]
    fn numbers_are_compared_by_ratio_or_by_sign() {
        let seven = sample(&[1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0]);
        assert!(Against::number(&seven, 2.0).p_below(1.0) < 1e-4);
        assert!(Against::number(&seven, 1.0).p_below(1.0) > 0.1);
        let none = sample(&[0.0; 7]);
        assert!(close(
            Against::number(&none, 0.01).p_below(1.0),
            0.5_f64.powi(7)
        ));
        assert!(close(Against::number(&none, 0.01).p_above(1.0), 1.0));
        assert!(close(
            Against::number(&sample(&[1.0; 2]), 2.0).p_below(1.0),
            1.0
        ));
    }

    #[test]
    fn many_trials_use_their_ratio() {
        let one = sample(&[1.0, 1.01, 0.99, 1.0, 1.02, 0.98]);
        let other = sample(&[1.001, 1.0, 1.0, 0.99, 1.01, 1.0]);
        let against = Against::sample(&one, &other, true);
        assert!(against.ratio().is_some());
        assert!(against.p_below(1.05) < 0.01 && against.p_above(1.0 / 1.05) < 0.01);
        assert!(against.p_below(1.0) > 0.1 && against.p_above(1.0) > 0.1);
    }
}
