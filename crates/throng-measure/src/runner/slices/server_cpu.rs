//! CPU time of a server from slice to slice, including processes that have ended.

use std::time::{Duration, Instant};

use super::BUSY_AT_REST;
use crate::probes::control_group::Group;
use crate::probes::{Tree, cpu, switches};

/// How long a server must use little CPU time before it counts as at rest, and the longest wait for this.
const REST: Duration = Duration::from_micros(500);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The waits of more threads are not read, since that takes long.
const MOST_THREADS: usize = 64;

/// Reads the CPU time of a server.
pub(super) struct ServerCpu {
    /// The server's processes.
    pub(super) tree: Tree,
    /// Its control group, if throng made one: it counts processes that end between two readings of the tree.
    group: Option<Group>,
}

impl ServerCpu {
    pub(super) fn of(tree: Tree) -> Self {
        Self {
            group: Group::of(tree.root()),
            tree,
        }
    }

    /// For a server that never rests: the kernel adds to a control group's time when a process stops running or at a
    /// clock tick, but a process's own clock is exact at any moment.
    pub(super) fn read_processes_only(&mut self) {
        self.group = None;
    }

    /// CPU time used until now; `None` if its processes are unknown.
    pub(super) fn used(&self) -> Option<Duration> {
        match &self.group {
            Some(group) => group.cpu_time(),
            None => cpu::total(&self.tree),
        }
    }

    /// How long its threads waited for a CPU until now; `None` if there are many, or the kernel does not count that.
    pub(super) fn waited(&self) -> Option<u64> {
        switches::waited_of_few(&self.tree, MOST_THREADS)
    }

    /// Waits until the server is at rest, then returns the CPU time used until now, and the part of it used after the
    /// first [`REST`]. Work can continue after the last reply: child processes end, memory is freed.
    pub(super) fn used_at_rest(&self) -> Option<(Duration, Duration)> {
        let mut before = self.used()?;
        let mut at_first = None;
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            let watched = Instant::now();
            std::thread::sleep(REST);
            let used = self.used()?;
            let late = used.saturating_sub(*at_first.get_or_insert(used));
            let little = watched.elapsed().mul_f64(BUSY_AT_REST);
            if used.saturating_sub(before) < little || watched >= deadline {
                return Some((used, late));
            }
            before = used;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use throng_sys::clock::process_cpu_time;

    use super::*;
    use crate::processes::own_group::RunGroup;

    /// A shell starts child processes that do the work and waits for them, so it uses little CPU time itself.
    #[test]
    fn processes_that_ended_count() {
        let run = RunGroup::make(&format!("cpu-{}", std::process::id()));
        let mut command = Command::new("sh");
        let work = "for i in 1 2 3 4 5; do head -c 20000000 /dev/zero | cksum > /dev/null; done; echo; read end";
        command
            .args(["-c", work])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let group = run
            .as_ref()
            .ok()
            .and_then(|run| run.create_for(&mut command));
        let mut shell = command.spawn().unwrap();
        let mut line = [0];
        shell.stdout.take().unwrap().read_exact(&mut line).unwrap();
        let own = process_cpu_time(shell.id()).unwrap();
        let mut seen = ServerCpu::of(Tree::of(shell.id()));
        assert_eq!(seen.group.is_some(), group.is_some());
        assert!(seen.used_at_rest().unwrap().0 > 2 * own);
        seen.read_processes_only();
        assert!(seen.used().unwrap() > 2 * own);
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
