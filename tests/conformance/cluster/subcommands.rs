//! Whole subcommands over a cluster, each in a process of its own.

use std::path::Path;

use assert_cmd::Command;
use throng::record::Ending;

use crate::support::program::{THRONG, words};

/// This program, as throng with a cluster of so many hosts.
fn with_cluster(trouble: &str, hosts: u32, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["cluster", trouble, &hosts.to_string()]);
    command.args(words);
    command
}

/// Its standard error.
fn reported(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("it runs");
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{reported}");
    reported
}

pub(super) fn servers_are_compared_over_a_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("record");
    let path = output.to_str().unwrap();
    let words = words(
        "compare --allow-rough --retries 0 epoll poll --protocol echo --runs 1 --clients 9 \
         --duration 100ms --warm-up 0s --control none --probes cpu -o {}",
        &[path],
    );
    reported(&mut with_cluster("none", 2, &words), 0);
    let run = throng::record::read(&output).unwrap();
    assert_eq!((run.ending, run.client_hosts.len()), (Ending::Complete, 2));
    let trials = throng::record::read_trials(&output).unwrap();
    assert_eq!(trials.len(), 2);
    assert!(
        trials
            .iter()
            .all(|trial| trial.hosts.len() == 2 && trial.load.is_some())
    );
    super::check_schemas(&output);
    let page = std::fs::read_to_string(output.join("report.html")).unwrap();
    assert!(page.contains("Client hosts") && page.contains("(rank 2)"));
}

pub(super) fn a_study_runs_over_a_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(
        &file,
        r#"
name = "mine"
question = "is it one load?"
protocol = "echo"
size = 100
clients = [4, 9]
runs = 1
duration = "100ms"
warm-up = "0s"
"#,
    )
    .unwrap();
    let output = directory.path().join("record");
    let words = words(
        "run --allow-rough --retries 0 {} --models epoll --no-ceiling --probes cpu \
         --latency-at none --control none -o {}",
        &[file.to_str().unwrap(), output.to_str().unwrap()],
    );
    reported(&mut with_cluster("none", 3, &words), 0);
    let trials = throng::record::read_trials(&output).unwrap();
    assert_eq!(trials.len(), 2);
    assert!(
        trials
            .iter()
            .all(|trial| trial.hosts.len() == 3 && trial.failure.is_none())
    );
}

pub(super) fn a_lost_host_is_reported_and_the_run_can_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("record");
    let path = output.to_str().unwrap();
    let words = words(
        "run --allow-rough --retries 0 --models epoll --clients 4 --runs 3 --duration 100ms \
         --warm-up 0s --control none --no-ceiling --probes none --latency-at none -o {}",
        &[path],
    );
    let text = reported(&mut with_cluster("lost-in-second", 2, &words), 4);
    assert!(text.contains("(rank 1): it was lost"), "{text}");
    assert!(text.contains("--resume"), "{text}");
    assert_eq!(ending(&output), Ending::HostLost);
    let again = ["run", "--allow-rough", "--resume", path];
    let text = reported(&mut with_cluster("none", 3, &again), 2);
    assert!(
        text.contains("has 2 client hosts, and this job has 3"),
        "{text}"
    );
    let text = reported(Command::new(THRONG).args(again), 2);
    assert!(
        text.contains("continue with as many, using throng-mpi"),
        "{text}"
    );
    reported(&mut with_cluster("none", 2, &again), 0);
    assert_eq!(ending(&output), Ending::Complete);
    let trials = throng::record::read_trials(&output).unwrap();
    let failed = trials.iter().map(|trial| trial.failure.is_some());
    assert_eq!(failed.collect::<Vec<_>>(), [false, true, false]);
}

fn ending(directory: &Path) -> Ending {
    throng::record::read(directory).expect("a record").ending
}

pub(super) fn what_client_hosts_could_not_do_is_refused() {
    let refused = |words: &[&str]| {
        let mut words = words.to_vec();
        words.insert(0, "run");
        reported(&mut with_cluster("none", 2, &words), 2)
    };
    let text = refused(&["--server-address", "192.0.2.1"]);
    assert!(text.contains("add --allow-remote"), "{text}");
    let text = refused(&["--server-address", "0.0.0.0"]);
    assert!(text.contains("write the one that"), "{text}");
    let text = reported(&mut with_cluster("none", 0, &["run"]), 2);
    assert!(text.contains("no client host"), "{text}");
    let alone = words(
        "run --allow-rough --retries 0 --server-address 127.0.0.1",
        &[],
    );
    let text = reported(Command::new(THRONG).args(alone), 2);
    assert!(text.contains("for clients on several hosts"), "{text}");
    let help = with_cluster(
        "none",
        1,
        &["run", "--allow-rough", "--retries", "0", "--help"],
    )
    .output()
    .unwrap();
    assert!(String::from_utf8_lossy(&help.stdout).contains("--server-address"));
    let help = Command::new(THRONG)
        .args(["run", "--allow-rough", "--retries", "0", "--help"])
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&help.stdout).contains("--server-address"));
}
