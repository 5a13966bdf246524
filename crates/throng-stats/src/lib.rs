//! Statistics, pure: numbers in, numbers out. Imports nothing of ours.
//!
//! - [`below`]: one-sided tests of one server's trials against another's, or a number, however few there are.
//! - [`interval`]: medians over trials with 95 % intervals.
//! - [`mod@fairness`]: how evenly clients were served.
//! - [`paired`]: the ratio of two servers from pairs of measurements, and when enough are measured.
//! - [`rank`]: whether one thing goes with the order of another.
//! - [`sample`]: the trials of one server in one metric, and the value that they make together.
//! - [`scalability`]: the Universal Scalability Law, and the power with which a cost grows.
//! - [`steadiness`]: whether a rate drifted while it was measured, and when a warm-up is over.
//! - [`verdict`]: what comparisons allow to be said, all of one answer corrected together.

pub mod below;
pub mod fairness;
pub mod interval;
pub mod paired;
pub mod rank;
pub mod sample;
pub mod scalability;
pub mod steadiness;
pub mod verdict;

pub use below::Against;
pub use fairness::{Fairness, fairness};
pub use interval::{Interval, median, median_interval};
pub use paired::{LogRatio, holm, log_ratio, log_ratio_apart};
pub use rank::{RankCorrelation, rank_correlation};
pub use sample::{Distributions, Sample};
pub use steadiness::{Trend, is_unsteady, trend};
pub use verdict::{Compared, MARGIN, Verdict, verdicts};
