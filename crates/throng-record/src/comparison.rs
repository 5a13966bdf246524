//! The baselines of a comparison.

use serde::{Deserialize, Serialize};

/// The baselines of a run's servers, and the threshold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The reference server.
    pub reference: String,
    /// By how many percent a server may be slower than its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_percent: Option<f64>,
    /// The directory of an earlier record. Servers are compared with the servers of the same name there. A copy is in
    /// `baseline/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
}
