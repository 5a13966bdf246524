//! Which loads there can be.

use std::time::Duration;

use super::{Engine, LoadSpec, Paths, Sizes, Think, USUAL_DURATION};
use throng_protocol::{Expectation, LARGEST_SIZE, PROTOCOLS, Statuses};
use throng_registry as registry;

/// Requests that a client may have out at once, at most.
pub const DEEPEST_PIPELINE: u16 = 1024;
/// SYNs that may be sent again, at most.
const MOST_SYN_RETRIES: u8 = 127;
/// Most requests or bytes that can be counted.
const MOST: u64 = 1_000_000_000_000_000;

/// Why a load is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SpecError {
    /// The key that is wrong.
    pub key: &'static str,
    /// Whether its value is, and not that it is there.
    pub is_value: bool,
    /// What is wrong with it. Keys are named as `` `key` ``.
    pub why: String,
}

impl SpecError {
    /// What is wrong, keys named as flags.
    pub fn of_flags(&self) -> String {
        let mut text = self.why.clone();
        for key in KEYS {
            text = text.replace(&format!("`{key}`"), &format!("--{key}"));
        }
        text
    }

    /// That it is there.
    pub fn key(key: &'static str, why: impl Into<String>) -> Self {
        Self {
            key,
            is_value: false,
            why: why.into(),
        }
    }

    /// That its value is wrong.
    pub fn value(key: &'static str, why: impl Into<String>) -> Self {
        Self {
            key,
            is_value: true,
            why: why.into(),
        }
    }
}

/// Keys that messages name.
const KEYS: &[&str] = &[
    "clients",
    "protocol",
    "path",
    "text",
    "http-method",
    "header",
    "data",
    "request-file",
    "variables",
    "cookies",
    "send",
    "expect-status",
    "expect-length",
    "expect-body",
    "expect",
    "rate",
    "arrival",
    "think",
    "pipeline",
    "probe-clients",
    "probe-rate",
    "duration",
    "requests",
    "bytes",
    "requests-per-client",
    "at-once",
    "time-limit",
    "ramp",
    "connect-rate",
    "eager",
    "engine",
    "client-threads",
    "syn-retries",
    "tls",
    "insecure",
    "cacert",
    "cert",
    "key",
    "sni",
    "alpn",
    "size",
    "user",
    "requests-per-connection",
    "connect-timeout",
    "lifetime",
    "request-timeout",
    "patience",
];

