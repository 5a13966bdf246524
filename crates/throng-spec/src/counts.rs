//! Counts kept by a server itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts kept by a built-in server itself. Also printed by `throng serve --json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerCounts {
    /// Connections accepted and served.
    pub accepted: u64,
    /// Maximum concurrent connections.
    pub peak_open: u64,
    /// Rejected connections, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Requests answered.
    pub requests: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Readiness notifications from the kernel, for models that use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<u64>,
    /// Ended connections with at least one answered request.
    #[serde(default)]
    pub answered: u64,
    /// Time from accept() to the end of these connections, summed, in nanoseconds.
    #[serde(default)]
    pub answered_ns: u64,
    /// Connections by how they ended.
    pub outcomes: BTreeMap<String, u64>,
    /// Connections beyond the limit of the per-client log; the totals include them.
    pub unlogged: u64,
    /// Counts per loop, for models with several; shows the balance between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<ServerWorker>,
}

/// Counts of one loop of a server.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ServerWorker {
    /// Accepted connections.
    pub clients: u64,
    /// Answered requests.
    pub requests: u64,
}
