//! Ctrl-C in the middle of a run.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use throng::record;

use super::schemas::Schemas;
use super::{json, throng_run, trial_lines};

#[test]
fn what_was_measured_is_kept_and_no_process_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let record_at = directory.path().join("record");
    let mark = format!("THRONG_TEST_MARK={}", directory.path().display());
    let mut command = throng_run(&record_at, "100ms");
    command.args([
        "--models",
        "fork,epoll,prefork",
        "--clients",
        "2,5",
        "--repeats",
        "50",
    ]);
    command.env("THRONG_TEST_MARK", directory.path());
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    // A line a finished trial: after two of them the third one runs.
    let shown: Vec<String> = lines.by_ref().take(2).collect();
    assert!(
        shown.iter().all(|line| line.contains("replies/s")),
        "{shown:?}"
    );
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let last = lines.last().unwrap_or_default();
    let status = run.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{last}");

    let trials = trial_lines(&record_at);
    assert!(
        last.contains(&format!("interrupted: {} of 300 trials", trials.len())),
        "{last}"
    );
    assert!((2..300).contains(&trials.len()), "{} trials", trials.len());
    let run = json(&record_at.join("run.json"));
    let schemas = Schemas::read();
    schemas.check_run(&run);
    for trial in &trials {
        schemas.check_trial(trial);
    }
    assert_eq!(run["ending"], "interrupted");
    assert!(run["finished_at"].is_string(), "{run:#}");
    assert_eq!(record::read_trials(&record_at).unwrap().len(), trials.len());
    nobody_is_left(&mark);
}

/// Servers and loads have the environment of the run that started them.
fn nobody_is_left(mark: &str) {
    let deadline = Instant::now() + Duration::from_secs(3);
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The command lines of all processes with this in their environment.
fn marked(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter(|process| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
        .map(|process| fs::read_to_string(process.path().join("cmdline")).unwrap_or_default())
        .collect()
}
