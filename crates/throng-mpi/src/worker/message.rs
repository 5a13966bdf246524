//! Messages between the workers of two ranks.

use serde::{Deserialize, Serialize};
use throng::measure::cluster::{HostAssignment, Report};
use throng::record::ClientHost;

/// From the leading rank to a client host. Each message has the number of an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToHost {
    /// The order.
    HostAssignment {
        number: u32,
        order: Box<HostAssignment>,
    },
    /// Continue at this time by the host's own clock.
    GoOn { number: u32, at_ns: u64 },
    /// End the load if it is still running.
    Halt { number: u32, limit_ms: u64 },
}

/// From a client host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromHost {
    /// The host is ready.
    Here {
        host: ClientHost,
        /// The CPUs that the launcher leaves to this rank.
        usable_cpus: Vec<u32>,
    },
    /// An event of its load.
    Report { number: u32, report: Report },
    /// The load of that order has ended.
    Halted { number: u32 },
}
