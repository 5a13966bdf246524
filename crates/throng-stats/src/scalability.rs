//! Growth of rates and costs with the number of clients.
//!
//! A cost has the exponent of a power law: see [`growth()`]. A rate has a turning point, from which on it falls: see
//! [`turning_point`]. Both say nothing beyond the largest number of clients that was measured.
//!
//! Both come with 95 % intervals over trials. The trial is resampled: within each number of clients, and as whole rounds if
//! every number of clients has the same rounds, so that a slow phase of the machine affects all of them. With fewer than
//! five trials in a group, a bootstrap would be too narrow. Then each round has its own result, and the
//! interval spans all of them. In both cases the estimate is the median of these results.

use serde::Serialize;

use crate::interval::{ENOUGH_TRIALS, extremes, median_in_place};

/// Fewest numbers of clients for a growth exponent.
pub const FEWEST_FOR_GROWTH: usize = 3;

/// Fewest numbers of clients for a turning point: with fewer, it could be far from all of them.
pub const FEWEST_FOR_TURN: usize = 6;

/// Smallest ratio between the largest and the smallest number of clients for an estimate.
pub const LEAST_SPAN: u32 = 10;

/// Number of resamples: 25 lie beyond each end of the interval.
const RESAMPLES: usize = 1000;

/// The trials with one number of clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Number of clients.
    pub clients: u32,
    /// Round and value of each trial.
    pub trials: Vec<(u32, f64)>,
}

/// A value with its 95 % interval over trials, if there are enough trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A cost as a power of the number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Growth {
    /// e, in cost ∝ clients^e.
    pub exponent: Estimate,
    /// Median absolute residual, which an outlier does not move.
    pub typical_residual: f64,
    /// Residuals by number of clients.
    pub residuals: Vec<Residual>,
}

/// Distance of a measured value from the power law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Residual {
    /// Number of clients.
    pub clients: u32,
    /// Measured / fitted - 1: 0.1 is 10 % above the power law.
    pub relative: f64,
}

/// Why there is no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Too few numbers of clients.
    #[error("{have} usable of the {need} different numbers of clients that it needs")]
    TooFew {
        /// Numbers of clients with usable trials.
        have: usize,
        /// Numbers of clients needed.
        need: usize,
    },
    /// The numbers of clients span too small a range.
    #[error(
        "from {fewest} to {most} clients is less than the factor of {LEAST_SPAN} that it needs"
    )]
    TooNarrow {
        /// Smallest number of clients.
        fewest: u32,
        /// Largest number of clients.
        most: u32,
    },
    /// A value is not finite and positive.
    #[error("there is nothing above 0 with {clients} clients")]
    NotPositive {
        /// Number of clients of that value.
        clients: u32,
    },
}

/// The growth exponent of a server's costs. Groups may come in any order.
///
/// The exponent is the slope of log(cost) against log(clients) by Theil and Sen (P. K. Sen, "Estimates of the
/// Regression Coefficient Based on Kendall's Tau", 1968): the median of the slopes between all pairs, which a single
/// outlier does not move. 0 is a constant cost, 1 a cost in proportion to the number of clients. The residuals show
/// whether a cost follows a power law.
///
/// # Errors
/// If the numbers of clients are fewer than [`FEWEST_FOR_GROWTH`], or span less than a factor of [`LEAST_SPAN`].
pub fn growth(groups: &[Group], seed: u64) -> Result<Growth, FitError> {
    let groups = usable(groups, FEWEST_FOR_GROWTH)?;
    let costs: Vec<f64> = groups.iter().map(median).collect();
    let across: Vec<f64> = groups
        .iter()
        .map(|group| f64::from(group.clients).ln())
        .collect();
    let resamples = resamples(&groups, seed);
    let exponent = resamples.estimate(|resampled| slope(&across, resampled));
    let mut levels: Vec<f64> = across
        .iter()
        .zip(&costs)
        .map(|(across, cost)| cost.ln() - exponent.value * across)
        .collect();
    let level = median_in_place(&mut levels);
    let residuals: Vec<Residual> = groups
        .iter()
        .zip(across.iter().zip(&costs))
        .map(|(group, (across, cost))| Residual {
            clients: group.clients,
            relative: (cost.ln() - level - exponent.value * across).exp_m1(),
        })
        .collect();
    let mut sizes: Vec<f64> = residuals.iter().map(|r| r.relative.abs()).collect();
    Ok(Growth {
        exponent,
        typical_residual: median_in_place(&mut sizes),
        residuals,
    })
}

