//! Descendants that left their process tree: found, and ended.
//!
//! A process whose parent ended becomes a child of the nearest ancestor that adopts such (prctl(2),
//! PR_SET_CHILD_SUBREAPER), which throng does. So whoever leaves tree, group or session comes back as
//! our own child, and only our own children are ever signalled: their numbers are given to nobody
//! else before we have reaped them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use procfs::process::{Stat, all_processes};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::watchdog;

/// Whether every child of this process that is not accounted for is a stray.
static ADOPTING: AtomicBool = AtomicBool::new(false);

/// Children that somebody waits for.
static CARED_FOR: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Somebody waits for a child: it is no orphan.
pub(super) fn care_for(pid: u32) {
    cared_for().push(pid);
}

/// Nobody waits for it any more.
pub(super) fn release(pid: u32) {
    cared_for().retain(|other| *other != pid);
}

fn cared_for() -> MutexGuard<'static, Vec<u32>> {
    CARED_FOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on strays become children of this process. To be called by a program whose every child
/// is started by what measures: whatever else is its child would be taken for a stray.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ADOPTING.store(true, Relaxed);
    Ok(())
}

/// A living stray.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) pid: u32,
    pub(super) name: String,
}

/// The strays that live, but for these processes. Those that have ended are forgotten.
pub(super) fn living(accounted_for: &[u32]) -> Vec<Orphan> {
    let mut orphans = Vec::new();
    // Before looking: whoever starts meanwhile may already be there.
    let cared_for = cared_for().clone();
    for stat in children() {
        let pid = stat.pid.cast_unsigned();
        if cared_for.contains(&pid) || accounted_for.contains(&pid) || reap(stat.pid) {
            continue;
        }
        orphans.push(Orphan {
            pid,
            name: stat.comm,
        });
    }
    orphans
}

/// Ends all strays and what they started, for at most `limit`. To be called when no child is left
/// that anybody waits for.
pub(super) fn end_all(limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        // Killing one makes its children ours, which the next look finds.
        let orphans = living(&[]);
        if orphans.is_empty() || Instant::now() >= deadline {
            return;
        }
        for orphan in orphans {
            if let Some(pid) = Pid::from_raw(orphan.pid.cast_signed()) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Those of a process group that live beside its leader.
pub(super) fn of_group(leader: u32) -> Vec<Orphan> {
    let Ok(processes) = all_processes() else {
        return Vec::new();
    };
    let leader = leader.cast_signed();
    let stats = processes.flatten().filter_map(|other| other.stat().ok());
    let others = stats.filter(|stat| stat.pgrp == leader && stat.pid != leader);
    let living = others.filter(|stat| !watchdog::ENDED.contains(&stat.state));
    let named = |stat: Stat| Orphan {
        pid: stat.pid.cast_unsigned(),
        name: stat.comm,
    };
    living.map(named).collect()
}

/// In words: "2 processes (nginx 17, nginx 18)".
pub(super) fn in_words(orphans: &[Orphan]) -> String {
    let names: Vec<String> = orphans
        .iter()
        .map(|orphan| format!("{} {}", orphan.name, orphan.pid))
        .collect();
    let plural = if orphans.len() == 1 { "" } else { "es" };
    format!("{} process{plural} ({})", orphans.len(), names.join(", "))
}

/// Our children, ended ones included; none unless we adopt.
fn children() -> Vec<Stat> {
    if !ADOPTING.load(Relaxed) {
        return Vec::new();
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let watchdog = watchdog::pid().map(u32::cast_signed);
    let Ok(processes) = all_processes() else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|process| process.stat().ok())
        .filter(|stat| stat.ppid == own && Some(stat.pid) != watchdog)
        .collect()
}

/// Reaps a child that has ended; whether it had.
fn reap(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else {
        return true;
    };
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
}
