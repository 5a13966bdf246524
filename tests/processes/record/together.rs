//! Several runs at once, in the same place: none disturbs the record of another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throng::record::{self, Ending};

use crate::support::marked::Marked;
use crate::support::program::{THRONG, words};
use crate::support::runs::throng_run;

/// Runs that begin together.
const RUNS: usize = 4;

fn begin(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("it can be started")
}

/// Its message about wrong usage.
fn refused(child: Child) -> String {
    let output = child.wait_with_output().expect("it is ours");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    printed
}

fn is_whole(record: &Path) -> bool {
    let trials = record::read_trials(record).expect("a record");
    let places: Vec<u32> = trials.iter().map(|trial| trial.index).collect();
    let run = record::read(record).expect("a record");
    run.ending == Ending::Complete && places == (0..run.trials_planned).collect::<Vec<_>>()
}

/// The same study, begun in the same second and the same place.
#[test]
fn runs_of_the_same_second_have_records_of_their_own() {
    let place = tempfile::tempdir().unwrap();
    let words = words(
        "run --allow-rough --retries 0 --models epoll --clients 1 --runs 2 --duration 10ms \
         --warm-up 0s --control none --no-ceiling --probes none",
        &[],
    );
    let begin = |_| begin(Command::new(THRONG).args(&words).current_dir(place.path()));
    let runs: Vec<Child> = (0..RUNS).map(begin).collect();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
    }
    let records: BTreeSet<PathBuf> = std::fs::read_dir(place.path().join("throng-results"))
        .unwrap()
        .map(|record| record.unwrap().path())
        .collect();
    assert_eq!(records.len(), RUNS, "{records:?}");
    assert!(records.iter().all(|record| is_whole(record)));
}

/// A run that measures until it is ended, and has its record.
fn under_way(record: &Path, marked_by: &Path) -> (Child, Marked) {
    let mut command = throng_run(record, "60s");
    command.args("--models epoll --clients 1 --runs 1 --think 10ms".split(' '));
    let marked = Marked::by(marked_by, &mut command);
    let child = begin(&mut command);
    marked.wait_for(" load ");
    (child, marked)
}

fn interrupt(child: &mut Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it is ours").code(), Some(130));
}

#[test]
fn a_record_that_is_being_written_is_not_for_another_run() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let (mut first, marked) = under_way(&record, directory.path());
    let at_first = std::fs::read(record.join("run.json")).unwrap();
    for words in [
        ["run", "-o"],
        ["compare", "-o"],
        ["limit", "-o"],
        ["run", "--resume"],
    ] {
        let mut command = Command::new(THRONG);
        command.args(words).arg(&record);
        match words[0] {
            "compare" => command.args(["epoll", "poll"]),
            "limit" => command.arg("epoll"),
            _ => &mut command,
        };
        let printed = refused(begin(&mut command));
        let busy = format!("another throng is writing to {}", record.display());
        assert!(printed.contains(&busy), "{words:?}: {printed}");
    }
    assert_eq!(std::fs::read(record.join("run.json")).unwrap(), at_first);
    interrupt(&mut first);
    marked.assert_all_ended();
}

/// Of two processes that resume the same record one does, and each trial exists once.
#[test]
fn a_run_is_resumed_by_one_process_only() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let mut command = throng_run(&record, "10ms");
    command.args(["--models", "epoll,poll", "--clients", "1", "--runs", "10"]);
    let mut first = begin(&mut command);
    let trials = record.join("trials.jsonl");
    let deadline = Instant::now() + Duration::from_mins(2);
    while std::fs::metadata(&trials).map_or(0, |trials| trials.len()) == 0 {
        assert!(Instant::now() < deadline, "it has no trial");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!is_whole(&record));
    let resume = |_| {
        begin(
            Command::new(THRONG)
                .args(["run", "--allow-rough", "--resume"])
                .arg(&record),
        )
    };
    let both: Vec<Child> = (0..2).map(resume).collect();
    let outputs = both
        .into_iter()
        .map(|child| child.wait_with_output().unwrap());
    let codes: Vec<Option<i32>> = outputs.map(|output| output.status.code()).collect();
    // Where one began when the other had ended, both are right: there was nothing left to do.
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert!(
        codes.iter().all(|code| [Some(0), Some(2)].contains(code)),
        "{codes:?}"
    );
    assert!(is_whole(&record));
}

/// A study of several parts is locked as a whole.
#[test]
fn a_study_that_is_being_written_is_not_for_another_run() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let words = words(
        "run --allow-rough --retries 0 io-uring --clients 2 --think 10ms --duration 60s --warm-up 0s -o",
        &[],
    );
    let mut command = Command::new(THRONG);
    command.args(words).arg(&record);
    let marked = Marked::by(directory.path(), &mut command);
    let mut first = begin(&mut command);
    marked.wait_for(" load ");
    for words in [
        &["run", "--allow-rough", "--retries", "0", "io-uring", "-o"][..],
        &["run", "--allow-rough", "--resume"],
    ] {
        let printed = refused(begin(Command::new(THRONG).args(words).arg(&record)));
        assert!(
            printed.contains("another throng is writing to"),
            "{printed}"
        );
    }
    interrupt(&mut first);
    marked.assert_all_ended();
}
