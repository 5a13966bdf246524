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
    /// The processes that may have waited for children: only these have CPU time of ended ones.
    parents: Vec<u32>,
    main: Option<u32>,
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
            parents: roots.clone(),
            main: None,
            roots,
        }
    }

    /// The processes in the control group with this directory, and in the groups below it.
    pub fn of_group(directory: PathBuf) -> Self {
        let mut tree = Self::of_all(members(&directory));
        tree.group = Some(directory);
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
        let mut have_reaped: BTreeSet<u32> = BTreeSet::new();
        for process in processes {
            children
                .entry(process.parent)
                .or_default()
                .push(process.pid);
            have_reaped.extend(process.has_reaped.then_some(process.pid.cast_unsigned()));
        }
        let is_parent =
            |pid: &u32| have_reaped.contains(pid) || children.contains_key(&pid.cast_signed());
        let mut pids = self.roots.clone();
        let mut known: BTreeSet<u32> = pids.iter().copied().collect();
        let mut next = 0;
        while next < pids.len() {
            let found = children
                .get(&pids[next].cast_signed())
                .into_iter()
                .flatten()
                .copied();
            pids.extend(
                found
                    .map(i32::cast_unsigned)
                    .filter(|pid| known.insert(*pid)),
            );
            next += 1;
        }
        self.parents = pids.iter().copied().filter(is_parent).collect();
        self.pids = pids;
    }

    /// Finds the main process: the first on the way down from the root that `listens`, or that has not exactly one
    /// child. So a shell that waits for the server is not taken for it.
    pub(crate) fn find_main(&mut self, listens: impl Fn(u32) -> bool) {
        let processes: Vec<Brief> = all().collect();
        self.find_in(&processes);
        let mut main = self.root();
        while !listens(main) {
            let mut children = processes
                .iter()
                .filter(|process| process.parent == main.cast_signed());
            let (Some(only), None) = (children.next(), children.next()) else {
                break;
            };
            main = only.pid.cast_unsigned();
        }
        self.main = Some(main);
    }

    /// The root process, or the first of several; 0 if there is no process.
    pub fn root(&self) -> u32 {
        self.roots.first().copied().unwrap_or_default()
    }

    /// The process that is the server itself: the root, unless `find_main` found another.
    pub fn main(&self) -> u32 {
        self.main.unwrap_or_else(|| self.root())
    }

    /// All known processes, the roots first.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// `/proc/PID/stat` of each living process.
    pub fn stats(&self) -> impl Iterator<Item = (Process, Stat)> {
        stats(&self.pids)
    }

    /// `/proc/PID/stat` of each living process that may have waited for children, parents before their children.
    pub fn parent_stats(&self) -> impl Iterator<Item = Stat> {
        stats(&self.parents).map(|(_, stat)| stat)
    }
}

fn stats(pids: &[u32]) -> impl Iterator<Item = (Process, Stat)> {
    pids.iter().filter_map(|pid| {
        let process = Process::new(pid.cast_signed()).ok()?;
        let stat = process.stat().ok()?;
        Some((process, stat))
    })
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
        assert_eq!(tree.main(), tree.root());
        assert!(tree.parent_stats().any(|stat| stat.pid == parent));
    }

    #[test]
    fn no_root_is_no_process() {
        let mut tree = Tree::of_all(Vec::new());
        tree.refresh();
        assert_eq!((tree.root(), tree.pids()), (0, &[][..]));
    }
}
