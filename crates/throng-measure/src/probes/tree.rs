//! A process with all its descendants.

use std::collections::HashMap;

use procfs::process::{Process, Stat, all_processes};

/// The processes of a tree, as last looked at.
#[derive(Debug, Clone)]
pub struct Tree {
    root: u32,
    pids: Vec<u32>,
}

impl Tree {
    /// The tree whose root is `pid`; only the root is known until [`Tree::look`].
    pub fn of(pid: u32) -> Self {
        Self {
            root: pid,
            pids: vec![pid],
        }
    }

    /// Finds all descendants; one look at every process of the machine.
    pub fn look(&mut self) {
        let Ok(processes) = all_processes() else {
            return;
        };
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for stat in processes
            .flatten()
            .filter_map(|process| process.stat().ok())
        {
            children.entry(stat.ppid).or_default().push(stat.pid);
        }
        let mut pids = vec![self.root];
        let mut next = 0;
        while next < pids.len() {
            let found = children
                .remove(&pids[next].cast_signed())
                .unwrap_or_default();
            pids.extend(found.into_iter().map(i32::cast_unsigned));
            next += 1;
        }
        self.pids = pids;
    }

    /// The process at its root.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// All processes known, the root first.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// What the kernel tells of each process that is still there.
    pub fn stats(&self) -> impl Iterator<Item = (Process, Stat)> {
        self.pids.iter().filter_map(|pid| {
            let process = Process::new(pid.cast_signed()).ok()?;
            let stat = process.stat().ok()?;
            Some((process, stat))
        })
    }

    /// What the kernel tells of the root.
    pub fn root_stat(&self) -> Option<Stat> {
        Process::new(self.root.cast_signed()).ok()?.stat().ok()
    }
}
