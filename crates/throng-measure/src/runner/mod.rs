//! Runs: their plans, their trials (one by one or side by side), and the search for limits.

mod limit;
mod loading;
mod loads;
mod main_thread;
mod measuring;
pub(crate) mod observer;
mod others;
pub mod plan;
pub(crate) mod run;
pub(crate) mod run_spec;
pub mod search;
mod side_by_side;
mod slices;
mod spin;
mod trial;
mod verify;
mod wire;
