//! Of the probe `established`: connections to the server's port by state.

use super::entry::of_network;
use super::{Better, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_network! { "established", Timed:
    "established_max", "Most connections", Count, Neutral, "most established connections to the server's port at once";
    "established_end", "Connections at the end", Count, Neutral, "of them, those there at the end, with the clients idle";
    "syn_received_max", "Most half-open", Count, Neutral, "most clients at once whose SYN was answered and who were heard no further";
    "close_wait_max", "Most in CLOSE_WAIT", Count, Neutral, "most connections at once that a client had closed and the server not yet";
    "closing_max", "Most closing", Count, Neutral, "most connections at once that the server had closed and that were not over (FIN_WAIT, LAST_ACK, CLOSING)";
    "time_wait_max", "Most in TIME_WAIT", Count, Neutral, "most connections at once in TIME_WAIT, of the network namespace, above those before";
};
