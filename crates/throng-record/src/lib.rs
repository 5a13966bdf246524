//! What a run leaves on disk: the contract between measuring and reporting.
//!
//! A record is a directory. `run.json` is a [`Run`]; each line of `trials.jsonl` is a [`Trial`],
//! synced to disk before the next trial begins; of an archived record it may be compressed, as
//! `trials.jsonl.gz`. `samples/`, `clients/` and `server/` hold one CSV file a trial, named after
//! [`Trial::file_stem`]; in `clients/`, what happened at a time is reported since the load began, what took
//! a time since the client did. A value that could not be measured is absent,
//! never 0. A study of several parts is a directory of such records, one a part, with `study.json`
//! ([`Study`]) beside them. `schemas/*.schema.json` describe the JSON forms. Whoever writes has the
//! directory's [`Lock`]; reading needs none.
//!
//! Units are part of every name: `_s` seconds, `_ms` milliseconds, `_us` microseconds, `_bytes`.

mod at_load;
pub mod claim;
mod comparison;
mod counts;
mod error;
pub mod format;
mod host;
mod hosts;
mod invalid;
mod latency;
mod limit;
mod live;
mod load;
pub mod load_event;
pub mod load_stats;
mod lock;
pub mod metrics;
pub mod named_file;
mod provenance;
mod purpose;
mod reading;
mod resources;
mod server;
mod settings;
mod side;
mod slices;
pub mod spec;
mod store;
mod study;
pub mod traced;
mod trials;
mod warm_up;
mod writing;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use throng_registry::Unsupported;

use spec::LoadSpec;

pub use at_load::AtLoad;
pub use claim::Claim;
pub use comparison::Comparison;
pub use counts::{ServerCounts, ServerWorker};
pub use error::StoreError;
pub use host::Host;
pub use hosts::{ClientHost, ClockOffset, HostPart, StartSkew};
pub use invalid::{Invalid, InvalidCause, counting, set_aside, to_repeat};
pub use latency::Latency;
pub use limit::{Attempt, CAUSES, Cause, Find, Found, Limit, SearchEnding, StoppedAt, Tried};
pub use live::{LIVE, LivePoint, LiveTrial, read_live};
pub use load::{
    Ceiling, Completion, Correlation, Fairness, FirstFailure, LifeFairness, Load, OpenLoop,
    ProbeClients, ReplyBytes, ServiceSample, TimesOverWindow, TlsFigures, Window,
};
pub use load_event::{LoadEvent, LoadSnapshot, Phase};
pub use load_stats::{LoadStats, StoppedBy};
pub use lock::Lock;
pub use provenance::{ForeignProgram, OtherProcess, ThrongProgram, UsedFile};
pub use purpose::Purpose;
pub use reading::{directory, is_plain, open_if_there, open_in, parse, refuse_link};
pub use resources::Resources;
pub use server::{Foreign, Running, RunningProcess, Said, ServerInfo, keeps_waiting};
pub use side::{Side, Spin};
pub use slices::{HALF_WIDTH, Method, Slice};
pub use store::{Store, read};
pub use study::{LeftOut, Published, PublishedValue, Scene, Study, StudyPart};
pub use trials::{TRIALS, Trials, read_trials};
pub use warm_up::{Settling, Unsettled, WarmUp};

/// The version of the form described here. A reader refuses any other.
pub const SCHEMA_VERSION: u32 = 3;

/// The directory within a record that holds a copy of the one it is compared with.
pub const BASELINE: &str = "baseline";

