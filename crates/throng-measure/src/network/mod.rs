//! What the kernel tells of TCP: sockets one by one, and counters of a whole network namespace.

pub(super) mod counters;
pub(super) mod message;
pub(super) mod proc_file;
pub mod sock_diag;
mod unix;
