//! The servers of a run: how each is started and stopped, or where it is already running.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::reading::Named;
use super::{ForeignProgram, UsedFile};
use throng_spec::registry::Unsupported;

/// A server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerInfo {
    /// Its name in trials, tables and figures.
    pub name: String,
    /// One line of description.
    pub summary: String,
    /// Its limit by design, if any: "1 client at a time", "1024 descriptors".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structural_limit: Option<String>,
    /// Whether clients beyond this limit wait until others have left, instead of being rejected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_waiting: bool,
    /// Its command line; `{port}` and `{address}` in it are where to listen, `{port2}` and so on are further free
    /// ports. Empty if it is already running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Details of a foreign server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
    /// Its resource limits, by name: "nofile", "nproc", "as".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The working directory of it and its commands; absent for throng's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The command line run once before all of its trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// The command line run once after all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleanup: Vec<String>,
    /// The command line run before each of its trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
    /// The command line run after each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conclude: Vec<String>,
    /// Log files in which it reports why it rejects clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
}

impl ServerMessage {
    /// The kind of a message about file descriptors.
    pub const DESCRIPTORS: &str = "server-descriptors";
}

impl Named for ServerInfo {
    fn name(&self) -> &str {
        &self.name
    }
}

impl ServerInfo {
    /// Whether throng may contact other hosts for it.
    pub fn allows_remote(&self) -> bool {
        self.foreign
            .as_ref()
            .is_some_and(|foreign| foreign.allow_remote)
    }

    /// Its address, if it was running before throng started.
    pub fn running(&self) -> Option<&Running> {
        self.foreign.as_ref()?.running.as_ref()
    }
}

/// How a foreign server is started and stopped. It gets a free port from throng, in its command line or as `PORT` in
/// its environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// How to tell that it is ready: a URL that returns 2xx or 3xx, or a regular expression that its output matches.
    /// Absent if it is ready once it accepts a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// The signal that stops it, like "QUIT"; TERM if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<String>,
    /// Whether its address, if it is already running, and the URL of `ready` may be on another host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_remote: bool,
    /// The program, and the files of its command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ForeignProgram>,
    /// Its address, if it was running before throng started. Then throng neither starts nor stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Running>,
}

/// A server that was already running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Running {
    /// HOST:PORT.
    pub address: String,
    /// The path that clients request, if its URL has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How its processes are identified: "pid 17", "unit nginx.service", "cgroup /system.slice/x"; by its port if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_by: Option<String>,
    /// Its processes when the run began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<RunningProcess>,
    /// Why its processes are unknown, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unsupported>,
}

/// A process of a server that was already running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunningProcess {
    /// Its process ID.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its program, if that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<UsedFile>,
}

/// A message of the server that is known to name a cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerMessage {
    /// Stable name of its subject: "connections", "server-descriptors", "heap", ...
    pub kind: String,
    /// The program that prints it: "nginx".
    pub program: String,
    /// Its meaning.
    pub cause: String,
    /// The remedy.
    pub remedy: String,
    /// Number of occurrences.
    pub times: u64,
    /// The first such line.
    pub line: String,
    /// Where it was found: "output", the name of a log file, "a reply".
    pub found_in: String,
}
