//! Messages between the workers of two ranks.

use serde::{Deserialize, Serialize};
use throng::measure::cluster::{HostAssignment, Report};
use throng::record::ClientHost;

/// From the leading rank to a client host. All of it belongs to an order, which has a number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToHost {
    /// Do this.
    HostAssignment {
        number: u32,
        order: Box<HostAssignment>,
    },
    /// Continue at that moment of the host's own clock.
    GoOn { number: u32, at_ns: u64 },
    /// End the load if it still runs.
    Halt { number: u32, limit_ms: u64 },
}

/// From a client host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromHost {
    /// It is there.
    Here(ClientHost),
    /// How its load goes.
    Report { number: u32, report: Report },
    /// The load of that order is ended.
    Halted { number: u32 },
}
