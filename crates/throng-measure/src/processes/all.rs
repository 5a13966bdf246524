//! Every process of the machine, each with one short read: a machine may have thousands, and every trial needs them.

use std::fs::{self, File};
use std::io::Read as _;

/// Maximum bytes of `/proc/PID/stat` that are read. The whole line has at most 52 numbers of 20 digits. The fields
/// used here are the first 13, after a name of at most 64.
const ROOM: usize = 512;

/// The first fields of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    pub pid: i32,
    pub name: String,
    pub state: char,
    pub parent: i32,
    pub group: i32,
    /// Whether it has waited for a child that ended: such children leave it their page faults.
    pub has_reaped: bool,
}

/// States of processes that have ended and were not reaped.
pub(crate) const ENDED: [char; 2] = ['Z', 'X'];

/// Every visible process, including ended ones that are not reaped yet; empty without `/proc`.
pub fn all() -> impl Iterator<Item = Brief> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(of)
}

/// Living members of a process group except its leader.
pub(crate) fn of_group(leader: i32) -> Vec<Brief> {
    let others = all().filter(|other| other.group == leader && other.pid != leader);
    others
        .filter(|other| !ENDED.contains(&other.state))
        .collect()
}

/// As text: "2 processes (nginx 17, nginx 18)".
pub(crate) fn in_words(processes: &[Brief]) -> String {
    let names: Vec<String> = processes
        .iter()
        .map(|one| format!("{} {}", one.name, one.pid))
        .collect();
    let plural = if names.len() == 1 { "" } else { "es" };
    format!("{} process{plural} ({})", names.len(), names.join(", "))
}

/// One process; `None` if there is none with this ID.
pub fn of(pid: i32) -> Option<Brief> {
    let mut line = [0; ROOM];
    // The kernel generates the whole line for the first read.
    let read = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line));
    parse(line.get(..read.ok()?)?)
}

fn parse(line: &[u8]) -> Option<Brief> {
    // The name, in parentheses, may contain anything.
    let text = String::from_utf8_lossy(line);
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    Some(Brief {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        has_reaped: [5, 1]
            .iter()
            .any(|ahead| fields.nth(*ahead).is_some_and(|faults| faults != "0")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_after_the_name() {
        let brief = |name: &str| Brief {
            pid: 17,
            name: name.to_owned(),
            state: 'S',
            parent: 1,
            group: -1,
            has_reaped: false,
        };
        for name in ["sh", "a b", ") S 9 9 (", ""] {
            let line = format!("17 ({name}) S 1 -1 17 0");
            assert_eq!(parse(line.as_bytes()), Some(brief(name)), "{line}");
        }
        for (faults, has_reaped) in [("9 0 9 0", false), ("0 1 0 0", true), ("0 0 0 1", true)] {
            let line = format!("17 (sh) S 1 -1 17 0 -1 4194304 {faults} 5 5 0 0");
            assert_eq!(
                parse(line.as_bytes()).unwrap().has_reaped,
                has_reaped,
                "{line}"
            );
        }
        for damaged in ["", "17", "17 (sh", "17 (sh)", "17 (sh) S 1", "x (sh) S 1 2"] {
            assert_eq!(parse(damaged.as_bytes()), None, "{damaged}");
        }
    }

    #[test]
    fn they_are_what_the_kernel_says() {
        let own = std::process::id().cast_signed();
        let stat = procfs::process::Process::myself().unwrap().stat().unwrap();
        let brief = all().find(|process| process.pid == own).unwrap();
        assert_eq!(
            (brief.name, brief.parent, brief.group),
            (stat.comm, stat.ppid, stat.pgrp)
        );
        assert_eq!(of(0), None);
    }
}
