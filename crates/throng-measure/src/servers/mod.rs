//! Servers under test: how they are started, found ready, examined and stopped.

pub(crate) mod announced;
pub(crate) mod hooks;
pub(crate) mod live_server;
mod logs;
pub(crate) mod named;
pub mod own_server;
mod ports;
pub(crate) mod ready;
pub mod running;
pub(crate) mod server;
pub(crate) mod server_setup;
mod socket_file;
pub(crate) mod stream;
