//! Medians over trials, with 95 % intervals.
//!
//! The unit is the trial, never the request: requests of one trial share one server process, one memory layout and one
//! stretch of time on the machine. So they are not independent, and an interval over them is far too narrow (Hoefler &
//! Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 2015, rules 5 to 8).
//!
//! With 6 or more values, the ends of a median's interval are two of the values. They are far enough out to cover the
//! true median in 95 % of cases for any distribution (H. A. David and H. N. Nagaraja, "Order Statistics", section
//! 7.1). Fewer values cannot cover 95 %: minimum to maximum cover 50 % with 2, 75 % with 3, 87.5 % with 4 and 93.75 %
//! with 5. They are shown as a range, and never called an interval.

use statrs::distribution::{Binomial, DiscreteCDF};

use serde::Serialize;

/// Fewest trials for a bootstrap: fewer have too few distinct resamples.
pub(super) const ENOUGH_TRIALS: usize = 5;

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
    /// Whether the interval includes `value`; both ends belong to it.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
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

/// The 95 % interval of the median of the population that `values` come from; `None` with fewer than 6 values, or if
/// any value is not finite.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    let estimate = median_in_place(&mut sorted);
    let fair = Binomial::new(0.5, values.len() as u64).expect("one half is a probability");
    // The largest number of values outside each end that has a probability below 2.5 %.
    let rank = fair.inverse_cdf(0.025) as usize;
    let low = *sorted.get(rank.checked_sub(1)?)?;
    Some(Interval {
        estimate,
        low,
        high: sorted[sorted.len() - rank],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    /// Table 7.1 of David and Nagaraja has the same ranks: 1 of 6, 2 of 9, 6 of 20.
    #[test]
    fn ends_are_the_ranks_of_the_textbook() {
        for (count, rank) in [(6, 1), (8, 1), (9, 2), (20, 6), (100, 40)] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let interval = median_interval(&values).unwrap();
            assert!(same(interval.low, f64::from(rank)), "{count}: {interval:?}");
            assert!(
                same(interval.high, f64::from(count + 1 - rank)),
                "{count}: {interval:?}"
            );
        }
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]), None);
        assert_eq!(median_interval(&[]), None);
    }

    /// The values are skewed, since no distribution is assumed.
    #[test]
    fn intervals_of_medians_cover_95_percent() {
        let mut random = fastrand::Rng::with_seed(5);
        for count in [6, 7, 10, 15, 30] {
            let held = (0..2000)
                .filter(|_| {
                    let values: Vec<f64> = (0..count).map(|_| -random.f64().ln()).collect();
                    median_interval(&values)
                        .unwrap()
                        .holds(std::f64::consts::LN_2)
                })
                .count();
            assert!(held >= 1880, "{count} values: {held} of 2000");
        }
    }

    proptest! {
        #[test]
        fn an_interval_includes_its_estimate(values in prop::collection::vec(0.1..1e6_f64, 6..40)) {
            let interval = median_interval(&values).unwrap();
            prop_assert!(interval.holds(interval.estimate));
        }
    }
}
