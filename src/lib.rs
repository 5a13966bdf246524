//! throng shows how a server holds up under a crowd of clients, and which way of serving them
//! costs least.
//!
//! The modules in reading order:
//!
//! 1. [`registry`]: how anything that can be chosen by name is described and found.
//! 2. [`protocol`]: what is said on one connection; bytes in, bytes out.
//! 3. [`serve`]: part 1, a reference server for every I/O model.
//! 4. [`load`]: part 2, the crowd of clients.
//! 5. [`measure`]: part 3a, trials of one server under one load, both sides probed.
//! 6. [`study`]: the TOML form of a run.
//! 7. [`record`]: what a run leaves on disk, the contract between measuring and reporting.
//! 8. [`stats`]: intervals, fairness, steadiness; pure.
//! 9. [`flows`]: the TCP connections of a packet capture; pure.
//! 10. [`report`]: part 3b, record to pages and pictures; runs nothing.
//! 11. `view`: the runs of a directory as a local page; only reads.
//! 12. [`learn`]: what there is to learn about each model: its lesson, and the page made of that.
//! 13. [`cli`]: typed text to resolved plans, and all that is printed.
//! 14. [`sys`]: the only unsafe code.
//!
//! `ARCHITECTURE.md` draws the map and states what must never be.

pub mod cli;
pub mod flows;
pub mod learn;
#[cfg(target_os = "linux")]
pub mod load;
#[cfg(target_os = "linux")]
pub mod measure;
pub mod protocol;
pub mod record;
pub mod registry;
pub mod report;
pub mod serve;
pub mod stats;
pub mod study;
pub mod sys;
#[cfg(target_os = "linux")]
pub mod view;
