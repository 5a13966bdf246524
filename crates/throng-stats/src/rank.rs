//! Spearman's rank correlation.
//!
//! C. Spearman, "The proof and measurement of association between two things", American Journal of Psychology 15
//! (1904). It is Pearson's correlation of the ranks; equal values share the middle rank. It does not assume a straight
//! line, and a single extreme value does not dominate it.

use super::interval::Interval;

/// Fewest pairs for an interval: with fewer, the error is unreliable.
const FEWEST_FOR_INTERVAL: usize = 10;
/// Two-sided 5 % point of the normal distribution.
const NORMAL_95: f64 = 1.959_964;

/// A rank correlation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankCorrelation {
    /// 1 if one always rises with the other, -1 if it always falls, near 0 if they are unrelated.
    pub coefficient: f64,
    /// Its 95 % interval, with 10 pairs or more, assuming that the pairs are independent.
    pub interval: Option<Interval>,
}

/// The rank correlation of pairs; `None` with fewer than 3, or if all values of one side are equal.
///
/// The interval is Fisher's, with the variance (1 + r²/2)/(n - 3) of Bonett and Wright, "Sample size requirements for
/// estimating Pearson, Kendall and Spearman correlations", Psychometrika 65 (2000).
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<RankCorrelation> {
    if pairs.len() < 3 || !pairs.iter().all(|(x, y)| x.is_finite() && y.is_finite()) {
        return None;
    }
    let x = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let y = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let middle = (pairs.len() + 1) as f64 / 2.0;
    let (mut both, mut of_x, mut of_y) = (0.0, 0.0, 0.0);
    for (rank_x, rank_y) in x.iter().zip(&y) {
        let (far_x, far_y) = (rank_x - middle, rank_y - middle);
        both += far_x * far_y;
        of_x += far_x * far_x;
        of_y += far_y * far_y;
    }
    if of_x <= 0.0 || of_y <= 0.0 {
        return None;
    }
    let coefficient = (both / (of_x * of_y).sqrt()).clamp(-1.0, 1.0);
    Some(RankCorrelation {
        coefficient,
        interval: (pairs.len() >= FEWEST_FOR_INTERVAL).then(|| interval(coefficient, pairs.len())),
    })
}

fn interval(coefficient: f64, pairs: usize) -> Interval {
    let error = ((1.0 + coefficient * coefficient / 2.0) / (pairs as f64 - 3.0)).sqrt();
    // A perfect correlation ends at 1 or -1.
    let middle = coefficient.clamp(-1.0 + 1e-12, 1.0 - 1e-12).atanh();
    Interval {
        estimate: coefficient,
        low: (middle - NORMAL_95 * error).tanh().min(coefficient),
        high: (middle + NORMAL_95 * error).tanh().max(coefficient),
    }
}

/// The rank of each value, from 1; equal values have their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let alike = order[from..]
            .iter()
            .take_while(|place| values[**place].total_cmp(&values[order[from]]).is_eq())
            .count();
        // Ranks of the run of equal values.
        let rank = f64::midpoint((from + 1) as f64, (from + alike) as f64);
        for place in &order[from..from + alike] {
            ranks[*place] = rank;
        }
        from += alike;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(x: &[f64], y: &[f64]) -> Option<RankCorrelation> {
        let pairs: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
        rank_correlation(&pairs)
    }

    /// Hollander and Wolfe, "Nonparametric Statistical Methods" (1973), pages 185 to 194: the lightness of canned tuna,
    /// and its rating by a panel. R, which has the data in the examples of `cor.test`, gives 0.6.
    #[test]
    fn the_tuna_of_hollander_and_wolfe() {
        let lightness = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1];
        let liked = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8];
        let found = of(&lightness, &liked).unwrap();
        assert!((found.coefficient - 0.6).abs() < 1e-12, "{found:?}");
        assert_eq!(found.interval, None, "nine pairs");
    }

    /// Intelligence and hours of television for ten people, a textbook example: 1 - 6·194/(10·99) = -29/165.
    #[test]
    fn a_case_without_equal_values() {
        let x = [
            86.0, 97.0, 99.0, 100.0, 101.0, 103.0, 106.0, 110.0, 112.0, 113.0,
        ];
        let y = [2.0, 20.0, 28.0, 27.0, 50.0, 29.0, 7.0, 17.0, 6.0, 12.0];
        let found = of(&x, &y).unwrap();
        assert!(
            (found.coefficient + 29.0 / 165.0).abs() < 1e-12,
            "{found:?}"
        );
        // atanh(-0.17576) ± 1.96 · sqrt(1.015446/7)
        let interval = found.interval.unwrap();
        assert!((interval.low + 0.7278).abs() < 1e-4, "{interval:?}");
        assert!((interval.high - 0.5145).abs() < 1e-4, "{interval:?}");
        assert!(interval.holds(0.0));
    }

    #[test]
    fn equal_values_share_the_middle_rank() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 0.0]), [3.5, 2.0, 3.5, 1.0]);
        // Ranks 1 2.5 2.5 4 and 1 2 3 4: 4.5/sqrt(4.5 · 5).
        let found = of(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((found.coefficient - 4.5 / 22.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn equal_values_have_no_correlation() {
        assert_eq!(of(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(of(&[1.0; 20], &[3.0; 20]), None);
        assert_eq!(of(&[1.0, 2.0, f64::NAN], &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn an_extreme_value_does_not_dominate_and_a_falling_order_is_minus_one() {
        let x: Vec<f64> = (0..50).map(f64::from).collect();
        let mut y: Vec<f64> = x.iter().map(|x| -x).collect();
        let found = of(&x, &y).unwrap();
        assert!((found.coefficient + 1.0).abs() < 1e-12);
        let interval = found.interval.unwrap();
        assert!(interval.low >= -1.0 && interval.holds(found.coefficient));
        y[49] = 1e9;
        assert!(of(&x, &y).unwrap().coefficient < -0.85);
    }

    /// Of 400 intervals of unrelated values, about 20 do not include 0.
    #[test]
    fn intervals_have_their_nominal_coverage() {
        let mut random = fastrand::Rng::with_seed(3);
        let wrong = (0..400)
            .filter(|_| {
                let pairs: Vec<(f64, f64)> =
                    (0..100).map(|_| (random.f64(), random.f64())).collect();
                let interval = rank_correlation(&pairs).unwrap().interval;
                !interval.unwrap().holds(0.0)
            })
            .count();
        assert!((6..=40).contains(&wrong), "{wrong} of 400");
    }

    proptest! {
        #[test]
        fn only_the_order_matters(values in prop::collection::vec((-1e3..1e3_f64, -1e3..1e3_f64), 3..60)) {
            let stretched: Vec<(f64, f64)> = values.iter().map(|(x, y)| (x.powi(3), 2.0 * y + 1.0)).collect();
            let turned: Vec<(f64, f64)> = values.iter().map(|(x, y)| (-x, *y)).collect();
            let coefficient = |pairs: &[(f64, f64)]| rank_correlation(pairs).map(|found| found.coefficient);
            if let (Some(one), Some(other), Some(less)) = (coefficient(&values), coefficient(&stretched), coefficient(&turned)) {
                prop_assert!((one - other).abs() < 1e-9);
                prop_assert!((one + less).abs() < 1e-9);
                prop_assert!(one.abs() <= 1.0);
            }
        }
    }
}
