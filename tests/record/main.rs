//! What a run leaves on disk: described by the schemas, the same on both sides to the byte, and
//! whole whatever ends the run.

mod failures;
mod interruption;
mod runs;
mod schemas;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The program.
const THRONG: &str = env!("CARGO_BIN_EXE_throng");

/// `throng run` into `directory`, each trial counting for `duration`; to be given more options.
/// A run of nothing but its timed trials.
fn throng_run(directory: &Path, duration: &str) -> Command {
    let mut command = checked_run(directory, duration);
    command.args(["--control", "none", "--no-ceiling"]);
    command.args(["--probes", "cpu,memory,switches"]);
    command
}

/// A run with all that checks and explains it.
fn checked_run(directory: &Path, duration: &str) -> Command {
    let mut command = Command::new(THRONG);
    command.args(["run", "--duration", duration, "--warm-up", "50ms", "-o"]);
    command.arg(directory);
    command
}

/// Runs it to its end, which is to be a good one.
fn finish(mut command: Command) {
    let output = command.output().expect("the program can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// A JSON file.
fn json(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of `trials.jsonl`.
fn trial_lines(directory: &Path) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("each line is JSON");
    text(&directory.join("trials.jsonl"))
        .lines()
        .map(parse)
        .collect()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
