//! What a server does with its CPU time, and what its threads wait for: from turns in which nothing is timed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_spec::registry::Unsupported;

/// The profile of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its turns, in which it served its clients while it was watched.
    pub turns: Vec<Turn>,
    /// What could not be seen, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<Watched, Unsupported>,
    /// The share of samples in a function of the program that has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed_share: Option<f64>,
}

/// What is watched of a server.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Watched {
    /// Where its CPU time goes.
    Stacks,
    /// Its system calls.
    Calls,
    /// In which calls its threads sleep.
    Waits,
}

/// A turn: a slice of load during which the server was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The round, from 0.
    pub round: u32,
    /// From the first request to the last reply.
    pub took_ns: u64,
    /// Complete replies.
    pub replies: u64,
    /// CPU time of the server's process tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// Samples of busy CPUs by what the server did there; empty if the turn counted system calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<PartSamples>,
    /// System calls by name, in a turn that counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<BTreeMap<String, u64>>,
    /// Events that the kernel counts for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Events>,
    /// The mean number of threads that slept, by the system call in which they did, without idle ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asleep: BTreeMap<String, f64>,
    /// The mean number of idle threads that slept: those with less than a tenth of the mean CPU time of a thread. Their waits
    /// are not those of requests.
    #[serde(default)]
    pub idle: f64,
    /// Records that the kernel dropped because they were not read in time.
    #[serde(default)]
    pub lost: u64,
}

/// How often the server was seen doing something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartSamples {
    /// What it did.
    pub part: Part,
    /// The number of samples.
    pub count: u32,
}

/// A part of a server's CPU time. No moment belongs to two.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The program itself, in this function; the others together are an empty name.
    User(Function),
    /// The kernel, for a system call with this name.
    Call(String),
    /// The kernel, for memory that the program touched for the first time.
    PageFault,
    /// The kernel, for devices and packets, while the program ran.
    Interrupt,
    /// The kernel, changing from one thread to another at the end of its turn.
    Switch,
    /// The kernel otherwise: entry to and exit from system calls, and what has no name.
    Kernel,
}

/// A function of a program.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Its name; empty for all functions that are not listed.
    pub name: String,
    /// For a function of a library, the function of the program that called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// Events of all processes of a server in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Context switches of threads that went to sleep.
    pub voluntary_switches: u64,
    /// Context switches of threads that another one displaced.
    pub involuntary_switches: u64,
    /// Page faults without and with reading from a disk.
    pub page_faults: u64,
    /// How long threads were ready to run, and waited for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_for_cpu_ns: Option<u64>,
}
