//! An entry of the list of runs.

use serde::Serialize;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Running: a process is writing the record.
    Running,
    /// Complete.
    Finished,
    /// Interrupted by a signal.
    Interrupted,
    /// A client host was lost.
    HostLost,
    /// A server did not start, or did not reply correctly.
    ServerFailed,
    /// Killed: no process is writing the record, and it was never completed.
    Unfinished,
    /// Unreadable.
    Broken,
}

impl State {
    /// The state as text.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::HostLost => "client host lost",
            Self::ServerFailed => "server failed",
            Self::Unfinished => "unfinished",
            Self::Broken => "broken",
        }
    }
}

/// An entry of the list of runs.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RunEntry {
    /// Its name: the path of its directory.
    pub(super) name: String,
    /// Its state.
    pub(super) state: State,
    pub(super) study: String,
    /// Its question.
    pub(super) question: String,
    /// Start time in UTC; empty if unknown.
    pub(super) started_at: String,
    /// The servers, each once.
    pub(super) servers: Vec<String>,
    /// The numbers of clients, ascending.
    pub(super) clients: Vec<u32>,
    /// The number of its parts, if it has any.
    pub(super) parts: u32,
    /// Trials in the record.
    pub(super) trials: u64,
    /// Expected trials, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) planned: Option<u64>,
    /// Warnings about the run.
    pub(super) warnings: u32,
    /// The machine.
    pub(super) machine: String,
    /// Version and commit of the throng that took the measurements.
    pub(super) throng: String,
    /// Why it is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

impl RunEntry {
    /// An entry of a run about which nothing is known yet.
    pub(super) fn starting(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: State::Running,
            study: String::new(),
            question: String::new(),
            started_at: String::new(),
            servers: Vec::new(),
            clients: Vec::new(),
            parts: 0,
            trials: 0,
            planned: None,
            warnings: 0,
            machine: String::new(),
            throng: String::new(),
            problem: None,
        }
    }
}
