//! The load: one form for flags, studies and records.
//!
//! Flags of the command line, the tables of study files and records all hold a [`LoadSpec`]. Its keys are
//! the names of the flags, and a value is written alike everywhere.

mod arrival;
mod assignment;
mod bytes;
mod check;
mod data;
mod dialogue;
mod files;
mod flags;
mod made_up;
mod network;
mod number;
mod request_file;
mod sent;
mod share;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod tls;
mod trial;
mod weighted;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use arrival::{LONG_BY_CHANCE, RateRange, Spacing, Think, per_second};
pub use assignment::Assignment;
pub use bytes::{bytes, request_size};
pub use check::{DEEPEST_PIPELINE, SpecError};
pub use data::Data;
#[doc(hidden)]
pub use made_up::made_up;
pub use network::Network;
pub use number::{at_least_one, count, number, optional_whole, whole, whole_number};
pub use request_file::RequestFile;
pub use sent::Sent;
pub use share::Share;
pub use target::{Endpoint, Place, Scheme, Target, UnixPath};
pub use text::{optional_time, read_time, write_time};
use throng_protocol::Statuses;
pub use tls::TlsSpec;
pub use trial::TrialSpec;
pub use weighted::{Paths, Sizes, Weighted, weighted_path};

/// How long replies count where nothing says when a load ends.
const USUAL_DURATION: Duration = Duration::from_secs(10);
/// How long a warm-up may last where nothing says it.
const USUAL_WARM_UP_LIMIT: Duration = Duration::from_secs(5);

/// A load: what all clients together do.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a key of its own"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadSpec {
    /// Clients, each with one connection at a time.
    #[serde(deserialize_with = "number::whole")]
    pub clients: u32,
    /// What is said; absent where `send` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Bytes in a request, for protocols that let one choose.
    pub size: Sizes,
    /// What is asked for by http or websocket; absent: `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Paths>,
    /// Whether messages by websocket are text instead of binary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub text: bool,
    /// The method of requests by http; absent: GET, or POST with data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// Headers of requests by http, each `Name: value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<String>,
    /// The body of requests by http.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Instead of path, method and body: requests by http, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_file: Option<RequestFile>,
    /// Whether `{number}` and so on are variables in path, headers and body.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub variables: bool,
    /// Whether each client sends back the cookies that it was given by http.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cookies: bool,
    /// Bytes to send instead of what a protocol says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<Sent>,
    /// How a reply to them ends, and what is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// The statuses that are right for http; absent: 2xx and 3xx.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_status: Option<String>,
    /// How many bytes the body of a right reply by http has; absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_length: Option<u64>,
    /// Which body a right reply by http has; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_body: Option<String>,
    /// Requests that come due a second over all clients; absent: a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateRange>,
    /// How they lie about that rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Spacing>,
    /// How long clients of a closed loop think.
    pub think: Think,
    /// Requests that a client may have out at once.
    #[serde(deserialize_with = "number::whole")]
    pub pipeline: u16,
    /// Background clients, which send few requests.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub probe_clients: Option<u32>,
    /// Requests a second of each of them.
    #[serde(deserialize_with = "number::fraction")]
    pub probe_rate: f64,
    /// How long replies count.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Instead: requests over all clients.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub requests: Option<u64>,
    /// Instead: bytes sent and received.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub bytes: Option<u64>,
    /// Instead: requests of each client, which then is done.
    #[serde(
        alias = "each",
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub requests_per_client: Option<u32>,
    /// Most of these clients that are there at the same time.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub at_once: Option<u32>,
    /// How long all of them may take.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Duration>,
    /// How long to load before replies count, once every client had its first answer.
    #[serde(with = "text::time")]
    pub warm_up: Duration,
    /// How long that may last until the server's rate is level.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub warm_up_limit: Option<Duration>,
    /// Where everything random begins.
    pub seed: u64,
    /// The time over which clients come.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Duration>,
    /// Or how many of them come in a second.
    #[serde(
        deserialize_with = "number::optional_fraction",
        skip_serializing_if = "Option::is_none"
    )]
    pub connect_rate: Option<f64>,
    /// How long a client may take to connect.
    #[serde(with = "text::time")]
    pub connect_timeout: Duration,
    /// How often a SYN is sent again before connecting fails; absent: as the system has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_retries: Option<u8>,
    /// Requests after which a connection is closed and another one made.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub requests_per_connection: Option<u32>,
    /// Time after which it is.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Duration>,
    /// How it is closed then.
    pub close: Close,
    /// Whether clients whose connection failed make another one.
    pub reconnect: bool,
    /// How long a reply may take.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<Duration>,
    /// Without any new first answer for this long, clients still waiting count as never served.
    #[serde(with = "text::time")]
    pub patience: Duration,
    /// Whether clients go on asking while others still wait for their first answer.
    pub eager: bool,
    /// What moves the bytes.
    pub engine: Engine,
    /// How many threads the clients have; absent: as many as there are CPUs for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_threads: Option<ClientThreads>,
    /// Whether small requests are gathered before they are sent (Nagle's algorithm).
    pub delay: bool,
    /// Addresses of the client's machine to connect from in turn; none: the system's choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<Network>,
    /// How connections are encrypted; absent: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// The files of which bytes are sent, each with the SHA-256 of what was in it when the load was asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Default for LoadSpec {
    fn default() -> Self {
        Self {
            clients: 50,
            protocol: None,
            size: Sizes::one(1000),
            path: None,
            text: false,
            http_method: None,
            header: Vec::new(),
            data: None,
            request_file: None,
            variables: false,
            cookies: false,
            send: None,
            expect: None,
            expect_status: None,
            expect_length: None,
            expect_body: None,
            rate: None,
            arrival: None,
            think: Think::None,
            pipeline: 1,
            probe_clients: None,
            probe_rate: 10.0,
            duration: None,
            requests: None,
            bytes: None,
            requests_per_client: None,
            at_once: None,
            time_limit: None,
            warm_up: Duration::from_millis(500),
            warm_up_limit: None,
            seed: 1,
            ramp: None,
            connect_rate: None,
            connect_timeout: Duration::from_secs(10),
            syn_retries: None,
            requests_per_connection: None,
            lifetime: None,
            close: Close::Orderly,
            reconnect: false,
            request_timeout: None,
            patience: Duration::from_secs(3),
            eager: false,
            engine: Engine::Epoll,
            client_threads: None,
            delay: false,
            source: Vec::new(),
            tls: None,
            files: BTreeMap::new(),
        }
    }
}

