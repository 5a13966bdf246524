//! A load: one form for flags, studies and records.
//!
//! Command-line flags, tables of study files, and records all contain a [`LoadSpec`]. Its keys are the names of the
//! flags, and values have the same text everywhere.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

mod arrival;
mod assignment;
mod bytes;
mod check;
mod counts;
mod data;
mod dialogue;
mod files;
mod flags;
mod flow;
mod grpc;
mod made_up;
pub mod named_file;
mod network;
mod number;
mod payload;
pub mod registry;
mod request_file;
mod share;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod tls;
mod weighted;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use arrival::{LONG_BY_CHANCE, RateRange, Spacing, Think, per_second};
pub use assignment::Assignment;
pub use bytes::{bytes, request_size};
pub use check::{DEEPEST_PIPELINE, SpecError};
pub use counts::{ServerCounts, ServerWorker};
pub use data::Data;
pub use flow::Order;
#[doc(hidden)]
pub use made_up::made_up;
pub use network::Network;
pub use number::{at_least_one, count, number, optional_whole, whole, whole_number};
pub use payload::Payload;
pub use request_file::RequestFile;
pub use share::Share;
pub use target::{Endpoint, Place, Scheme, Target, UnixPath};
pub use text::{optional_time, read_time, write_time};
use throng_protocol::Statuses;
pub use tls::TlsSpec;
pub use weighted::{Paths, Sizes, Weighted, weighted_path};

/// Default measurement duration.
const USUAL_DURATION: Duration = Duration::from_secs(10);
/// Default of the longest warm-up.
const USUAL_WARM_UP_LIMIT: Duration = Duration::from_secs(5);

/// A load: what all clients do together.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a key of its own"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadSpec {
    /// Number of clients, each with one connection at a time.
    #[serde(deserialize_with = "number::whole")]
    pub clients: u32,
    /// Protocol; absent with `send`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Bytes per request, for protocols with a variable size.
    pub size: Sizes,
    /// Path for http or websocket; `/` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Paths>,
    /// Whether websocket messages are text instead of binary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub text: bool,
    /// HTTP method; if absent, GET, or POST with data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// HTTP headers, each `Name: value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<String>,
    /// HTTP request body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// File that declares the service of gRPC; `data` is then a message in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proto: Option<PathBuf>,
    /// File of HTTP requests, one per line, instead of path, method and body; or a file of Hurl (`.hurl`) or a recording
    /// (`.har`), whose requests are the steps of each client's sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_file: Option<RequestFile>,
    /// Variables of requests, each `name=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variable: Vec<String>,
    /// File of rows whose columns are variables of requests: CSV, or lines of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_file: Option<PathBuf>,
    /// Which row a session, or a request without one, gets.
    #[serde(skip_serializing_if = "is_usual")]
    pub data_order: Order,
    /// Whether the steps of a recording wait as long as its user did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recorded_delays: bool,
    /// The server whose requests of a recording count, like `example.org:8080`; that of the first request if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_host: Option<String>,
    /// Whether `{number}` and so on are variables in path, headers and body.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub variables: bool,
    /// Whether each client sends back the cookies that it received.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cookies: bool,
    /// Bytes to send as each request, instead of a protocol's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<Payload>,
    /// Where a reply to them ends, and what makes it correct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// Correct HTTP statuses; 2xx and 3xx if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_status: Option<String>,
    /// Required length of HTTP reply bodies; any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_length: Option<u64>,
    /// Required HTTP reply body; any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_body: Option<String>,
    /// Requests per second of all clients (open loop); absent in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateRange>,
    /// Inter-arrival distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Spacing>,
    /// Think time in a closed loop.
    pub think: Think,
    /// Open requests per client.
    #[serde(deserialize_with = "number::whole")]
    pub pipeline: u16,
    /// Probe clients, which send few requests.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub probe_clients: Option<u32>,
    /// Requests per second per probe client.
    #[serde(deserialize_with = "number::fraction")]
    pub probe_rate: f64,
    /// Measurement duration.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Duration>,
    /// Total requests, instead of a duration.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub requests: Option<u64>,
    /// Total bytes sent and received, instead of a duration.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub bytes: Option<u64>,
    /// Requests per client, for short-lived clients instead of a duration.
    #[serde(
        alias = "each",
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub requests_per_client: Option<u32>,
    /// How long a short-lived client lives: it connects, sends requests for this time, and disconnects.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub live: Option<Duration>,
    /// Maximum concurrent clients.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub at_once: Option<u32>,
    /// Time limit for all short-lived clients.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub time_limit: Option<Duration>,
    /// Warm-up, once every client had its first reply.
    #[serde(with = "text::time")]
    #[schemars(with = "String")]
    pub warm_up: Duration,
    /// Longest warm-up, until the server's rate is level.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub warm_up_limit: Option<Duration>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time over which clients connect.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ramp: Option<Duration>,
    /// Clients that connect per second, instead of a ramp.
    #[serde(
        deserialize_with = "number::optional_fraction",
        skip_serializing_if = "Option::is_none"
    )]
    pub connect_rate: Option<f64>,
    /// Connection timeout.
    #[serde(with = "text::time")]
    #[schemars(with = "String")]
    pub connect_timeout: Duration,
    /// SYN retries before connecting fails; the system's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syn_retries: Option<u8>,
    /// Reconnect after this many requests.
    #[serde(
        deserialize_with = "number::optional_whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub requests_per_connection: Option<u32>,
    /// Reconnect after this time.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub lifetime: Option<Duration>,
    /// How connections are closed then.
    pub close: Close,
    /// Whether clients reconnect after a failure.
    pub reconnect: bool,
    /// Request timeout.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub request_timeout: Option<Duration>,
    /// If no first reply arrives for this long, clients without one count as never served.
    #[serde(with = "text::time")]
    #[schemars(with = "String")]
    pub first_reply_timeout: Duration,
    /// Whether clients continue while others wait for their first reply.
    pub eager: bool,
    /// I/O engine.
    pub engine: Engine,
    /// How clients are divided among threads; if absent, there is one thread per CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_threads: Option<ClientThreads>,
    /// Whether to enable Nagle's algorithm.
    pub delay: bool,
    /// Client addresses, used in turn; empty for the system's choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<Network>,
    /// TLS settings; absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
    /// The files whose bytes are sent, each with the SHA-256 of its content when the load was created.
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
            proto: None,
            request_file: None,
            variable: Vec::new(),
            data_file: None,
            data_order: Order::default(),
            recorded_delays: false,
            recorded_host: None,
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
            live: None,
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
            first_reply_timeout: Duration::from_secs(3),
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