impl Growth {
    /// Smallest and largest number of clients that it rests on.
    pub fn range(&self) -> (u32, u32) {
        match self.residuals.as_slice() {
            [first, .., last] => (first.clients, last.clients),
            [] | [_] => (0, 0),
        }
    }

    /// The residual with the largest absolute value.
    pub fn worst(&self) -> Option<Residual> {
        let all = self.residuals.iter().copied();
        all.max_by(|one, other| one.relative.abs().total_cmp(&other.relative.abs()))
    }
}

/// The number of clients with the highest rate, if the rate with the most clients is significantly lower; `None` if
/// the rate does not fall. Groups may come in any order.
///
/// # Errors
/// If the numbers of clients are fewer than [`FEWEST_FOR_TURN`], or span less than a factor of [`LEAST_SPAN`].
pub fn turning_point(groups: &[Group], seed: u64) -> Result<Option<Estimate>, FitError> {
    let groups = usable(groups, FEWEST_FOR_TURN)?;
    let highest = |rates: &[f64]| {
        let indices = 0..rates.len();
        indices
            .max_by(|one, other| rates[*one].total_cmp(&rates[*other]))
            .unwrap_or_default()
    };
    let rates: Vec<f64> = groups.iter().map(median).collect();
    let top = highest(&rates);
    let resamples = resamples(&groups, seed);
    let fall = resamples.estimate(|resampled| resampled[top] / resampled[resampled.len() - 1]);
    let falls = fall.low.is_some_and(|low| low > 1.0);
    // By index, so that the median of two is a number of clients that was measured.
    let index = resamples.estimate(|resampled| highest(resampled) as f64);
    let clients = |group: f64| f64::from(groups[group as usize].clients);
    Ok(falls.then(|| Estimate {
        value: clients(index.value),
        low: index.low.map(clients),
        high: index.high.map(clients),
    }))
}

/// The groups with trials, ascending; groups with the same number of clients are merged.
fn usable(groups: &[Group], need: usize) -> Result<Vec<Group>, FitError> {
    let mut joined: Vec<Group> = Vec::new();
    let mut sorted: Vec<&Group> = groups.iter().filter(|c| !c.trials.is_empty()).collect();
    sorted.sort_by_key(|group| group.clients);
    for group in sorted {
        let wrong = |(_, value): &(u32, f64)| !(value.is_finite() && *value > 0.0);
        if group.clients == 0 || group.trials.iter().any(wrong) {
            return Err(FitError::NotPositive {
                clients: group.clients,
            });
        }
        match joined.last_mut() {
            Some(last) if last.clients == group.clients => last.trials.extend(&group.trials),
            _ => joined.push(group.clone()),
        }
    }
    for group in &mut joined {
        group.trials.sort_by_key(|(round, _)| *round);
    }
    match joined.as_slice() {
        few if few.len() < need => Err(FitError::TooFew {
            have: few.len(),
            need,
        }),
        [first, .., last] if last.clients / first.clients < LEAST_SPAN => {
            Err(FitError::TooNarrow {
                fewest: first.clients,
                most: last.clients,
            })
        }
        _ => Ok(joined),
    }
}

fn median(group: &Group) -> f64 {
    let mut values: Vec<f64> = group.trials.iter().map(|(_, value)| *value).collect();
    median_in_place(&mut values)
}

/// The median slope of log(cost) between all pairs.
fn slope(across: &[f64], costs: &[f64]) -> f64 {
    let mut slopes = Vec::with_capacity(costs.len() * (costs.len() - 1) / 2);
    for right in 1..costs.len() {
        for left in 0..right {
            slopes.push((costs[right] / costs[left]).ln() / (across[right] - across[left]));
        }
    }
    median_in_place(&mut slopes)
}

/// Resampled values at each number of clients.
struct Resamples {
    /// One list per resample, in the order of the groups.
    values: Vec<Vec<f64>>,
    /// The share of resamples beyond each end of the interval; `None` without an interval.
    beyond: Option<f64>,
}

