//! The clients' results of a load, in a form that merges.
//!
//! Each thread of a load records into its own [`LoadStats`]. [`merge`](LoadStats::merge) combines the results of
//! threads into those of a process, and those of processes on several hosts into those of the load.
//! [`summary`](LoadStats::summary) computes the figures once, from the merged results.

mod bias;
mod sessions;
mod sizes;
mod sum;
mod summary;
mod synthetic;
#[cfg(test)]
mod tests;
mod times;
mod tls;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_protocol::{ReplyCounts, status_in_words};
use throng_stats::fairness::Counts;

use crate::WarmUp;
pub use bias::{Bias, EarlyBias, ServedClient};
pub use sessions::{SessionStats, StepStats};
pub use sizes::SizeStats;
pub use sum::Sum;
pub use synthetic::synthetic;
pub use times::{Times, TimesByPart};
pub use tls::TlsStats;

/// Equal intervals of the window with separate counts.
pub const INTERVALS: usize = 20;
/// Equal parts of an interval, with separate times.
pub const PARTS_AN_INTERVAL: usize = 3;
/// Number of parts over the whole window.
pub const PARTS: usize = INTERVALS * PARTS_AN_INTERVAL;
/// Equal groups of clients, in the order in which they connect, with separate counts.
pub const TENTHS: usize = 10;

/// The results of some clients of a load.
///
/// Merging is exact, associative and commutative, and the default is neutral: the result does not depend on how
/// clients were divided among threads, processes and hosts. Points in time are nanoseconds on the clock of the host
/// where they were recorded, until [`shift`](Self::shift) converts them to another host's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadStats {
    /// When it began, and the window.
    pub span: Span,
    /// The warm-up, if it lasted until the server's rate was level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Number of clients.
    pub clients: u32,
    /// Clients whose connection was established.
    pub connected: u32,
    /// Clients that had a reply before the window ended.
    pub served: u32,
    /// Clients that had neither a reply nor an error until then.
    pub never_served: u32,
    /// Connections established.
    pub connections: u64,
    /// Requests started.
    pub requests: u64,
    /// Of these, requests without a reply: it was due at the end, or their connection failed.
    pub without_reply: u64,
    /// Requests of a given number that clients failed to start.
    pub left: u64,
    /// Correct replies: valid in the protocol, and with an expected status.
    pub verified: u64,
    /// Of these, replies in which the server rejected the request, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Replies by status, if they have one.
    pub statuses: BTreeMap<String, u64>,
    /// Of these, replies with an unexpected status.
    pub unexpected: BTreeMap<String, u64>,
    /// The location of one of the redirects among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// What servers allow on a connection, by the name of HTTP/2's setting.
    pub server_limits: BTreeMap<String, u32>,
    /// Sizes of replies' bodies, if they have bodies.
    pub reply_bytes: SizeStats,
    /// Connections that ended with an error, by kind.
    pub errors: BTreeMap<String, ErrorStats>,
    pub window_replies: u64,
    pub window_bytes_sent: u64,
    pub window_bytes_received: u64,
    /// Replies in the window, by the client's tenth in its process and by interval.
    pub replies_by_tenth: [[u64; INTERVALS]; TENTHS],
    /// Their times, by part of an interval: response times in an open loop, otherwise service times.
    pub times_by_part: TimesByPart,
    /// From sending a request to its complete verified reply, in the window. Requests without a reply count with the
    /// time that they waited.
    pub service_time: Times,
    /// From connect() to an established connection.
    pub connect_time: Times,
    /// From connect() to the first verified reply.
    pub first_reply: Times,
    /// From when a request was due until it was sent, with a schedule or think time.
    pub lateness: Times,
    /// Results of an open loop.
    pub open: Option<OpenStats>,
    /// Results of short-lived clients.
    pub jobs: Option<Box<JobStats>>,
    /// Sessions, if requests are the steps of a flow.
    pub sessions: Option<Box<SessionStats>>,
    /// Results of probe clients.
    pub probe: Option<Box<ProbeStats>>,
    /// TLS, if connections are encrypted.
    pub tls: Option<Box<TlsStats>>,
    /// Replies in the window per served client, if clients compete for them.
    pub replies: Counts,
    /// The same since they were connected.
    pub life: Counts,
    /// Whether early clients got more of them.
    pub early_bias: EarlyBias,
    /// Load-generating threads.
    pub threads: u32,
    /// Of these, threads whose clients got no reply in the window.
    pub silent_threads: u32,
    /// The longest time in the window in which a thread did not serve its clients.
    pub longest_gap_ns: Option<u64>,
    pub processes: u64,
    /// CPU times in the window, of processes that know theirs.
    pub cpu: Sum,
    /// Why it ended.
    pub stopped_by: Option<StoppedBy>,
    /// The I/O engine.
    pub engine: String,
}

