//! The one way to end a process, in bounded time: SIGKILL to its process group and to itself, for it may have left that
//! group; then to its control group. What survives is named, with the reason.

use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, kill_process, kill_process_group,
    test_kill_process_group, waitid,
};

use super::all::{self, Brief};
use super::own_group;

/// Time limit for killed processes to end, and once more after their control group was killed.
const KILL_LIMIT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The recipient of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalTarget {
    /// The process alone; it stops its children.
    Leader,
    /// Its whole process group, as a terminal or systemd does.
    Group,
}

/// What could not be ended and was not reported yet, each with the reason.
static SURVIVORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Remembers a process that could not be ended, until this is reported.
pub(crate) fn note(survivor: &Brief) {
    let Brief { pid, name, .. } = survivor;
    survivors().push(format!("cannot stop {name} {pid}: {}", reason(survivor)));
}

/// Which processes could not be ended since the last call, and why.
pub fn take_survivors() -> Option<String> {
    let found = std::mem::take(&mut *survivors());
    (!found.is_empty()).then(|| found.join("; "))
}

fn survivors() -> MutexGuard<'static, Vec<String>> {
    SURVIVORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a process survives SIGKILL.
fn reason(survivor: &Brief) -> String {
    let ours = rustix::process::geteuid();
    // kill(2) compares our user with its real and its saved one.
    let status = procfs::process::Process::new(survivor.pid).and_then(|it| it.status());
    match status {
        Ok(status) if !ours.is_root() && ![status.ruid, status.suid].contains(&ours.as_raw()) => {
            match status.ruid {
                0 => "it runs as root".to_owned(),
                user => format!("it runs as user {user}"),
            }
        }
        _ if survivor.state == 'D' => "it waits in the kernel (state D)".to_owned(),
        _ => "it does not end after SIGKILL".to_owned(),
    }
}

/// Sends a signal to a child that leads a process group, even if the child has left that group.
///
/// # Errors
/// As kill(2), for the child.
pub(crate) fn signal(leader: Pid, target: SignalTarget, signal: Signal) -> Result<(), Errno> {
    if target == SignalTarget::Group {
        let sent = kill_process_group(leader, signal);
        if getpgid(Some(leader)) == Ok(leader) {
            return sent;
        }
    }
    kill_process(leader, signal)
}

/// Whether a child has ended. It is not reaped, so its ID stays reserved.
pub(crate) fn has_ended(child: Pid) -> bool {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(child), how), Ok(None))
}

/// Kills a child and all of its process group, and its control groups if that is not enough. Notes what survives.
pub fn kill(child: &mut Child, control_groups: &[PathBuf]) -> Option<ExitStatus> {
    // Even if the leader has ended: its children may live on in the group. The group's ID is not reused before the
    // leader is reaped. What this does not reach is found below.
    let _ = signal(Pid::from_child(child), SignalTarget::Group, Signal::KILL);
    let mut status = None;
    let mut left = wait_for_all(child, &mut status);
    if !left.is_empty() && !control_groups.is_empty() {
        own_group::end_all(control_groups);
        left = wait_for_all(child, &mut status);
    }
    left.iter().for_each(note);
    status
}

/// Waits until a child and its process group have ended; returns those that have not.
fn wait_for_all(child: &mut Child, status: &mut Option<ExitStatus>) -> Vec<Brief> {
    let leader = Pid::from_child(child);
    let deadline = Instant::now() + KILL_LIMIT;
    loop {
        let is_over = has_ended(leader);
        if is_over {
            *status = status.or_else(|| child.try_wait().ok().flatten());
        }
        let mut left = Vec::new();
        // Cheaper than a look at every process.
        if test_kill_process_group(leader) != Err(Errno::SRCH) {
            left = all::of_group(leader.as_raw_nonzero().get());
        }
        if !is_over {
            left.extend(all::of(leader.as_raw_nonzero().get()));
        }
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// For a bug: a server that joined throng's process group kept throng waiting for ever.
    #[test]
    fn a_process_that_left_its_group_is_ended_too() {
        let mut first = Command::new("sleep");
        std::os::unix::process::CommandExt::process_group(&mut first, 0);
        let mut first = first.arg("60").spawn().unwrap();
        let mut second = Command::new("sleep");
        let group = first.id().cast_signed();
        std::os::unix::process::CommandExt::process_group(&mut second, group);
        let mut second = second.arg("60").spawn().unwrap();
        for child in [&mut second, &mut first] {
            let leader = Pid::from_child(child);
            signal(leader, SignalTarget::Group, Signal::STOP).unwrap();
            assert_eq!(
                kill(child, &[])
                    .and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)),
                Some(9)
            );
        }
    }
}
