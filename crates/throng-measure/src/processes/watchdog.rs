//! Ends everything that throng started if throng is killed and cannot do so itself.
//!
//! The kernel kills servers and loads when their parent dies (`sys::spawn`), but not their own children. So there is a
//! second process, which does nothing else. It learns of each process group from its leader, before exec, and of
//! throng's end when the socket between them closes. Then it kills the remaining groups, and every process with the
//! mark of this run in its environment, which covers those that left their group. If control groups can be created,
//! all members of the run's group are killed first.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use procfs::process::{Process, all_processes};
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::all::ENDED;
use super::ending;
use super::own_group::{self, OwnGroup, RunGroup};
use throng_sys::spawn;

/// The environment variable that marks all processes of a run.
const MARK: &str = "THRONG_RUN";
/// The hidden subcommand that runs a watchdog.
pub const SUBCOMMAND: &str = "watchdog";
/// The watchdog's process name: `killall throng` must not end both.
const NAME: &CStr = c"run-watchdog";
/// Time limit of a watchdog for ending processes, and of throng for the watchdog.
const LIMIT: Duration = Duration::from_secs(5);
/// Sent when throng exits and has ended everything itself.
const IN_ORDER: i32 = 0;

/// The connection to the watchdog, if there is one.
static LINE: Mutex<Option<Line>> = Mutex::new(None);

/// How processes are announced to the watchdog.
struct Line {
    watchdog: u32,
    mark: String,
    to: UnixStream,
    /// The run's control group, if it could be created. It is removed with the connection.
    group: Option<RunGroup>,
}

/// The watchdog of this process. It ends when this is dropped.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts a watchdog from this program. It learns of all processes that are started from now on.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path) -> io::Result<Self> {
        let (to, from) = UnixStream::pair()?;
        let mark = format!("{}-{:08x}", std::process::id(), fastrand::u32(..));
        let group = RunGroup::make(&mark).ok();
        let mut command = Command::new(program);
        command.args([SUBCOMMAND, &mark]);
        command.args(group.iter().flat_map(RunGroup::directories));
        // In its own process group, so that Ctrl-C does not reach it; and in /, so that it does not keep a file
        // system busy.
        command.process_group(0).current_dir("/");
        command.env_remove(MARK);
        command.stdin(OwnedFd::from(from));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        *line() = Some(Line {
            watchdog: child.id(),
            mark,
            to,
            group,
        });
        Ok(Self { child })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(line) = line().take()
            && !std::thread::panicking()
        {
            line.send(IN_ORDER);
        }
        let deadline = Instant::now() + LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        ending::kill(&mut self.child, &[]);
    }
}

impl Line {
    fn send(&self, word: i32) {
        // Without SIGPIPE and without blocking: a killed watchdog must not affect the run.
        let how = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = send(&self.to, &word.to_ne_bytes(), how);
    }
}

fn line() -> std::sync::MutexGuard<'static, Option<Line>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the process of `command`, the leader of a process group of its own, announce itself to the watchdog, and marks
/// it. Returns its control group, if it has one.
pub(crate) fn register(command: &mut Command) -> io::Result<Option<OwnGroup>> {
    let line = line();
    let Some(line) = &*line else {
        return Ok(None);
    };
    command.env(MARK, &line.mark);
    spawn::announce(command, line.to.try_clone()?.into());
    Ok(line
        .group
        .as_ref()
        .and_then(|group| group.create_for(command)))
}

/// Makes the watchdog forget a group whose ID may be reused soon.
pub(crate) fn unregister(group: u32) {
    if let Some(line) = &*line() {
        line.send(-group.cast_signed());
    }
}

/// The watchdog's process ID, if there is a watchdog.
pub(crate) fn pid() -> Option<u32> {
    line().as_ref().map(|line| line.watchdog)
}

/// Runs a watchdog: learns of groups from `messages` until that ends, and then kills them, all processes with the mark,
/// and all members of these control groups.
pub fn run(mark: &str, control_groups: &[PathBuf], mut messages: impl Read) {
    // Of the main thread, and so of the process. Without it, the watchdog works too.
    let _ = rustix::thread::set_name(NAME);
    let mut groups = BTreeSet::new();
    let mut word = [0; 4];
    while messages.read_exact(&mut word).is_ok() {
        match i32::from_ne_bytes(word) {
            IN_ORDER => return,
            group if group > 0 => groups.insert(group),
            gone => groups.remove(&-gone),
        };
    }
    own_group::end_all(control_groups);
    let pair = format!("{MARK}={mark}");
    let deadline = Instant::now() + LIMIT;
    // A process forked in the meantime is found by the next scan; the last scan finds none.
    while end_those_there_are(&pair, &groups) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills everything that belongs to the run; returns whether there was anything.
fn end_those_there_are(mark: &str, groups: &BTreeSet<i32>) -> bool {
    let Ok(processes) = all_processes() else {
        return false;
    };
    let mut found = false;
    for process in processes.flatten() {
        if !belongs(&process, mark, groups) {
            continue;
        }
        found = true;
        // By pidfd, and checked again: the ID may have been reused.
        let pid = Pid::from_raw(process.pid());
        let open = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let (Some(open), Ok(again)) = (open, Process::new(process.pid()))
            && belongs(&again, mark, groups)
        {
            let _ = pidfd_send_signal(open, Signal::KILL);
        }
    }
    found
}

fn belongs(process: &Process, mark: &str, groups: &BTreeSet<i32>) -> bool {
    let Ok(stat) = process.stat() else {
        return false;
    };
    if ENDED.contains(&stat.state) || stat.pid == std::process::id().cast_signed() {
        return false;
    }
    if groups.contains(&stat.pgrp) {
        return true;
    }
    let environment = fs::read(format!("/proc/{}/environ", stat.pid)).unwrap_or_default();
    let mut entries = environment.split(|byte| *byte == 0);
    entries.any(|entry| entry == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sleeping process in a group of its own, with this mark.
    fn sleeper(mark: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("60").env(MARK, mark).process_group(0);
        command.spawn().unwrap()
    }

    fn words(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn groups_and_marked_processes_end_with_the_line() {
        let (mut messages, mut marked) = (sleeper("another"), sleeper("watchdog-test-1"));
        let mut dismissed = sleeper("another");
        let group = |child: &Child| child.id().cast_signed();
        let line = words(&[group(&dismissed), group(&messages), -group(&dismissed)]);
        // It scans until only zombies are left.
        run("watchdog-test-1", &[], &line[..]);
        assert!(!messages.wait().unwrap().success());
        assert!(!marked.wait().unwrap().success());
        assert!(dismissed.try_wait().unwrap().is_none());
        dismissed.kill().unwrap();
        dismissed.wait().unwrap();
    }

    #[test]
    fn a_regular_end_kills_nothing() {
        let mut marked = sleeper("watchdog-test-2");
        run("watchdog-test-2", &[], &words(&[IN_ORDER])[..]);
        assert!(marked.try_wait().unwrap().is_none());
        marked.kill().unwrap();
        marked.wait().unwrap();
    }
}
