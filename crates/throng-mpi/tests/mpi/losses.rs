//! Ranks that die, are stopped, or cannot be reached: the run ends with its results so far, and names the rank.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::job::{FOUR, Job, LONG, Lab, RESUME, printed, run, trials};

/// Loses the last of three client ranks by `act`; the record is complete and names it. Returns how the launcher ended.
fn lose(mut job: Job, act: impl FnOnce(&Job)) -> ExitStatus {
    job.wait_for_a_trial();
    let before = job.trials().len();
    let began = Instant::now();
    act(&job);
    let (output, record) = job.end();
    println!(
        "ended {:.1} s after the loss",
        began.elapsed().as_secs_f64()
    );
    let printed = printed(&output);
    let run = run(&record);
    assert_eq!(run["ending"], "host-lost", "{run:#}");
    assert!(run["finished_at"].is_string(), "{run:#}");
    let trials = trials(&record);
    assert!(trials.len() >= before, "{printed}");
    assert!(
        trials[0]["failure"].is_null(),
        "what was measured is kept: {}",
        trials[0]
    );
    let failed: Vec<&Value> = trials
        .iter()
        .filter(|trial| !trial["failure"].is_null())
        .collect();
    assert_eq!(failed.len(), 1, "{printed}");
    let reason = failed[0]["failure"]["reason"].as_str().expect("a reason");
    let name = run["client_hosts"][2]["name"].as_str().expect("it has one");
    assert!(
        reason.contains(name) && reason.contains("rank 3"),
        "{reason}"
    );
    assert!(record.join("report.html").exists(), "{printed}");
    output.status
}

fn signalled(signal: Signal, whom: fn(&Job) -> Pid) {
    let directory = tempfile::tempdir().expect("it can be made");
    if let Some(job) = Job::here(4, directory.path(), LONG) {
        lose(job, |job| kill_process(whom(job), signal).expect("it runs"));
    }
}

#[test]
fn a_rank_that_is_killed_ends_the_run() {
    signalled(Signal::KILL, |job| job.relay(3));
}

/// The launcher kills all ranks two seconds after one has died, the leading one too. Its worker still writes the
/// record.
#[test]
fn a_launcher_that_kills_all_ranks_leaves_a_complete_record() {
    let directory = tempfile::tempdir().expect("it can be made");
    let Some(mut job) = Job::hasty(4, directory.path(), LONG) else {
        return;
    };
    job.wait_for_a_trial();
    kill_process(job.relay(3), Signal::KILL).expect("it runs");
    let (output, record) = job.end();
    assert!(!output.status.success(), "{}", printed(&output));
    let (run, trials) = (run(&record), trials(&record));
    assert_eq!(run["ending"], "host-lost", "{run:#}");
    assert!(trials[0]["failure"].is_null(), "{}", trials[0]);
    assert!(record.join("report.html").exists(), "{}", printed(&output));
}

#[test]
fn a_rank_that_loses_its_worker_ends_the_run() {
    signalled(Signal::KILL, |job| job.worker(3));
}

#[test]
fn a_rank_that_is_stopped_ends_the_run() {
    signalled(Signal::STOP, |job| job.relay(3));
}

/// Only its worker may stop, too. Without --enable-recovery the launcher has throng's exit code. With all ranks back,
/// --resume runs the remaining trials.
#[test]
fn a_run_that_lost_a_rank_exits_with_4_and_resumes() {
    let directory = tempfile::tempdir().expect("it can be made");
    let Some(job) = Job::hasty(4, directory.path(), FOUR) else {
        return;
    };
    let ended = lose(job, |job| {
        kill_process(job.worker(3), Signal::STOP).expect("it runs");
    });
    match ended.signal() {
        // On a busy machine it may exit so late that throng kills it.
        Some(signal) => println!("the launcher was ended by signal {signal}"),
        None => assert_eq!(ended.code(), Some(4)),
    }
    let Some(job) = Job::here(4, directory.path(), RESUME) else {
        return;
    };
    let record = job.succeed();
    assert_eq!(run(&record)["ending"], "complete");
    let trials = trials(&record);
    let failed = trials.iter().filter(|trial| !trial["failure"].is_null());
    assert_eq!((trials.len(), failed.count()), (4, 1), "{trials:#?}");
}

#[test]
fn a_host_that_is_cut_off_ends_the_run() {
    let Some(lab) = Lab::up(3) else { return };
    let directory = tempfile::tempdir().unwrap();
    if let Some(job) = Job::over(&lab, directory.path(), LONG) {
        lose(job, |_| lab.run_on("cut", "client3"));
    }
}
