//! What a run leaves on disk: described by the schemas, the same on both sides to the byte, and
//! whole whatever ends the run.

mod below;
mod captures;
mod clock;
mod failures;
mod full;
mod interruption;
mod killed;
mod marked;
mod metrics;
mod network;
mod phases;
mod runs;
mod schemas;
mod storage;
mod together;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng::measure::crew::Origin;
use throng::measure::{self, Observer, RunPlan, Started, probes};
use throng::protocol::{PROTOCOLS, Settings as Asking};
use throng::record::{Host, Run, ServerInfo, Settings, Store, StudyInfo, Trial};
use throng::sys::signal::Stop;

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

/// Nobody watches.
struct Unseen;

impl Observer for Unseen {
    fn begins(&mut self, _: &Started<'_>) {}
    fn ended(&mut self, _: &Trial) {}
}

/// A short run of these servers, each of which says itself where it listens.
fn plan(servers: Vec<ServerInfo>, clients: u32) -> RunPlan {
    RunPlan {
        control: None,
        null_server: None,
        probes: probes::choose(&["cpu".to_owned()]).expect("there is one"),
        study: StudyInfo {
            name: "failures".to_owned(),
            question: "does it go on?".to_owned(),
        },
        settings: Settings {
            protocol: "echo".to_owned(),
            size_bytes: 1000,
            clients: vec![clients],
            repeats: 1,
            duration_s: 0.5,
            warm_up_s: 0.0,
            start_timeout_s: 1.0,
            hook_timeout_s: 1.0,
            dialogue: String::new(),
            load_options: Vec::new(),
            connect_timeout_s: 2.0,
            patience_s: 0.5,
            backlog: 16,
            server_cpus: Vec::new(),
            client_cpus: Vec::new(),
            load_threads: 1,
            probes: vec!["cpu".to_owned()],
            counted_repeats: 1,
            ..Settings::default()
        },
        dialogue: PROTOCOLS[0],
        asking: Asking::default(),
        coming: Duration::ZERO,
        jobs: None,
        at_once: None,
        comparison: None,
        limit: None,
        servers,
        program: PathBuf::from(THRONG),
        seed: 1,
        arguments: Vec::new(),
        host: Host::default(),
        client_hosts: Vec::new(),
        done: Vec::new(),
    }
}

/// Runs it into a directory of its own, which is gone afterwards.
fn carry_out(plan: &RunPlan) -> (Run, Vec<Trial>) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::create(directory.path()).expect("a new record");
    let stop = Stop::install().expect("signals can be handled");
    let ran = measure::run(plan, &mut Origin::Here, &mut store, &mut Unseen, stop)
        .expect("the record is written");
    let written = throng::record::read_trials(directory.path()).expect("a record");
    assert_eq!(written, ran.1, "what was measured is what was written");
    ran
}
