//! What the clients of a trial saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Latency, WarmUp};

/// What the clients saw. Also what `throng load --json` prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Clients wanted.
    pub clients: u32,
    /// Clients whose connection was established.
    pub connected: u32,
    /// Clients that had an answer before the window ended.
    pub served: u32,
    /// Clients that had no answer until then and saw no error either.
    pub never_served: u32,
    /// Connections established, over the life of the load.
    #[serde(default)]
    pub connections: u64,
    /// Of these, those that clients made when they had had one before: it was closed after a reply, had served its time,
    /// or failed.
    #[serde(default)]
    pub reconnects: u64,
    /// Requests begun over the life of the load, warm-up included.
    pub requests: u64,
    /// Replies that were right, over the life of the load: as the protocol has them, byte by byte where
    /// their content is known, and of a status that was expected.
    pub verified: u64,
    /// Of these, the replies in which the server rejected what it was asked, by reason: "over-limit".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, u64>,
    /// Replies by HTTP status, over the life of the load.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// Of these, the ones whose status was not expected. They are whole replies, but not verified.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unexpected: BTreeMap<String, u64>,
    /// Where one of the redirects leads (statuses 301, 302, 303, 307 and 308), which are not followed; empty where it does not
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// How large the bodies of replies were, over the life of the load, where the protocol has bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_bytes: Option<ReplyBytes>,
    /// How the server was warmed up, where that lasted until its rate was level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// The measurement only.
    pub window: Window,
    /// From sending a request to its whole verified reply, in the window. A closed loop has no
    /// other latency: it sends late when the server is slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latency>,
    /// What only an open loop has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// From when a request was due until it was sent, where requests come due by themselves: in an
    /// open loop, and after a time to think. Of those due in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Latency>,
    /// From connect() to an established connection, its TLS handshake included, of all connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_time: Option<Latency>,
    /// From connect() to the first verified reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_answer: Option<Latency>,
    /// How evenly the served clients were served in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Connections that ended with an error, by kind. A client ends with its connection, unless it
    /// was asked to connect anew.
    pub errors: BTreeMap<String, u64>,
    /// How clients came to an end that had a job each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Box<Completion>>,
    /// When the first error of each kind came, in seconds since the load began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_first_s: BTreeMap<String, f64>,
    /// What was wrong with the first error of a kind, where the kind does not say all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_details: BTreeMap<String, String>,
    /// Results of the background clients, which send few requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeClients>,
    /// Where connections were encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Box<TlsFigures>>,
    /// What these clients reach against a server that does least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// CPU time of the load's process in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// The longest time in the window in which a thread of the load did not look at its clients, though it does so
    /// every few milliseconds: it was stopped, or had no CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_s: Option<f64>,
    /// Threads whose clients had no reply in the window.
    #[serde(default)]
    pub silent_threads: u32,
    /// What ended the load: "duration", "requests", "bytes", "clients", "time-limit", "silence",
    /// "interrupted", "no-clients-left".
    pub stopped_by: String,
    /// Load-generating threads.
    pub threads: u32,
    /// What moved the bytes: "epoll".
    #[serde(default)]
    pub engine: String,
}

impl Load {
    /// Whole replies over the life of the load, whatever their status.
    pub fn replies(&self) -> u64 {
        self.verified.saturating_add(self.unexpected())
    }

    /// Replies whose status was not expected.
    pub fn unexpected(&self) -> u64 {
        self.unexpected.values().sum()
    }

    /// Replies that are redirects.
    pub fn redirects(&self) -> u64 {
        let statuses = self.statuses.iter();
        let redirects = statuses
            .filter(|(status, _)| ["301", "302", "303", "307", "308"].contains(&status.as_str()));
        redirects.map(|(_, count)| count).sum()
    }

    /// Requests that failed: connections that ended with an error, and replies of an unexpected status.
    pub fn failed_requests(&self) -> u64 {
        let connections: u64 = self.errors.values().sum();
        connections.saturating_add(self.unexpected())
    }

    /// The share of the clients that is in each tenth of [`Window::intervals_by_tenth`]: client `number`
    /// of those wanted is in tenth `number * tenths / clients`.
    pub fn share_of_tenth(&self, tenth: usize) -> f64 {
        let (clients, tenths) = (
            u64::from(self.clients),
            self.window.intervals_by_tenth.len() as u64,
        );
        let begins = |tenth: u64| (tenth * clients).div_ceil(tenths.max(1));
        let tenth = tenth as u64;
        (begins(tenth + 1) - begins(tenth)) as f64 / clients.max(1) as f64
    }

    /// Replies while events are counted: where each client has a job, all; else those after the first one
    /// to each client, which all have before.
    pub fn replies_while_counting(&self) -> u64 {
        match self.completion {
            Some(_) => self.replies(),
            None => self.replies().saturating_sub(self.served.into()),
        }
    }
}

/// How large the bodies of replies were, in bytes as they came: compressed ones are not unpacked, and what frames chunks
/// does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyBytes {
    /// Of so many replies.
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

/// The part of a load's figures that only an open loop has, about requests due in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenLoop {
    /// Requests that came due: all of those below, and the replies.
    pub due: u64,
    /// Requests that came due while no client was free; they waited for one.
    pub waited: u64,
    /// Of these, the ones that had found none when the window ended.
    pub never_sent: u64,
    /// Requests sent that had no reply when the load ended.
    pub unanswered: u64,
    /// Requests whose connection failed.
    pub lost: u64,
    /// From when a request was due to its whole verified reply. Requests that were never sent or
    /// had no reply count with the time they had waited when the load ended, which is less than they
    /// would have had to; those that were lost do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<Latency>,
}

