//! throng-mpi under a launcher: several ranks on this host, and one on each host of a network of namespaces. What
//! a machine lacks for that is reported, and left out.

mod alike;
mod job;
mod losses;
mod network;
mod over_ssh;
mod usage;
