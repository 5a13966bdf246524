//! Which worker serves a client.

use std::fmt;

use rustix::process::Pid;

/// The worker that serves a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker(u32);

impl Worker {
    /// The only worker, or any worker of a shared pool.
    pub const ANY: Self = Self(0);

    const PROCESS: u32 = 1 << 31;

    /// One of several loops, by its index.
    pub fn number(number: usize) -> Self {
        Self(number as u32 + 1)
    }

    /// A child process.
    pub fn process(pid: Pid) -> Self {
        Self(pid.as_raw_pid() as u32 | Self::PROCESS)
    }

    /// This process.
    pub fn this_process() -> Self {
        Self::process(rustix::process::getpid())
    }

    /// The worker in the state word of a row.
    pub(super) fn of(state: u64) -> Self {
        Self((state >> 32) as u32)
    }

    /// The worker's part of the state word of a row.
    pub(super) fn bits(self) -> u64 {
        u64::from(self.0) << 32
    }

    /// Its index, if it is one of several loops.
    pub(super) fn as_number(self) -> Option<u32> {
        (self.0 & Self::PROCESS == 0).then(|| self.0.checked_sub(1))?
    }
}

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_number() {
            Some(number) => write!(f, "{number}"),
            None if *self == Self::ANY => Ok(()),
            None => write!(f, "{}", self.0 & !Self::PROCESS),
        }
    }
}