/// `run.json`: everything about a run but the trials themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Version of this form.
    pub schema_version: u32,
    /// Version of throng that wrote the record.
    pub throng_version: String,
    /// How that version was built: "release, x86_64-linux-gnu".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub throng_build: String,
    /// What that program was made of.
    #[serde(default, skip_serializing_if = "ThrongProgram::is_unknown")]
    pub throng_program: ThrongProgram,
    /// What was run.
    pub study: StudyInfo,
    /// The seed from which the order of trials was shuffled.
    pub seed: u64,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// UTC, RFC 3339; absent while the run goes on and after a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// How the run ended.
    pub ending: Ending,
    /// The command line that started the run.
    pub arguments: Vec<String>,
    /// The settings in force, defaults included.
    pub settings: Settings,
    /// The servers, in the order in which they are shown.
    pub servers: Vec<ServerInfo>,
    /// The server that does least, which says what the clients can reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_server: Option<ServerInfo>,
    /// The machine; of several, the one that leads and has the servers.
    pub host: Host,
    /// The hosts from which clients come, where these are not on that machine alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_hosts: Vec<ClientHost>,
    /// What the servers are compared with, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The limit that was searched for, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Probes that were chosen and cannot measure on this machine, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, Unsupported>,
    /// How many trials were planned.
    pub trials_planned: u32,
    /// What a reader must know before trusting the figures.
    pub warnings: Vec<Warning>,
}

impl Run {
    /// CPUs that the server can use.
    pub fn server_cpus(&self) -> u32 {
        self.cpus_of(&self.settings.server_cpus)
    }

    /// CPUs that the clients can use: no more than they have threads.
    pub fn client_cpus(&self) -> u32 {
        let threads = self.settings.load_threads.max(1);
        self.cpus_of(&self.settings.client_cpus).min(threads)
    }

    /// The most that a server held, where that was searched for.
    pub fn held_by(&self, server: &str) -> Option<u64> {
        let mut found = self.limit.iter().flat_map(|limit| &limit.found);
        let found = found.find(|found| found.server == server)?;
        Some(found.held?.value)
    }

    fn cpus_of(&self, bound: &[u32]) -> u32 {
        if bound.is_empty() {
            self.host.cpus.max(1)
        } else {
            bound.len() as u32
        }
    }
}

/// What was run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyInfo {
    /// Name: "overview", or that of the study file.
    pub name: String,
    /// The question the study answers, one line.
    pub question: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It is going on, or throng itself was killed.
    Unfinished,
    /// Every planned trial ran.
    Complete,
    /// Stopped by a signal; the trials finished until then are kept.
    Interrupted,
    /// A client host was lost; the trials until then are kept, the last one says which host.
    HostLost,
    /// A server did not start, or did not answer properly, in its first trial, which ended the run.
    ServerFailed,
}

impl Ending {
    /// Of several runs that belong together: that of the worst.
    pub fn of_parts(parts: impl Iterator<Item = Self>) -> Self {
        let weight = |ending: &Self| match ending {
            Self::Complete => 0,
            Self::Unfinished => 1,
            Self::ServerFailed => 2,
            Self::HostLost => 3,
            Self::Interrupted => 4,
        };
        parts.max_by_key(weight).unwrap_or(Self::Complete)
    }
}

/// The settings of a run, in force for all of its trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The load of the trials with most clients. In others these are fewer; what counts events and captures
    /// packets takes less time, and below a maximum there is a rate.
    pub load: LoadSpec,
    /// The dialogue in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dialogue: String,
    /// Numbers of clients, in rising order.
    pub clients: Vec<u32>,
    /// The most clients that a server meets, of those that do not meet all numbers of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub most_clients: BTreeMap<String, u32>,
    /// How trials that time are made.
    #[serde(default, skip_serializing_if = "Method::is_trials")]
    pub method: Method,
    /// How often each (server, clients) pair is tried.
    pub runs: u32,
    /// How often events are counted, and packets captured, of each pair.
    #[serde(default = "once")]
    pub profiled_runs: u32,
    /// How long a server may take from its start until it is ready.
    pub ready_timeout_s: f64,
    /// How long a server that is not one of throng's own may take to stop before it is killed.
    #[serde(default = "usual_stop_timeout")]
    pub stop_timeout_s: f64,
    /// Whether the others are measured where a server does not start, or does not answer properly, in its first trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_going: bool,
    /// How long a command before or after a trial, or all trials of a server, may take.
    #[serde(default = "usual_hook_timeout")]
    pub hook_timeout_s: f64,
    /// Where servers listen, where that is not this machine's loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_address: Option<IpAddr>,
    /// Of a hundred packets between clients and server so many are lost on purpose, each way; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_percent: Option<f64>,
    /// Accept-queue length asked for; the kernel caps it at somaxconn.
    pub backlog: u32,
    /// CPUs the server is bound to; empty: not bound.
    pub server_cpus: Vec<u32>,
    /// CPUs the clients are bound to; empty: not bound.
    pub client_cpus: Vec<u32>,
    /// Load-generating threads.
    pub load_threads: u32,
    /// Parts of the rate that each pair reached at which it is tried again, in percent, rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_at_percent: Vec<u32>,
    /// The probes that measure, by name.
    #[serde(default)]
    pub probes: Vec<String>,
    /// The server that takes part a second time, as its own control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// How often an invalid trial is repeated at most.
    #[serde(default)]
    pub retries: u32,
    /// Conditions under which the run counts as failed, as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_if: Vec<String>,
}

