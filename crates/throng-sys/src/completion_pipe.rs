//! Notifications of completed asynchronous operations, in a form that can be waited for together with sockets: a signal
//! handler or a callback thread writes the number of the operation into a pipe.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::signal::keep_errno;

static WRITER: OnceLock<OwnedFd> = OnceLock::new();
static MISSED: AtomicBool = AtomicBool::new(false);

/// Tokens read at once.
const TOKENS: usize = 1024;
const TOKEN_BYTES: usize = size_of::<u32>();

/// The reading end; a process has one.
#[derive(Debug)]
pub struct CompletionPipe {
    reader: OwnedFd,
}

impl CompletionPipe {
    /// Opens the pipe, and installs the handler of its signal.
    ///
    /// # Errors
    /// When no pipe can be made, or one is open already.
    pub fn open() -> io::Result<Self> {
        let (reader, writer) = super::flags::pipe()?;
        WRITER
            .set(writer)
            .map_err(|_| io::Error::other("there is a completion pipe already"))?;
        // SAFETY: an all-zero sigaction is a valid value: no flags, empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: `action` is initialised, and the handler calls only async-signal-safe functions
        // and touches only atomics.
        if unsafe { libc::sigaction(signal(), &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { reader })
    }

    /// Passes every token to `each`; whether tokens were lost, so that all operations have to be checked.
    pub fn drain(&self, mut each: impl FnMut(u32)) -> bool {
        let mut bytes = [0_u8; TOKENS * TOKEN_BYTES];
        loop {
            // Tokens are whole: a write of so few bytes is atomic, and the buffer holds whole ones.
            let count = rustix::io::read(&self.reader, &mut bytes).unwrap_or(0);
            for ring in bytes[..count].chunks_exact(TOKEN_BYTES) {
                each(u32::from_ne_bytes([ring[0], ring[1], ring[2], ring[3]]));
            }
            if count < bytes.len() {
                return MISSED.swap(false, Ordering::AcqRel);
            }
        }
    }
}

impl AsFd for CompletionPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// The signal of a completion: a queueing one if the system has those; it carries the token.
pub(super) fn signal() -> libc::c_int {
    #[cfg(any(target_os = "linux", target_os = "illumos", target_os = "solaris"))]
    return libc::SIGRTMIN();
    #[cfg(not(any(target_os = "linux", target_os = "illumos", target_os = "solaris")))]
    libc::SIGUSR1
}

/// Called in a thread of its own when an operation ends.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) extern "C" fn on_end(token: libc::sigval) {
    ring(token.sival_ptr.addr() as u32);
}

#[cfg_attr(
    any(target_os = "illumos", target_os = "solaris"),
    expect(unused_variables, reason = "libc does not name the value there")
)]
extern "C" fn on_signal(_: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    keep_errno(|| {
        // Signals that do not queue may stand for several: all operations have to be checked.
        #[cfg(not(target_os = "linux"))]
        MISSED.store(true, Ordering::Release);
        #[cfg(not(any(target_os = "illumos", target_os = "solaris")))]
        // SAFETY: the handler was installed with SA_SIGINFO, so `about` is valid; its
        // number comes from the sender of the signal, and any number is harmless.
        ring(unsafe { (*about).si_value() }.sival_ptr.addr() as u32);
        #[cfg(any(target_os = "illumos", target_os = "solaris"))]
        ring(u32::MAX);
    });
}

/// A full pipe does not block: then all operations have to be looked at.
fn ring(token: u32) {
    let Some(writer) = WRITER.get() else { return };
    let bytes = token.to_ne_bytes();
    // SAFETY: write is async-signal-safe, and the bytes outlive the call.
    let written = unsafe { libc::write(writer.as_raw_fd(), bytes.as_ptr().cast(), TOKEN_BYTES) };
    if written < 0 {
        MISSED.store(true, Ordering::Release);
    }
}
