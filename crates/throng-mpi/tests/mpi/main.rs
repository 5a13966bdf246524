//! throng-mpi under a launcher: several ranks on this host, and one on each host of a network of namespaces. What
//! a machine lacks for that is told, and left out.
//!
//! Times are only bounded from above where a bound is promised: how long after a loss everything has ended.

mod alike;
mod job;
mod losses;
mod network;
mod usage;