/// Where a record does not say how often.
fn once() -> u32 {
    1
}

/// Where a record does not say it.
fn usual_hook_timeout() -> f64 {
    60.0
}

/// Where a record does not say it.
fn usual_stop_timeout() -> f64 {
    30.0
}

/// Something the reader must know, with its cause and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// Stable name: "client-limited", "few-runs", ...
    pub kind: String,
    /// What was seen, with its numbers.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// One line of `trials.jsonl`: one server under one load, once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Place in the shuffled order, from 0.
    pub index: u32,
    /// Repetition, from 0.
    pub round: u32,
    /// [`ServerInfo::name`].
    pub server: String,
    /// Clients wanted.
    pub clients: u32,
    /// What the trial is for.
    #[serde(default)]
    pub purpose: Purpose,
    /// What of a limit it tried, where one was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// The load it was given, where that is a part of the rate reached before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_load: Option<AtLoad>,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// From starting the server to its end.
    pub took_s: f64,
    /// Why there are no figures, when the trial failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it does not count if there are valid trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Invalid>,
    /// The place of the planned trial that it repeats, where one was invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// What the clients saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The server's process tree, measured from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side: Option<Side>,
    /// The load generator's process, measured likewise; where there are several, `hosts` has each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_side: Option<Side>,
    /// What became of each client host's part of the load, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPart>,
    /// How far apart these began to count replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew: Option<StartSkew>,
    /// The connections between both, as the kernel reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Side>,
    /// The slices that it came in, where its server ran side by side with others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// The speed of the CPUs around the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin: Option<Spin>,
    /// What the server itself counted, when it is one of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_counts: Option<ServerCounts>,
    /// Messages of the server, on its output, in its logs or to its clients, that are known to name a cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Said>,
    /// What a reader must know about this trial.
    pub warnings: Vec<Warning>,
}

impl Trial {
    /// Which one it is of those of its server and number of clients, and what it is for: "round 2",
    /// "round 1, at 80 % of the maximum rate".
    pub fn occasion(&self) -> String {
        self.purpose.occasion(self.round, self.percent())
    }

    /// Below the maximum: at which part of the rate reached before.
    pub fn percent(&self) -> Option<u32> {
        self.at_load.map(|at_load| at_load.percent)
    }

    /// Name of this trial's CSV files, without folder and ending: "0007-epoll-100-r1".
    pub fn file_stem(&self) -> String {
        let server: String = self
            .server
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '-' {
                    c
                } else {
                    '_'
                }
            })
            .take(40)
            .collect();
        format!(
            "{:04}-{server}-{}-r{}",
            self.index, self.clients, self.round
        )
    }
}

/// Why a trial has no figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Where in the trial's life: "prepare", "start", "verify", "load", "stop", "conclude".
    pub stage: String,
    /// What went wrong.
    pub reason: String,
    /// The last output of the process that failed, bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}
