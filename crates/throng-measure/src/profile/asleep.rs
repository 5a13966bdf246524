//! In which system calls the threads of a server sleep: a look at some of them, many times a second.

use std::collections::BTreeMap;

use crate::probes::Tree;
use crate::processes::sleeping::{self, Doing};
use throng_sys::calls;

/// Most threads looked at in a round. Of more, each round takes others.
const MOST: usize = 64;

/// A thread with less than this share of the mean CPU time of a thread is idle.
const IDLE: f64 = 0.1;

/// What was seen of sleeping threads.
#[derive(Default)]
pub(super) struct Asleep {
    threads: Vec<Thread>,
    next: usize,
    rounds: u32,
    /// Whether the call of some thread could be read.
    readable: bool,
}

/// A thread, and how often it was seen asleep by the number of the call, which a page fault has not.
struct Thread {
    pid: u32,
    id: u32,
    /// Its CPU time when the turn began.
    cpu_ns: Option<u64>,
    seen: BTreeMap<Option<u64>, f64>,
}

impl Thread {
    /// The CPU time that it used since the turn began.
    fn used(&self) -> Option<f64> {
        let used = sleeping::cpu_ns(self.pid, self.id)?.checked_sub(self.cpu_ns?)?;
        Some(used as f64)
    }
}

/// The mean numbers of sleeping threads.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Means {
    /// By call.
    pub(super) asleep: BTreeMap<String, f64>,
    /// Idle ones.
    pub(super) idle: f64,
}

impl Asleep {
    /// The threads of a server.
    pub(super) fn of(tree: &Tree) -> Self {
        let threads = tree.pids().iter().flat_map(|pid| {
            let ids = sleeping::threads(*pid).into_iter();
            ids.map(|id| Thread {
                pid: *pid,
                id,
                cpu_ns: sleeping::cpu_ns(*pid, id),
                seen: BTreeMap::new(),
            })
        });
        Self {
            threads: threads.collect(),
            ..Self::default()
        }
    }

    /// Looks at the threads once.
    pub(super) fn look(&mut self) {
        let count = self.threads.len().min(MOST);
        let weight = self.threads.len() as f64 / count.max(1) as f64;
        for _ in 0..count {
            self.next = (self.next + 1) % self.threads.len();
            let thread = &mut self.threads[self.next];
            let Some(doing) = sleeping::look(thread.pid, thread.id) else {
                continue;
            };
            self.readable = true;
            if let Doing::Sleeping { call, .. } = doing {
                *thread.seen.entry(call).or_default() += weight;
            }
        }
        self.rounds += 1;
    }

    /// The means since the turn began; `None` if they may not be seen. A thread that ended counts as one that is not idle.
    pub(super) fn means(self) -> Option<Means> {
        if !self.readable || self.rounds == 0 {
            return None;
        }
        let of_each: Vec<Option<f64>> = self.threads.iter().map(Thread::used).collect();
        let known = || of_each.iter().flatten();
        let little = IDLE * known().sum::<f64>() / known().count().max(1) as f64;
        let rounds = f64::from(self.rounds);
        let mut means = Means::default();
        for (thread, used) in self.threads.iter().zip(of_each) {
            let is_idle = used.is_some_and(|used| used < little);
            for (call, seen) in &thread.seen {
                let mean = seen / rounds;
                if is_idle {
                    means.idle += mean;
                } else {
                    let name = call.map_or_else(|| "page fault".to_owned(), calls::name);
                    *means.asleep.entry(name).or_default() += mean;
                }
            }
        }
        Some(means)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until a thread was seen asleep in this call, within a bound.
    fn look_until_in(asleep: &mut Asleep, name: &str) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let is_in = |call: &Option<u64>| call.is_some_and(|call| calls::name(call).contains(name));
        while std::time::Instant::now() < until {
            asleep.look();
            let mut seen = asleep.threads.iter().flat_map(|thread| thread.seen.keys());
            if seen.any(is_in) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn a_sleeping_process_is_seen_in_its_call() {
        let mut sleeper = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut asleep = Asleep::of(&Tree::of(sleeper.id()));
        look_until_in(&mut asleep, "nanosleep");
        let readable = asleep.readable;
        let found = asleep.means();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        if readable {
            let means = found.unwrap();
            let mut named = means.asleep.keys();
            assert!(named.any(|call| call.contains("nanosleep")), "{means:?}");
        }
    }

    #[test]
    fn a_thread_that_only_sleeps_beside_a_busy_one_is_idle() {
        let mut both = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & while :; do :; done"])
            .spawn()
            .unwrap();
        let pid = both.id();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let mut tree = Tree::of(pid);
        while tree.pids().len() < 2 && std::time::Instant::now() < until {
            tree.refresh();
        }
        let children: Vec<u32> = tree
            .pids()
            .iter()
            .copied()
            .filter(|id| *id != pid)
            .collect();
        // The child may still be about to run its program.
        look_until_in(&mut Asleep::of(&tree), "nanosleep");
        let mut asleep = Asleep::of(&tree);
        look_until_in(&mut asleep, "nanosleep");
        let busy = || sleeping::cpu_ns(pid, pid);
        let before = busy();
        while busy()
            .zip(before)
            .is_some_and(|(now, then)| now < then + 20_000_000)
            && std::time::Instant::now() < until
        {
            asleep.look();
        }
        let readable = asleep.readable && before.is_some();
        let found = asleep.means();
        both.kill().unwrap();
        both.wait().unwrap();
        for child in children {
            let child = rustix::process::Pid::from_raw(child as i32).unwrap();
            let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        }
        if readable {
            let means = found.unwrap();
            assert!(means.idle > 0.9, "{means:?}");
            assert!(
                !means.asleep.keys().any(|call| call.contains("nanosleep")),
                "{means:?}"
            );
        }
    }
}
