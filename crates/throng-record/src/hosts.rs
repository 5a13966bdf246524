//! The hosts from which clients come, where these are several.

use serde::{Deserialize, Serialize};

use super::{Failure, Side};

/// A host from which a part of the clients comes; one machine may be several of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientHost {
    /// What the machine is called.
    pub name: String,
    /// Its number in whatever launched it; unlike the name, it is unique.
    pub rank: u32,
    /// CPUs that its clients can use, without those that another client host on the same machine is to
    /// use.
    pub cpus: u32,
    /// Operating system and kernel release: "Linux 6.18.1".
    pub kernel: String,
    /// How its clock stands to that of the host that leads the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
}

/// By how much two monotonic clocks differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockOffset {
    /// What this clock shows more than that of the host that leads the run, in nanoseconds.
    pub offset_ns: i64,
    /// By how much this may be wrong at most, either way: half of the shortest round trip in which it was
    /// measured.
    pub error_ns: u64,
}

/// What became of one client host's part of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPart {
    /// [`ClientHost::name`].
    pub name: String,
    /// [`ClientHost::rank`].
    pub rank: u32,
    /// Its share of the clients.
    pub clients: u32,
    /// Of these, the ones that had a verified answer before the window ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<u32>,
    /// Verified replies within the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<u64>,
    /// Replies a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_per_s: Option<f64>,
    /// Median of its clients' service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// 99th percentile of these; absent below 100 values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// Connections that ended with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// CPU time of its load's process in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// CPU time over what its CPUs had in the window: near 1 its clients could do no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    /// How long after the first host its window began, by the clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_offset_us: Option<f64>,
    /// By how much its clock may have been wrong in this trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<f64>,
    /// Its load's process, measured from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// Why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl HostPart {
    /// Its machine and its number, since a machine may be several hosts: "lab1 (rank 1)".
    pub fn label(&self) -> String {
        format!("{} (rank {})", self.name, self.rank)
    }
}

/// How far apart the client hosts began to count replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartSkew {
    /// From the first to the last one, by the clocks.
    pub skew_us: f64,
    /// By how much this may be wrong, since clocks of different machines were compared.
    pub error_us: f64,
}
