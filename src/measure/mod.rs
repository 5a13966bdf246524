//! Part 3a: trials of one server under one load, with both sides measured.
//!
//! Servers and loads run as processes of their own, so that a reference server and anybody's own
//! are measured by the same code, and nothing of the measuring runs in what is measured.

mod control_group;
pub mod crew;
mod follow;
mod glimpse;
pub mod host;
pub mod keeper;
mod limit;
mod loading;
mod network;
pub mod own_server;
pub mod plan;
mod ports;
pub mod probes;
mod process;
mod queue;
mod run;
pub mod search;
mod server;
mod spin;
mod stage;
pub mod strays;
pub mod taken_apart;
mod told;
pub mod trace;
mod trial;
mod verify;
pub mod warnings;

pub use glimpse::{Foreseen, Glimpse, Rate};
pub use run::{Observer, RunPlan, Started, begun, run, utc_now};
pub use server::LIMITS;
