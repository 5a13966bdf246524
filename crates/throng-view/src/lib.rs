//! Local web pages of all runs below a directory: the list, the answer of each, its trials and their clients,
//! comparisons of two runs, the history of a server, and the progress of a running one.
//!
//! It listens only on this machine's loopback, serves only requests under a loopback name, only reads, and only below
//! the directory. Records are untrusted: a damaged one is shown with its error. Blocking work (reading, rendering)
//! runs on a few threads.

mod address;
mod answers;
mod connections;
mod glances;
mod history;
mod page;
mod page_cache;
mod progress;
mod record_cache;
mod refused;
mod run_entry;
mod runs;
mod server;
mod trials;
mod walk;

pub use server::Viewer;
