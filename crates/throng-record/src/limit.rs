//! The search for a limit, and its results.

use serde::{Deserialize, Serialize};

use crate::findings::Kind;

/// The search of a run: its goal, its bounds and its results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The quantity that is increased until the server fails.
    pub find: Find,
    /// Lower bound, where each search begins.
    pub from: u64,
    /// Upper bound.
    pub max: u64,
    /// The reason for the upper bound.
    pub max_reason: String,
    /// Growth factor until the server fails.
    pub factor: f64,
    /// Maximum distance between the two ends, as a share of the lower one; 0 if they must be adjacent.
    pub within_percent: f64,
    /// Maximum trials per server.
    pub tries: u32,
    /// Time limit per server.
    pub time_limit_s: f64,
    /// Confirmations of each end.
    pub confirm: u32,
    /// Conditions that fail a trial, in addition to errors and unserved clients, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<String>,
    /// Number of clients in a search for a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// The result of each server, in the order of searching.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<LimitResult>,
}

/// The quantity that is increased.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Find {
    /// The number of clients.
    #[default]
    Clients,
    /// Requests per second, in an open loop.
    Rate,
    /// Sessions of a flow per second, in an open loop.
    Sessions,
}

impl Find {
    /// Whether the value is a rate.
    pub fn is_rate(self) -> bool {
        self != Self::Clients
    }
}

/// The result of one server's search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitResult {
    /// The server's name.
    pub server: String,
    /// How its search ended.
    pub ending: SearchEnding,
    /// The highest value that always passed; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<TriedValue>,
    /// The lowest value above it that always failed; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<TriedValue>,
    /// An upper bound that is lower for this server, and its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<StoppedAt>,
    /// Why it failed, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The cause; absent if nothing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why there is no result, if a trial failed before its clients connected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnding {
    /// Both ends are as close as required, and confirmed.
    Found,
    /// Both ends are confirmed, but results in between are mixed.
    Between,
    /// The upper bound passed.
    AtLeast,
    /// The lowest possible value failed.
    Nothing,
    /// The trials were used up.
    OutOfTries,
    /// The time was up.
    OutOfTime,
    /// Interrupted by a signal.
    Interrupted,
    /// The server could not be started, or did not reply correctly.
    Failed,
}

/// A value that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TriedValue {
    /// Clients, or requests per second.
    pub value: u64,
    /// Number of trials.
    pub times: u32,
}

/// An upper bound that was found during the search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoppedAt {
    /// The bound.
    pub value: u64,
    /// The reason.
    pub reason: String,
}

/// The cause of a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Its name; `throng list findings` has them all.
    #[schemars(with = "String")]
    pub kind: Kind,
    /// One sentence, without its full stop.
    pub sentence: String,
    /// The evidence, or what was checked if there is none.
    pub evidence: Vec<String>,
    /// Other observations, which may be consequences or coincidences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

impl Cause {
    /// Whether a limit that all servers share ended the search before the server itself failed.
    pub fn is_in_common(&self) -> bool {
        !self.kind.of_server
    }

    /// The remedy for a limit that all servers share.
    pub fn remedy(&self) -> Option<&'static str> {
        self.is_in_common().then_some(self.kind.remedy)
    }
}

/// The value of a search's trial, and whether the server passed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Clients, or requests per second.
    pub value: u64,
    /// As a share of the limit, in trials below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Whether it passed.
    pub passed: bool,
    /// The reasons if not, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}