/// When a load is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After a measurement of this length.
    Duration(Duration),
    /// After so many requests over all clients, in a closed loop divided evenly; warm-up does not
    /// apply.
    Requests(u64),
    /// After so many bytes, sent and received; warm-up does not apply.
    Bytes(u64),
    /// When each client has made so many requests, or has failed; they come, do that and go, so there is
    /// neither rest nor warm-up.
    Each {
        /// Of each client.
        requests: u32,
        /// Whoever is not done after this time is not waited for.
        limit: Option<Duration>,
    },
}

/// How a client closes a connection that has served its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Close {
    /// With FIN; the kernel keeps the port for a minute (TIME_WAIT).
    Orderly,
    /// With RST, which keeps nothing.
    Reset,
}

impl Close {
    /// All there are, by their names.
    pub const NAMED: [(&'static str, Self); 2] =
        [("orderly", Self::Orderly), ("reset", Self::Reset)];
}

/// What moves the bytes of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// epoll(7), edge-triggered.
    Epoll,
    /// io_uring(7).
    IoUring,
}

/// How clients are divided over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientThreads {
    /// Each has a thread of its own, as in many a hand-made load: then the system deals out their turns.
    OneEach,
}

impl ClientThreads {
    /// All there are, by their names.
    pub const NAMED: [(&'static str, Self); 1] = [("one-each", Self::OneEach)];
}

impl Engine {
    /// All there are, by their names.
    pub const NAMED: [(&'static str, Self); 2] =
        [("epoll", Self::Epoll), ("io-uring", Self::IoUring)];

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }
}

impl LoadSpec {
    /// When it is enough.
    pub fn until(&self) -> Until {
        if let Some(requests) = self.requests_per_client {
            return Until::Each {
                requests,
                limit: self.time_limit,
            };
        }
        match (self.requests, self.bytes) {
            (Some(requests), _) => Until::Requests(requests),
            (None, Some(bytes)) => Until::Bytes(bytes),
            (None, None) => Until::Duration(self.duration.unwrap_or(USUAL_DURATION)),
        }
    }

    /// The same load with another end.
    #[must_use]
    pub fn ending(mut self, until: Until) -> Self {
        (self.duration, self.requests, self.bytes) = (None, None, None);
        (self.requests_per_client, self.time_limit) = (None, None);
        match until {
            Until::Duration(duration) => self.duration = Some(duration),
            Until::Requests(requests) => self.requests = Some(requests),
            Until::Bytes(bytes) => self.bytes = Some(bytes),
            Until::Each { requests, limit } => {
                (self.requests_per_client, self.time_limit) = (Some(requests), limit);
            }
        }
        self
    }

    /// The key of it that throng's own servers cannot answer.
    pub fn only_for_others(&self) -> Option<&'static str> {
        if self.send.is_some() {
            Some("send")
        } else {
            self.tls.is_some().then_some("tls")
        }
    }

    /// Whether each client has a job and is done then.
    pub fn has_jobs(&self) -> bool {
        self.requests_per_client.is_some()
    }

    /// What requests ask for by http.
    pub fn paths(&self) -> Paths {
        let root = || Paths::one("/".to_owned());
        self.path.clone().unwrap_or_else(root)
    }

    /// The statuses that are right.
    ///
    /// # Errors
    /// When the value is none.
    pub fn expected_statuses(&self) -> Result<Statuses, SpecError> {
        let Some(text) = &self.expect_status else {
            return Ok(Statuses::default());
        };
        text.parse()
            .map_err(|why: String| SpecError::value("expect-status", why))
    }

    /// The key by which the clients, and not the server, say how many requests come a second.
    pub fn sets_the_rate(&self) -> Option<&'static str> {
        if self.rate.is_some() {
            Some("rate")
        } else if self.has_jobs() {
            Some("requests-per-client")
        } else {
            (self.think != Think::None).then_some("think")
        }
    }

    /// The longest that it warms up until the server's rate is level. Where clients set the rate, or there is to be no
    /// warm-up, that is as long as was asked for.
    pub fn longest_warm_up(&self) -> Duration {
        let is_timed = matches!(self.until(), Until::Duration(_));
        if !is_timed || self.sets_the_rate().is_some() || self.warm_up.is_zero() {
            return self.warm_up;
        }
        let limit = self.warm_up_limit.unwrap_or(USUAL_WARM_UP_LIMIT);
        self.warm_up.max(limit)
    }

    /// What of it does not go with slices: clients that ask by themselves, or so often and no more.
    pub fn why_not_in_slices(&self) -> Option<&'static str> {
        let changes = |rate: RateRange| rate != RateRange::constant(rate.from_per_s);
        match (self.sets_the_rate(), self.until()) {
            (Some("rate"), _) if self.rate.is_some_and(changes) => Some("a --rate that changes"),
            (Some("think"), _) => Some("--think"),
            (Some("requests-per-client"), _) => Some("--each"),
            (_, Until::Requests(_) | Until::Bytes(_)) => Some("a number of requests or bytes"),
            _ if self.probe_clients.is_some() => Some("--probe-clients"),
            _ if self.client_threads.is_some() => Some("--client-threads"),
            _ => None,
        }
    }

    /// Clients that connect for the first time in a second; none: as fast as they can.
    pub fn connects_per_s(&self) -> Option<f64> {
        let by_ramp = |ramp: Duration| f64::from(self.clients) / ramp.as_secs_f64();
        self.ramp.map(by_ramp).or(self.connect_rate)
    }

    /// The time over which clients come, where that is slow on purpose.
    pub fn coming(&self) -> Duration {
        let by_rate = self.connect_rate.map(|per_s| {
            let time = Duration::try_from_secs_f64(f64::from(self.clients) / per_s);
            time.unwrap_or(Duration::MAX)
        });
        self.ramp.or(by_rate).unwrap_or_default()
    }

    /// Connections that a client with a job makes one after the other, `closes` telling whether the server
    /// ends each after a reply.
    pub fn connections_each(&self, closes: bool) -> u32 {
        let requests = self.requests_per_client.unwrap_or(1);
        let on_one = if closes {
            1
        } else {
            self.requests_per_connection.unwrap_or(requests)
        };
        requests.div_ceil(on_one)
    }
}
