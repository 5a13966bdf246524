//! The processes of a run at one moment, from `/proc`.

use std::fs;

/// One look. Of the server, its children are counted in.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) server: Used,
    pub(crate) load: Used,
    pub(crate) run: Used,
}

/// The resources of processes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) processes: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    pub(crate) zombies: u64,
    /// Memory that is in no file, what several have in common counted once.
    pub(crate) anonymous_kib: u64,
    /// Of what they share by intention, the same: the server's counters.
    pub(crate) shared_kib: u64,
}

impl Look {
    /// Looks at the children of a run; none where server and load are not both there.
    pub(crate) fn at(run: u32) -> Option<Self> {
        let (mut server, mut load) = (None, None);
        for child in children(run) {
            let command = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            match command.split(|&byte| byte == 0).nth(1) {
                Some(b"serve") => server = Some(child),
                Some(b"load") => load = Some(child),
                _ => {}
            }
        }
        let (server, load) = (server?, load?);
        let mut look = Self::default();
        look.server.add(server);
        for child in children(server) {
            look.server.add(child);
        }
        look.load.add(load);
        look.run.add(run);
        Some(look)
    }
}

impl Used {
    /// Adds a process; nothing if it has ended, which is fine.
    fn add(&mut self, pid: u32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if status
            .lines()
            .any(|line| line.starts_with("State:") && line.contains('Z'))
        {
            self.zombies += 1;
            return;
        }
        let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        self.processes += u64::from(!status.is_empty());
        self.threads += number(&status, "Threads:");
        self.anonymous_kib += number(&memory, "Pss_Anon:");
        self.shared_kib += number(&memory, "Pss_Shmem:");
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.descriptors += descriptors as u64;
    }
}

/// The number after a name; 0 if absent.
fn number(text: &str, name: &str) -> u64 {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The children of a process, of all its threads, zombies included.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists =
        tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let lists: Vec<String> = lists.collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}
