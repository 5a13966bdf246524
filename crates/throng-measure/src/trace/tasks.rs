//! Threads and processes as described in `/proc`.

use std::fs;

use super::decode::SyscallEntry;

/// The call in which a thread sleeps.
pub(super) fn call_of(thread: i32) -> Option<SyscallEntry> {
    let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
    }
    Some(SyscallEntry { number, arguments })
}

/// Whether a process has a handler for a signal.
pub(super) fn is_caught(thread: i32, signal: i32) -> bool {
    let caught = status(thread, "SigCgt:").and_then(|caught| u64::from_str_radix(&caught, 16).ok());
    caught.is_none_or(|caught| caught >> (signal - 1) & 1 == 1)
}

pub(super) fn comm(thread: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{thread}/comm")).ok()?;
    Some(name.trim().to_owned())
}

pub(super) fn fdinfo(thread: i32, fd: u64) -> String {
    fs::read_to_string(format!("/proc/{thread}/fdinfo/{fd}")).unwrap_or_default()
}

/// The sockets of a process, as named in `/proc`.
pub(super) fn sockets(process: u32) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let targets = entries
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| target.to_string_lossy().into_owned());
    targets.filter(|target| target.starts_with("socket:"))
}

pub(super) fn tasks(process: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

pub(super) fn process_of(thread: i32) -> Option<i32> {
    status(thread, "Tgid:")?.parse().ok()
}

pub(super) fn tracer_of(thread: i32) -> Option<i32> {
    status(thread, "TracerPid:")?.parse().ok()
}

/// A line of `/proc/TID/status`.
fn status(thread: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

/// The state of a thread: "S" if it sleeps.
pub(super) fn state(thread: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    after.trim_start().chars().next()
}
