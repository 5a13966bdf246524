//! The clients' results of a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Latency, Trial, WarmUp};

/// The clients' results. Also printed by `throng load --json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Number of clients.
    pub clients: u32,
    /// Clients whose connection was established.
    pub connected: u32,
    /// Clients that had a reply before the window ended.
    pub served: u32,
    /// Clients that had neither a reply nor an error until then.
    pub never_served: u32,
    /// Connections established during the load.
    #[serde(default)]
    pub connections: u64,
    /// Of these, reconnects: after a limit of the connection, a close by the server, or a failure.
    #[serde(default)]
    pub reconnects: u64,
    /// Requests started during the load, including the warm-up.
    pub requests: u64,
    /// Of these, requests without a reply: it was due at the end, or their connection failed.
    #[serde(default)]
    pub without_reply: u64,
    /// Requests of a given number that clients failed to start.
    #[serde(default)]
    pub left: u64,
    /// Correct replies during the load: valid in the protocol (byte by byte if their content is known), and with an
    /// expected status.
    pub verified: u64,
    /// Of these, replies in which the server rejected the request, by reason: "over-limit".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, u64>,
    /// Replies by status, during the load: of HTTP, of gRPC by its name, or "reset: " and the code of a reset stream.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// Of these, replies with an unexpected status, or that are not what their step of a flow requires, by what is
    /// required. They are complete, but not verified.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unexpected: BTreeMap<String, u64>,
    /// The location of one of the redirects (statuses 301, 302, 303, 307 and 308), which are not followed; empty if
    /// it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// What servers allow on a connection, by the name of HTTP/2's setting; of several servers, the least.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_limits: BTreeMap<String, u32>,
    /// Sizes of replies' bodies during the load, if the protocol has bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_bytes: Option<ReplyBytes>,
    /// The warm-up, if it lasted until the server's rate was level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// The window.
    pub window: Window,
    /// From sending a request to its complete verified reply, in the window. Requests without a reply count with the
    /// time that they waited, at least a timeout. This is the only latency of a closed loop, which sends late when the
    /// server is slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latency>,
    /// Results of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// From when a request was due until it was sent, with a schedule or think time, for requests due in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Latency>,
    /// From connect() to an established connection, including the TLS handshake, of all connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_time: Option<Latency>,
    /// From connect() to the first verified reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_reply: Option<Latency>,
    /// Fairness among the served clients in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Connections that ended with an error, by kind. The client ends too, unless it reconnects.
    pub errors: BTreeMap<String, u64>,
    /// Results of short-lived clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Box<Completion>>,
    /// Time of the first error of each kind, in seconds since the load began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_first_s: BTreeMap<String, f64>,
    /// Details of the first error of a kind, if the kind is not specific.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_details: BTreeMap<String, String>,
    /// Sessions, if requests are the steps of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Box<Sessions>>,
    /// Results of the probe clients, which send few requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeClients>,
    /// TLS, if connections were encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Box<TlsFigures>>,
    /// The ceiling of these clients, against a minimal server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// CPU time of the load's process in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// The longest time in the window for which a thread of the load did not check its clients. It normally does so
    /// every few milliseconds, so a long gap means that it was stopped, or had no CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_s: Option<f64>,
    /// Threads whose clients got no reply in the window.
    #[serde(default)]
    pub silent_threads: u32,
    /// Why it ended: "duration", "requests", "bytes", "clients", "time-limit", "silence", "interrupted",
    /// "no-clients-left".
    pub stopped_by: String,
    /// Load-generating threads.
    pub threads: u32,
    /// The I/O engine: "epoll".
    #[serde(default)]
    pub engine: String,
}

impl Load {
    /// Complete replies during the load, with any status.
    pub fn replies(&self) -> u64 {
        self.verified.saturating_add(self.unexpected())
    }

    /// Replies with an unexpected status.
    pub fn unexpected(&self) -> u64 {
        self.unexpected.values().sum()
    }

    /// What unexpected replies did.
    pub fn unexpected_in_words(&self) -> &'static str {
        match self.sessions {
            Some(_) => "failed their step",
            None => "had an unexpected status",
        }
    }

    /// Replies that are redirects.
    pub fn redirects(&self) -> u64 {
        let statuses = self.statuses.iter();
        let redirects = statuses
            .filter(|(status, _)| ["301", "302", "303", "307", "308"].contains(&status.as_str()));
        redirects.map(|(_, count)| count).sum()
    }

    /// Requests that clients started or had to start.
    pub fn asked(&self) -> u64 {
        self.requests.saturating_add(self.left)
    }

    /// Failed requests: connections that ended with an error, and replies with an unexpected status. Of a given number
    /// of requests, at least those without a correct reply.
    pub fn failed_requests(&self) -> u64 {
        let connections: u64 = self.errors.values().sum();
        let failed = connections.saturating_add(self.unexpected());
        match self.left {
            0 => failed,
            _ => failed.max(self.asked().saturating_sub(self.verified)),
        }
    }

    /// The share of the clients in each tenth of [`Window::intervals_by_tenth`]: the client that was the n-th of N to
    /// connect is in tenth `n * tenths / N`.
    pub fn share_of_tenth(&self, tenth: usize) -> f64 {
        let (clients, tenths) = (
            u64::from(self.clients),
            self.window.intervals_by_tenth.len() as u64,
        );
        let begins = |number: u64| (number * clients).div_ceil(tenths.max(1));
        let index = tenth as u64;
        (begins(index + 1) - begins(index)) as f64 / clients.max(1) as f64
    }

    /// Replies while events are counted: with short-lived clients, all; otherwise all but the first one to each
    /// client, which comes before.
    pub fn replies_while_counting(&self) -> u64 {
        match self.completion {
            Some(_) => self.replies(),
            None => self.replies().saturating_sub(self.served.into()),
        }
    }
}