impl LoadSpec {
    /// Itself in the one form in which equal loads are equal, if there can be such a load.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn checked(self) -> Result<Self, SpecError> {
        self.check_values()?;
        self.check_together()?;
        self.check_threads()?;
        self.check_needs()?;
        self.check_dialogue()?;
        Ok(self.normalised())
    }

    /// What can be left out is written out, and what says nothing is left out.
    pub(super) fn normalised(mut self) -> Self {
        let is_bounded = self.has_jobs() || self.requests.is_some() || self.bytes.is_some();
        if !is_bounded {
            self.duration.get_or_insert(USUAL_DURATION);
        }
        if self.has_jobs() {
            // All that its clients do counts.
            self.warm_up = Duration::ZERO;
            self.warm_up_limit = None;
        }
        if self.rate.is_some() {
            self.arrival.get_or_insert(super::Spacing::Constant);
        }
        if self.path == Some(Paths::one("/".to_owned())) {
            self.path = None;
        }
        let usual = Statuses::default();
        let statuses = self.expected_statuses().unwrap_or(usual);
        self.expect_status = (statuses != usual).then(|| statuses.to_string());
        let known = PROTOCOLS
            .iter()
            .find(|known| Some(known.info().name) == self.protocol.as_deref());
        // Of some, nobody can choose the size.
        if let Some(protocol) = known
            && protocol.size(1) == protocol.size(2)
        {
            self.size = Sizes::one(protocol.size(1));
        }
        self
    }

    /// Each value by itself.
    fn check_values(&self) -> Result<(), SpecError> {
        let numbers = [
            ("clients", Some(self.clients.into()), u32::MAX.into()),
            (
                "pipeline",
                Some(self.pipeline.into()),
                DEEPEST_PIPELINE.into(),
            ),
            (
                "probe-clients",
                self.probe_clients.map(u64::from),
                u32::MAX.into(),
            ),
            ("requests", self.requests, MOST),
            ("bytes", self.bytes, MOST),
            (
                "requests-per-client",
                self.requests_per_client.map(u64::from),
                u32::MAX.into(),
            ),
            ("at-once", self.at_once.map(u64::from), u32::MAX.into()),
            (
                "syn-retries",
                self.syn_retries.map(u64::from),
                MOST_SYN_RETRIES.into(),
            ),
            (
                "requests-per-connection",
                self.requests_per_connection.map(u64::from),
                u32::MAX.into(),
            ),
            (
                "size",
                self.size.parts().iter().map(|(size, _)| *size as u64).min(),
                LARGEST_SIZE as u64,
            ),
        ];
        for (key, number, most) in numbers {
            if let Some(number) = number.filter(|number| !(1..=most).contains(number)) {
                let why = format!("`{key}` must be from 1 to {most}, not {number}");
                return Err(SpecError::value(key, why));
            }
        }
        let times = [
            ("duration", self.duration),
            ("time-limit", self.time_limit),
            ("ramp", self.ramp),
            ("connect-timeout", Some(self.connect_timeout)),
            ("lifetime", self.lifetime),
            ("request-timeout", self.request_timeout),
            ("patience", Some(self.patience)),
        ];
        for (key, time) in times {
            if time == Some(Duration::ZERO) {
                return Err(SpecError::value(
                    key,
                    format!("`{key}` must be longer than 0"),
                ));
            }
        }
        let rates = [
            ("probe-rate", Some(self.probe_rate)),
            ("connect-rate", self.connect_rate),
        ];
        for (key, rate) in rates {
            if let Some(rate) = rate
                && let Err(why) = super::per_second(&rate.to_string())
            {
                return Err(SpecError::value(key, format!("`{key}` is {rate}: {why}")));
            }
        }
        Ok(())
    }

    /// What says the same in two ways.
    fn check_together(&self) -> Result<(), SpecError> {
        let rate = ("rate", self.rate.is_some());
        let think = ("think", self.think != Think::None);
        let jobs = ("requests-per-client", self.has_jobs());
        let duration = ("duration", self.duration.is_some());
        let requests = ("requests", self.requests.is_some());
        let bytes = ("bytes", self.bytes.is_some());
        let eager = ("eager", self.eager);
        let ramp = ("ramp", self.ramp.is_some());
        let connect_rate = ("connect-rate", self.connect_rate.is_some());
        let send = ("send", self.send.is_some());
        let protocol = ("protocol", self.protocol.is_some());
        let path = ("path", self.path.is_some());
        let method = ("http-method", self.http_method.is_some());
        let data = ("data", self.data.is_some());
        let file = ("request-file", self.request_file.is_some());
        let excluding = [
            (rate, think),
            (rate, jobs),
            (duration, jobs),
            (requests, jobs),
            (bytes, jobs),
            (duration, requests),
            (duration, bytes),
            (requests, bytes),
            (eager, jobs),
            (ramp, connect_rate),
            (send, protocol),
            (path, file),
            (method, file),
            (data, file),
        ];
        let of_http = self.of_http();
        let of_http = of_http.iter().map(|of_http| (send, *of_http));
        for ((key, is_there), (other, other_is)) in excluding.into_iter().chain(of_http) {
            if is_there && other_is {
                let why = format!("`{key}` and `{other}` cannot be used together; leave one out");
                return Err(SpecError::key(key, why));
            }
        }
        if let Some(requests) = self.requests.filter(|&n| n < u64::from(self.clients)) {
            let why = format!(
                "`requests` must be at least the number of `clients`, {}, not {requests}; each client sends one",
                self.clients
            );
            return Err(SpecError::value("requests", why));
        }
        Ok(())
    }

    /// Threads by the thousand wait in sets of their own.
    fn check_threads(&self) -> Result<(), SpecError> {
        if self.client_threads.is_some() && self.engine == Engine::IoUring {
            let why = "`client-threads` needs the `engine` epoll; leave out one of them";
            return Err(SpecError::key("client-threads", why));
        }
        Ok(())
    }

    /// What says something about what is not there.
    fn check_needs(&self) -> Result<(), SpecError> {
        let has_rate = (self.probe_rate - Self::default().probe_rate).abs() > 0.0;
        let jobs = self.has_jobs();
        let needing = [
            (
                "at-once",
                self.at_once.is_some(),
                "requests-per-client",
                jobs,
            ),
            (
                "time-limit",
                self.time_limit.is_some(),
                "requests-per-client",
                jobs,
            ),
            (
                "probe-rate",
                has_rate,
                "probe-clients",
                self.probe_clients.is_some(),
            ),
            ("send", self.send.is_some(), "expect", self.expect.is_some()),
            ("expect", self.expect.is_some(), "send", self.send.is_some()),
        ];
        for (key, is_there, other, other_is) in needing {
            if is_there && !other_is {
                return Err(SpecError::key(key, format!("`{key}` needs `{other}`")));
            }
        }
        Ok(())
    }

    /// The keys that only http has, and whether they are there.
    fn of_http(&self) -> [(&'static str, bool); 10] {
        [
            ("path", self.path.is_some()),
            ("http-method", self.http_method.is_some()),
            ("header", !self.header.is_empty()),
            ("data", self.data.is_some()),
            ("request-file", self.request_file.is_some()),
            ("variables", self.variables),
            ("cookies", self.cookies),
            ("expect-status", self.expect_status.is_some()),
            ("expect-length", self.expect_length.is_some()),
            ("expect-body", self.expect_body.is_some()),
        ]
    }

    /// The dialogue with the server.
    fn check_dialogue(&self) -> Result<(), SpecError> {
        if let Some(name) = &self.protocol {
            registry::find("protocol", PROTOCOLS, name)
                .map_err(|unknown| SpecError::value("protocol", unknown.to_string()))?;
        }
        if self.text && self.protocol.as_deref() != Some("websocket") {
            let why =
                "`text` needs the protocol websocket; add `protocol` websocket, or leave it out";
            return Err(SpecError::key("text", why));
        }
        for (key, is_there) in self.of_http() {
            // A websocket begins with a request of http.
            let is_of = |name: &str| match name {
                "http" => true,
                "websocket" => ["path", "header"].contains(&key),
                _ => false,
            };
            if is_there && let Some(name) = self.protocol.as_deref().filter(|name| !is_of(name)) {
                let why = format!(
                    "`{key}` is for http, not for {name}; add `protocol` http, or leave it out"
                );
                return Err(SpecError::key(key, why));
            }
        }
        self.expected_statuses()?;
        self.body_rule()?;
        self.check_requests()?;
        if let Some(tls) = &self.tls {
            tls.check()?;
        }
        if let Some(expect) = &self.expect {
            Expectation::parse(expect).map_err(|why| SpecError::value("expect", why))?;
        }
        Ok(())
    }

    /// Refuses arrivals where no rate says how many there are.
    ///
    /// # Errors
    /// When there is none.
    pub fn check_arrival(&self) -> Result<(), SpecError> {
        if self.arrival.is_some() && self.rate.is_none() {
            return Err(SpecError::key("arrival", "`arrival` needs a `rate`"));
        }
        Ok(())
    }
}
