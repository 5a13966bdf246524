//! The thread that does a server's work, if there is just one.
//!
//! Such a thread stays on one CPU for a long time, and the CPUs of a virtual machine differ in what shares their
//! cores. So all compared servers run it on the same CPU in any one round, and none has an advantage.

use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use throng_sys::clock::process_cpu_time;

/// The main thread does the work if it used at least this share of its process's CPU time.
const MOST: f64 = 0.8;

/// The main thread of a server with these processes, if it does the work.
pub(crate) fn of(pids: &[u32]) -> Option<Pid> {
    let &[pid] = pids else { return None };
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let own = Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?);
    let all = process_cpu_time(pid).ok()?;
    let does_most = own.as_secs_f64() >= MOST * all.as_secs_f64();
    Pid::from_raw(pid.cast_signed()).filter(|_| does_most)
}

/// Binds the thread to this CPU. If that is not permitted, it stays where it is.
pub(crate) fn move_to(thread: Pid, cpu: u32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    let _ = sched_setaffinity(Some(thread), &set);
}