/// Sizes of replies' bodies, in bytes as received: without decompression, and without the framing of chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyBytes {
    /// Number of replies.
    pub replies: u64,
    /// Smallest.
    pub min: u64,
    /// Median, to 3 digits.
    pub p50: u64,
    /// 99th percentile, to 3 digits.
    pub p99: u64,
    /// Largest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
}

/// The results of an open loop, about requests due in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenLoop {
    /// Requests that were due: those below, and the replies.
    pub due: u64,
    /// Requests that were due while no client was idle. They waited for one.
    pub waited: u64,
    /// Of these, requests that found none until the window ended.
    pub never_sent: u64,
    /// Requests sent without a reply before their timeout, or until the load ended.
    pub unanswered: u64,
    /// Requests whose connection failed.
    pub lost: u64,
    /// From when a request was due to its complete verified reply. Requests that were never sent or had no reply
    /// count with their waiting time until their timeout or the end of the load, which is a lower bound. Requests
    /// whose connection failed do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<Latency>,
}

/// Results of short-lived clients: each connects, makes `requests_each` requests, and disconnects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Requests per client; absent if each lives for a time instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_each: Option<u32>,
    /// Maximum concurrent clients.
    pub at_once: u32,
    /// Clients that made all their requests, or lived their time, and got every reply.
    pub clients_done: u32,
    /// Clients that failed permanently; `errors` has them by kind.
    pub failed: u32,
    /// Clients that had neither finished nor failed when the load ended.
    pub unfinished: u32,
    /// From the start of the load until the last client was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_done_s: Option<f64>,
    /// Clients done per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_per_s: Option<f64>,
    /// Mean think time before a request. It is part of the times above and of `job_time`, once per request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_s_mean: Option<f64>,
    /// From when a client began to connect until it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_time: Option<Latency>,
    /// Failed attempts to connect, by kind: "connect-timeout" if SYNs were not answered, "refused", ... They are
    /// included in the load's errors. Other errors are of established connections.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub connect_failures: BTreeMap<String, u64>,
    /// The client that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<FirstFailure>,
}

impl Completion {
    /// Computes the clients done per second from their number and the time.
    pub fn set_rate(&mut self) {
        let time = self.last_done_s.and_then(measurable);
        self.clients_per_s = time.map(|time| f64::from(self.clients_done) / time);
    }
}

/// The client that failed first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstFailure {
    /// Its number, from 0, in the order of connecting.
    pub client: u32,
    /// When it failed, in seconds since the load began.
    pub at_s: f64,
    /// Its error.
    pub kind: String,
    /// Whether it was connected before.
    pub connected: bool,
}

impl Trial {
    /// The replies of a step of its sessions as a trial by themselves, for metrics; `None` without this step.
    pub fn of_step(&self, name: &str) -> Option<Self> {
        let load = self.load.as_ref()?;
        let steps = &load.sessions.as_ref()?.steps;
        let step = steps.iter().find(|step| step.name == name)?;
        let failed = (step.failed > 0).then(|| (name.to_owned(), step.failed));
        Some(Self {
            index: self.index,
            round: self.round,
            server: self.server.clone(),
            clients: self.clients,
            purpose: self.purpose,
            load: Some(Load {
                clients: load.clients,
                connected: load.connected,
                served: load.served,
                requests: step.replies,
                verified: step.replies.saturating_sub(step.failed),
                unexpected: failed.into_iter().collect(),
                window: Window {
                    duration_s: load.window.duration_s,
                    replies: step.replies,
                    replies_per_s: step.per_s,
                    ..Window::default()
                },
                service_time: step.service_time.clone(),
                ..Load::default()
            }),
            ..Self::default()
        })
    }
}

/// Sessions of a flow, in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Sessions whose steps were all as they had to be.
    pub completed: u64,
    /// Sessions that ended at a step that failed, or with their connection.
    pub failed: u64,
    /// Complete sessions per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// From when a complete session was due (open loop) or began until its last reply, with the delays before its steps;
    /// without sessions in which clients rested between two slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Latency>,
    /// Its steps, in order.
    pub steps: Vec<SessionStep>,
}

