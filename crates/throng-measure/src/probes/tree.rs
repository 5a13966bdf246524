//! Processes with all their descendants. Usually there is one root. A server that ran before throng may have several,
//! or all processes of a control group.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use procfs::process::{Process, Stat};

use crate::processes::all::{Brief, all};
use crate::processes::control_group::members;

/// The processes of a tree, as last read.
#[derive(Debug, Clone)]
pub struct Tree {
    roots: Vec<u32>,
    /// A control group whose processes are roots too, whenever they started.
    group: Option<PathBuf>,
    pids: Vec<u32>,
}

impl Tree {
    /// The tree with root `pid`; only the root is known until [`Tree::refresh`].
    pub fn of(pid: u32) -> Self {
        Self::of_all(vec![pid])
    }

    /// Like [`Tree::of`], with several roots.
    pub fn of_all(roots: Vec<u32>) -> Self {
        Self {
            group: None,
            pids: roots.clone(),
            roots,
        }
    }

    /// The processes in the control group with this directory, and in the groups below it.
    pub fn of_group(directory: PathBuf) -> Self {
        let mut tree = Self {
            roots: members(&directory),
            group: Some(directory),
            pids: Vec::new(),
        };
        tree.pids.clone_from(&tree.roots);
        tree
    }

    /// Finds all descendants, by listing every process of the machine once.
    pub fn refresh(&mut self) {
        self.find_in(&all().collect::<Vec<_>>());
    }

    /// Finds all descendants among these processes.
    pub(crate) fn find_in(&mut self, processes: &[Brief]) {
        if processes.is_empty() {
            return; // they cannot be seen now
        }
        if let Some(group) = &self.group {
            self.roots = members(group);
        }
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for process in processes {
            children
                .entry(process.parent)
                .or_default()
                .push(process.pid);
        }
        let mut pids = self.roots.clone();
        let mut known: BTreeSet<u32> = pids.iter().copied().collect();
        let mut next = 0;
        while next < pids.len() {
            let found = children
                .remove(&pids[next].cast_signed())
                .unwrap_or_default();
            let found = found.into_iter().map(i32::cast_unsigned);
            pids.extend(found.filter(|pid| known.insert(*pid)));
            next += 1;
        }
        self.pids = pids;
    }

    /// The root process, or the first of several; 0 if there is no process.
    pub fn root(&self) -> u32 {
        self.roots.first().copied().unwrap_or_default()
    }

    /// Whether a process is a root.
    pub fn is_root(&self, pid: u32) -> bool {
        self.roots.contains(&pid)
    }

    /// All known processes, the roots first.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// `/proc/PID/stat` of each living process.
    pub fn stats(&self) -> impl Iterator<Item = (Process, Stat)> {
        self.pids.iter().filter_map(|pid| {
            let process = Process::new(pid.cast_signed()).ok()?;
            let stat = process.stat().ok()?;
            Some((process, stat))
        })
    }

    /// `/proc/PID/stat` of each living root.
    pub fn root_stats(&self) -> impl Iterator<Item = Stat> {
        self.roots.iter().filter_map(|pid| {
            let process = Process::new(pid.cast_signed()).ok()?;
            process.stat().ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_below_two_roots_is_there_once() {
        let own = std::process::id();
        let parent = Process::myself().unwrap().stat().unwrap().ppid;
        let mut tree = Tree::of_all(vec![parent.cast_unsigned(), own]);
        tree.refresh();
        let mut pids = tree.pids().to_vec();
        assert_eq!(pids[..2], [parent.cast_unsigned(), own]);
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), tree.pids().len());
        assert_eq!(tree.root_stats().count(), 2);
    }

    #[test]
    fn no_root_is_no_process() {
        let mut tree = Tree::of_all(Vec::new());
        tree.refresh();
        assert_eq!((tree.root(), tree.pids()), (0, &[][..]));
    }
}
