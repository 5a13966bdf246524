//! In which system calls the threads of a server sleep: a look at some of them, many times a second.

use std::collections::BTreeMap;

use crate::probes::Tree;
use crate::processes::sleeping::{self, Doing};
use throng_sys::calls;

/// Most threads looked at in a round. Of more, each round takes others.
const MOST: usize = 64;

/// What was seen of sleeping threads.
#[derive(Default)]
pub(super) struct Asleep {
    threads: Vec<(u32, u32)>,
    next: usize,
    rounds: u32,
    seen: BTreeMap<String, f64>,
    /// Whether the call of some thread could be read.
    readable: bool,
}

impl Asleep {
    /// The threads of a server.
    pub(super) fn of(tree: &Tree) -> Self {
        let threads = tree.pids().iter().flat_map(|pid| {
            let ids = sleeping::threads(*pid).into_iter();
            ids.map(|thread| (*pid, thread))
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
            let (pid, thread) = self.threads[self.next];
            let Some(seen) = sleeping::look(pid, thread) else {
                continue;
            };
            self.readable = true;
            if let Doing::Sleeping { call, .. } = seen {
                let name = call.map_or_else(|| "page fault".to_owned(), calls::name);
                *self.seen.entry(name).or_default() += weight;
            }
        }
        self.rounds += 1;
    }

    /// The mean number of sleeping threads by call; `None` if it may not be seen.
    pub(super) fn means(self) -> Option<BTreeMap<String, f64>> {
        let rounds = f64::from(self.rounds);
        let means = self
            .seen
            .into_iter()
            .map(|(call, seen)| (call, seen / rounds));
        (self.readable && self.rounds > 0).then(|| means.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_process_is_seen_in_its_call() {
        let mut sleeper = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut asleep = Asleep::of(&Tree::of(sleeper.id()));
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !asleep.seen.keys().any(|call| call.contains("nanosleep"))
            && std::time::Instant::now() < until
        {
            asleep.look();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let readable = asleep.readable;
        let found = asleep.means();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        if readable {
            let means = found.unwrap();
            assert!(
                means.keys().any(|call| call.contains("nanosleep")),
                "{means:?}"
            );
        }
    }
}
