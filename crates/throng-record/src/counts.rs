//! What a server counted itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a reference server counted itself. Also what `throng serve --json` prints at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerCounts {
    /// Connections accepted and served.
    pub accepted: u64,
    /// Most connections open at once.
    pub peak_open: u64,
    /// Connections accepted only to be closed at once, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Requests answered.
    pub requests: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Readiness notifications from the kernel, of models that use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<u64>,
    /// Connections by the way they ended.
    pub outcomes: BTreeMap<String, u64>,
    /// Connections too many for the per-client log; the totals include them.
    pub unlogged: u64,
    /// What each of several loops did, where the model has them; shows the balance between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<ServerWorker>,
}

/// What one loop of a server did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerWorker {
    /// Connections it accepted.
    pub clients: u64,
    /// Requests it answered.
    pub requests: u64,
}
