//! The limit that was searched for, and what came of it.

use serde::{Deserialize, Serialize};

/// What a run searches for, under which bounds, and what it found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// What is raised until the server fails.
    pub find: Find,
    /// Where each search begins.
    pub from: u64,
    /// Nothing beyond this is tried.
    pub most: u64,
    /// Why not.
    pub most_because: String,
    /// The factor by which it rises until the server fails.
    pub factor: f64,
    /// How far apart what held and what broke may lie at the end, as a share of what held; 0: next to
    /// each other.
    pub within_percent: f64,
    /// Most trials of each server until its limit is known.
    pub tries: u32,
    /// Most time for that.
    pub time_limit_s: f64,
    /// How often what held must hold again, and what broke break again.
    pub confirm: u32,
    /// Conditions that end a search, besides errors and unserved clients, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<String>,
    /// How many clients send the requests where a rate is searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// What was found, a server each, in the order in which they were searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Found>,
}

/// What is raised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Find {
    /// The number of clients.
    #[default]
    Clients,
    /// Requests a second, in an open loop.
    Rate,
}

/// What was found out about one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// Its name.
    pub server: String,
    /// How its search ended.
    pub ending: SearchEnding,
    /// The most that held, each time that it was tried; absent: nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Tried>,
    /// The least above it that broke each time; absent: nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke: Option<Tried>,
    /// The most that was to be tried of this server, where that is less than of all, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<StoppedAt>,
    /// What was seen first when it broke, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gave_way: String,
    /// Why; absent where nothing broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why there is no result, where a trial failed before its clients came.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnding {
    /// What held and what broke lie as close together as was asked for, and both did so again.
    Found,
    /// Both did so again, but in between trials went now one way, now the other.
    Between,
    /// The most that was to be tried held.
    AtLeast,
    /// Not even the least that can be tried held.
    Nothing,
    /// All tries were used up before.
    OutOfTries,
    /// The time was up before.
    OutOfTime,
    /// A signal ended it.
    Interrupted,
    /// Its server could not be started, or did not answer rightly.
    Failed,
}

/// A value that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// Clients, or requests a second.
    pub value: u64,
    /// How often it was tried.
    pub times: u32,
}

/// An end to what is tried that was seen only on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoppedAt {
    /// Nothing beyond this was tried.
    pub value: u64,
    /// Why not.
    pub because: String,
}

/// The cause of a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Stable name: "max-clients", "server-descriptors", "server-cpu", ...; "unknown" without evidence.
    pub kind: String,
    /// One sentence, without its full stop.
    pub sentence: String,
    /// The evidence, or what was checked if there is none.
    pub evidence: Vec<String>,
    /// Other observations, which may be consequences or coincidences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// What can give way first, by the kinds of a [`Cause`].
pub const CAUSES: [&str; 16] = [
    "max-clients",
    "set-size",
    "pool-size",
    "server-descriptors",
    "threads",
    "memory",
    "mappings",
    "source-ports",
    "client-descriptors",
    "crash",
    "design",
    "accept-queue",
    "client",
    "server-cpu",
    "server-waits",
    "unknown",
];

/// Those of them that are no merit or fault of a server: limits that every server of this machine has, or that the
/// clients have.
const IN_COMMON: [&str; 4] = [
    "server-descriptors",
    "source-ports",
    "client-descriptors",
    "client",
];

impl Cause {
    /// Whether a limit that all servers share ended the search before the server failed by itself.
    pub fn is_in_common(&self) -> bool {
        IN_COMMON.contains(&self.kind.as_str())
    }

    /// What would lift a limit that all servers share.
    pub fn remedy(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            "server-descriptors" => Some("raise the descriptor limit (ulimit -Hn, fs.nr_open)"),
            "client-descriptors" => Some(
                "use more client hosts, or raise the descriptor limit (ulimit -Hn, fs.nr_open)",
            ),
            "source-ports" => Some("use more client addresses or hosts"),
            "client" => Some("give the clients more CPUs (--client-cpus) or hosts"),
            _ => None,
        }
    }
}

/// What a trial of a search tried, and whether the server passed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Clients, or requests a second.
    pub value: u64,
    /// Of the limit, as a share, where the trial shows how the server does below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Whether it held.
    pub held: bool,
    /// Why not, the most telling first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}
