//! Ends the launcher after the loss of a host.
//!
//! When Open MPI's `mpirun` ends a job, it waits for its daemons on all hosts. It waits for an unreachable daemon
//! until TCP gives up, which takes a quarter of an hour. The record is already complete, so waiting is pointless.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};

/// The environment variable that makes this program wait for a launcher to end. Its value is the launcher's process
/// ID.
pub(crate) const LAUNCHER: &str = "THRONG_MPI_LAUNCHER";
/// Time limit for ending a job. Open MPI takes 5 s if all hosts are reachable.
const LIMIT: Duration = Duration::from_secs(8);
/// Names of launchers that may be ended this way; their daemons end differently.
const LAUNCHERS: [&str; 5] = ["mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra"];

/// Makes the launcher of this job end soon, if it is on this host. A separate process does this, since the launcher
/// ends this one.
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
    // If this fails, the launcher ends when TCP times out.
    let _ = command.spawn();
}

/// Waits for a launcher to end, and kills it if that takes too long.
pub(crate) fn wait_then_kill(launcher: &str) -> ExitCode {
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
