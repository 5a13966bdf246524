//! The processes of a server in `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::tries::pause;
use anyhow::{Context as _, bail, ensure};
use rustix::process::Pid;
use throng::measure::processes::all::{Brief, all, of};

/// Time limit for a change to show in `/proc`.
const LIMIT: Duration = Duration::from_mins(2);

/// Polls until it is true; for conditions without an event.
pub(crate) fn eventually(
    what: &str,
    mut so: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let began = Instant::now();
    while !so()? {
        if began.elapsed() >= LIMIT {
            bail!("not within {} s: {what}", LIMIT.as_secs());
        }
        std::thread::sleep(pause(began));
    }
    Ok(())
}

/// The children of a process, zombies included.
pub(crate) fn children(parent: Pid) -> anyhow::Result<Vec<Pid>> {
    let processes: Vec<Brief> = all().collect();
    let own = std::process::id().cast_signed();
    let sees = processes.iter().any(|process| process.pid == own);
    ensure!(sees, "/proc cannot be read");
    let parent = parent.as_raw_nonzero().get();
    let children = processes.iter().filter(|process| process.parent == parent);
    Ok(children
        .filter_map(|child| Pid::from_raw(child.pid))
        .collect())
}

/// The parent of a process; none if there is no such process.
pub(crate) fn parent_of(pid: Pid) -> Option<Pid> {
    Pid::from_raw(of(pid.as_raw_nonzero().get())?.parent)
}

/// How many sockets a process has open.
pub(crate) fn sockets(pid: Pid) -> anyhow::Result<usize> {
    Ok(open_sockets(pid)?.count())
}

/// How many sockets a process and its children have open. One that they share counts once.
pub(crate) fn sockets_of_all(pid: Pid) -> anyhow::Result<usize> {
    let mut all: BTreeSet<PathBuf> = open_sockets(pid)?.collect();
    for child in children(pid)? {
        // It may be gone since.
        all.extend(open_sockets(child).into_iter().flatten());
    }
    Ok(all.len())
}

fn open_sockets(pid: Pid) -> anyhow::Result<impl Iterator<Item = PathBuf>> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?;
    // A descriptor may be closed between the two looks.
    let targets = descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    Ok(targets.filter(|target| target.to_string_lossy().starts_with("socket:")))
}

/// Peak private memory of a process and its children, in bytes: without pages shared with the program's file, which
/// would count megabytes for every child.
pub(crate) fn peak_memory(pid: Pid) -> anyhow::Result<u64> {
    let mut total = peak_of(pid).context("the server is gone")?;
    for child in children(pid)? {
        total += peak_of(child).unwrap_or(0);
    }
    Ok(total)
}

fn peak_of(pid: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(kib("VmHWM:")?.saturating_sub(kib("RssFile:")?) * 1024)
}
