//! A run as it is listed.

use serde::Serialize;

/// How a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// A process writes it.
    Running,
    /// All of it ran.
    Finished,
    /// A signal ended it.
    Interrupted,
    /// A client host was lost.
    HostLost,
    /// A server did not start, or did not answer properly.
    ServerFailed,
    /// Nobody writes it, and it has no end: it was killed.
    Unfinished,
    /// It cannot be read.
    Broken,
}

impl State {
    /// In words.
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

/// A run as it is listed.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Listed {
    /// Its name: the way to its directory.
    pub(super) name: String,
    /// How it is.
    pub(super) state: State,
    pub(super) study: String,
    /// The question it answers.
    pub(super) question: String,
    /// UTC; empty where that is not known.
    pub(super) started_at: String,
    /// The servers, each once.
    pub(super) servers: Vec<String>,
    /// The numbers of clients, rising.
    pub(super) clients: Vec<u32>,
    /// How many parts it has, where it has any.
    pub(super) parts: u32,
    /// Trials in the record.
    pub(super) trials: u64,
    /// Trials there will be, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) planned: Option<u64>,
    /// Warnings about the run.
    pub(super) warnings: u32,
    /// The machine.
    pub(super) machine: String,
    /// The throng that measured: its version and commit.
    pub(super) throng: String,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

impl Listed {
    /// One of which nothing is known.
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
