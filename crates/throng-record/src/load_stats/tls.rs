//! TLS statistics of clients.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{LoadStats, Times, merge_counts};
use crate::{TlsFigures, measurable};

/// Handshakes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsStats {
    /// Completed handshakes.
    pub handshakes: u64,
    /// Of these, resumed sessions.
    pub resumed: u64,
    /// Completed handshakes in the window.
    pub window_handshakes: u64,
    /// From an established connection to the end of its handshake.
    pub handshake_time: Times,
    /// Handshakes by version, cipher suite and protocol, as text.
    pub negotiated: BTreeMap<String, u64>,
}

impl TlsStats {
    /// Counts a handshake with its duration.
    pub fn add(&mut self, resumed: bool, negotiated: String, took_ns: u64, in_window: bool) {
        self.handshakes += 1;
        self.resumed += u64::from(resumed);
        self.window_handshakes += u64::from(in_window);
        self.handshake_time.record(took_ns);
        *self.negotiated.entry(negotiated).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.handshakes, other.handshakes),
            (&mut self.resumed, other.resumed),
            (&mut self.window_handshakes, other.window_handshakes),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        self.handshake_time.merge(&other.handshake_time);
        merge_counts(&mut self.negotiated, &other.negotiated);
    }

    pub(super) fn figures(&self, load: &LoadStats) -> TlsFigures {
        let window_s = measurable(load.span.duration_s());
        TlsFigures {
            handshakes: self.handshakes,
            resumed: self.resumed,
            handshakes_per_s: window_s.map(|window_s| self.window_handshakes as f64 / window_s),
            handshake_time: self.handshake_time.latency(),
            negotiated: self.negotiated.clone(),
        }
    }
}
