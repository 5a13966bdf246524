//! The events of a load process for its runner, one JSON line each on standard output.
//!
//! Where a phase `waits`, the load goes on once it reads a line on standard input.

use serde::{Deserialize, Serialize};

use super::load_stats::LoadStats;

/// How many times the patience first answers may take, at most, while they keep coming.
pub const LONGEST_CONNECT: u32 = 20;

/// Where a load stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Clients connect and wait for their first answers.
    Connect,
    /// All are served; replies do not count yet.
    WarmUp,
    /// Replies count.
    Measure,
    /// No new requests; the last replies come in.
    Drain,
    /// Connections are open and idle.
    Idle,
}

impl Phase {
    /// Its name in events and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::WarmUp => "warm-up",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
            Phase::Idle => "idle",
        }
    }
}

/// One line of a load process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadEvent {
    /// It enters a phase.
    Phase {
        /// Which.
        phase: Phase,
        /// Whether it waits for a line before it goes on.
        waits: bool,
        /// How far the clients are.
        snapshot: LoadSnapshot,
    },
    /// Clients have come or gone, or figures are due.
    Snapshot(LoadSnapshot),
    /// A [slice](SliceStats) that it was asked to load for is over, and it waits for the next one.
    Slice(SliceStats),
    /// It is over.
    Result(Box<LoadStats>),
}

/// What clients saw in a slice: a short time in which they load the server, from rest to rest. All requests that
/// are sent in it are answered in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceStats {
    /// From the first request to the last reply.
    pub took_ns: u64,
    /// Replies verified.
    pub replies: u64,
    /// CPU time of the load process.
    pub cpu_ns: u64,
    /// Service times: their mean and percentiles. All of them are in the result of the load.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Whether all requests were answered, or had failed, in time.
    pub complete: bool,
}

/// What a load in slices reads on standard input while it measures. An empty line, or the end of input, means that
/// there is no other slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextSlice {
    /// How long clients ask.
    pub length_ns: u64,
    /// Whether it only warms up: all such slices come first, and nothing of them counts in the result.
    pub warms_up: bool,
}

impl NextSlice {
    pub fn line(&self) -> String {
        let text = serde_json::to_string(self);
        text.expect("a number and a truth value") + "\n"
    }

    /// Reads such a line.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

impl LoadEvent {
    /// Reads a line; none when it is no event.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// How far the clients of a load are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSnapshot {
    /// Clients connected now.
    pub present: u64,
    /// Clients that had a first verified answer.
    pub answered: u64,
    /// Clients that made all the requests they had to.
    pub done: u64,
    /// Clients that ended with an error.
    pub failed: u64,
    /// Requests whose connection failed, and those that clients could not make any more.
    pub lost: u64,
    /// Replies verified; only where live figures were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<u64>,
    /// Median of the times so far, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// Their 99th percentile, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
}

impl LoadSnapshot {
    /// That of several parts together. Percentiles of parts say nothing about the whole.
    pub fn together(parts: impl Iterator<Item = Self>) -> Self {
        let add = |sum: Self, part: Self| Self {
            present: sum.present.saturating_add(part.present),
            answered: sum.answered.saturating_add(part.answered),
            done: sum.done.saturating_add(part.done),
            failed: sum.failed.saturating_add(part.failed),
            lost: sum.lost.saturating_add(part.lost),
            verified: sum
                .verified
                .zip(part.verified)
                .map(|(sum, part)| sum.saturating_add(part)),
            p50_ns: None,
            p99_ns: None,
        };
        parts.reduce(add).unwrap_or_default()
    }
}
