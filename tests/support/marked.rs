//! All processes of a run, found by a mark in their environment.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::process::Pid;

use super::tries::pause;

const NAME: &str = "THRONG_TEST_MARK";
/// Longest wait for anything.
const LIMIT: Duration = Duration::from_mins(2);

/// The mark that servers and loads inherit from the run that started them.
pub(crate) struct Marked(String);

impl Marked {
    /// Marks a run by a unique directory.
    pub(crate) fn by(directory: &Path, command: &mut Command) -> Self {
        let mark = directory.display().to_string();
        command.env(NAME, &mark);
        Self(format!("{NAME}={mark}\0"))
    }

    /// All living processes, with their command lines.
    pub(crate) fn living(&self) -> Vec<(Pid, String)> {
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        let of_run = processes.filter_map(|process| {
            let environment = fs::read(process.path().join("environ")).ok()?;
            memmem::find(&environment, self.0.as_bytes())?;
            let line = fs::read_to_string(process.path().join("cmdline")).ok()?;
            let pid = process.file_name().to_str()?.parse().ok()?;
            Some((Pid::from_raw(pid)?, line.replace('\0', " ")))
        });
        of_run.collect()
    }

    /// Waits for a process with this text in its command line, other than the run itself.
    pub(crate) fn wait_for(&self, words: &str) -> Pid {
        self.wait_for_several(1, words)
    }

    /// Waits for `count` such processes; returns the first.
    pub(crate) fn wait_for_several(&self, count: usize, words: &str) -> Pid {
        let deadline = Instant::now() + LIMIT;
        loop {
            let living = self.living();
            let is_it = |line: &str| line.contains(words) && !line.contains(" -o ");
            let found: Vec<Pid> = living
                .iter()
                .filter(|(_, line)| is_it(line))
                .map(|(pid, _)| *pid)
                .collect();
            if found.len() >= count {
                return found[0];
            }
            assert!(
                Instant::now() < deadline,
                "no {count} `{words}`: {living:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until none is left.
    pub(crate) fn assert_all_ended(&self) {
        let began = Instant::now();
        loop {
            let left = self.living();
            if left.is_empty() {
                return;
            }
            assert!(began.elapsed() < LIMIT, "still there: {left:?}");
            std::thread::sleep(pause(began));
        }
    }
}