/// Why a load ended. If its parts ended differently, the first variant counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// A stop was requested.
    Interrupted,
    /// Clients were not done, but made no more progress.
    Silence,
    /// The time limit of short-lived clients.
    TimeLimit,
    /// Every short-lived client was done, or had failed.
    Clients,
    /// All bytes were transferred.
    Bytes,
    /// All requests were made.
    Requests,
    /// The measurement ended.
    Duration,
    /// No client was ever served, or none was left.
    NoClientsLeft,
}

impl StoppedBy {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            StoppedBy::Interrupted => "interrupted",
            StoppedBy::Silence => "silence",
            StoppedBy::TimeLimit => "time-limit",
            StoppedBy::Clients => "clients",
            StoppedBy::Bytes => "bytes",
            StoppedBy::Requests => "requests",
            StoppedBy::Duration => "duration",
            StoppedBy::NoClientsLeft => "no-clients-left",
        }
    }
}

/// When a load began, and its window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// When it began.
    pub began_ns: Option<i64>,
    /// Start of the window; `None` if it was not reached.
    pub from_ns: Option<i64>,
    /// End of the window.
    pub until_ns: Option<i64>,
    /// Its length, if fixed in advance. Then all parts have windows of this length, and their different starts do not
    /// make it longer.
    pub fixed_ns: Option<u64>,
    /// The total length of slices, if there were slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices_ns: Option<u64>,
}

/// Errors of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorStats {
    /// Their number.
    pub count: u64,
    /// When the first one occurred.
    pub first_ns: i64,
    /// Its details, if the kind is not specific.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Results of an open loop, about requests due in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenStats {
    /// From when a request was due to its complete verified reply. Requests without a reply count with the time that
    /// they waited.
    pub response_time: Times,
    /// Requests that were due while no client was idle.
    pub waited: u64,
    /// Requests that found no idle client until the window ended.
    pub never_sent: u64,
    /// Requests sent without a reply before their timeout, or until the load ended.
    pub unanswered: u64,
    /// Requests whose connection failed.
    pub lost: u64,
}

/// Results of short-lived clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobStats {
    /// Requests per client; absent if each lives for a time instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_each: Option<u32>,
    /// Maximum concurrent clients.
    pub at_once: u32,
    /// Clients that made all their requests, or lived their time, and got every reply.
    pub done: u32,
    /// Clients that failed permanently.
    pub failed: u32,
    /// When the last one was done.
    pub last_done_ns: Option<i64>,
    /// From when a client began to connect until it was done.
    pub time: Times,
    /// Think times.
    pub think: Sum,
    /// Failed attempts to connect, by kind.
    pub connect_failures: BTreeMap<String, u64>,
    /// The client that failed first.
    pub first_failure: Option<FailedClient>,
}

/// A failed client, ordered by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedClient {
    /// When it failed.
    pub at_ns: i64,
    /// Its number among all clients.
    pub client: u32,
    /// Its error.
    pub kind: String,
    /// Whether it was connected before.
    pub connected: bool,
}

/// Results of the probe clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeStats {
    /// Requests per second per client.
    pub rate_per_s: f64,
    /// Their results.
    pub stats: LoadStats,
}

impl LoadStats {
    /// Counts an error.
    pub fn error(&mut self, kind: &str, at_ns: i64, detail: Option<&str>) {
        let one = ErrorStats {
            count: 1,
            first_ns: at_ns,
            detail: detail.map(str::to_owned),
        };
        match self.errors.get_mut(kind) {
            Some(errors) => errors.merge(&one),
            None => drop(self.errors.insert(kind.to_owned(), one)),
        }
    }

