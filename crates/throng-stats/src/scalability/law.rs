//! The law: its fit, its values, and the limits of its range.

use serde::Serialize;

use super::least_squares::{Equation, Parameters, non_negative, refine};
use super::resample::resamples;
use super::{
    Estimate, FARTHEST, FEWEST_FOR_LAW, FitError, Group, PredictionTooFar, Residual, farthest,
    medians, range,
};

/// Smaller values, relative to their neighbours, are rounding errors and count as 0.
const NOTHING: f64 = 1e-9;

/// How residuals are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Relative to the rate, for measurements with relative noise.
    Relative,
    /// In replies per second, as in the R package `usl`.
    Equal,
}

/// The law, fitted to a server's rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Law {
    /// λ: replies per second that one client would reach alone.
    pub rate_of_one: Estimate,
    /// σ: contention, the cost of waiting for shared resources.
    pub contention: Estimate,
    /// κ: coherency, the cost of keeping all clients consistent with each other.
    pub coherency: Estimate,
    /// Number of clients at the peak of the curve; infinite if that is beyond [`FARTHEST`] times the largest number
    /// measured, or if there is no peak.
    pub peak_clients: Estimate,
    /// R²: share of the variance between the numbers of clients that the curve explains; `None` without variance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r_squared: Option<f64>,
    /// Root mean square of the residuals.
    pub typical_residual: f64,
    /// Residuals by number of clients.
    pub residuals: Vec<Residual>,
    #[serde(skip)]
    curve: Curve,
}

/// n / X = a + b (n - 1) + c n (n - 1).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Curve(Parameters);

/// Fits the law to the trials of a server. Groups may come in any order.
///
/// # Errors
/// If there are fewer than [`FEWEST_FOR_LAW`] numbers of clients, or no curve fits the values.
pub fn fit(groups: &[Group], weights: Weights, seed: u64) -> Result<Law, FitError> {
    let (groups, rates) = medians(groups)?;
    if groups.len() < FEWEST_FOR_LAW {
        return Err(FitError::TooFew {
            have: groups.len(),
            need: FEWEST_FOR_LAW,
        });
    }
    let clients: Vec<f64> = groups
        .iter()
        .map(|group| f64::from(group.clients))
        .collect();
    let (fewest, most) = (clients[0], clients[clients.len() - 1]);
    let curve = Curve::through(&clients, &rates, weights, None);
    if !curve.begins(fewest) {
        return Err(FitError::NoBeginning {
            fewest: fewest as u32,
        });
    }
    let resamples = resamples(&groups, seed);
    let others: Vec<Curve> = resamples
        .iter()
        .flat_map(|resamples| &resamples.values)
        .map(|values| Curve::through(&clients, values, weights, Some(curve)))
        .collect();
    let estimate = |of: &dyn Fn(&Curve) -> f64| match &resamples {
        Some(resamples) => resamples.estimate(of(&curve), others.iter().map(of).collect()),
        None => Estimate::bare(of(&curve)),
    };
    let residuals: Vec<Residual> = groups
        .iter()
        .zip(&rates)
        .map(|(group, rate)| Residual {
            clients: group.clients,
            relative: rate / curve.rate(f64::from(group.clients)) - 1.0,
        })
        .collect();
    Ok(Law {
        rate_of_one: estimate(&Curve::rate_of_one),
        contention: estimate(&Curve::contention),
        coherency: estimate(&Curve::coherency),
        peak_clients: estimate(&|curve| curve.peak(most)),
        r_squared: curve.r_squared(&clients, &rates, weights),
        typical_residual: typical(&residuals),
        residuals,
        curve,
    })
}

impl Law {
    /// The rate on the curve.
    ///
    /// # Errors
    /// Beyond [`FARTHEST`] times the largest number of clients measured.
    pub fn rate(&self, clients: f64) -> Result<f64, PredictionTooFar> {
        let (_, most) = self.range();
        if clients > f64::from(FARTHEST) * f64::from(most) {
            return Err(PredictionTooFar {
                asked: clients,
                most,
            });
        }
        Ok(self.curve.rate(clients))
    }

    /// Smallest and largest number of clients in the fit.
    pub fn range(&self) -> (u32, u32) {
        range(&self.residuals)
    }

    /// The largest residual.
    pub fn worst(&self) -> Option<Residual> {
        farthest(&self.residuals)
    }
}

