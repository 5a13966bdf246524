//! Growth of rates and costs with the number of clients.
//!
//! The law is Gunther's Universal Scalability Law ("Guerrilla Capacity Planning", Springer 2007,
//! chapter 4, with the rate of one client as a third parameter as in the R package `usl`):
//!
//! ```text
//! X(n) = λ n / (1 + σ (n - 1) + κ n (n - 1))
//! ```
//!
//! λ is the rate of a single client, σ the cost of waiting for shared resources (contention), and κ the cost of
//! keeping all clients consistent with each other (coherency). κ makes the rate fall beyond its peak, at
//! n = √((1 - σ) / κ).
//!
//! The fit:
//!
//! - uses the median over trials at each number of clients, with equal weights;
//! - uses logarithms ([`Weights::Relative`]), because the noise of rates is relative;
//! - solves n / X = a + b (n - 1) + c n (n - 1) with a, b, c ≥ 0, so that σ and κ cannot become negative: a linear
//!   first guess, then Levenberg–Marquardt (see `least_squares`);
//! - has 95 % intervals over trials (see `resample`).
//!
//! The curve ends at [`FARTHEST`] times the largest measured number of clients: beyond that, it would be a guess.
//!
//! Costs have the exponent of a power law instead: see [`growth()`].

mod growth;
mod law;
mod least_squares;
mod resample;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use growth::{Growth, growth};
pub use law::{Law, Weights, fit};

/// Fewest numbers of clients for a fit: three parameters, and three degrees of freedom to show a bad fit.
pub const FEWEST_FOR_LAW: usize = 6;

/// Fewest numbers of clients for a growth exponent.
pub const FEWEST_FOR_GROWTH: usize = 3;

/// Smallest ratio between the largest and the smallest number of clients for a growth exponent.
pub const LEAST_SPAN: u32 = 10;

/// Curves end at this multiple of the largest measured number of clients.
pub const FARTHEST: u32 = 2;

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
    /// The value. Infinite (`null` in JSON) if undefined.
    pub value: f64,
    /// Lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end; infinite (`null` in JSON) if the trials do not bound it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// Distance of a measured value from the curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Residual {
    /// Number of clients.
    pub clients: u32,
    /// Measured / fitted - 1: 0.1 is 10 % above the curve.
    pub relative: f64,
}

/// Why there is no fit.
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
    /// The values fall so fast that the rate of one client is unbounded.
    #[error("the rate falls from {fewest} clients on, so the rate of fewer clients is unknown")]
    NoBeginning {
        /// Smallest number of clients.
        fewest: u32,
    },
}

/// A prediction too far beyond the measured range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{asked} clients are more than {FARTHEST} times the {most} that were measured")]
pub struct PredictionTooFar {
    /// Requested number of clients.
    pub asked: f64,
    /// Largest measured number of clients.
    pub most: u32,
}

/// The median at each number of clients, ascending; groups with the same number are merged.
fn medians(groups: &[Group]) -> Result<(Vec<Group>, Vec<f64>), FitError> {
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
    let middle = joined
        .iter()
        .map(|group| {
            let mut values: Vec<f64> = group.trials.iter().map(|(_, value)| *value).collect();
            super::interval::median_in_place(&mut values)
        })
        .collect();
    Ok((joined, middle))
}

/// Smallest and largest number of clients.
fn range(residuals: &[Residual]) -> (u32, u32) {
    match residuals {
        [first, .., last] => (first.clients, last.clients),
        [] | [_] => (0, 0),
    }
}

/// The residual with the largest absolute value.
fn farthest(residuals: &[Residual]) -> Option<Residual> {
    residuals
        .iter()
        .copied()
        .max_by(|one, other| one.relative.abs().total_cmp(&other.relative.abs()))
}
