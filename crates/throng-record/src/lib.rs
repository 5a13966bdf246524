//! The files that a run writes: the contract between measuring and reporting.
//!
//! A record is a directory. `run.json` is a [`Run`]. Each line of `trials.jsonl` is a [`Trial`], synced to disk
//! before the next trial begins; in an archived record it may be compressed, as `trials.jsonl.gz`. `samples/`,
//! `clients/` and `server/` contain one CSV file per trial, named after [`Trial::file_stem`]. In `clients/`, points
//! in time count from the start of the load, durations from the start of the client. A value that could not be
//! measured is absent, never 0. A study of several parts is a directory of such records, one per part, and of
//! `study.json` ([`Study`]). `schemas/*.schema.json` describe the JSON forms. Writers hold the directory's [`Lock`];
//! readers need none.
//!
//! Units are part of every name: `_s` seconds, `_ms` milliseconds, `_us` microseconds, `_bytes`.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

mod at_load;
pub mod claim;
mod comparison;
pub mod delayed_ack;
pub mod duration;
mod error;
pub mod findings;
pub mod format;
mod host;
mod hosts;
mod invalid;
mod latency;
mod limit;
mod link;
mod live;
mod load;
pub mod load_event;
pub mod load_stats;
mod lock;
pub mod metrics;
pub mod profile;
mod provenance;
mod purpose;
mod reading;
mod resources;
mod server;
mod settings;
mod side;
mod slices;
mod store;
mod study;
pub mod traced;
mod trials;
mod warm_up;
mod writing;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use throng_spec::registry::Unsupported;
use throng_spec::{LoadSpec, ServerCounts};

pub use at_load::AtLoad;
pub use claim::Claim;
pub use comparison::Comparison;
pub use error::StoreError;
pub use findings::{FINDINGS, Finding, Severity};
pub use host::{GroupLimits, Host};
pub use hosts::{ClientHost, ClockOffset, HostPart, StartSkew};
pub use invalid::{counting, leaves_clients_unserved, set_aside, to_repeat};
pub use latency::Latency;
pub use limit::{Attempt, Cause, Find, Limit, LimitResult, SearchEnding, StoppedAt, TriedValue};
pub use link::Link;
pub use live::{LIVE, LivePoint, LiveTrial, ServerSoFar, SideBySide, read_live};
pub use load::{
    Ceiling, Completion, Correlation, Fairness, FirstFailure, LifeFairness, Load, OpenLoop,
    ProbeClients, ReplyBytes, SessionStep, Sessions, TimesOverWindow, TlsFigures, Window,
    measurable,
};
pub use load_event::{LoadEvent, LoadSnapshot, Phase};
pub use load_stats::{LoadStats, StoppedBy};
pub use lock::Lock;
pub use profile::Profile;
pub use provenance::{ForeignProgram, OtherProcess, ThrongProgram, UsedFile};
pub use purpose::Purpose;
pub use reading::{directory, is_plain, open_if_there, open_in, parse, refuse_other};
pub use resources::Resources;
pub use server::{Foreign, Running, RunningProcess, ServerInfo, ServerMessage};
pub use side::{ERROR_OF_MEMORY, MemoryPart, Side, Spin};
pub use slices::{HALF_WIDTH, Method, Slice, Why};
pub use store::{Store, read};
pub use study::{Expected, LeftOut, Published, PublishedValue, Scaled, Scene, Study, StudyPart};
pub use trials::{TRIALS, Trials, read_trials};
pub use warm_up::{Settling, Unsettled, WarmUp};
pub use writing::Draft;

/// Repeats of a planned trial with `--resume --retry-invalid`, beyond the run's own.
const MOST_RETRIED: usize = 10;

/// The version of the format described here. Readers reject any other.
pub const SCHEMA_VERSION: u32 = 7;

/// The directory within a record with a copy of its baseline.
pub const BASELINE: &str = "baseline";

