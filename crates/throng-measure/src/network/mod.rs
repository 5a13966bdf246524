//! The kernel's view of TCP: single sockets, and counters of a network namespace.

pub(super) mod counters;
pub mod link;
pub mod loss;
pub(super) mod message;
pub(super) mod proc_file;
pub mod sock_diag;
mod unix;