/// Resamples of groups whose trials are in order of their rounds.
fn resamples(groups: &[Group], seed: u64) -> Resamples {
    let fewest = groups
        .iter()
        .map(|group| group.trials.len())
        .min()
        .unwrap_or_default();
    if fewest < 2 {
        return Resamples {
            values: vec![groups.iter().map(median).collect()],
            beyond: None,
        };
    }
    let rounds = |group: &Group| -> Vec<u32> { group.trials.iter().map(|trial| trial.0).collect() };
    let paired = groups
        .iter()
        .all(|group| rounds(group) == rounds(&groups[0]));
    let mut random = fastrand::Rng::with_seed(seed);
    let single = fewest < ENOUGH_TRIALS;
    let values = match (single, paired) {
        (true, true) => (0..fewest)
            .map(|round| groups.iter().map(|group| group.trials[round].1).collect())
            .collect(),
        (true, false) => (0..RESAMPLES)
            .map(|_| {
                let drawn = groups
                    .iter()
                    .map(|group| group.trials[random.usize(..group.trials.len())].1);
                drawn.collect()
            })
            .collect(),
        (false, _) => (0..RESAMPLES)
            .map(|_| resampled(groups, paired, &mut random))
            .collect(),
    };
    Resamples {
        values,
        beyond: Some(if single { 0.0 } else { 0.025 }),
    }
}

/// Medians of trials drawn with replacement.
fn resampled(groups: &[Group], paired: bool, random: &mut fastrand::Rng) -> Vec<f64> {
    let mut drawn: Vec<usize> = Vec::new();
    groups
        .iter()
        .map(|group| {
            if drawn.is_empty() || !paired {
                drawn.clear();
                drawn.extend((0..group.trials.len()).map(|_| random.usize(..group.trials.len())));
            }
            let mut values: Vec<f64> = drawn.iter().map(|index| group.trials[*index].1).collect();
            median_in_place(&mut values)
        })
        .collect()
}

