//! poll(2) over an array that the caller keeps and updates.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, RawFd};
use std::time::Duration;

/// One entry of the poll(2) array.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollEntry(libc::pollfd);

impl PollEntry {
    /// Waits for `fd` to be readable.
    ///
    /// The entry does not borrow the descriptor: if it was closed, the kernel reports that.
    pub fn reading(fd: impl AsFd) -> Self {
        Self(libc::pollfd {
            fd: fd.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
    }

    /// From now on, waits for writability if `writing`, otherwise for readability.
    pub fn set_writing(&mut self, writing: bool) {
        self.0.events = if writing { libc::POLLOUT } else { libc::POLLIN };
    }

    /// The descriptor's number.
    pub fn fd(&self) -> RawFd {
        self.0.fd
    }

    /// Clears the result of the last call, in case the next one fails.
    pub fn clear(&mut self) {
        self.0.revents = 0;
    }

    /// Whether the last call reported the awaited event, or an error.
    pub fn is_ready(&self) -> bool {
        self.0.revents != 0
    }
}

/// Waits until an entry is ready, and returns the number of ready entries.
///
/// # Errors
/// As poll(2), EINTR included.
pub fn poll(entries: &mut [PollEntry], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map_or(-1, |timeout| {
        libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX)
    });
    let count = entries.len() as libc::nfds_t;
    // SAFETY: `PollEntry` has the layout of pollfd, and the slice is exclusively borrowed and
    // `count` entries long.
    let ready = unsafe { libc::poll(entries.as_mut_ptr().cast(), count, timeout) };
    usize::try_from(ready).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn reports_what_is_ready() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut entries = [PollEntry::reading(&reader), PollEntry::reading(&writer)];
        entries[1].set_writing(true);
        assert_eq!(poll(&mut entries, None).unwrap(), 1);
        assert!(!entries[0].is_ready() && entries[1].is_ready());
        writer.write_all(b"x").unwrap();
        assert_eq!(poll(&mut entries[..1], None).unwrap(), 1);
        assert!(entries[0].is_ready());
    }
}
