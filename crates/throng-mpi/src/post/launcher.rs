//! Ends the launcher when a host is lost.
//!
//! When Open MPI's `mpirun` ends a job, it waits for its daemons on all hosts, and for an unreachable one until TCP
//! gives up, a quarter of an hour. The record is complete by then, so there is no reason to wait.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};

/// The variable that makes this program one that waits for the end of a launcher: which process that is.
pub(crate) const LAUNCHER: &str = "THRONG_MPI_LAUNCHER";
/// How long ending a job may take. With every host there it takes Open MPI 5 s.
const LIMIT: Duration = Duration::from_secs(8);
/// What launchers are called that this may be done to; a daemon of one has its own way to end.
const LAUNCHERS: [&str; 5] = ["mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra"];

/// Sees to it that the launcher of this job, if it is on this host, ends soon. It is another process that does so, since
/// the launcher ends this one.
pub(super) fn end_soon() {
    let Some(launcher) = getppid() else { return };
    let pid = launcher.as_raw_nonzero();
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if !LAUNCHERS.contains(&name.trim_end()) {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut command = Command::new(program);
    command.env(LAUNCHER, pid.to_string()).process_group(0);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Otherwise the launcher ends when TCP gives up.
    let _ = command.spawn();
}

/// Waits for the end of a launcher, and ends it when that takes too long.
pub(crate) fn see_off(launcher: &str) -> ExitCode {
    let pid = launcher.parse().ok().and_then(Pid::from_raw);
    let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
        return ExitCode::SUCCESS; // it has ended
    };
    let time = Timespec::try_from(LIMIT).expect("it is short");
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&time));
    if ended == Ok(0) {
        let _ = pidfd_send_signal(&process, Signal::KILL);
    }
    ExitCode::SUCCESS
}
