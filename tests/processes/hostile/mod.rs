//! `throng load` against servers that do what no server should: refuse, hang, close, reset, say
//! garbage, say too much or too little, stall. Each must have its own kind of error, the load must end by
//! itself, keep what it measured, and neither memory nor descriptors may grow.
//!
//! Times are only bounded from below, but for one limit after which a load counts as hanging.

mod connecting;
mod crowds;
mod http;
mod jobs;
mod replying;
pub(crate) mod servers;
mod slow;

/// The engines of a load that there can be here.
fn engines() -> Vec<&'static str> {
    let mut engines = vec!["epoll"];
    if throng::sys::ring::supported().is_ok() {
        engines.push("io-uring");
    }
    engines
}
