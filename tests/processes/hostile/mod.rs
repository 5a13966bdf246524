//! `throng load` against misbehaving servers: they refuse, hang, close, reset, send garbage, too much or too little, or
//! stall. Each must have its own kind of error, the load must end by itself, keep its results, and neither memory nor
//! descriptors may grow.
//!
//! Times are only bounded from below, except for one limit after which a load counts as hanging.

mod connecting;
mod http;
mod http2;
mod jobs;
mod many_clients;
mod replying;
pub(crate) mod servers;
mod slow;

use crate::support::load::engines;
