//! What a trial is for.

use serde::{Deserialize, Serialize};

/// What a trial is for. Counting instructions and capturing packets slow what they observe, so they have trials of
/// their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Rates, costs and times are taken from it.
    #[default]
    Timed,
    /// One of the servers a second time: how much two equal servers differ.
    Control,
    /// The cheapest server: the maximum rate of the load generator.
    Ceiling,
    /// One of the servers at a share of its maximum rate: its response time below saturation.
    AtLoad,
    /// Instructions, system calls and the like are counted in it; nothing is timed.
    Profiled,
    /// Its packets are captured; nothing else is timed.
    Captured,
    /// Part of a search for a limit.
    Search,
    /// Confirms what a search found.
    Confirm,
    /// The server at a share of its limit.
    Share,
}

impl Purpose {
    /// "round 2", "round 1, at 80 % of the maximum rate".
    pub fn occasion(self, round: u32, percent: Option<u32>) -> String {
        match self.words(percent) {
            words if words.is_empty() => format!("round {}", round + 1),
            words => format!("round {}, {words}", round + 1),
        }
    }

    /// The purpose in words; empty for timed trials. `percent` is that of trials below the maximum rate.
    pub fn words(self, percent: Option<u32>) -> String {
        match (self, percent) {
            (Self::Timed, _) => String::new(),
            (Self::Control, _) => "control".to_owned(),
            (Self::Ceiling, _) => "load generator ceiling".to_owned(),
            (Self::AtLoad, Some(percent)) => format!("at {percent} % of the maximum rate"),
            (Self::AtLoad, None) => "below the maximum rate".to_owned(),
            (Self::Profiled, _) => "event counting".to_owned(),
            (Self::Captured, _) => "packet capture".to_owned(),
            (Self::Search, _) => "search".to_owned(),
            (Self::Confirm, _) => "confirmation".to_owned(),
            (Self::Share, _) => "below the limit".to_owned(),
        }
    }

    /// Whether nothing slows it.
    pub fn is_timed(self) -> bool {
        !matches!(self, Self::Profiled | Self::Captured)
    }

    /// Whether it belongs to a search for a limit, in which trials may fail.
    pub fn seeks_limit(self) -> bool {
        matches!(self, Self::Search | Self::Confirm | Self::Share)
    }
}
