//! Part 3a: trials of one server under one load, measured on both sides.
//!
//! Servers and loads run as separate processes. So the same code measures built-in and foreign servers, and no
//! measuring code runs inside them.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

pub mod cluster;
pub mod fuzzing;
pub mod host;
pub mod network;
pub mod private_directory;
pub mod probes;
pub mod processes;
mod profile;
pub mod provenance;
pub mod runner;
pub mod servers;
mod stage;
pub mod trace;

pub use cluster::live_snapshot::{LiveSnapshot, Rate, TimeEstimate};
pub use runner::observer::{Observer, TrialStart};
pub use runner::run::{expected_s, run};
pub use runner::run_spec::{RunSpec, begun, utc_now};
pub use servers::hooks::MOST_PORTS;
pub use servers::named::{server_limit, stop_signal};
pub use servers::ready::{Ready, check_addresses};
pub use servers::server_setup::SetupFailed;
pub use servers::stream::connect;