/// How clients came to an end of whom each connects, makes so many requests, closes and is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Requests of each client.
    pub requests_each: u32,
    /// Clients that might be there at the same time.
    pub at_once: u32,
    /// Clients that made all their requests and had every reply.
    pub clients_done: u32,
    /// Clients that failed for good; `errors` has them by kind.
    pub failed: u32,
    /// Clients that were neither when the load ended.
    pub not_done: u32,
    /// From the beginning of the load until the last client was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_done_s: Option<f64>,
    /// Clients done over that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_per_s: Option<f64>,
    /// Mean time that clients took before a request (it is part of the times above and of `job_time`,
    /// once for each request).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_s_mean: Option<f64>,
    /// From when a client began to connect until it was done, of those that were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_time: Option<Latency>,
    /// The mean of a random sample of the service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_sample: Option<ServiceSample>,
    /// Attempts to connect that failed, by kind: "connect-timeout" when SYNs were not answered, "refused",
    /// ... They are among the load's errors too; errors beyond these befell established connections.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub connect_failures: BTreeMap<String, u64>,
    /// The client that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<FirstFailure>,
}

impl Completion {
    /// Works out the clients done a second from their number and the time.
    pub fn set_rate(&mut self) {
        let time = self.last_done_s.filter(|time| *time > 0.0);
        self.clients_per_s = time.map(|time| f64::from(self.clients_done) / time);
    }
}

/// A random sample of service times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSample {
    /// Requests in it: 50, or all where there were fewer.
    pub count: u32,
    /// Their mean service time.
    pub mean_us: f64,
    /// From which it was drawn.
    pub seed: u64,
}

/// The client of a load that failed first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstFailure {
    /// Its number, from 0, in the order of connecting.
    pub client: u32,
    /// When, in seconds since the load began.
    pub at_s: f64,
    /// With which error.
    pub kind: String,
    /// Whether it had been connected before.
    pub connected: bool,
}

/// Results of the background clients, which send few requests at random times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeClients {
    /// How many there were.
    pub clients: u32,
    /// Requests a second that came due for each.
    pub rate_per_s: f64,
    /// Requests that came due in the window.
    pub due: u64,
    /// As in an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time: Option<Latency>,
    /// From sending a request to its whole verified reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latency>,
    /// Their connections that ended with an error, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

/// TLS handshakes, and what they agreed on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFigures {
    /// Handshakes completed, over the life of the load.
    pub handshakes: u64,
    /// Of these, the ones that resumed an earlier session of their client.
    pub resumed: u64,
    /// Handshakes completed per second in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshakes_per_s: Option<f64>,
    /// From an established connection to the end of its handshake, of all connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_time: Option<Latency>,
    /// How many agreed on what: "TLS 1.3, TLS13_AES_128_GCM_SHA256, http/1.1".
    pub negotiated: BTreeMap<String, u64>,
}

/// How much the same clients reach, on the same CPUs, against a server that does least.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The model of throng's own that served.
    pub model: String,
    /// Replies a second in a closed loop.
    pub replies_per_s: f64,
    /// CPU time of the load's process for a reply.
    pub cpu_us_per_reply: f64,
    /// The load's replies a second, as a share of these: near 1 the clients could do no more.
    pub share: f64,
}

/// The measurement of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its length.
    pub duration_s: f64,
    /// Whole replies that came within it.
    pub replies: u64,
    /// Replies per second.
    pub replies_per_s: f64,
    /// Bytes sent by clients within it.
    pub bytes_sent: u64,
    /// Bytes received by clients within it.
    pub bytes_received: u64,
    /// Replies in each equal interval of the window, in time order.
    pub intervals: Vec<u64>,
    /// Of these, those of each tenth of the clients, in the order in which they began to connect; from
    /// 10 clients on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals_by_tenth: Vec<Vec<u64>>,
    /// How long replies had taken when they came: response times of an open loop, else service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<TimesOverWindow>,
}

/// Numbers of times by when they came in the window and by how long they were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimesOverWindow {
    /// Ranges of times in nanoseconds: where each begins, and at last where the longest ends.
    pub from_ns: Vec<u64>,
    /// For each equal part of the window, in time order: how many times lie in each range.
    pub counts: Vec<Vec<u64>>,
}

/// How evenly clients were served. Over clients with at least one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fairness {
    /// Mean replies a client.
    pub mean: f64,
    /// Fewest replies of a client.
    pub min: u64,
    /// Most replies of a client.
    pub max: u64,
    /// Jain's index: 1 all alike, 1/n one client gets all (DEC TR-301, 1984).
    pub jain: f64,
    /// Share of all replies that the slowest tenth of clients got; 0.1 when all are alike.
    pub slowest_decile_share: f64,
    /// Clients with fewer than a tenth of the mean.
    pub starved: u32,
    /// Whether early connections are favoured: the rank correlation of being connected early with
    /// replies in the window. Above 0 early clients got more; absent where all got the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_bias: Option<Correlation>,
    /// The same with all replies since a client was connected, so that a head start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_bias_life: Option<Correlation>,
    /// Why neither is known, where clients on several hosts were too many to bring together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_absent: Option<String>,
    /// The same over the whole lives of clients, from when each was connected: who waited for others is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<LifeFairness>,
}

/// How evenly clients were served over their whole lives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifeFairness {
    /// Mean replies a client.
    pub mean: f64,
    /// Fewest replies of a client.
    pub min: u64,
    /// Most replies of a client.
    pub max: u64,
    /// Jain's index.
    pub jain: f64,
    /// Replies to a client of the tenth that connected first, over those to one of the last; from 10 clients on.
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

/// Whether one thing goes with the order of another, over the clients of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correlation {
    /// Spearman's rank correlation, -1 to 1.
    pub coefficient: f64,
    /// Lower end of its 95 % interval, which takes clients for independent; from 10 clients on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}
