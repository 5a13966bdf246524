//! The purpose of a trial.

use serde::{Deserialize, Serialize};

/// The purpose of a trial. Counting instructions and capturing packets slow down what they observe, so they have
/// separate trials.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// It yields rates, costs and times.
    #[default]
    Timed,
    /// One of the servers a second time: shows how much two equal servers differ.
    Control,
    /// The minimal server: shows the maximum rate of the load generator.
    Ceiling,
    /// A server at a percentage of its maximum rate: shows its response time below saturation.
    AtLoad,
    /// Instructions, system calls and the like are counted; nothing is timed.
    Profiled,
    /// Packets are captured; nothing else is timed.
    Captured,
    /// Part of a search for a limit.
    Search,
    /// Confirms the result of a search.
    Confirm,
    /// A server at a share of its limit.
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

    /// The purpose as text; empty for timed trials. `percent` applies to trials below the maximum rate.
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

    /// Whether nothing slows it down.
    pub fn is_timed(self) -> bool {
        !matches!(self, Self::Profiled | Self::Captured)
    }

    /// Whether it belongs to a search for a limit, in which trials may fail.
    pub fn seeks_limit(self) -> bool {
        matches!(self, Self::Search | Self::Confirm | Self::Share)
    }
}
