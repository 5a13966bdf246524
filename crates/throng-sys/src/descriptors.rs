//! A descriptor table for one thread.

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives the calling thread a copy of the descriptor table that it shared with the others: what
/// it opens from now on only it has, and the limit of descriptors is its own.
///
/// # Errors
/// As unshare(2) gives them.
pub fn own_table() -> io::Result<()> {
    // SAFETY: descriptors that were open keep their numbers in both tables, so nothing that is
    // owned or borrowed becomes dangling here. Those opened later must not cross to another
    // thread; the models that call this open, use and close them in one thread.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }.map_err(io::Error::from)
}
