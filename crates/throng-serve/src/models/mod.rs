//! The I/O models: one file each, listed here.
//!
//! The files are meant to be read side by side. Each starts with a [`Card`](super::Card) with the same fields. The
//! rest only implements how the model waits and divides the work.
//!
//! To add a model: create its file and its page in `docs/models`, add a `mod` line, and add a line to [`MODELS`]. Put
//! both lines behind `cfg` if the model waits in a call that only Linux has. `.ci/posix` compiles the remaining models
//! for other systems.

/// The page about a model, `docs/models/NAME.md`, through a link, so that a package of this crate has it.
macro_rules! page {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/pages/", $name, ".md"))
    };
}

mod aio;
#[cfg(target_os = "linux")]
mod epoll;
#[cfg(target_os = "linux")]
mod epoll_et;
#[cfg(target_os = "linux")]
mod event_queue;
mod fork;
#[cfg(target_os = "linux")]
mod io_uring;
#[cfg(target_os = "linux")]
mod io_uring_reactors;
mod iterative;
mod poll;
mod polling;
mod prefork;
#[cfg(target_os = "linux")]
mod reactors;
mod select;
mod thread;
mod thread_pool;
#[cfg(target_os = "linux")]
mod tokio;

#[cfg(target_os = "linux")]
use event_queue::{end_arrivals, event_queue, wait_for_events};

use super::Model;

/// Every model, in the order in which they are listed.
pub const MODELS: &[&Model] = &[
    &iterative::MODEL,
    &fork::MODEL,
    &prefork::MODEL,
    &thread::MODEL,
    &thread_pool::MODEL,
    &polling::MODEL,
    &select::MODEL,
    &poll::MODEL,
    &aio::MODEL,
    #[cfg(target_os = "linux")]
    &epoll::MODEL,
    #[cfg(target_os = "linux")]
    &epoll_et::MODEL,
    #[cfg(target_os = "linux")]
    &reactors::MODEL,
    #[cfg(target_os = "linux")]
    &io_uring::MODEL,
    #[cfg(target_os = "linux")]
    &io_uring_reactors::MODEL,
    #[cfg(target_os = "linux")]
    &tokio::MODEL,
];

/// Where to start the next pass over `count` indexes, for models that scan all of them in order.
///
/// The last client of a pass has the least time to send again before the next pass. In a fixed order it would always
/// get fewer answers than the others. Steps of the golden ratio soon come near every index.
fn next_start(last: usize, count: usize) -> usize {
    (last + count * 61 / 100 + 1) % count.max(1)
}