impl Curve {
    fn through(clients: &[f64], rates: &[f64], weights: Weights, near: Option<Self>) -> Self {
        // Scaled so that the fit does not depend on the unit of the rates.
        let unit = rates.iter().copied().fold(0.0, f64::max);
        let points: Vec<(f64, f64)> = clients
            .iter()
            .zip(rates)
            .map(|(clients, rate)| (*clients, rate / unit))
            .collect();
        let start = near.map_or_else(
            || first_guess(&points, weights),
            |curve| curve.0.map(|parameter| parameter * unit),
        );
        let found = refine(start, |parameters| residuals(parameters, &points, weights));
        Self(found.map(|parameter| parameter / unit))
    }

    fn rate(&self, clients: f64) -> f64 {
        clients / divisor(self.0, clients)
    }

    /// Whether the curve has a rate for one client. If rates fall too fast, an infinite rate would fit best.
    fn begins(&self, fewest: f64) -> bool {
        self.0[0] > NOTHING * divisor(self.0, fewest)
    }

    fn rate_of_one(&self) -> f64 {
        1.0 / self.0[0]
    }

    fn contention(&self) -> f64 {
        self.0[1] / self.0[0]
    }

    fn coherency(&self) -> f64 {
        self.0[2] / self.0[0]
    }

    /// The number of clients at which n / divisor is greatest: √((a - b) / c), 1 if it falls from there on, and
    /// infinite if nothing is known.
    fn peak(&self, most: f64) -> f64 {
        let [one, contention, coherency] = self.0;
        let gain = one - contention;
        let peak = if coherency * most * most <= NOTHING * divisor(self.0, most) {
            if gain < -NOTHING * one {
                1.0
            } else {
                f64::INFINITY
            }
        } else {
            (gain.max(0.0) / coherency).sqrt().max(1.0)
        };
        if peak > f64::from(FARTHEST) * most {
            f64::INFINITY
        } else {
            peak
        }
    }

    /// R², with the same weights as the fit. It cannot be negative, since a constant is one of the curves (σ = 1, κ =
    /// 0).
    fn r_squared(&self, clients: &[f64], rates: &[f64], weights: Weights) -> Option<f64> {
        let seen = |rate: f64| match weights {
            Weights::Relative => rate.ln(),
            Weights::Equal => rate,
        };
        let mean = rates.iter().map(|rate| seen(*rate)).sum::<f64>() / rates.len() as f64;
        let (mut left, mut all) = (0.0, 0.0);
        for (clients, rate) in clients.iter().zip(rates) {
            left += (seen(*rate) - seen(self.rate(*clients))).powi(2);
            all += (seen(*rate) - mean).powi(2);
        }
        let scale = rates.iter().map(|rate| seen(*rate).powi(2)).sum::<f64>();
        (all > NOTHING * NOTHING * scale.max(1.0)).then(|| (1.0 - left / all).max(0.0))
    }
}

/// Root mean square of the residuals.
fn typical(residuals: &[Residual]) -> f64 {
    let squares: f64 = residuals.iter().map(|r| r.relative * r.relative).sum();
    (squares / residuals.len().max(1) as f64).sqrt()
}

fn basis(clients: f64) -> Parameters {
    [1.0, clients - 1.0, clients * (clients - 1.0)]
}

fn divisor(parameters: Parameters, clients: f64) -> f64 {
    parameters
        .iter()
        .zip(basis(clients))
        .map(|(p, b)| p * b)
        .sum()
}

/// The linear form n / X, with weights that make its residuals equal those of X to first order.
fn first_guess(points: &[(f64, f64)], weights: Weights) -> Parameters {
    let equations: Vec<Equation> = points
        .iter()
        .map(|(clients, rate)| {
            let weight = match weights {
                Weights::Relative => rate / clients,
                Weights::Equal => rate * rate / clients,
            };
            (basis(*clients).map(|b| b * weight), clients / rate * weight)
        })
        .collect();
    let mut guess = non_negative(&equations);
    // The rate of one client must be defined too, or its residual is not.
    let floor = 1e-6 * divisor(guess, points[0].0).max(points[0].0);
    guess[0] = guess[0].max(floor);
    guess
}

/// Residuals, and their derivatives with respect to the three parameters.
fn residuals(
    parameters: Parameters,
    points: &[(f64, f64)],
    weights: Weights,
) -> Option<Vec<Equation>> {
    points
        .iter()
        .map(|(clients, rate)| {
            let divisor = divisor(parameters, *clients);
            let basis = basis(*clients);
            (divisor > 0.0 && divisor.is_finite()).then(|| match weights {
                Weights::Relative => (basis.map(|b| b / divisor), (rate * divisor / clients).ln()),
                Weights::Equal => (
                    basis.map(|b| b * clients / (divisor * divisor)),
                    rate - clients / divisor,
                ),
            })
        })
        .collect()
}
