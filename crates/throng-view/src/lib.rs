//! A local page of all runs below a directory: which there are, what each says, its trials and their clients, two of
//! them beside each other, a server over runs, and how one goes that is running.
//!
//! It listens on this machine's loopback alone, answers only who asked for it by a name of that, only reads,
//! and only below the directory. Records are anybody's text: one that is broken is shown with its reason.
//! What blocks (reading, rendering) happens on a few threads of its own, so many at once and no more.

mod address;
mod answers;
mod connections;
mod glances;
mod history;
mod known;
mod listed;
mod page;
mod progress;
mod refused;
mod remembered;
mod runs;
mod server;
mod trials;
mod walk;

pub use server::Viewer;
