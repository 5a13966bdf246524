//! throng-mpi under a launcher: several ranks on this host, and one on each host of a network of namespaces. Tests
//! print what the machine lacks, and skip that part.
#![expect(
    clippy::shadow_unrelated,
    reason = "a test looks at several cases in turn"
)]

mod alike;
mod job;
mod losses;
mod network;
mod over_ssh;
mod usage;
