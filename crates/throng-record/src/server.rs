//! The servers of a run: how each is started and ended, or where it runs already.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ForeignProgram, UsedFile};
use throng_registry::Unsupported;

/// One of the servers compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerInfo {
    /// Name it goes by in trials, tables and figures.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// What limits it by design, where something does: "1 client at a time", "1024 descriptors".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structural_limit: Option<String>,
    /// The command line that starts it; `{port}` and `{address}` in it stand for where it is to
    /// listen, `{port2}` and so on for further free ports. Empty where it runs already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What is particular to a server that is not one of throng's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
    /// Limits that it is started under, by name: "nofile", "nproc", "as".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The directory in which it and its commands are started; absent: throng's own.
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
    /// Log files in which it says why it turns clients away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
}

impl ServerInfo {
    /// Where it runs, if it ran before throng did.
    pub fn running(&self) -> Option<&Running> {
        self.foreign.as_ref()?.running.as_ref()
    }
}

/// Whether clients beyond a structural limit wait until others have left, instead of being rejected.
pub fn keeps_waiting(structural_limit: &str) -> bool {
    structural_limit.contains("at a time")
}

/// How a server is dealt with that is not one of throng's own. One that throng starts is given a free port, in its
/// command line or as `PORT` in its environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// What says that it is ready: `http://...` or `https://...`, which is to answer with 2xx or 3xx, or a regular expression that its
    /// output matches; absent: it is ready when it accepts a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// The signal that it is asked to stop with, like "QUIT"; absent: TERM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<String>,
    /// The program, and the files that its command line names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ForeignProgram>,
    /// Where it runs, if it ran before throng did. Then throng neither starts nor ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Running>,
}

/// A server that ran already.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Running {
    /// HOST:PORT.
    pub address: String,
    /// What clients ask for there, where its URL says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What names its processes: "pid 17", "unit nginx.service", "cgroup /system.slice/x"; absent: whoever has the
    /// port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_by: Option<String>,
    /// Whether it may be on another host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_remote: bool,
    /// Its processes when the run began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<RunningProcess>,
    /// Why nothing is known of its processes, where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unsupported>,
}

/// A process of a server that ran already.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningProcess {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its program, where that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<UsedFile>,
}

/// A message of the server that is known to name a cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// Stable name of what it is about: "connections", "server-descriptors", "heap", ...
    pub kind: String,
    /// Whose words these are: "nginx".
    pub program: String,
    /// What they mean.
    pub cause: String,
    /// What to change.
    pub remedy: String,
    /// How often it occurred.
    pub times: u64,
    /// The first such line.
    pub line: String,
    /// Where it stood: "output", the name of a log file, "a reply".
    pub found_in: String,
}
