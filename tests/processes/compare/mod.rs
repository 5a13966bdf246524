//! `throng compare` with servers of all kinds, good and bad: verdicts have the right direction, failures are explained,
//! and no process is left behind.

mod demands;
mod hooks;
mod running;
mod setup;
mod slices;
mod troubles;
mod validity;
mod verdicts;
mod why;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use memchr::memmem;
use serde_json::Value;
use tempfile::TempDir;
use throng::record::{self, Purpose, Trial};

use crate::support::interpreter;
use crate::support::program::THRONG;

/// A comparison, or a search for limits, that has run.
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
    pub(super) directory: TempDir,
}

/// Compares for a short time, and makes sure that nothing of it still runs.
fn compare(arguments: &[&str]) -> Ran {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = assert_cmd::Command::new(THRONG);
    command.args(["compare", "--allow-rough"]);
    if !arguments.contains(&"--retries") {
        command.args(["--retries", "0"]); // a busy machine must not change how many trials there are
    }
    if !arguments.contains(&"--warm-up-limit") {
        command.args(["--warm-up-limit", "20ms"]); // however unsteady a busy machine is
    }
    if !arguments.contains(&"--ready-timeout") {
        command.args(["--ready-timeout", "60s"]); // however slowly Python starts there
    }
    if !arguments.contains(&"--why") && !arguments.contains(&"--profile") {
        command.args(["--why", "off"]); // the seconds that it takes
    }
    command.args(arguments);
    // Only probes that need no trials of their own.
    command.args("--probes cpu,memory --warm-up 20ms --clients 8 -o".split(' '));
    command.arg(record_in(&directory));
    command.args(["--env", &format!("THRONG_MARK={mark}")]);
    command.timeout(Duration::from_mins(10)); // only if it hangs
    let ran = Ran::by(&mut command, directory);
    assert_eq!(left_behind(&mark), [""; 0]);
    ran
}

/// Tries with limits until one is long enough for a server that starts as slowly as the machine is busy. Servers that are
/// never ready are waited for as long.
fn with_time_to_start<T>(mut attempt: impl FnMut(&str) -> Result<T, String>) -> T {
    let mut faults = Vec::new();
    for limit in ["5s", "30s", "2m"] {
        match attempt(limit) {
            Ok(value) => return value,
            Err(fault) => faults.push(fault),
        }
    }
    panic!("{faults:#?}")
}

pub(super) fn record_in(directory: &TempDir) -> PathBuf {
    directory.path().join("record")
}

/// The processes whose environment has this mark.
fn left_behind(mark: &str) -> Vec<String> {
    let mark = format!("THRONG_MARK={mark}\0");
    let processes = std::fs::read_dir("/proc")
        .expect("there is /proc")
        .flatten();
    processes
        .map(|process| process.path())
        .filter(|path| {
            let environment = std::fs::read(path.join("environ")).unwrap_or_default();
            memmem::find(&environment, mark.as_bytes()).is_some()
        })
        .map(|path| std::fs::read_to_string(path.join("comm")).unwrap_or_default())
        .collect()
}

/// The words in a file.
fn words_in(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

impl Ran {
    /// The command that has its record in this directory, once it has ended.
    pub(super) fn by(command: &mut assert_cmd::Command, directory: TempDir) -> Self {
        let output = command.output().expect("the program can be started");
        Self {
            code: output.status.code().expect("no signal ended it"),
            out: String::from_utf8(output.stdout).expect("output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("output is UTF-8"),
            directory,
        }
    }

    fn record(&self) -> PathBuf {
        record_in(&self.directory)
    }

    pub(super) fn trials(&self) -> Vec<Trial> {
        record::read_trials(&self.record()).unwrap_or_else(|error| panic!("{error}: {}", self.err))
    }

    /// `summary.json`.
    fn summary(&self) -> Value {
        let text = std::fs::read(self.record().join("summary.json")).expect("a report was made");
        serde_json::from_slice(&text).expect("it is JSON")
    }

    /// Whether so few timed trials of a server are valid that no verdict is possible: something else took the
    /// CPUs, or the rate was not steady. That happens on a busy machine.
    fn has_too_few_trials(&self) -> bool {
        let trials = self.trials();
        let valid = |server: &str| {
            let mut timed: Vec<_> = trials
                .iter()
                .filter(|trial| trial.server == server)
                .collect();
            timed.retain(|trial| trial.purpose == Purpose::Timed && trial.is_valid());
            timed.len()
        };
        trials.iter().any(|trial| valid(&trial.server) < 6)
    }

    /// The verdict on a server by a measure, as text.
    fn verdict(&self, server: &str, measure: &str) -> String {
        let summary = self.summary();
        let pairs = summary["comparison"]["pairs"].as_array().expect("pairs");
        let pair = pairs.iter().find(|pair| pair["server"] == server);
        let measures = pair
            .and_then(|pair| pair["measures"].as_array())
            .expect("a pair");
        let of_it = measures.iter().find(|measured| measured["name"] == measure);
        let verdict = of_it.and_then(|measured| measured["word"].as_str());
        verdict.unwrap_or_else(|| panic!("{summary:#}")).to_owned()
    }

    /// Wrong usage, reported before anything was started.
    fn is_usage_error(&self, says: &str) {
        assert_eq!(self.code, 2, "{} {}", self.out, self.err);
        assert!(self.err.contains(says), "`{says}` is not in {}", self.err);
        assert!(!self.record().exists(), "nothing was begun");
    }
}

/// The command line of a server in this directory, with further arguments; none if its interpreter is not installed.
pub(super) fn server(interpreter: &str, script: &str, more: &str) -> Option<String> {
    let Some(program) = interpreter::program(interpreter) else {
        println!("not tried: {interpreter} is not installed");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/processes/compare")
        .join(script);
    Some(format!("{program} {} {{port}} {more}", script.display()))
}

fn python(trouble: &str) -> Option<String> {
    server("python3", "server.py", trouble)
}