/// Whether a value is the default.
fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// When a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After a measurement of this duration.
    Duration(Duration),
    /// After this many requests of all clients, without warm-up. In a closed loop, they are divided evenly.
    Requests(u64),
    /// After this many bytes, sent and received, without warm-up.
    Bytes(u64),
    /// When each client has made its requests or has lived its time, or has failed. Clients connect, send and
    /// disconnect, without rest or warm-up.
    Each {
        /// Requests per client; `None` for any number.
        requests: Option<u32>,
        /// How long each client lives; `None` until it has made its requests.
        live: Option<Duration>,
        /// Time limit for all clients.
        limit: Option<Duration>,
    },
}

/// How a client closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Close {
    /// With FIN; the kernel keeps the port for a minute (TIME_WAIT).
    Orderly,
    /// With RST, which leaves no TIME_WAIT.
    Reset,
}

impl Close {
    /// All variants, by name.
    pub const NAMED: [(&'static str, Self); 2] =
        [("orderly", Self::Orderly), ("reset", Self::Reset)];
}

/// The I/O engine of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// epoll(7), edge-triggered.
    Epoll,
    /// io_uring(7).
    IoUring,
}

/// How clients are divided among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientThreads {
    /// Each has its own thread, as in many simple load generators: the system then schedules them.
    OneEach,
}

