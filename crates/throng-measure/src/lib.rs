//! Part 3a: trials of one server under one load, measured on both sides.
//!
//! Servers and loads run as separate processes. So the same code measures built-in and foreign servers, and no
//! measuring code runs inside them.

mod announced;
pub mod cluster;
mod control_group;
mod follow;
pub mod fuzzing;
mod hooks;
pub mod host;
mod known_messages;
mod limit;
mod lines;
mod live_server;
mod live_snapshot;
mod loading;
mod loads;
mod logs;
pub mod loss;
mod main_thread;
mod measuring;
mod named;
pub mod network;
mod observer;
pub mod orphans;
mod others;
pub mod own_group;
pub mod own_server;
pub mod plan;
mod ports;
pub mod probes;
mod process;
pub mod provenance;
mod queue;
mod ready;
mod run;
mod run_spec;
pub mod running;
pub mod search;
mod server;
mod server_setup;
mod side_by_side;
mod slices;
mod socket_file;
mod spin;
mod stage;
mod stream;
pub mod trace;
mod trial;
mod validity;
mod verify;
pub mod warnings;
pub mod watchdog;
mod wire;

pub use hooks::MOST_PORTS;
pub use live_snapshot::{LiveSnapshot, Rate, TimeEstimate};
pub use named::{server_limit, stop_signal};
pub use observer::{Observer, RatiosSoFar, ServerSoFar, TrialStart};
pub use ready::Ready;
pub use run::run;
pub use run_spec::{RunSpec, begun, utc_now};
pub use server_setup::SetupFailed;
pub use stream::connect;
