//! Scheduling priority of measuring threads: with a thousand busy threads they would get a thousandth of a CPU.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::process::{getpriority_process, setpriority_process};

/// `BEFORE` is the nice value before it changed, or this value if it did not change.
const UNCHANGED: i32 = i32::MIN;
static BEFORE: AtomicI32 = AtomicI32::new(UNCHANGED);
/// Number of existing [`Raised`].
static RAISED: AtomicU32 = AtomicU32::new(0);

/// The highest priority of nice(2).
const HIGHEST: i32 = -20;

/// While it exists, the thread that created it, and threads that it starts, have a higher priority. Processes that
/// [`spawn`](super::spawn::spawn) starts don't. A process raises the priority of one thread at a time; that thread may
/// have several of these.
#[derive(Debug)]
#[must_use]
pub struct Raised(PhantomData<*const ()>);

impl Raised {
    /// Raises the priority of the calling thread, if the system permits it (root, `CAP_SYS_NICE`, `RLIMIT_NICE`).
    pub fn new() -> Option<Self> {
        // On Linux, process 0 is the calling thread (setpriority(2)).
        if RAISED.load(Ordering::Acquire) == 0 {
            let before = getpriority_process(None).ok()?;
            setpriority_process(None, HIGHEST).ok()?;
            BEFORE.store(before, Ordering::Release);
        }
        RAISED.fetch_add(1, Ordering::AcqRel);
        Some(Self(PhantomData))
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if RAISED.fetch_sub(1, Ordering::AcqRel) == 1 {
            let _ = lower();
            BEFORE.store(UNCHANGED, Ordering::Release);
        }
    }
}

/// Restores the original priority of the calling thread. Safe to call between fork and exec.
pub(super) fn lower() -> rustix::io::Result<()> {
    match BEFORE.load(Ordering::Acquire) {
        UNCHANGED => Ok(()),
        before => setpriority_process(None, before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_have_the_original_priority() {
        let before = getpriority_process(None).unwrap();
        let raised = Raised::new();
        drop(Raised::new());
        let during = getpriority_process(None).unwrap();
        assert_eq!(during, if raised.is_some() { HIGHEST } else { before });
        let mut command = std::process::Command::new("nice");
        command.stdout(std::process::Stdio::piped());
        let child = crate::spawn::spawn(&mut command, &[]).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, format!("{before}\n").into_bytes());
        drop(raised);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
