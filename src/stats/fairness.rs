//! How evenly a server divides its service among its clients.
//!
//! Jain's index (Jain, Chiu & Hawe, "A Quantitative Measure of Fairness and Discrimination",
//! DEC TR-301, 1984) is (Σx)² / (n Σx²). It is 1 when all get the same and k/n when k of n share
//! all evenly. With many clients it hardly moves when a few get nothing, so the slowest tenth's
//! share and the number of starved clients stand beside it.

use serde::Serialize;

/// A client with less than this share of the mean is starved.
const STARVED_BELOW: f64 = 0.1;

/// How evenly clients were served.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fairness {
    /// Mean count of a client.
    pub mean: f64,
    /// Least count of a client.
    pub min: u64,
    /// Greatest count of a client.
    pub max: u64,
    /// Jain's index: 1 all alike, 1/n one client gets all.
    pub jain: f64,
    /// Share of the total that the slowest tenth of clients got; 0.1 when all are alike.
    pub slowest_decile_share: f64,
    /// Clients with fewer than a tenth of the mean.
    pub starved: u32,
}

/// Fairness of `counts`, one a client; `None` without clients, or when nobody got anything.
///
/// A tenth of a number of clients that is not a multiple of ten takes the fitting fraction of the
/// client at its edge, so that equal counts give 0.1 for every number of clients.
pub fn fairness(counts: &[u64]) -> Option<Fairness> {
    let total: f64 = counts.iter().map(|count| *count as f64).sum();
    if total <= 0.0 {
        return None;
    }
    let number = counts.len() as f64;
    let mean = total / number;
    let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    Some(Fairness {
        mean,
        min: *sorted.first()?,
        max: *sorted.last()?,
        jain: total * total / (number * squares),
        slowest_decile_share: slowest_decile(&sorted) / total,
        starved: counts
            .iter()
            .filter(|count| (**count as f64) < STARVED_BELOW * mean)
            .count() as u32,
    })
}

/// What the slowest tenth got, from counts in rising order.
fn slowest_decile(sorted: &[u64]) -> f64 {
    let (whole, part) = (sorted.len() / 10, (sorted.len() % 10) as f64 / 10.0);
    let full: f64 = sorted[..whole].iter().map(|count| *count as f64).sum();
    full + part * sorted.get(whole).map_or(0.0, |count| *count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn equal_counts_are_perfectly_fair() {
        let fair = fairness(&[7; 13]).unwrap();
        assert!(close(fair.jain, 1.0));
        assert!(close(fair.slowest_decile_share, 0.1));
        assert_eq!((fair.min, fair.max, fair.starved), (7, 7, 0));
    }

    #[test]
    fn jain_is_the_share_of_clients_served_when_those_are_served_alike() {
        // TR-301, section 3: "if k of n users get equal shares and the rest nothing, it is k/n".
        let mut counts = vec![20; 20];
        counts.resize(100, 0);
        let fair = fairness(&counts).unwrap();
        assert!(close(fair.jain, 0.2));
        assert_eq!(fair.starved, 80);
        assert!(close(fair.slowest_decile_share, 0.0));
    }

    #[test]
    fn a_case_worked_by_hand() {
        // (1+3+5+11)² / (4 · (1+9+25+121)) = 400 / 624; a tenth of 4 clients is 0.4 of the first.
        let fair = fairness(&[5, 1, 11, 3]).unwrap();
        assert!(close(fair.jain, 400.0 / 624.0));
        assert!(close(fair.mean, 5.0));
        assert!(close(fair.slowest_decile_share, 0.4 / 20.0));
        assert_eq!((fair.min, fair.max, fair.starved), (1, 11, 0));
    }

    #[test]
    fn nobody_and_nothing_have_no_fairness() {
        assert_eq!(fairness(&[]), None);
        assert_eq!(fairness(&[0, 0]), None);
    }

    proptest! {
        #[test]
        fn jain_lies_between_one_nth_and_one(counts in prop::collection::vec(0..1_000_000_u64, 1..200)) {
            if let Some(fair) = fairness(&counts) {
                prop_assert!(fair.jain <= 1.0 + 1e-9);
                prop_assert!(fair.jain >= 1.0 / counts.len() as f64 - 1e-9);
                prop_assert!(fair.slowest_decile_share <= 0.1 + 1e-9);
            }
        }

        #[test]
        fn scale_does_not_matter(counts in prop::collection::vec(0..1_000_000_u64, 1..200), factor in 1..1000_u64) {
            let scaled: Vec<u64> = counts.iter().map(|count| count * factor).collect();
            match (fairness(&counts), fairness(&scaled)) {
                (Some(one), Some(other)) => {
                    prop_assert!((one.jain - other.jain).abs() < 1e-9);
                    prop_assert!((one.slowest_decile_share - other.slowest_decile_share).abs() < 1e-9);
                }
                (one, other) => prop_assert!(one.is_none() && other.is_none()),
            }
        }
    }
}
