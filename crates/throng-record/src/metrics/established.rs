//! Metrics of the probe `established`: connections to the server's port by state.

use super::entry::of_network;
use super::{Better, Combine, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_network! { "established", Timed:
    "established_max", "Max connections", Count, Neutral, "most simultaneous established connections to the server's port", [.combined(Combine::Greatest)];
    "established_end", "Connections at the end", Count, Neutral, "established connections at the end of the trial, with idle clients";
    "syn_received_max", "Max half-open", Count, Neutral, "most simultaneous half-open connections (SYN_RECV)", [.combined(Combine::Greatest)];
    "close_wait_max", "Max CLOSE_WAIT", Count, Neutral, "most simultaneous connections closed by the client but not by the server (CLOSE_WAIT)", [.combined(Combine::Greatest)];
    "closing_max", "Max closing", Count, Neutral, "most simultaneous connections closed by the server but not finished (FIN_WAIT, LAST_ACK, CLOSING)", [.combined(Combine::Greatest)];
    "time_wait_max", "Max TIME_WAIT", Count, Neutral, "most simultaneous connections in TIME_WAIT, above the number before the trial (network namespace)", [.combined(Combine::Greatest)];
};
