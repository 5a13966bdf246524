//! The events of a load process for its runner, one JSON line each on standard output.
//!
//! If a phase `waits`, the load continues once it reads a line on standard input.

use serde::{Deserialize, Serialize};

use super::load_stats::LoadStats;

/// Maximum time for first replies while they keep arriving, as a multiple of the timeout for first replies.
pub const LONGEST_CONNECT: u32 = 20;

/// The phase of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Clients connect and wait for their first replies.
    Connect,
    /// Warm-up: all clients are served, but replies do not count yet.
    WarmUp,
    /// Replies count.
    Measure,
    /// No new requests; the last replies arrive.
    Drain,
    /// Connections are open, without requests.
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

/// A line of a load process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadEvent {
    /// It enters a phase.
    Phase {
        /// The phase.
        phase: Phase,
        /// Whether it waits for a line.
        waits: bool,
        /// The progress of the clients.
        snapshot: LoadSnapshot,
    },
    /// Clients connected or left, or live values are due.
    Snapshot(LoadSnapshot),
    /// The requested [slice](SliceStats) is over, and the load waits for the next one.
    Slice(SliceStats),
    /// The load is over.
    Result(Box<LoadStats>),
}

/// The clients' results of a slice: a short time of load, from rest to rest. Every request sent in it also gets its
/// reply in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceStats {
    /// From the first request to the last reply.
    pub took_ns: u64,
    /// Replies verified.
    pub replies: u64,
    /// CPU time of the load process.
    pub cpu_ns: u64,
    /// Service times: mean and percentiles. The result of the load contains all of them.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Whether all requests got a reply, or failed, in time.
    pub complete: bool,
}

/// Input of a load in slices, on standard input. An empty line, or the end of input, means that there are no more
/// slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextSlice {
    /// Duration for which clients send.
    pub length_ns: u64,
    /// Whether it is for warm-up. All such slices come first, and do not count in the result.
    pub warms_up: bool,
}

impl NextSlice {
    pub fn line(&self) -> String {
        let text = serde_json::to_string(self);
        text.expect("a number and a truth value") + "\n"
    }

    /// Parses such a line.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

impl LoadEvent {
    /// Parses a line; `None` if it is not an event.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// The progress of a load's clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSnapshot {
    /// Connected clients.
    pub present: u64,
    /// Clients that had a first verified reply.
    pub answered: u64,
    /// Clients that made all their requests.
    pub done: u64,
    /// Clients that ended with an error.
    pub failed: u64,
    /// Requests that failed, and those that clients can no longer make.
    pub lost: u64,
    /// Verified replies; only if live values were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<u64>,
    /// Median of the times so far; only if live values were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// 99th percentile of the times so far; only if live values were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
}

impl LoadSnapshot {
    /// The combined progress of several parts, without percentiles, which cannot be merged.
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