/// `run.json`: everything about a run except its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Version of this format.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: u32,
    /// Version of throng that wrote the record.
    pub throng_version: String,
    /// The build of that version: "release, x86_64-linux-gnu".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub throng_build: String,
    /// The build of that program.
    #[serde(default, skip_serializing_if = "ThrongProgram::is_unknown")]
    pub throng_program: ThrongProgram,
    /// The study.
    pub study: StudyInfo,
    /// The seed of the order of trials.
    pub seed: u64,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// UTC, RFC 3339; absent during the run and after a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// How the run ended.
    pub ending: Ending,
    /// The command line that started the run.
    pub arguments: Vec<String>,
    /// The settings, including defaults.
    pub settings: Settings,
    /// The servers, in the order of reports.
    #[serde(deserialize_with = "reading::distinct")]
    pub servers: Vec<ServerInfo>,
    /// The minimal server, which shows the ceiling of the clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_server: Option<ServerInfo>,
    /// The machine; with several, the one that leads and runs the servers.
    pub host: Host,
    /// The client hosts, if clients are not only on that machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_hosts: Vec<ClientHost>,
    /// The baselines, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The search for a limit, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Chosen probes that cannot measure on this machine, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, Unsupported>,
    /// Number of planned trials.
    pub trials_planned: u32,
    /// What limits its results, beyond the findings of single trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// Maximum number of trials of a record.
const MOST_TRIALS: usize = 100_000;

impl Run {
    /// CPUs that the server can use.
    pub fn server_cpus(&self) -> u32 {
        self.cpus_of(&self.settings.server_cpus)
    }

    /// CPUs that the clients can use, at most one per thread.
    pub fn client_cpus(&self) -> u32 {
        let threads = self.settings.load_threads.max(1);
        self.cpus_of(&self.settings.client_cpus).min(threads)
    }

    /// Maximum number of trials in a record. A search decides on them as it goes.
    pub fn most_trials(&self) -> usize {
        let each = 1 + self.settings.retries as usize + MOST_RETRIED;
        match self.limit {
            Some(_) => MOST_TRIALS,
            None => MOST_TRIALS.min(self.trials_planned as usize * each),
        }
    }

    /// The limit of a server, if it was searched for.
    pub fn limit_of(&self, server: &str) -> Option<u64> {
        let found = self
            .limit
            .iter()
            .flat_map(|limit| &limit.found)
            .find(|found| found.server == server)?;
        Some(found.passed?.value)
    }

    fn cpus_of(&self, bound: &[u32]) -> u32 {
        if bound.is_empty() {
            self.host.cpus.max(1)
        } else {
            bound.len() as u32
        }
    }
}

/// The name and question of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyInfo {
    /// Name: "overview", or the name of the study file.
    pub name: String,
    /// The question of the study, on one line.
    pub question: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It is still running, or throng itself was killed.
    Unfinished,
    /// Every planned trial ran.
    Complete,
    /// Interrupted by a signal; finished trials are kept.
    Interrupted,
    /// A client host was lost; the trials until then are kept, and the last one names the host.
    HostLost,
    /// A server did not start, or did not reply correctly, in its first trial, which ended the run.
    ServerFailed,
}

impl Ending {
    /// The worst status of several related runs.
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

/// The settings of all trials of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The load of trials with the maximum number of clients. Other trials have fewer clients, trials that count
    /// events or capture packets are shorter, and trials below a maximum have a rate.
    pub load: LoadSpec,
    /// The dialogue, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dialogue: String,
    /// Numbers of clients, ascending.
    #[serde(deserialize_with = "reading::ascending")]
    pub clients: Vec<u32>,
    /// Maximum clients per server, for servers that skip some numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_clients: BTreeMap<String, u32>,
    /// How timed trials are run.
    #[serde(default, skip_serializing_if = "Method::is_trials")]
    pub method: Method,
    /// Whether the servers are also watched, in turns that are not timed.
    #[serde(default, skip_serializing_if = "Why::is_off")]
    pub why: Why,
    /// Timed trials per server and number of clients.
    pub runs: u32,
    /// Trials that count events, and trials that capture packets, per server and number of clients.
    #[serde(default = "once")]
    pub profiled_runs: u32,
    /// Time limit until a server is ready.
    pub ready_timeout_s: f64,
    /// Time limit for a foreign server to stop before it is killed.
    #[serde(default = "usual_stop_timeout")]
    pub stop_timeout_s: f64,
    /// Whether the run continues if a server does not start, or does not reply correctly, in its first trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_going: bool,
    /// Time limit of a command before or after a trial, or all trials of a server.
    #[serde(default = "usual_hook_timeout")]
    pub hook_timeout_s: f64,
    /// The servers' address, if it is not this machine's loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_address: Option<IpAddr>,
    /// The simulated link between clients and servers; absent for plain loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Requested accept queue length; the kernel caps it at somaxconn.
    pub backlog: u32,
    /// CPUs of the server; empty for any.
    pub server_cpus: Vec<u32>,
    /// CPUs of the clients; empty for any.
    pub client_cpus: Vec<u32>,
    /// Load-generating threads.
    pub load_threads: u32,
    /// Percentages of each server's highest rate at which it is measured again, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_at_percent: Vec<u32>,
    /// Whether a trial counts although some clients got nothing: that is what the run is about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unserved_counts: bool,
    /// The names of the probes.
    #[serde(default)]
    pub probes: Vec<String>,
    /// The server that runs twice, as a control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Maximum repeats of an invalid trial.
    #[serde(default)]
    pub retries: u32,
    /// Conditions that fail the run, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_if: Vec<String>,
    /// The price of an hour of one CPU, in any currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_cpu_hour: Option<f64>,
}