/// One step of all sessions, in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionStep {
    /// Its name.
    pub name: String,
    /// Complete replies.
    pub replies: u64,
    /// Of these, replies that were not as they had to be.
    pub failed: u64,
    /// Of these, replies that took longer than the step allows.
    pub slow: u64,
    /// Replies per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// From sending the request to its complete reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latency>,
}

/// Results of the probe clients, which send few requests at random times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeClients {
    /// Number of probe clients.
    pub clients: u32,
    /// Requests per second per client.
    pub rate_per_s: f64,
    /// Requests due in the window.
    pub due: u64,
    /// Response time, as in an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<Latency>,
    /// From sending a request to its complete verified reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latency>,
    /// Connections that ended with an error, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

/// TLS handshakes, and the negotiated parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsFigures {
    /// Handshakes completed during the load.
    pub handshakes: u64,
    /// Of these, resumed sessions.
    pub resumed: u64,
    /// Handshakes completed per second in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshakes_per_s: Option<f64>,
    /// From an established connection to the end of its handshake, of all connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time: Option<Latency>,
    /// Handshakes by negotiated parameters: "TLS 1.3, TLS13_AES_128_GCM_SHA256, http/1.1".
    pub negotiated: BTreeMap<String, u64>,
}

/// The ceiling: the rate that the same clients reach, on the same CPUs, against a minimal server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The model of that server.
    pub model: String,
    /// Replies per second in a closed loop.
    pub replies_per_s: f64,
    /// CPU time of the load's process per reply.
    pub cpu_us_per_reply: f64,
    /// The load's replies per second, as a share of the ceiling: near 1, the clients were the bottleneck.
    pub share: f64,
}

/// The shortest time from which a rate or a share is computed: it ends within a millisecond of the event that ends it.
const MEASURABLE_S: f64 = 0.01;

/// A time in seconds, if it is long enough to compute a rate or a share from it.
pub fn measurable(time_s: f64) -> Option<f64> {
    (time_s >= MEASURABLE_S).then_some(time_s)
}

/// The measurement window of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its length.
    pub duration_s: f64,
    /// Complete replies in it.
    pub replies: u64,
    /// Replies per second, if it was long enough to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_per_s: Option<f64>,
    /// Bytes sent by clients in it.
    pub bytes_sent: u64,
    /// Bytes received by clients in it.
    pub bytes_received: u64,
    /// Replies in each equal interval of the window, in time order.
    pub intervals: Vec<u64>,
    /// The same for each tenth of the clients, in the order in which they were connected; from 10 clients, on a single
    /// host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals_by_tenth: Vec<Vec<u64>>,
    /// The times of replies by when they arrived: response times in an open loop, otherwise service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<TimesOverWindow>,
}

/// Histograms of times, by when they arrived in the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimesOverWindow {
    /// Bounds of the ranges in nanoseconds: the start of each, and the end of the last.
    pub from_ns: Vec<u64>,
    /// For each equal part of the window, in time order: the number of times in each range.
    pub counts: Vec<Vec<u64>>,
}

/// Fairness: how evenly clients were served, among clients with at least one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fairness {
    /// Mean replies per client.
    pub mean: f64,
    /// Minimum replies of a client.
    pub min: u64,
    /// Maximum replies of a client.
    pub max: u64,
    /// Jain's index: 1 if all are equal, 1/n if one client gets everything (DEC TR-301, 1984).
    pub jain: f64,
    /// Share of all replies that the slowest decile of clients got; 0.1 if all are equal.
    pub slowest_decile_share: f64,
    /// Clients with less than a tenth of the mean.
    pub starved: u32,
    /// Whether early connections are favoured: rank correlation of connecting early with replies in the window. Above
    /// 0, early clients got more. Absent if all got the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_bias: Option<Correlation>,
    /// The same with all replies since a client was connected, so that a head start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_bias_life: Option<Correlation>,
    /// Replies per client of the tenth that connected first, divided by those of the last; from 10 clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_over_late: Option<f64>,
    /// Why none of these is known, if several hosts had too many clients to merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_absent: Option<String>,
    /// The same over the whole lives of clients, from when each was connected. Clients that waited are behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<LifeFairness>,
}

/// Fairness over the whole lives of clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LifeFairness {
    /// Mean replies per client.
    pub mean: f64,
    /// Minimum replies of a client.
    pub min: u64,
    /// Maximum replies of a client.
    pub max: u64,
    /// Jain's index.
    pub jain: f64,
    /// Replies per client of the tenth that connected first, divided by those of the last; from 10 clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_over_late: Option<f64>,
}

impl Fairness {
    /// Mean replies per client below which chance looks like uneven service.
    pub const FEWEST_REPLIES: f64 = 20.0;

    /// Whether clients had enough replies to judge fairness.
    pub fn has_enough(&self) -> bool {
        self.mean >= Self::FEWEST_REPLIES
    }
}

/// A rank correlation over the clients of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Correlation {
    /// Spearman's rank correlation, -1 to 1.
    pub coefficient: f64,
    /// Lower end of its 95 % interval, assuming independent clients; from 10 clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}
