//! Notifications of completed asynchronous operations, which can be polled together with sockets: a signal handler or
//! a callback thread writes the operation's token into a pipe.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::signal::keep_errno;

static WRITER: OnceLock<OwnedFd> = OnceLock::new();
static MISSED: AtomicBool = AtomicBool::new(false);

/// Tokens per read.
const TOKENS: usize = 1024;
const TOKEN_BYTES: usize = size_of::<u32>();

/// The read end. A process has at most one.
#[derive(Debug)]
pub struct CompletionPipe {
    reader: OwnedFd,
}

impl CompletionPipe {
    /// Opens the pipe, and installs the handler of its signal.
    ///
    /// # Errors
    /// If no pipe can be created, or one is already open.
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

    /// Passes each token to `each`. Returns whether tokens were lost, so that the caller must check all operations.
    pub fn drain(&self, mut each: impl FnMut(u32)) -> bool {
        let mut bytes = [0_u8; TOKENS * TOKEN_BYTES];
        loop {
            // Tokens are never split: small writes are atomic, and the buffer has room for whole tokens.
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

/// The completion signal, which carries the token: a real-time signal, if the system queues those.
pub(super) fn signal() -> libc::c_int {
    #[cfg(any(target_os = "linux", target_os = "illumos", target_os = "solaris"))]
    return libc::SIGRTMIN();
    #[cfg(not(any(target_os = "linux", target_os = "illumos", target_os = "solaris")))]
    libc::SIGUSR1
}

/// Called in a new thread when an operation completes.
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
        // Signals that do not queue may be merged: the caller must check all operations.
        #[cfg(not(target_os = "linux"))]
        MISSED.store(true, Ordering::Release);
        #[cfg(not(any(target_os = "illumos", target_os = "solaris")))]
        // SAFETY: the handler was installed with SA_SIGINFO, so `about` is valid; its value comes from the sender of
        // the signal, and any value is harmless.
        ring(unsafe { (*about).si_value() }.sival_ptr.addr() as u32);
        #[cfg(any(target_os = "illumos", target_os = "solaris"))]
        ring(u32::MAX);
    });
}

/// Writes a token. A full pipe does not block; the caller must then check all operations.
fn ring(token: u32) {
    let Some(writer) = WRITER.get() else { return };
    let bytes = token.to_ne_bytes();
    // SAFETY: write is async-signal-safe, and the bytes outlive the call.
    let written = unsafe { libc::write(writer.as_raw_fd(), bytes.as_ptr().cast(), TOKEN_BYTES) };
    if written < 0 {
        MISSED.store(true, Ordering::Release);
    }
}
