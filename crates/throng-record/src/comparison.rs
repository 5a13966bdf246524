//! What servers are compared with.

use serde::{Deserialize, Serialize};

/// What the servers of a run are compared with, and what is demanded of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The server that the others are compared with.
    pub reference: String,
    /// By how many percent no server may be slower than the one it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_percent: Option<f64>,
    /// The directory of an earlier record, whose servers those of the same name are compared with; a
    /// copy of it is in `baseline/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
}
