//! Loads that come from several hosts, as if they were one program.
//!
//! The host that leads a run starts the server, measures it and divides each load among client hosts
//! ([`HostAssignment`]). On each of them, an [`Agent`] runs its part of the load as a process, with its own probes,
//! and reports. A [`Cluster`] carries assignments and reports between them. The launcher of the hosts implements it
//! (`throng::cli::main_with`). It moves bytes (both are JSON) and starts phases, and knows nothing of loads.
//!
//! ```text
//! leading host                                     each client host
//!   Cluster::start(…) ────────── assignment as JSON ─→ Agent::start(assignment)
//!   Cluster::receive(deadline) ← report as JSON ────── Agent::next(deadline), again and again
//!   Cluster::proceed() ───────── message to all ─────→ Agent::proceed()
//!   Cluster::stop(limit) ─────── message to all ─────→ Agent::stop(limit)
//! ```

mod agent;
mod divide;
pub(crate) mod follow;
mod gather;
pub(crate) mod live_snapshot;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use agent::Agent;
pub use divide::MOST_ROWS;
pub(super) use divide::{WholeLoad, divide};
pub(super) use gather::{Gathering, LoadNews};

use super::host;
use throng_record::{ClientHost, LoadEvent, LoadStats, Purpose, Side};
use throng_spec::{Assignment, Endpoint};

/// The client hosts of a run, implemented by their launcher.
///
/// Hosts are identified by their index in [`hosts`](Cluster::hosts). Dropping a cluster ends its processes on all
/// hosts.
pub trait Cluster {
    /// All hosts, always in the same order, lost ones included. Their clock offsets are as of the last
    /// [`start`](Cluster::start).
    fn hosts(&self) -> &[ClientHost];

    /// Measures the clock offsets again and sends each host its assignment; other hosts do nothing. Late reports of
    /// earlier assignments are dropped.
    ///
    /// # Errors
    /// When nothing more can be sent. [`receive`](Cluster::receive) reports an unreachable host as lost.
    fn start(&mut self, orders: &[HostAssignment]) -> anyhow::Result<()>;

    /// The next report of any host, awaited until `deadline` without using CPU. Reports of one host keep their order. A
    /// host is reported lost once, and again in each later trial that has an assignment for it.
    fn receive(&mut self, deadline: Instant) -> HostMessage;

    /// Starts the next phase on all living hosts with an assignment, at the same moment by their clocks.
    ///
    /// # Errors
    /// When nothing more can be sent.
    fn proceed(&mut self) -> anyhow::Result<()>;

    /// Ends everything on all hosts, and returns when it has ended or after `limit`.
    fn stop(&mut self, limit: Duration);
}

/// A message from a host.
#[derive(Debug)]
pub enum HostMessage {
    /// A report.
    From {
        /// Index of the host.
        host: usize,
        /// The report.
        report: Report,
    },
    /// It is dead, stopped or unreachable.
    Lost {
        /// Index of the host.
        host: usize,
        /// The evidence.
        reason: String,
    },
    /// No message in time.
    Late,
}

/// A client host's part of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAssignment {
    /// The index of its host.
    pub host: usize,
    /// The input of its load.
    pub load: Assignment,
    /// CPUs to bind it to; empty for any.
    pub cpus: Vec<u32>,
    /// Its share of the clients.
    pub clients: u32,
    /// Address of the server.
    pub server: Endpoint,
    /// The names of its probes.
    pub probes: Vec<String>,
    /// The purpose of the trial.
    pub purpose: Purpose,
    /// Whether its result includes a row per client.
    pub rows: bool,
}

/// A report of a client host. Only an event is followed by more reports.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Its load entered a phase, or reported its number of clients.
    Event(LoadEvent),
    /// Its load ended normally.
    Finished(Box<HostResult>),
    /// Its load failed.
    Failed {
        /// The reason.
        reason: String,
        /// The last lines of the load's output.
        output: String,
    },
}

/// The result of a client host's part of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostResult {
    /// The stats of its clients.
    pub seen: LoadStats,
    /// The load's process, measured from outside.
    pub side: Option<Side>,
    /// CSV with a header and a row per client, if requested.
    pub rows: Option<String>,
}

/// Where the clients of a run are.
pub enum Origin {
    /// On this host, in a process.
    Here,
    /// On these hosts.
    Cluster(Box<dyn Cluster>),
}

impl Origin {
    /// The client hosts; empty if all clients are here.
    pub fn hosts(&self) -> &[ClientHost] {
        match self {
            Self::Here => &[],
            Self::Cluster(cluster) => cluster.hosts(),
        }
    }
}

/// This machine as a client host; the launcher sets its clock offset. `ranks` client hosts share the CPUs that this
/// process may use.
pub fn this_host(rank: u32, ranks: u32) -> ClientHost {
    let name = rustix::system::uname();
    ClientHost {
        name: name.nodename().to_string_lossy().into_owned(),
        rank,
        cpus: (host::usable_cpus().len() as u32 / ranks.max(1)).max(1),
        kernel: host::kernel(),
        clock: None,
    }
}
