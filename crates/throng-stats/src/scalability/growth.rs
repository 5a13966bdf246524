//! Growth of a cost with the number of clients: the exponent of a power law.
//!
//! The exponent is the slope of log(cost) against log(clients) by Theil and Sen (P. K. Sen, "Estimates of the
//! Regression Coefficient Based on Kendall's Tau", 1968): the median of the slopes between all pairs, which a single
//! outlier does not move. 0 is a constant cost, 1 a cost in proportion to the number of clients. The residuals show
//! whether a cost follows a power law.

use serde::Serialize;

use super::resample::resamples;
use super::{
    Estimate, FEWEST_FOR_GROWTH, FitError, Group, LEAST_SPAN, Residual, farthest, medians, range,
};
use crate::interval::median_in_place;

/// A cost as a power of the number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Growth {
    /// e, in cost ∝ clients^e.
    pub exponent: Estimate,
    /// Median absolute residual, which is also robust to an outlier.
    pub typical_residual: f64,
    /// Residuals by number of clients.
    pub residuals: Vec<Residual>,
}

/// The growth exponent of a server's costs. Groups may come in any order.
///
/// # Errors
/// If there are fewer than [`FEWEST_FOR_GROWTH`] numbers of clients, or if they span less than a factor of
/// [`LEAST_SPAN`].
pub fn growth(groups: &[Group], seed: u64) -> Result<Growth, FitError> {
    let (groups, costs) = medians(groups)?;
    if groups.len() < FEWEST_FOR_GROWTH {
        return Err(FitError::TooFew {
            have: groups.len(),
            need: FEWEST_FOR_GROWTH,
        });
    }
    let (fewest, most) = (groups[0].clients, groups[groups.len() - 1].clients);
    if most / fewest < LEAST_SPAN {
        return Err(FitError::TooNarrow { fewest, most });
    }
    let across: Vec<f64> = groups
        .iter()
        .map(|group| f64::from(group.clients).ln())
        .collect();
    let exponent = slope(&across, &costs);
    let mut levels: Vec<f64> = across
        .iter()
        .zip(&costs)
        .map(|(across, cost)| cost.ln() - exponent * across)
        .collect();
    let level = median_in_place(&mut levels);
    let residuals: Vec<Residual> = groups
        .iter()
        .zip(across.iter().zip(&costs))
        .map(|(group, (across, cost))| Residual {
            clients: group.clients,
            relative: (cost.ln() - level - exponent * across).exp_m1(),
        })
        .collect();
    let exponent = match resamples(&groups, seed) {
        None => Estimate::bare(exponent),
        Some(resamples) => {
            let others = resamples.values.iter().map(|costs| slope(&across, costs));
            resamples.estimate(exponent, others.collect())
        }
    };
    Ok(Growth {
        exponent,
        typical_residual: typical(&residuals),
        residuals,
    })
}

impl Growth {
    /// Smallest and largest number of clients in the fit.
    pub fn range(&self) -> (u32, u32) {
        range(&self.residuals)
    }

    /// The largest residual.
    pub fn worst(&self) -> Option<Residual> {
        farthest(&self.residuals)
    }
}

/// The median of absolute values.
fn typical(residuals: &[Residual]) -> f64 {
    let mut sizes: Vec<f64> = residuals.iter().map(|r| r.relative.abs()).collect();
    median_in_place(&mut sizes)
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
