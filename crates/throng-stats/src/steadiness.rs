//! Whether a rate drifted while it was measured.
//!
//! A window is cut into equal slices. Pearson's correlation of their counts with time says how
//! much of the movement is a trend (neper flags runs the same way); the change from the first to
//! the last third says whether the trend matters. Both are needed: a rate that creeps up by 0.1 %
//! without noise has correlation 1, and noise alone makes the thirds differ.

use serde::Serialize;

/// Fewest slices to judge. With 8, chance alone passes |r| > 0.8 in about 2 % of windows (the
/// two-sided 5 % point for 6 degrees of freedom is 0.707, the 1 % point 0.834).
const FEWEST_SLICES: usize = 8;

/// A correlation beyond this is a trend.
const STRONG_CORRELATION: f64 = 0.8;

/// A trend that changes the rate by more than this, relative to the first third, matters.
const GREAT_CHANGE: f64 = 0.1;

/// How a rate moved over its window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Pearson's correlation of count with time, -1 to 1; 0 when all slices are alike.
    pub correlation: f64,
    /// From the first to the last third of the slices, relative to the first: 0.1 is 10 % more.
    pub change: f64,
}

/// The trend over equal slices in time order; `None` with fewer than 3 slices, or with nothing in
/// the first third.
pub fn trend(slices: &[u64]) -> Option<Trend> {
    let third = slices.len() / 3;
    if third == 0 {
        return None;
    }
    let sum = |part: &[u64]| part.iter().map(|count| *count as f64).sum::<f64>();
    let (first, last) = (sum(&slices[..third]), sum(&slices[slices.len() - third..]));
    if first <= 0.0 {
        return None;
    }
    Some(Trend {
        correlation: correlation_with_time(slices, sum(slices) / slices.len() as f64),
        change: (last - first) / first,
    })
}

/// Whether a window drifted too much to be called steady: |correlation| above 0.8 and a change of
/// more than 10 %, over at least 8 slices.
pub fn is_unsteady(slices: &[u64]) -> bool {
    slices.len() >= FEWEST_SLICES
        && trend(slices).is_some_and(|trend| {
            trend.correlation.abs() > STRONG_CORRELATION && trend.change.abs() > GREAT_CHANGE
        })
}

fn correlation_with_time(slices: &[u64], mean: f64) -> f64 {
    let middle = (slices.len() - 1) as f64 / 2.0;
    let (mut both, mut times, mut counts) = (0.0, 0.0, 0.0);
    for (place, count) in slices.iter().enumerate() {
        let (time, count) = (place as f64 - middle, *count as f64 - mean);
        both += time * count;
        times += time * time;
        counts += count * count;
    }
    if counts <= 0.0 {
        0.0
    } else {
        both / (times * counts).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_rise_has_correlation_one() {
        let rise: Vec<u64> = (100..109).collect();
        let trend = trend(&rise).unwrap();
        assert!((trend.correlation - 1.0).abs() < 1e-12);
        // 106+107+108 against 100+101+102
        assert!((trend.change - 18.0 / 303.0).abs() < 1e-12);
        assert!(!is_unsteady(&rise), "6 % is a trend that does not matter");
    }

    #[test]
    fn correlation_of_a_case_worked_by_hand() {
        // times -1 0 1, counts 2 1 6 around 3: (1 + 3) / sqrt(2 · 14)
        let trend = trend(&[2, 1, 6]).unwrap();
        assert!((trend.correlation - 4.0 / 28.0_f64.sqrt()).abs() < 1e-12);
        assert!((trend.change - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_decline_of_a_third_is_unsteady() {
        assert!(is_unsteady(&[100, 96, 91, 88, 82, 79, 75, 70, 66]));
    }

    #[test]
    fn noise_without_trend_and_few_slices_are_not_flagged() {
        assert!(!is_unsteady(&[100, 80, 120, 90, 110, 85, 115, 100]));
        assert!(!is_unsteady(&[100, 80, 60, 40]));
    }

    #[test]
    fn equal_slices_have_no_correlation_and_nothing_no_trend() {
        assert_eq!(
            trend(&[5; 9]),
            Some(Trend {
                correlation: 0.0,
                change: 0.0
            })
        );
        assert_eq!(trend(&[]), None);
        assert_eq!(trend(&[0; 9]), None);
    }
}
