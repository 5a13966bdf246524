//! Differences of several values of two servers at once, from paired measurements.
//!
//! Their estimates are means, so that the differences of parts add up to that of the whole. Their intervals hold
//! together: the probability that any of them misses its true value is at most one minus the level (Bonferroni).

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Interval;
use crate::paired::FEWEST_PAIRS;

/// The mean of b - a over pairs (a, b), for each value, with intervals that hold together at `level`.
///
/// `None` for a value with fewer than [`FEWEST_PAIRS`] pairs, or with one that is not finite.
pub fn differences(values: &[Vec<(f64, f64)>], level: f64) -> Vec<Option<Interval>> {
    let each = (1.0 - level) / values.len().max(1) as f64;
    values
        .iter()
        .map(|pairs| difference(pairs, 1.0 - each))
        .collect()
}

fn difference(pairs: &[(f64, f64)], level: f64) -> Option<Interval> {
    let apart: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    if apart.len() < FEWEST_PAIRS || !apart.iter().all(|one| one.is_finite()) {
        return None;
    }
    let count = apart.len() as f64;
    let mean = apart.iter().sum::<f64>() / count;
    let squares: f64 = apart.iter().map(|one| (one - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let student = StudentsT::new(0.0, 1.0, count - 1.0).expect("degrees of freedom are positive");
    let half = student.inverse_cdf(f64::midpoint(1.0, level)) * error;
    Some(Interval {
        estimate: mean,
        low: mean - half,
        high: mean + half,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Student's own paper ("The probable error of a mean", Biometrika 6 (1908)): the additional hours
    /// of sleep by two drugs. t = 4.0621 with 9 degrees of freedom.
    #[test]
    fn the_interval_is_students() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = first.into_iter().zip(second).collect();
        let found = differences(std::slice::from_ref(&pairs), 0.95)[0].unwrap();
        assert!((found.estimate - 1.58).abs() < 1e-9);
        assert!((found.low - 0.700_114).abs() < 1e-5 && (found.high - 2.459_886).abs() < 1e-5);
        let of_two = differences(&[pairs.clone(), pairs], 0.95)[0].unwrap();
        let single = found.high - found.low;
        assert!(
            of_two.high - of_two.low > 1.1 * single,
            "wider, since there are two"
        );
    }

    #[test]
    fn too_few_pairs_have_no_interval() {
        let few = vec![(1.0, 2.0); FEWEST_PAIRS - 1];
        let odd = vec![(1.0, f64::NAN); FEWEST_PAIRS];
        assert_eq!(differences(&[few, odd], 0.95), [None, None]);
        assert!(differences(&[], 0.95).is_empty());
    }
}
