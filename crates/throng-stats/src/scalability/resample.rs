//! Bootstrap intervals over trials.
//!
//! The trial is resampled, as for single values (see `stats::interval`): within each number of clients, and as whole
//! rounds if every number of clients has the same rounds, so that a slow phase of the machine affects all of them.
//! With fewer than [`ENOUGH_TRIALS`] trials in a group, a bootstrap would be too narrow. Then each round has its own
//! fit, and the interval spans all of them.

use super::{Estimate, Group};
use crate::interval::{ENOUGH_TRIALS, extremes, median_in_place, percentile_interval};

/// Number of resamples, each with a fit: 25 lie beyond each end of the interval.
const RESAMPLES: usize = 1000;

/// Resampled values at each number of clients.
pub(super) struct Resamples {
    /// One list per resample, in the order of the groups.
    pub(super) values: Vec<Vec<f64>>,
    /// Whether they are single rounds, whose whole range is the interval.
    single: bool,
}

/// Resamples of `groups`; `None` if a group has only one trial.
pub(super) fn resamples(groups: &[Group], seed: u64) -> Option<Resamples> {
    let sorted: Vec<Vec<(u32, f64)>> = groups
        .iter()
        .map(|group| {
            let mut trials = group.trials.clone();
            trials.sort_by_key(|(round, _)| *round);
            trials
        })
        .collect();
    let fewest = sorted.iter().map(Vec::len).min()?;
    if fewest < 2 {
        return None;
    }
    let rounds = |trials: &[(u32, f64)]| trials.iter().map(|(round, _)| *round).collect::<Vec<_>>();
    let paired = sorted
        .iter()
        .all(|trials| rounds(trials) == rounds(&sorted[0]));
    let mut random = fastrand::Rng::with_seed(seed);
    let single = fewest < ENOUGH_TRIALS;
    let values = match (single, paired) {
        (true, true) => (0..fewest)
            .map(|place| sorted.iter().map(|trials| trials[place].1).collect())
            .collect(),
        (true, false) => (0..RESAMPLES)
            .map(|_| {
                sorted
                    .iter()
                    .map(|trials| trials[random.usize(..trials.len())].1)
                    .collect()
            })
            .collect(),
        (false, paired) => (0..RESAMPLES)
            .map(|_| resampled(&sorted, paired, &mut random))
            .collect(),
    };
    Some(Resamples { values, single })
}

/// Medians of trials drawn with replacement.
fn resampled(sorted: &[Vec<(u32, f64)>], paired: bool, random: &mut fastrand::Rng) -> Vec<f64> {
    let mut places: Vec<usize> = Vec::new();
    sorted
        .iter()
        .map(|trials| {
            if places.is_empty() || !paired {
                places.clear();
                places.extend((0..trials.len()).map(|_| random.usize(..trials.len())));
            }
            let mut values: Vec<f64> = places.iter().map(|place| trials[*place].1).collect();
            median_in_place(&mut values)
        })
        .collect()
}

impl Resamples {
    /// `value` with the interval of its `resampled` values. The interval always includes `value` itself, which comes
    /// from medians and can lie outside all single rounds.
    pub(super) fn estimate(&self, value: f64, resampled: Vec<f64>) -> Estimate {
        let (low, high) = if self.single {
            extremes(&resampled)
        } else {
            let interval = percentile_interval(value, resampled);
            (interval.low, interval.high)
        };
        Estimate {
            value,
            low: Some(low.min(value)),
            high: Some(high.max(value)),
        }
    }
}

impl Estimate {
    /// Without an interval.
    pub(super) fn bare(value: f64) -> Self {
        Self {
            value,
            low: None,
            high: None,
        }
    }
}