impl Resamples {
    /// The median of a result over all resamples, with its interval.
    fn estimate(&self, result: impl Fn(&[f64]) -> f64) -> Estimate {
        let mut results: Vec<f64> = self.values.iter().map(|values| result(values)).collect();
        results.sort_unstable_by(f64::total_cmp);
        let ends = self.beyond.map(|beyond| {
            let outside = (beyond * results.len() as f64) as usize;
            extremes(&results[outside..results.len() - outside])
        });
        Estimate {
            value: median_in_place(&mut results),
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENTS: [u32; 7] = [1, 5, 20, 100, 300, 600, 900];

    fn single(points: &[(u32, f64)]) -> Vec<Group> {
        let group = |(clients, value): &(u32, f64)| Group {
            clients: *clients,
            trials: vec![(0, *value)],
        };
        points.iter().map(group).collect()
    }

    /// Trials with uniform noise of ±`share`.
    fn noisy(value: impl Fn(f64) -> f64, rounds: u32, share: f64) -> Vec<Group> {
        let mut random = fastrand::Rng::with_seed(3);
        let mut group = |clients: u32| Group {
            clients,
            trials: (0..rounds)
                .map(|round| {
                    let noise = 1.0 + share * (2.0 * random.f64() - 1.0);
                    (round, value(f64::from(clients)) * noise)
                })
                .collect(),
        };
        CLIENTS.into_iter().map(&mut group).collect()
    }

    /// A rate that is highest with 100 of [`CLIENTS`].
    fn turning(clients: f64) -> f64 {
        clients / (1.0 + 0.02 * clients + 1e-4 * clients * clients)
    }

    fn includes(estimate: Estimate, value: f64) -> bool {
        estimate.low.is_some_and(|low| low <= value)
            && estimate.high.is_some_and(|high| value <= high)
    }

    #[test]
    fn growth_of_flat_linear_and_square_root_costs() {
        for (power, unit) in [(0.0, 6.0), (1.0, 0.2), (0.5, 3.0), (-0.25, 40.0)] {
            let groups = single(&CLIENTS.map(|n| (n, unit * f64::from(n).powf(power))));
            let growth = growth(&groups, 1).unwrap();
            assert!((growth.exponent.value - power).abs() < 1e-12, "{growth:?}");
            assert!(growth.typical_residual < 1e-12 && growth.exponent.low.is_none());
        }
    }

    #[test]
    fn an_outlier_does_not_move_the_exponent_and_is_reported() {
        let mut points = CLIENTS.map(|n| (n, f64::from(n)));
        points[0].1 = 30.0;
        let growth = growth(&single(&points), 1).unwrap();
        assert!((growth.exponent.value - 1.0).abs() < 0.1, "{growth:?}");
        assert_eq!(growth.worst().unwrap().clients, 1);
        assert_eq!(growth.range(), (1, 900));
    }

    #[test]
    fn it_needs_three_groups_that_span_a_factor_of_ten() {
        let of = |clients: &[u32]| {
            let points: Vec<(u32, f64)> = clients.iter().map(|n| (*n, 1.0)).collect();
            let groups = single(&points);
            let refused = growth(&groups, 1).err();
            assert!(turning_point(&groups, 1).is_err(), "it needs six");
            refused
        };
        let (have, need) = (2, 3);
        assert_eq!(of(&[1, 100]), Some(FitError::TooFew { have, need }));
        assert_eq!(of(&[1, 100, 1]), Some(FitError::TooFew { have, need }));
        let (fewest, most) = (11, 109);
        assert_eq!(
            of(&[11, 50, 109]),
            Some(FitError::TooNarrow { fewest, most })
        );
        assert_eq!(of(&[11, 50, 110]), None);
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut groups = single(&CLIENTS.map(|n| (n, f64::from(n))));
            groups[3].trials[0].1 = nothing;
            let refused = growth(&groups, 1).unwrap_err();
            assert_eq!(refused, FitError::NotPositive { clients: 100 });
        }
    }

    #[test]
    fn the_interval_of_an_exponent_of_noise_includes_zero() {
        let exponent = growth(&noisy(|_| 6.5, 7, 0.04), 3).unwrap().exponent;
        assert!(includes(exponent, 0.0), "{exponent:?}");
        assert!(exponent.high.unwrap() - exponent.low.unwrap() < 0.05);
    }

    #[test]
    fn a_rate_that_falls_has_a_turning_point() {
        for rounds in [3, 7] {
            let found = turning_point(&noisy(turning, rounds, 0.02), 1).unwrap();
            assert!(found.is_some_and(|at| includes(at, 100.0)), "{found:?}");
        }
        let falling = noisy(|clients| 1e4 / clients, 3, 0.02);
        let found = turning_point(&falling, 1).unwrap().unwrap();
        assert_eq!((found.value, found.high), (1.0, Some(1.0)));
    }

    #[test]
    fn a_rate_that_rises_or_stays_has_none() {
        for rounds in [1, 3, 7] {
            let rising = noisy(|clients| 100.0 * clients, rounds, 0.02);
            assert_eq!(turning_point(&rising, 1), Ok(None));
            let level = noisy(|_| 5000.0, rounds, 0.02);
            assert_eq!(turning_point(&level, 1), Ok(None), "{rounds}");
        }
        // One trial each cannot show that a fall is more than noise.
        assert_eq!(turning_point(&noisy(turning, 1, 0.02), 1), Ok(None));
    }

    #[test]
    fn estimates_lie_inside_their_intervals_in_any_order_of_groups() {
        for rounds in 3..9 {
            let mut groups = noisy(turning, rounds, 0.4);
            // Without one of its rounds, a group's trials are drawn individually.
            if rounds % 2 == 0 {
                groups[2].trials.remove(1);
            }
            let found = growth(&groups, u64::from(rounds)).unwrap();
            assert!(includes(found.exponent, found.exponent.value), "{found:?}");
            let turns = turning_point(&groups, u64::from(rounds)).unwrap();
            assert!(turns.is_none_or(|at| includes(at, at.value)), "{turns:?}");
            groups.reverse();
            assert_eq!(growth(&groups, u64::from(rounds)), Ok(found));
        }
    }

    #[test]
    fn a_slow_round_at_all_numbers_of_clients_does_not_change_the_exponent() {
        let slow = [1.0, 0.7, 1.1, 0.9, 1.05, 0.8];
        let trials = |clients: u32| {
            let cost = |pace: f64| pace * f64::from(clients).sqrt();
            (0..).zip(slow.map(cost)).collect()
        };
        let groups = CLIENTS.map(|clients| Group {
            clients,
            trials: trials(clients),
        });
        let exponent = growth(&groups, 1).unwrap().exponent;
        assert!(exponent.high.unwrap() - exponent.low.unwrap() < 1e-9);
    }
}