impl ClientThreads {
    /// All variants, by name.
    pub const NAMED: [(&'static str, Self); 1] = [("one-each", Self::OneEach)];
}

impl Engine {
    /// All variants, by name.
    pub const NAMED: [(&'static str, Self); 2] =
        [("epoll", Self::Epoll), ("io-uring", Self::IoUring)];

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }
}

impl LoadSpec {
    /// When it ends.
    pub fn until(&self) -> Until {
        if self.has_jobs() {
            return Until::Each {
                requests: self.requests_per_client,
                live: self.live,
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
        (self.requests_per_client, self.live, self.time_limit) = (None, None, None);
        match until {
            Until::Duration(duration) => self.duration = Some(duration),
            Until::Requests(requests) => self.requests = Some(requests),
            Until::Bytes(bytes) => self.bytes = Some(bytes),
            Until::Each {
                requests,
                live,
                limit,
            } => {
                (self.requests_per_client, self.live, self.time_limit) = (requests, live, limit);
            }
        }
        self
    }

    /// The key that built-in servers do not support.
    pub fn only_for_others(&self) -> Option<&'static str> {
        if self.send.is_some() {
            Some("send")
        } else {
            self.tls.is_some().then_some("tls")
        }
    }

    /// Whether clients are short-lived.
    pub fn has_jobs(&self) -> bool {
        self.job_key().is_some()
    }

    /// The key that makes clients short-lived.
    fn job_key(&self) -> Option<&'static str> {
        if self.requests_per_client.is_some() {
            Some("requests-per-client")
        } else {
            self.live.map(|_| "live")
        }
    }

    /// The paths of HTTP requests.
    pub fn paths(&self) -> Paths {
        let root = || Paths::one("/".to_owned());
        self.path.clone().unwrap_or_else(root)
    }

    /// The correct statuses.
    ///
    /// # Errors
    /// When the value is invalid.
    pub fn expected_statuses(&self) -> Result<Statuses, SpecError> {
        let Some(text) = &self.expect_status else {
            return Ok(Statuses::default());
        };
        text.parse()
            .map_err(|why: String| SpecError::value("expect-status", why))
    }

    /// The key by which the clients, and not the server, determine the rate.
    pub fn sets_the_rate(&self) -> Option<&'static str> {
        if self.rate.is_some() {
            Some("rate")
        } else if let Some(key) = self.job_key() {
            Some(key)
        } else {
            (self.think != Think::None).then_some("think")
        }
    }

    /// The longest warm-up until the server's rate is level. If clients set the rate, or there is no warm-up, it is
    /// the requested warm-up.
    pub fn longest_warm_up(&self) -> Duration {
        let is_timed = matches!(self.until(), Until::Duration(_));
        if !is_timed || self.sets_the_rate().is_some() || self.warm_up.is_zero() {
            return self.warm_up;
        }
        let limit = self.warm_up_limit.unwrap_or(USUAL_WARM_UP_LIMIT);
        self.warm_up.max(limit)
    }

    /// The key that is incompatible with slices: scheduled clients, or a fixed number of requests.
    pub fn why_not_in_slices(&self) -> Option<&'static str> {
        let changes = |rate: RateRange| rate != RateRange::constant(rate.from_per_s);
        match (self.sets_the_rate(), self.until()) {
            (Some("rate"), _) if self.rate.is_some_and(changes) => Some("a --rate that changes"),
            (Some("think"), _) => Some("--think"),
            (Some("requests-per-client"), _) => Some("--each"),
            (Some("live"), _) => Some("--live"),
            (_, Until::Requests(_) | Until::Bytes(_)) => Some("a number of requests or bytes"),
            _ if self.probe_clients.is_some() => Some("--probe-clients"),
            _ if self.client_threads.is_some() => Some("--client-threads"),
            _ => None,
        }
    }

    /// Clients that connect per second; `None` for as fast as possible.
    pub fn connects_per_s(&self) -> Option<f64> {
        let by_ramp = |ramp: Duration| f64::from(self.clients) / ramp.as_secs_f64();
        self.ramp.map(by_ramp).or(self.connect_rate)
    }

    /// The time over which clients connect, if limited.
    pub fn coming(&self) -> Duration {
        let by_rate = self.connect_rate.map(|per_s| {
            let time = Duration::try_from_secs_f64(f64::from(self.clients) / per_s);
            time.unwrap_or(Duration::MAX)
        });
        self.ramp.or(by_rate).unwrap_or_default()
    }

    /// Connections of a short-lived client, one after the other. This depends on whether the server `closes` after
    /// each reply.
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
