//! Descendants that left their process tree: finds and ends them.
//!
//! A process whose parent ended becomes a child of the nearest subreaper among its ancestors (prctl(2),
//! PR_SET_CHILD_SUBREAPER), which is throng. So descendants that leave tree, group or session become our own children.
//! Only our own children are ever signalled: their IDs are not reused before we have reaped them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::all::{Brief, all};
use super::ending;
use super::watchdog;

/// Whether unknown children of this process are orphans.
static ADOPTING: AtomicBool = AtomicBool::new(false);

/// Children that some code waits for.
static AWAITED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Marks a child as waited for, so that it is not taken for an orphan.
pub(crate) fn mark_awaited(pid: u32) {
    awaited().push(pid);
}

/// Undoes [`mark_awaited`].
pub(crate) fn unmark_awaited(pid: u32) {
    awaited().retain(|other| *other != pid);
}

fn awaited() -> MutexGuard<'static, Vec<u32>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes orphans children of this process. Only for programs whose children are all started by the runner: any other
/// child would count as an orphan.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ADOPTING.store(true, Relaxed);
    Ok(())
}

/// The living orphans except the processes `accounted_for`. Ended ones are reaped.
pub(crate) fn living(accounted_for: &[u32]) -> Vec<Brief> {
    // Taken before the scan, since another thread may start a process at the same time.
    let cared_for = awaited().clone();
    let mut orphans = children();
    orphans.retain(|child| {
        let pid = child.pid.cast_unsigned();
        !cared_for.contains(&pid) && !accounted_for.contains(&pid) && !reap(child.pid)
    });
    orphans
}

/// Kills all orphans and their descendants, for at most `limit`, and notes those that survive. Call it when no child is
/// awaited any more.
pub(crate) fn end_all(limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        // Killing one makes its children ours, which the next scan finds.
        let orphans = living(&[]);
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            let pid = Pid::from_raw(orphan.pid).expect("a child has an ID");
            let killed = kill_process(pid, Signal::KILL);
            if killed == Err(Errno::PERM) || Instant::now() >= deadline {
                // It is nobody's orphan any more, and named once.
                mark_awaited(orphan.pid.cast_unsigned());
                ending::note(&orphan);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Our children, including ended ones; empty unless we adopt orphans.
fn children() -> Vec<Brief> {
    if !ADOPTING.load(Relaxed) {
        return Vec::new();
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let watchdog = watchdog::pid().map(u32::cast_signed);
    all()
        .filter(|other| other.parent == own && Some(other.pid) != watchdog)
        .collect()
}

/// Reaps a child if it has ended; returns whether it had.
fn reap(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else {
        return true;
    };
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
}