    /// Merges the statuses, sizes and rejections of some clients' replies.
    pub fn add_counts(&mut self, counts: ReplyCounts) {
        let by_status = |by_number: BTreeMap<u16, u64>| -> BTreeMap<String, u64> {
            let each = by_number.into_iter();
            each.map(|(status, n)| (status_in_words(status), n))
                .collect()
        };
        let rejected = counts
            .rejected
            .into_iter()
            .map(|(why, n)| (why.to_owned(), n))
            .collect();
        merge_counts(&mut self.rejected, &rejected);
        merge_counts(&mut self.statuses, &by_status(counts.statuses));
        merge_counts(&mut self.unexpected, &by_status(counts.unexpected));
        let failed = counts
            .failed
            .into_iter()
            .map(|(why, n)| (why.to_owned(), n))
            .collect();
        merge_counts(&mut self.unexpected, &failed);
        self.redirect = least(self.redirect.take(), counts.redirect);
        let limits = counts
            .limits
            .into_iter()
            .map(|(setting, value)| (setting.to_owned(), value));
        merge_limits(&mut self.server_limits, limits);
    }

    /// Merges the results of other clients.
    pub fn merge(&mut self, other: &Self) {
        self.span.merge(other.span);
        let warm_ups = self.warm_up.into_iter().chain(other.warm_up);
        self.warm_up = warm_ups.reduce(WarmUp::longer);
        for (mine, theirs) in [
            (&mut self.clients, other.clients),
            (&mut self.connected, other.connected),
            (&mut self.served, other.served),
            (&mut self.never_served, other.never_served),
            (&mut self.threads, other.threads),
            (&mut self.silent_threads, other.silent_threads),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        for (mine, theirs) in [
            (&mut self.connections, other.connections),
            (&mut self.requests, other.requests),
            (&mut self.without_reply, other.without_reply),
            (&mut self.left, other.left),
            (&mut self.verified, other.verified),
            (&mut self.window_replies, other.window_replies),
            (&mut self.window_bytes_sent, other.window_bytes_sent),
            (&mut self.window_bytes_received, other.window_bytes_received),
            (&mut self.processes, other.processes),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        let theirs = other.replies_by_tenth.iter().flatten();
        for (mine, other_tenth) in self.replies_by_tenth.iter_mut().flatten().zip(theirs) {
            *mine = mine.saturating_add(*other_tenth);
        }
        merge_counts(&mut self.rejected, &other.rejected);
        merge_counts(&mut self.statuses, &other.statuses);
        merge_counts(&mut self.unexpected, &other.unexpected);
        self.redirect = least(self.redirect.take(), other.redirect.clone());
        merge_limits(&mut self.server_limits, other.server_limits.clone());
        self.reply_bytes.merge(&other.reply_bytes);
        for (kind, other_errors) in &other.errors {
            match self.errors.get_mut(kind) {
                Some(mine) => mine.merge(other_errors),
                None => drop(self.errors.insert(kind.clone(), other_errors.clone())),
            }
        }
        self.times_by_part.merge(&other.times_by_part);
        self.service_time.merge(&other.service_time);
        self.connect_time.merge(&other.connect_time);
        self.first_reply.merge(&other.first_reply);
        self.lateness.merge(&other.lateness);
        merge_option(&mut self.open, other.open.as_ref(), OpenStats::merge);
        merge_option(&mut self.jobs, other.jobs.as_ref(), |mine, other_jobs| {
            mine.merge(other_jobs);
        });
        merge_option(
            &mut self.sessions,
            other.sessions.as_ref(),
            |mine, other_part| {
                mine.merge(other_part);
            },
        );
        merge_option(
            &mut self.probe,
            other.probe.as_ref(),
            |mine, other_probe| {
                mine.merge(other_probe);
            },
        );
        merge_option(&mut self.tls, other.tls.as_ref(), |mine, other_tls| {
            mine.merge(other_tls);
        });
        self.replies.merge(&other.replies);
        self.life.merge(&other.life);
        self.early_bias.merge(&other.early_bias);
        self.cpu.merge(other.cpu);
        self.longest_gap_ns = self.longest_gap_ns.max(other.longest_gap_ns);
        self.stopped_by = least(self.stopped_by, other.stopped_by);
        if other.engine > self.engine {
            self.engine.clone_from(&other.engine);
        }
    }

    /// Shifts all points in time by `by_ns` nanoseconds, to the clock of another host.
    pub fn shift(&mut self, by_ns: i64) {
        let move_to = |at: &mut i64| *at = at.saturating_add(by_ns);
        let Span {
            began_ns,
            from_ns,
            until_ns,
            ..
        } = &mut self.span;
        [began_ns, from_ns, until_ns]
            .into_iter()
            .flatten()
            .for_each(move_to);
        self.errors
            .values_mut()
            .for_each(|errors| move_to(&mut errors.first_ns));
        if let Some(jobs) = &mut self.jobs {
            jobs.last_done_ns.iter_mut().for_each(move_to);
            let first = jobs.first_failure.iter_mut();
            first.for_each(|failure| move_to(&mut failure.at_ns));
        }
        self.early_bias.shift(by_ns);
        if let Some(probe) = &mut self.probe {
            probe.stats.shift(by_ns);
        }
    }
}

impl Span {
    fn merge(&mut self, other: Self) {
        self.began_ns = least(self.began_ns, other.began_ns);
        self.from_ns = least(self.from_ns, other.from_ns);
        self.until_ns = self.until_ns.max(other.until_ns);
        self.fixed_ns = self.fixed_ns.max(other.fixed_ns);
        self.slices_ns = self.slices_ns.max(other.slices_ns);
    }

    /// The length of the window.
    pub fn duration_ns(&self) -> u64 {
        match (
            self.slices_ns.or(self.fixed_ns),
            self.from_ns,
            self.until_ns,
        ) {
            (Some(known), ..) => known,
            (None, Some(from), Some(until)) => until.saturating_sub(from).max(0) as u64,
            _ => 0,
        }
    }

    /// The same in seconds.
    pub fn duration_s(&self) -> f64 {
        self.duration_ns() as f64 / 1e9
    }
}

impl ErrorStats {
    fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        // If both occurred at the same time, take the alphabetically first details, so that the order does not matter.
        if (other.first_ns, &other.detail) < (self.first_ns, &self.detail) {
            self.first_ns = other.first_ns;
            self.detail.clone_from(&other.detail);
        }
    }
}

impl OpenStats {
    fn merge(&mut self, other: &Self) {
        self.response_time.merge(&other.response_time);
        self.waited = self.waited.saturating_add(other.waited);
        self.never_sent = self.never_sent.saturating_add(other.never_sent);
        self.unanswered = self.unanswered.saturating_add(other.unanswered);
        self.lost = self.lost.saturating_add(other.lost);
    }