/// The default for records without it.
fn once() -> u32 {
    1
}

/// The default for records without it.
fn usual_hook_timeout() -> f64 {
    60.0
}

/// The default for records without it.
fn usual_stop_timeout() -> f64 {
    30.0
}

/// One line of `trials.jsonl`: one server under one load, once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Index in the random order, from 0.
    pub index: u32,
    /// Round, from 0.
    pub round: u32,
    /// [`ServerInfo::name`].
    pub server: String,
    /// Number of clients.
    pub clients: u32,
    /// The purpose of the trial.
    #[serde(default)]
    pub purpose: Purpose,
    /// The value that it tried, in a search for a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// Its load, if that is a percentage of the rate reached before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_load: Option<AtLoad>,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// From the start of the server to its end.
    pub took_s: f64,
    /// Why there are no results, if the trial failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The index of the planned trial that it repeats, if that was invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// The clients' results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The server's process tree, measured from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side: Option<Side>,
    /// The load generator's process, measured in the same way; with several, each is in `hosts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_side: Option<Side>,
    /// The outcome of each client host's part of the load, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPart>,
    /// The difference between their starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew: Option<StartSkew>,
    /// The connections between both sides, as reported by the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Side>,
    /// Its slices, if servers ran side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// What the server does with its CPU time, if it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The speed of the CPUs before and after the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin: Option<Spin>,
    /// Counts kept by a built-in server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_counts: Option<ServerCounts>,
    /// Messages of the server that are known to name a cause, from its output, its logs or its replies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_messages: Vec<ServerMessage>,
    /// What is wrong with it, or limits its results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

impl Trial {
    /// Its number among the trials of this server with this number of clients, and its purpose: "round 2", "round 1,
    /// at 80 % of the maximum rate".
    pub fn occasion(&self) -> String {
        self.purpose.occasion(self.round, self.percent())
    }

    /// For a trial below the maximum rate, the percentage of the rate reached before.
    pub fn percent(&self) -> Option<u32> {
        self.at_load.map(|at_load| at_load.percent)
    }

    /// Name of this trial's CSV files, without directory and extension: "0007-epoll-100-r1".
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

/// The stage of a trial that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailedStage {
    /// A command before all trials of a server.
    Setup,
    /// A command before the server.
    Prepare,
    /// The server did not start.
    Start,
    /// The server did not reply correctly.
    Verify,
    /// The load or the measurement.
    Load,
    /// The server ended during the load.
    Serve,
    /// The server did not stop in order.
    Stop,
    /// A command after the server.
    Conclude,
    /// A command after all trials of a server.
    Cleanup,
}

impl FailedStage {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Verify => "verify",
            Self::Load => "load",
            Self::Serve => "serve",
            Self::Stop => "stop",
            Self::Conclude => "conclude",
            Self::Cleanup => "cleanup",
        }
    }

    /// Whether it is before the load.
    pub fn is_of_the_beginning(self) -> bool {
        matches!(self, Self::Prepare | Self::Start | Self::Verify)
    }
}

impl std::fmt::Display for FailedStage {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(self.name())
    }
}

/// Why a trial has no results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The stage of the trial that failed.
    pub stage: FailedStage,
    /// The error.
    pub reason: String,
    /// The last output of the failed process, bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The signal that ended the server's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}
