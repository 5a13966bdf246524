//! A descriptor table for one thread.

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives the calling thread a private copy of the descriptor table. The thread does not share descriptors that are
/// opened later, and has the whole descriptor limit to itself.
///
/// # Errors
/// As unshare(2).
pub fn own_table() -> io::Result<()> {
    // SAFETY: descriptors that were open keep their numbers in both tables, so nothing that is owned or borrowed
    // becomes dangling here. Descriptors opened later must not be passed to another thread; the models that call this
    // open, use and close them in one thread.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }.map_err(io::Error::from)
}