    /// Requests that were due.
    pub fn due(&self) -> u64 {
        self.response_time.count().saturating_add(self.lost)
    }
}

impl JobStats {
    fn merge(&mut self, other: &Self) {
        self.requests_each = self.requests_each.max(other.requests_each);
        self.at_once = self.at_once.saturating_add(other.at_once);
        self.done = self.done.saturating_add(other.done);
        self.failed = self.failed.saturating_add(other.failed);
        self.last_done_ns = self.last_done_ns.max(other.last_done_ns);
        self.time.merge(&other.time);
        self.think.merge(other.think);
        merge_counts(&mut self.connect_failures, &other.connect_failures);
        let first = least(self.first_failure.as_ref(), other.first_failure.as_ref());
        self.first_failure = first.cloned();
    }
}

impl ProbeStats {
    fn merge(&mut self, other: &Self) {
        self.rate_per_s = self.rate_per_s.max(other.rate_per_s);
        self.stats.merge(&other.stats);
    }
}

/// The minimum of two optional values.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

fn merge_option<T: Clone>(mine: &mut Option<T>, theirs: Option<&T>, merge: fn(&mut T, &T)) {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => merge(mine, theirs),
        (mine @ None, theirs) => *mine = theirs.cloned(),
        (Some(_), None) => {}
    }
}

/// Keeps the narrower of two limits.
fn merge_limits(mine: &mut BTreeMap<String, u32>, theirs: impl IntoIterator<Item = (String, u32)>) {
    for (setting, value) in theirs {
        let least = mine.entry(setting).or_insert(value);
        *least = value.min(*least);
    }
}

fn merge_counts(mine: &mut BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) {
    for (name, count) in theirs {
        let sum = mine.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}
