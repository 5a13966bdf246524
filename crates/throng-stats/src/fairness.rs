//! Fairness: how evenly a server divides its service among its clients.
//!
//! Jain's index (Jain, Chiu & Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC TR-301, 1984) is
//! (Σx)² / (n Σx²). It is 1 if all clients get the same, and k/n if k of n clients share everything evenly. With many
//! clients it hardly changes if a few get nothing, so the slowest tenth's share and the number of starved clients
//! complement it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Clients below this share of the mean are considered starved.
const STARVED_BELOW: f64 = 0.1;

/// Fairness among clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fairness {
    /// Mean count per client.
    pub mean: f64,
    /// Smallest count of any client.
    pub min: u64,
    /// Largest count of any client.
    pub max: u64,
    /// Jain's index: 1 if all counts are equal, 1/n if one client gets everything.
    pub jain: f64,
    /// Share of the total that the slowest tenth of clients got; 0.1 if all counts are equal.
    pub slowest_decile_share: f64,
    /// Number of clients with less than a tenth of the mean.
    pub starved: u32,
}

/// Fairness of `counts`, one per client; `None` without clients, or if all counts are zero.
///
/// If the number of clients is not a multiple of ten, the tenth includes a fraction of the client at its edge, so that
/// equal counts give 0.1 for every number of clients.
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

/// Per-client counts, which can be collected in several places and merged.
///
/// Counts from 2048 on keep their 11 highest bits, so that the size is bounded for any number of clients. Mean,
/// minimum, maximum and Jain's index remain exact. The other values are exact too if there are no such counts. If
/// there are, the share of the slowest tenth has a relative error of at most 1/1024.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    squares: u128,
    least: u64,
    most: u64,
    /// Number of clients and the sum of their counts, by the lowest count of each step.
    steps: BTreeMap<u64, (u64, u64)>,
}

/// Bits kept of each count.
const BITS: u32 = 11;

impl Counts {
    /// Adds a client's count.
    pub fn add(&mut self, count: u64) {
        let below = (u64::BITS - count.leading_zeros()).saturating_sub(BITS);
        let mut one = Self {
            squares: u128::from(count) * u128::from(count),
            least: count,
            most: count,
            steps: BTreeMap::new(),
        };
        one.steps.insert(count >> below << below, (1, count));
        self.merge(&one);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.steps.is_empty() {
            return;
        }
        self.least = if self.steps.is_empty() {
            other.least
        } else {
            self.least.min(other.least)
        };
        self.most = self.most.max(other.most);
        self.squares = self.squares.saturating_add(other.squares);
        for (&step, &(clients, total)) in &other.steps {
            let sum = self.steps.entry(step).or_default();
            sum.0 = sum.0.saturating_add(clients);
            sum.1 = sum.1.saturating_add(total);
        }
    }

    /// Fairness of all clients; `None` without clients, or if all counts are zero.
    pub fn fairness(&self) -> Option<Fairness> {
        let sum = |part: fn(&(u64, u64)) -> u64| {
            let parts = self.steps.values();
            parts.map(|step| u128::from(part(step))).sum::<u128>()
        };
        let (clients, total) = (sum(|step| step.0), sum(|step| step.1) as f64);
        if total <= 0.0 {
            return None;
        }
        let number = clients as f64;
        let mean = total / number;
        let of_one = |&(members, amount): &(u64, u64)| amount as f64 / members as f64;
        let starved = self
            .steps
            .values()
            .filter(|step| of_one(step) < STARVED_BELOW * mean);
        let (mut left, mut slowest) = (number / 10.0, 0.0);
        for step in self.steps.values() {
            let taken = left.min(step.0 as f64);
            slowest += taken * of_one(step);
            left -= taken;
        }
        Some(Fairness {
            mean,
            min: self.least,
            max: self.most,
            jain: total * total / (number * self.squares as f64),
            slowest_decile_share: slowest / total,
            starved: starved.map(|step| u128::from(step.0)).sum::<u128>() as u32,
        })
    }
}

/// Sum over the slowest tenth of `sorted`, which is in ascending order.
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
    fn jain_is_the_share_of_clients_served_equally() {
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
    fn no_clients_and_no_replies_have_no_fairness() {
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
        fn merged_counts_have_the_same_fairness(
            counts in prop::collection::vec((0..2048_u64, 0..5_usize), 0..300),
        ) {
            let mut places = vec![Counts::default(); 5];
            for &(count, place) in &counts {
                places[place].add(count);
            }
            let mut sum = Counts::default();
            for place in &places {
                sum.merge(place);
            }
            let all: Vec<u64> = counts.iter().map(|(count, _)| *count).collect();
            match (fairness(&all), sum.fairness()) {
                (Some(one), Some(other)) => {
                    prop_assert_eq!((one.min, one.max, one.starved), (other.min, other.max, other.starved));
                    prop_assert!(close(one.mean, other.mean) && close(one.jain, other.jain));
                    prop_assert!(close(one.slowest_decile_share, other.slowest_decile_share));
                }
                (one, other) => prop_assert_eq!(one, other),
            }
        }

        #[test]
        fn large_counts_keep_enough_resolution(
            counts in prop::collection::vec(0..1_000_000_000_000_u64, 1..300),
        ) {
            let mut sum = Counts::default();
            for &count in &counts {
                sum.add(count);
            }
            if let (Some(one), Some(other)) = (fairness(&counts), sum.fairness()) {
                prop_assert_eq!((one.min, one.max), (other.min, other.max));
                prop_assert!((one.jain / other.jain - 1.0).abs() < 1e-9);
                prop_assert!((one.slowest_decile_share - other.slowest_decile_share).abs()
                    <= one.slowest_decile_share / 1024.0 + 1e-9);
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
