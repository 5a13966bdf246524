//! What was measured of one side of a trial from outside.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use throng_registry::Unsupported;

/// One side's process tree, or the connections between both sides, measured from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Figures by name; `throng list probes` says what each means and its unit.
    pub metrics: BTreeMap<String, f64>,
    /// Probes that could not measure here, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, Unsupported>,
    /// CPU time that the probes themselves took during the window.
    pub probe_cost_ms: f64,
    /// Longest time that one sample of all of them took during the window.
    #[serde(default)]
    pub slowest_sample_ms: f64,
}

impl Side {
    /// The side itself, unless no probe sampled it.
    pub fn if_any(self) -> Option<Self> {
        let nothing = self.metrics.is_empty() && self.unavailable.is_empty();
        (!nothing).then_some(self)
    }
}

/// What one step of a fixed loop took on a CPU of each side, just before the trial and just after it:
/// a neighbour that takes time unseen, or a clock that changes, shows in nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spin {
    /// The server's CPU, before.
    pub server_before_ns: f64,
    /// The server's CPU, after.
    pub server_after_ns: f64,
    /// The clients' CPU, before.
    pub client_before_ns: f64,
    /// The clients' CPU, after.
    pub client_after_ns: f64,
}
