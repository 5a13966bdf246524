//! Ctrl-C in the middle of a run.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use throng::record;

use crate::support::marked::Marked;
use crate::support::runs::{json, throng_run, trial_lines};
use crate::support::schemas::Schemas;

#[test]
fn an_interrupted_run_keeps_its_trials_and_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let record_at = directory.path().join("record");
    let mut command = throng_run(&record_at, "100ms");
    command.args("--models fork,epoll,prefork --clients 2,5 --runs 50".split(' '));
    let marked = Marked::by(directory.path(), &mut command);
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let announced = lines.next().unwrap_or_default();
    assert!(announced.starts_with("300 trials, about "), "{announced}");
    // A line a finished trial: after two of them the third one runs.
    let shown: Vec<String> = lines.by_ref().take(2).collect();
    assert!(
        shown.iter().all(|line| line.contains("requests/s")),
        "{shown:?}"
    );
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let last = lines.last().unwrap_or_default();
    let status = run.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{last}");

    let trials = trial_lines(&record_at);
    // Trials on a busy machine may be invalid.
    let valid = trials.iter().filter(|trial| trial["invalid"].is_null());
    let valid = valid.count();
    assert!(
        last.contains(&format!("interrupted: {valid} of 300 trials")),
        "{last}"
    );
    assert!((2..300).contains(&trials.len()), "{} trials", trials.len());
    let run = json(&record_at.join("run.json"));
    let schemas = Schemas::read();
    schemas.check("run", &run);
    for trial in &trials {
        schemas.check("trial", trial);
    }
    assert_eq!(run["ending"], "interrupted");
    assert!(run["finished_at"].is_string(), "{run:#}");
    assert_eq!(record::read_trials(&record_at).unwrap().len(), trials.len());
    marked.assert_all_ended();
}
