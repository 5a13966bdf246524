//! fork(2), for models with several processes.

use std::io;

use rustix::process::Pid;

/// Proof that this process had one thread when the value was created.
///
/// A child of a multi-threaded process may call only async-signal-safe functions; a child of a
/// single-threaded process has no such limit. Models that fork start no threads.
#[derive(Debug, Clone, Copy)]
pub struct SingleThreaded(());

impl SingleThreaded {
    /// Checks that the process has one thread.
    ///
    /// # Errors
    /// If it has more. Without `/proc`, this is not checked.
    pub fn check() -> io::Result<Self> {
        match super::process::threads() {
            Some(threads) if threads > 1 => Err(io::Error::other(format!(
                "a process with {threads} threads must not fork to serve"
            ))),
            _ => Ok(Self(())),
        }
    }

    /// Forks. The child runs `child` and exits with its result, without returning from this call.
    ///
    /// On Linux the child gets SIGTERM when the parent dies.
    ///
    /// # Errors
    /// `WouldBlock` (EAGAIN) at the process limit; `OutOfMemory`.
    pub fn fork(self, child: impl FnOnce() -> i32) -> io::Result<Pid> {
        #[cfg(target_os = "linux")]
        let parent = rustix::process::getpid();
        // SAFETY: the process has one thread (`self` proves it), so the child may continue as any
        // process may.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    #[cfg(target_os = "linux")]
                    {
                        let term = Some(rustix::process::Signal::TERM);
                        let _ = rustix::process::set_parent_process_death_signal(term);
                        if rustix::process::getppid() != Some(parent) {
                            return 1; // the parent died before the line above
                        }
                    }
                    child()
                }));
                // SAFETY: _exit may be called at any time; it runs no exit handler of the parent.
                unsafe { libc::_exit(code.unwrap_or(101)) }
            }
            pid => Ok(Pid::from_raw(pid).expect("fork gives the parent a positive number")),
        }
    }
}
