//! One trial of a run.

use serde::{Deserialize, Serialize};

use crate::Purpose;

/// A trial before it has run: which server meets how many clients, and what for. What these do says the load
/// of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Repetition, from 0.
    pub round: u32,
    /// Index of the server.
    pub server: usize,
    /// Number of clients.
    pub clients: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Of a trial below the maximum: its part of the rate reached before.
    pub percent: Option<u32>,
}
