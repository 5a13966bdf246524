//! New descriptors with flags set, atomically where the system supports it.
//!
//! accept4() and pipe2() are in POSIX.1-2024 and save system calls; macOS has neither.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketAddrAny;

/// Accepts a client. Its socket is close-on-exec, and non-blocking if requested.
///
/// # Errors
/// As accept(2).
pub fn accept(
    listener: impl AsFd,
    nonblocking: bool,
) -> Result<(OwnedFd, Option<SocketAddrAny>), Errno> {
    #[cfg(not(target_vendor = "apple"))]
    {
        use rustix::net::SocketFlags;
        let mut flags = SocketFlags::CLOEXEC;
        flags.set(SocketFlags::NONBLOCK, nonblocking);
        rustix::net::acceptfrom_with(listener, flags)
    }
    #[cfg(target_vendor = "apple")]
    {
        let (socket, peer) = rustix::net::acceptfrom(listener)?;
        set_flags(&socket, nonblocking)?;
        Ok((socket, peer))
    }
}

/// A non-blocking, close-on-exec pipe: read end first.
///
/// # Errors
/// As pipe(2).
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    {
        use rustix::pipe::{PipeFlags, pipe_with};
        Ok(pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?)
    }
    #[cfg(target_vendor = "apple")]
    {
        let (reader, writer) = rustix::pipe::pipe()?;
        set_flags(&reader, true)?;
        set_flags(&writer, true)?;
        Ok((reader, writer))
    }
}

/// A fork between accept() and this call would leak the descriptor; models that fork do so in the
/// accepting thread.
#[cfg(target_vendor = "apple")]
fn set_flags(fd: &OwnedFd, nonblocking: bool) -> Result<(), Errno> {
    use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
    fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    ioctl_fionbio(fd, nonblocking)
}
