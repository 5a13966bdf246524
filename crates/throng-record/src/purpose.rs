//! What a trial is for.

use serde::{Deserialize, Serialize};

/// What a trial is for. What counts instructions or writes every packet down slows what it looks at,
/// so it has trials of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Rates, costs and times are taken from it.
    #[default]
    Timed,
    /// One of the servers a second time: how far apart two equal ones come out.
    Control,
    /// A server that does least: what the clients can reach.
    Ceiling,
    /// One of the servers at a part of the rate that it reached: what response time it has while it
    /// is not full.
    AtLoad,
    /// Instructions, system calls and the like are counted in it; nothing is timed.
    Profiled,
    /// Its packets are captured; nothing else is timed.
    Captured,
    /// A limit is searched for.
    Search,
    /// What was found is tried again.
    Confirm,
    /// How the server does at a share of its limit.
    Share,
}

impl Purpose {
    /// "round 2", "round 1, at 80 % of its rate".
    pub fn occasion(self, round: u32, percent: Option<u32>) -> String {
        match self.words(percent) {
            words if words.is_empty() => format!("round {}", round + 1),
            words => format!("round {}, {words}", round + 1),
        }
    }

    /// What a trial is for, where it is not for its own figures; `percent` is that of trials below
    /// the maximum.
    pub fn words(self, percent: Option<u32>) -> String {
        match (self, percent) {
            (Self::Timed, _) => String::new(),
            (Self::Control, _) => "as its own control".to_owned(),
            (Self::Ceiling, _) => "for the clients' ceiling".to_owned(),
            (Self::AtLoad, Some(percent)) => format!("at {percent} % of its rate"),
            (Self::AtLoad, None) => "below its rate".to_owned(),
            (Self::Profiled, _) => "counting".to_owned(),
            (Self::Captured, _) => "capturing packets".to_owned(),
            (Self::Search, _) => "searching".to_owned(),
            (Self::Confirm, _) => "to confirm".to_owned(),
            (Self::Share, _) => "below the limit".to_owned(),
        }
    }

    /// Whether it runs without anything that would slow it.
    pub fn is_timed(self) -> bool {
        !matches!(self, Self::Profiled | Self::Captured)
    }

    /// Whether it is to show if a server holds something: what is known of it counts even where it
    /// does not.
    pub fn seeks_limit(self) -> bool {
        matches!(self, Self::Search | Self::Confirm | Self::Share)
    }
}
