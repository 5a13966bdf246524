//! Statistics: pure functions of numbers. Depends on no other crate of this workspace.
//!
//! - [`one_sided`]: one-sided tests of one server's trials against another's or a number, even with few trials.
//! - [`difference`]: differences of several values at once, which add up.
//! - [`interval`]: medians over trials with 95 % intervals.
//! - [`mod@fairness`]: how evenly clients were served.
//! - [`paired`]: the ratio of two servers from pairs of measurements, and when to stop measuring.
//! - [`rank`]: rank correlation.
//! - [`sample`]: the trials or slices of one server in one metric, with one estimator.
//! - [`scalability`]: the growth exponent of a cost, and the turning point of a rate.
//! - [`steadiness`]: whether a rate drifted while it was measured, and when a warm-up is over.
//! - [`verdict`]: verdicts on comparisons, corrected for their number.

pub mod difference;
pub mod fairness;
pub mod interval;
pub mod one_sided;
pub mod paired;
pub mod rank;
pub mod sample;
pub mod scalability;
pub mod steadiness;
pub mod verdict;

pub use difference::differences;
pub use fairness::{Fairness, fairness};
pub use interval::{Interval, median, median_interval};
pub use one_sided::Against;
pub use paired::{LogRatio, holm, log_ratio, unpaired_log_ratio};
pub use rank::{RankCorrelation, rank_correlation};
pub use sample::Sample;
pub use steadiness::{Trend, is_unsteady, trend};
pub use verdict::{LEVEL, MARGIN, PValues, RatioTest, Shown, Verdict, family, verdicts};
