//! One trial of a run.

use serde::{Deserialize, Serialize};

use crate::Purpose;

/// A planned trial: its server, number of clients, and purpose. The load is that of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Round, from 0.
    pub round: u32,
    /// Index of the server.
    pub server: usize,
    /// Number of clients.
    pub clients: u32,
    /// Purpose.
    pub purpose: Purpose,
    /// For a trial below the maximum rate, the percentage of the rate reached before.
    pub percent: Option<u32>,
}
