//! Part 1: a server for every I/O model.
//!
//! All models share listening ([`listen`]), connections ([`conn`]), counting ([`server_stats`]) and shutdown
//! ([`lifecycle`]). They differ only in how they wait and divide the work. Otherwise a comparison would measure their
//! authors.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

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
mod work;
pub mod worker;
mod worker_buffers;

use std::time::Duration;

use serde::Serialize;

use lifecycle::Drain;
use listen::Listener;
use server_stats::ServerStats;
use throng_protocol::{self as protocol, Protocol, Session};
use throng_spec::registry::{Entry, Info, Unsupported};
use throng_sys::signal::Stop;
use tuning::Tuning;
use worker::Worker;

/// One way to wait for and divide I/O.
pub struct Model {
    /// Name and summary.
    pub info: Info,
    /// A description for readers.
    pub card: Card,
    /// The number of threads or processes, for models with several.
    pub worker_layout: WorkerLayout,
    /// The flags of `throng serve` that apply only to this model.
    pub knobs: &'static [&'static str],
    supported: fn() -> Result<(), Unsupported>,
    /// Serves until it should stop, and returns once drained. An error concerns the whole server. A broken peer costs
    /// only its connection.
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

/// The fixed block at the top of each model's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Card {
    /// How it works, in a sentence or two.
    pub idea: &'static str,
    /// The system call in which it waits.
    pub waits_in: &'static str,
    /// System calls per request of one client when many are active.
    pub system_calls: &'static str,
    /// Its processes and threads.
    pub processes: &'static str,
    /// Its strengths.
    pub good_at: &'static str,
    /// Its weaknesses.
    pub breaks_when: &'static str,
    /// References.
    pub source: &'static str,
    /// Its limit by design, for reports; empty if only resources limit it.
    pub limit: &'static str,
    /// Whether clients beyond this limit wait until others have left, instead of being rejected.
    pub waits: bool,
    /// Its page, in Markdown.
    #[serde(skip)]
    pub page: &'static str,
}

/// How the work is divided among threads or processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerLayout {
    /// One, or one per client.
    AsNeeded,
    /// A fixed number, all accepting from one listening socket.
    Pool,
    /// One per CPU, all accepting from one listening socket.
    PerCpu,
    /// One per CPU, each with its own listening socket.
    Reactors,
}

/// Default size of a [`WorkerLayout::Pool`].
const POOL: usize = 256;

impl WorkerLayout {
    /// Default number of workers if the server may use `cpus` CPUs.
    pub fn members(self, cpus: usize) -> usize {
        match self {
            Self::AsNeeded => 1,
            Self::Pool => POOL,
            Self::PerCpu | Self::Reactors => cpus,
        }
    }

    /// Number of listening sockets for `members` workers.
    pub fn listeners(self, members: usize) -> usize {
        match self {
            Self::AsNeeded | Self::Pool | Self::PerCpu => 1,
            Self::Reactors => members,
        }
    }
}

/// Everything that a model needs to serve.
#[derive(Clone, Copy)]
pub struct Server {
    /// The listener.
    pub listener: &'static Listener,
    /// The listeners of [`WorkerLayout::Reactors`], one per worker; the first one is `listener`.
    pub listeners: &'static [Listener],
    /// The request to stop.
    pub stop: Stop,
    /// The dialogue.
    pub protocol: &'static dyn Protocol,
    /// Parameters of the dialogue.
    pub offer: protocol::Offer,
    /// The statistics.
    pub stats: &'static ServerStats,
    /// The worker, if there are several.
    pub worker: Worker,
    /// Number of threads or processes, for models with a fixed number.
    pub workers: usize,
    /// Options of individual models.
    pub tuning: Tuning,
    /// How long clients have to receive their last answers after a stop.
    pub drain: Duration,
    /// Idle timeout.
    pub idle_timeout: Option<Duration>,
    /// Timeout of an incomplete request, from its first byte.
    pub request_timeout: Option<Duration>,
}

impl Server {
    /// The server half for a new connection.
    pub fn session(&self) -> Box<dyn Session> {
        let session = self.protocol.session(&self.offer);
        match self.tuning.work {
            Duration::ZERO => session,
            time => Box::new(work::Working::of(session, time)),
        }
    }

    /// The same server, for one of its workers.
    #[must_use]
    pub fn for_worker(self, worker: Worker) -> Self {
        Self { worker, ..self }
    }

    /// Starts the time limit of the drain.
    pub fn begin_drain(&self) -> Drain {
        Drain::new(self.drain)
    }
}
