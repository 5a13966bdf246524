//! Validation of loads.

use std::time::Duration;

use super::{Engine, LoadSpec, Order, Paths, Sizes, Think, USUAL_DURATION};
use crate::registry;
use throng_protocol::{Expectation, LARGEST_SIZE, PROTOCOLS, Statuses};

/// Maximum open requests per client.
pub const DEEPEST_PIPELINE: u16 = 1024;
/// Maximum SYN retries.
const MOST_SYN_RETRIES: u8 = 127;
/// Maximum count of requests or bytes.
const MOST: u64 = 1_000_000_000_000_000;

/// Why a load is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SpecError {
    /// The key.
    pub key: &'static str,
    /// Whether its value is wrong, rather than its presence.
    pub is_value: bool,
    /// The error. Keys are written as `` `key` ``.
    pub why: String,
}

impl SpecError {
    /// The error, with keys as flags.
    pub fn of_flags(&self) -> String {
        let mut text = self.why.clone();
        for key in KEYS {
            text = text.replace(&format!("`{key}`"), &format!("--{key}"));
        }
        text
    }

    /// An error about the presence of a key.
    pub fn key(key: &'static str, why: impl Into<String>) -> Self {
        Self {
            key,
            is_value: false,
            why: why.into(),
        }
    }

    /// An error in the value of a key.
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
    "proto",
    "request-file",
    "variable",
    "data-file",
    "data-order",
    "recorded-delays",
    "recorded-host",
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
    "live",
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
    "first-reply-timeout",
];

impl LoadSpec {
    /// The load in its normal form, in which equal loads are equal values, if it is valid.
    ///
    /// # Errors
    /// The wrong key.
    pub fn checked(self) -> Result<Self, SpecError> {
        self.check_values()?;
        self.check_together()?;
        self.check_threads()?;
        self.check_needs()?;
        self.check_flow()?;
        self.check_dialogue()?;
        Ok(self.normalised())
    }

    /// Adds defaults, and removes keys without effect.
    pub(super) fn normalised(mut self) -> Self {
        let is_bounded = self.has_jobs() || self.requests.is_some() || self.bytes.is_some();
        if !is_bounded {
            self.duration.get_or_insert(USUAL_DURATION);
        }
        if self.has_jobs() {
            // With short-lived clients, everything counts.
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
            .find(|known| Some(known.name()) == self.protocol.as_deref());
        // Some protocols have a fixed size.
        if let Some(protocol) = known
            && protocol.size(1) == protocol.size(2)
        {
            self.size = Sizes::one(protocol.size(1));
        }
        self
    }

    /// Checks single values.
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
            ("live", self.live),
            ("request-timeout", self.request_timeout),
            ("first-reply-timeout", Some(self.first_reply_timeout)),
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

    /// Checks keys that exclude each other.
    fn check_together(&self) -> Result<(), SpecError> {
        let rate = ("rate", self.rate.is_some());
        let think = ("think", self.think != Think::None);
        let jobs = (
            self.job_key().unwrap_or("requests-per-client"),
            self.has_jobs(),
        );
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
        let proto = ("proto", self.proto.is_some());
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
            (proto, file),
            (proto, ("variables", self.variables)),
        ];
        let of_http = self.of_http();
        let with_send = of_http.iter().map(|option| (send, *option));
        for ((key, is_there), (other, other_is)) in excluding.into_iter().chain(with_send) {
            if is_there && other_is {
                let why = format!("`{key}` and `{other}` cannot be used together; leave one out");
                return Err(SpecError::key(key, why));
            }
        }
        if let Some(total) = self.requests.filter(|&n| n < u64::from(self.clients)) {
            let why = format!(
                "`requests` ({total}) must be at least `clients` ({}), since each client sends one",
                self.clients
            );
            return Err(SpecError::value("requests", why));
        }
        Ok(())
    }

    /// Rejects what does not go together with the steps of a flow.
    fn check_flow(&self) -> Result<(), SpecError> {
        if !self.has_flow() {
            return Ok(());
        }
        if self.protocol.as_deref().is_some_and(|name| name != "http") {
            let why = "the steps of a flow need the `protocol` http";
            return Err(SpecError::key("request-file", why));
        }
        let excluded = [
            ("pipeline", self.pipeline > 1),
            ("variables", self.variables),
            ("expect-length", self.expect_length.is_some()),
            ("expect-body", self.expect_body.is_some()),
            ("probe-clients", self.probe_clients.is_some()),
        ];
        for (key, is_there) in excluded {
            if is_there {
                let why = format!("`{key}` does not go with the steps of a flow; leave it out");
                return Err(SpecError::key(key, why));
            }
        }
        Ok(())
    }

    /// Rejects client threads without epoll: thousands of threads wait in sets of their own.
    fn check_threads(&self) -> Result<(), SpecError> {
        if self.client_threads.is_some() && self.engine == Engine::IoUring {
            let why = "`client-threads` needs the `engine` epoll; leave out one of them";
            return Err(SpecError::key("client-threads", why));
        }
        Ok(())
    }

    /// Checks keys that need another key.
    fn check_needs(&self) -> Result<(), SpecError> {
        let has_rate = (self.probe_rate - Self::default().probe_rate).abs() > 0.0;
        let (jobs, one_of_them) = (self.has_jobs(), "requests-per-client` or `live");
        let (of_recording, has_flow) = ("request-file` with a name in .har", self.has_flow());
        // A flow has variables anyway.
        let uses = self.variables || has_flow;
        let needing = [
            ("at-once", self.at_once.is_some(), one_of_them, jobs),
            ("time-limit", self.time_limit.is_some(), one_of_them, jobs),
            (
                "probe-rate",
                has_rate,
                "probe-clients",
                self.probe_clients.is_some(),
            ),
            ("send", self.send.is_some(), "expect", self.expect.is_some()),
            ("expect", self.expect.is_some(), "send", self.send.is_some()),
            ("variable", !self.variable.is_empty(), "variables", uses),
            ("data-file", self.data_file.is_some(), "variables", uses),
            (
                "data-order",
                self.data_order != Order::default(),
                "data-file",
                self.data_file.is_some(),
            ),
            (
                "recorded-delays",
                self.recorded_delays,
                of_recording,
                has_flow,
            ),
            (
                "recorded-host",
                self.recorded_host.is_some(),
                of_recording,
                has_flow,
            ),
        ];
        for (key, is_there, other, other_is) in needing {
            if is_there && !other_is {
                return Err(SpecError::key(key, format!("`{key}` needs `{other}`")));
            }
        }
        Ok(())
    }

    /// The keys that are only for http, and whether they are set.
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

    /// Checks the dialogue with the server.
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
            // A websocket begins with an HTTP request.
            let is_of = |name: &str| match name {
                "http" | "http2" => true,
                "grpc" => !["http-method", "cookies", "expect-status"].contains(&key),
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
        if self.proto.is_some() && self.protocol.as_deref() != Some("grpc") {
            let why = "`proto` needs the protocol grpc; add `protocol` grpc, or leave it out";
            return Err(SpecError::key("proto", why));
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

    /// Rejects an arrival distribution without a rate.
    ///
    /// # Errors
    /// When there is no rate.
    pub fn check_arrival(&self) -> Result<(), SpecError> {
        if self.arrival.is_some() && self.rate.is_none() {
            return Err(SpecError::key("arrival", "`arrival` needs `rate`"));
        }
        Ok(())
    }
}
