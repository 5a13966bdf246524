//! Trials of servers that ran side by side, in slices of time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How servers are timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// Each in separate trials, started afresh, one after the other.
    #[default]
    Trials,
    /// Side by side, each with its clients. The clients of one server at a time send for a slice.
    Slices {
        /// Duration of a slice; if absent, long enough for a few replies per server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        length_s: Option<f64>,
        /// Number of rounds, each with a slice of every server; if absent, until the ratios are precise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rounds: Option<u32>,
        /// Time for all rounds with the same number of clients.
        budget_s: f64,
        /// Longest warm-up of a server, until it is level.
        warm_up_limit_s: f64,
        /// Half the width of the 95 % interval at which a ratio is precise: 0.01 means ±1 %.
        half_width: f64,
    },
}

/// How closely servers are watched to see why they differ.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Not at all.
    #[default]
    Off,
    /// In a few turns.
    On,
    /// In several times as many, whose stacks are kept.
    Profile,
}

impl Why {
    /// Whether it is [`Self::Off`].
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// Default of the longest warm-up.
const WARM_UP_LIMIT: Duration = Duration::from_secs(30);
/// Default of half the width of the interval at which a ratio is precise enough to stop.
pub const HALF_WIDTH: f64 = 0.01;

impl Method {
    /// The default slices, with this time limit and this longest warm-up, if given.
    pub fn in_slices(budget: Duration, warm_up_limit: Option<Duration>) -> Self {
        Self::Slices {
            length_s: None,
            rounds: None,
            budget_s: budget.as_secs_f64(),
            warm_up_limit_s: warm_up_limit.unwrap_or(WARM_UP_LIMIT).as_secs_f64(),
            half_width: HALF_WIDTH,
        }
    }

    /// Whether it is [`Self::Trials`].
    pub fn is_trials(&self) -> bool {
        *self == Self::Trials
    }
}

/// A short time of load on one of several servers that run side by side, from rest to rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// The round, from 0.
    pub round: u32,
    /// From the first request to the last reply.
    pub took_ns: u64,
    /// Complete replies.
    pub replies: u64,
    /// CPU time of the server's process tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// The part of it that the server used after it had answered: later than 0.5 ms after the last reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_late_ns: Option<u64>,
    /// How long threads of the server were ready to run, and waited for a CPU; absent with many threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_wait_ns: Option<u64>,
    /// CPU time of the load process.
    pub client_cpu_ns: u64,
    /// Service times: mean and percentiles.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

impl Slice {
    /// Replies per second.
    pub fn requests_per_s(&self) -> Option<f64> {
        (self.took_ns > 0).then(|| self.replies as f64 * 1e9 / self.took_ns as f64)
    }

    /// The server's CPU time per reply, in microseconds.
    pub fn server_cpu_us_per_request(&self) -> Option<f64> {
        self.cpu_us_per_request(self.server_cpu_ns?)
    }

    /// How long the server's threads waited for a CPU per reply, in microseconds.
    pub fn server_cpu_wait_us_per_request(&self) -> Option<f64> {
        let waited_ns = self.server_cpu_wait_ns?;
        (self.replies > 0).then(|| waited_ns as f64 / 1e3 / self.replies as f64)
    }

    /// The CPU time of the clients per reply, in microseconds.
    pub fn client_cpu_us_per_request(&self) -> Option<f64> {
        self.cpu_us_per_request(self.client_cpu_ns)
    }

    fn cpu_us_per_request(&self, used_ns: u64) -> Option<f64> {
        (self.replies > 0 && used_ns > 0).then(|| used_ns as f64 / 1e3 / self.replies as f64)
    }
}
