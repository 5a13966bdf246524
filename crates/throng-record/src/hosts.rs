//! The client hosts, if there are several.

use serde::{Deserialize, Serialize};

use super::{Failure, Side};

/// A host with a part of the clients. One machine may be several hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientHost {
    /// The name of the machine.
    pub name: String,
    /// Its rank in the launcher; unlike the name, it is unique.
    pub rank: u32,
    /// CPUs that its clients can use, excluding those of other client hosts on the same machine.
    pub cpus: u32,
    /// Operating system and kernel release: "Linux 6.18.1".
    pub kernel: String,
    /// The offset of its clock from that of the leading host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
}

/// The offset between two monotonic clocks.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ClockOffset {
    /// This clock minus that of the leading host, in nanoseconds.
    pub offset_ns: i64,
    /// Maximum error in either direction: half of the shortest round trip of the measurement.
    pub error_ns: u64,
}

/// The outcome of one client host's part of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostPart {
    /// [`ClientHost::name`].
    pub name: String,
    /// [`ClientHost::rank`].
    pub rank: u32,
    /// Its share of the clients.
    pub clients: u32,
    /// Of these, clients that had a verified reply before the window ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<u32>,
    /// Verified replies within the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<u64>,
    /// Replies per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_per_s: Option<f64>,
    /// Median service time of its clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// 99th percentile of the service time; absent below 100 values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// Connections that ended with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// CPU time of its load process in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// CPU time as a share of its CPUs in the window: near 1, its clients were the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    /// How long after the first host's window its own began, according to the clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_offset_us: Option<f64>,
    /// The uncertainty of its clock in this trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<f64>,
    /// Its load process, measured from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// Why there are no results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl HostPart {
    /// Its machine and its rank, since a machine may be several hosts: "lab1 (rank 1)".
    pub fn label(&self) -> String {
        format!("{} (rank {})", self.name, self.rank)
    }
}

/// The difference between the starts of the client hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSkew {
    /// From the first start to the last, according to the clocks.
    pub skew_us: f64,
    /// Its uncertainty, since clocks of different machines were compared.
    pub error_us: f64,
}
