//! Part 1: a reference server for every I/O model.
//!
//! All models share listening ([`listen`]), what happens on a connection ([`conn`]), counting
//! ([`server_stats`]) and the way to end ([`lifecycle`]). They differ only in how they wait and how
//! they divide the work, or a comparison would measure their author.

pub mod buffer_pool;
pub mod close_reason;
pub mod conn;
pub mod lifecycle;
pub mod listen;
pub mod models;
#[cfg(target_os = "linux")]
pub mod processes;
pub mod server_stats;
pub mod table;
pub mod tuning;
mod unix_socket;
pub mod worker;
mod worker_buffers;

use std::time::Duration;

use serde::Serialize;

use lifecycle::Drain;
use listen::Listener;
use server_stats::ServerStats;
use throng_protocol::{self as protocol, Protocol, Session};
use throng_registry::{Entry, Info, Unsupported};
use throng_sys::signal::Stop;
use tuning::Tuning;
use worker::Worker;

/// One way to wait for and divide I/O.
pub struct Model {
    /// Name and summary.
    pub info: Info,
    /// What a reader should know about it.
    pub card: Card,
    /// How many threads or processes serve, in models that have a number of them.
    pub worker_layout: WorkerLayout,
    /// The flags of `throng serve` that only some models know, and this one does.
    pub knobs: &'static [&'static str],
    supported: fn() -> Result<(), Unsupported>,
    /// Serves until it should stop, and returns once drained. Its errors are what breaks the whole server; a
    /// broken peer costs one connection.
    pub run: fn(Server) -> anyhow::Result<()>,
}

impl Entry for Model {
    fn info(&self) -> Info {
        self.info
    }

    fn supported(&self) -> Result<(), Unsupported> {
        (self.supported)()
    }
}

/// The fixed block that opens each model's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Card {
    /// How it works, in a sentence or two.
    pub idea: &'static str,
    /// The call in which it waits.
    pub waits_in: &'static str,
    /// System calls for one request of one client while many are active.
    pub system_calls: &'static str,
    /// Processes and threads it consists of.
    pub processes: &'static str,
    /// Where it shines.
    pub good_at: &'static str,
    /// Where it gives way.
    pub breaks_when: &'static str,
    /// Where to read about it.
    pub source: &'static str,
    /// What limits it by design, for reports; empty when nothing but resources does.
    pub limit: &'static str,
    /// The page about it, in Markdown.
    #[serde(skip)]
    pub page: &'static str,
}

/// How the work is divided among threads or processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerLayout {
    /// One, or one for each client.
    AsNeeded,
    /// A fixed number, who take clients from one listening socket.
    Pool,
    /// One for each CPU, who take clients from one listening socket.
    PerCpu,
    /// One for each CPU, each with a listening socket of its own.
    Reactors,
}

/// Members of a [`WorkerLayout::Pool`] when the user asks for no number.
const POOL: usize = 256;

impl WorkerLayout {
    /// Members when the user asks for no number and the server may use so many CPUs.
    pub fn members(self, cpus: usize) -> usize {
        match self {
            Self::AsNeeded => 1,
            Self::Pool => POOL,
            Self::PerCpu | Self::Reactors => cpus,
        }
    }

    /// Listening sockets for so many members.
    pub fn listeners(self, members: usize) -> usize {
        match self {
            Self::AsNeeded | Self::Pool | Self::PerCpu => 1,
            Self::Reactors => members,
        }
    }
}

/// Everything a model needs in order to serve.
#[derive(Clone, Copy)]
pub struct Server {
    /// Where clients arrive.
    pub listener: &'static Listener,
    /// Where they arrive at each member of [`WorkerLayout::Reactors`]; the first one is `listener`.
    pub listeners: &'static [Listener],
    /// The wish to stop.
    pub stop: Stop,
    /// What is said.
    pub protocol: &'static dyn Protocol,
    /// How it is said.
    pub offer: protocol::Offer,
    /// Where it is counted.
    pub stats: &'static ServerStats,
    /// Who serves, where there are several.
    pub worker: Worker,
    /// Threads or processes that serve, in the models that have a fixed number of them.
    pub workers: usize,
    /// What only single models are told.
    pub tuning: Tuning,
    /// How long clients have to take their last answers once asked to stop.
    pub drain: Duration,
    /// How long a connection may say and take nothing before it is closed.
    pub idle_timeout: Option<Duration>,
    /// How long a request may take to come, from its first byte to its last.
    pub request_timeout: Option<Duration>,
}

impl Server {
    /// The server half for a new connection.
    pub fn session(&self) -> Box<dyn Session> {
        self.protocol.session(&self.offer)
    }

    /// The same server, as one of its workers sees it.
    #[must_use]
    pub fn seen_by(self, worker: Worker) -> Self {
        Self { worker, ..self }
    }

    /// Starts the time that clients have for their last answers.
    pub fn begin_drain(&self) -> Drain {
        Drain::new(self.drain)
    }
}
