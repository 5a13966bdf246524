//! The distributions of times that metrics describe, and the statistics of each.

use crate::{Latency, Load};

/// A distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    /// From sending a request to its complete reply.
    Latency,
    /// From when a request was due to its complete reply.
    Response,
    /// From `connect()` to an established connection.
    Connect,
    /// From `connect()` to the first reply.
    FirstAnswer,
    /// From when a client began to connect until it was done.
    Job,
    /// From when a session was due, or began, until its last reply.
    Session,
    /// From an established connection to the end of its TLS handshake.
    Handshake,
}

/// A statistic of a distribution of times.
#[derive(Debug, Clone, Copy)]
pub(super) enum Statistic {
    P50,
    P90,
    P95,
    P99,
    P999,
    Mean,
    Max,
}

impl Times {
    /// Its name within a sentence.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Response => "response time",
            Self::Connect => "connect time",
            Self::FirstAnswer => "time to the first reply",
            Self::Job => "job time",
            Self::Session => "session time",
            Self::Handshake => "TLS handshake time",
        }
    }

    pub(super) fn of(self, load: &Load) -> Option<&Latency> {
        match self {
            Self::Latency => load.service_time.as_ref(),
            Self::Response => load.open_loop.as_ref()?.response_time.as_ref(),
            Self::Connect => load.connect_time.as_ref(),
            Self::FirstAnswer => load.first_reply.as_ref(),
            Self::Job => load.completion.as_ref()?.job_time.as_ref(),
            Self::Session => load.sessions.as_ref()?.time.as_ref(),
            Self::Handshake => load.tls.as_ref()?.handshake_time.as_ref(),
        }
    }
}

impl Statistic {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Mean => "mean",
            Self::Max => "longest",
        }
    }

    pub(super) fn of(self, times: &Latency) -> Option<f64> {
        match self {
            Self::P50 => Some(times.p50_us),
            Self::P90 => Some(times.p90_us),
            // The only one that a record has only in its histogram.
            Self::P95 => Some(times.times().ok()?.value_at_quantile(0.95) as f64 / 1e3),
            Self::P99 => times.p99_us,
            Self::P999 => times.p999_us,
            Self::Mean => Some(times.mean_us),
            Self::Max => Some(times.max_us),
        }
    }

    /// As a quantile, and the minimum number of values that it needs.
    pub(super) fn quantile(self) -> Option<(f64, u64)> {
        match self {
            Self::P50 => Some((0.5, 1)),
            Self::P90 => Some((0.9, 1)),
            Self::P95 => Some((0.95, 1)),
            Self::P99 => Some((0.99, 100)),
            Self::P999 => Some((0.999, 10_000)),
            Self::Mean | Self::Max => None,
        }
    }
}
