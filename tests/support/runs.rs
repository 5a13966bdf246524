//! Runs of the program, and the records that they leave.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use throng::measure::{Observer, TrialStart};
use throng::record::Trial;

use super::program::{THRONG, words};

/// Requests that the server answers on one connection before it is loaded: see `measure/verify.rs`.
pub(crate) const VERIFICATION_REQUESTS: u64 = 6;

/// `throng run` into `directory`, with nothing but timed trials, each measured for `duration`. Callers add more
/// options.
pub(crate) fn throng_run(directory: &Path, duration: &str) -> Command {
    let mut command = checked_run(directory, duration);
    command.args(["--control", "none", "--no-ceiling"]);
    command.args(["--warm-up-limit", "50ms"]); // however unsteady a busy machine is
    command.args(["--probes", "cpu,memory,switches"]);
    command
}

/// A run with everything that checks and explains it.
pub(crate) fn checked_run(directory: &Path, duration: &str) -> Command {
    let mut command = Command::new(THRONG);
    command.args(words(
        "run --allow-rough --retries 0 --duration {} --warm-up 50ms -o",
        &[duration],
    ));
    command.arg(directory);
    command
}

/// Runs it to its end, and asserts that it succeeds.
pub(crate) fn finish(mut command: Command) {
    let output = command.output().expect("the program can be started");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}", output.status);
}

/// Reads a JSON file.
pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn number(value: &Value) -> f64 {
    let number = value.as_f64();
    number.unwrap_or_else(|| panic!("no number: {value}"))
}

pub(crate) fn count(value: &Value) -> u64 {
    let count = value.as_u64();
    count.unwrap_or_else(|| panic!("no count: {value}"))
}

/// The lines of `trials.jsonl`.
pub(crate) fn trial_lines(directory: &Path) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("each line is JSON");
    text(&directory.join("trials.jsonl"))
        .lines()
        .map(parse)
        .collect()
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Observes nothing.
pub(crate) struct Unseen;

impl Observer for Unseen {
    fn on_begin(&mut self, _: &TrialStart<'_>) {}
    fn on_end(&mut self, _: &Trial) {}
}
