//! Searches from their settings to their report, also when they are cut short.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use throng::record::{Purpose, SearchEnding};

use super::{limit, record_in};
use crate::support::program::{THRONG, words};

#[test]
fn several_servers_are_searched_in_one_run() {
    let ran = limit(&words(
        "{} iterative --first-reply-timeout 1s -n twenty --json",
        &["epoll --max-clients 20"],
    ));
    let run = ran.run();
    let found = run.limit.expect("it was a search").found;
    let passed: Vec<_> = found
        .iter()
        .map(|found| found.passed.map(|passed| passed.value))
        .collect();
    assert_eq!(passed, [Some(20), Some(1)], "{}", ran.out);
    assert_eq!(
        found[1].cause.as_ref().map(|cause| cause.kind.name),
        Some("design")
    );
    let summary: Value = serde_json::from_str(&ran.out).expect("JSON");
    let headline = summary["answer"]["headline"][0].as_str();
    let expected = "Most clients: twenty 20 (the server rejected clients beyond its --max-clients); iterative 1 (";
    assert!(
        headline.is_some_and(|text| text.starts_with(expected)),
        "{headline:?}"
    );
    assert_eq!(
        summary["limits"]["servers"][0]["cause"]["kind"],
        "max-clients"
    );
    assert_eq!(
        summary["rows"].as_array().map(Vec::len),
        Some(0),
        "nobody is ranked"
    );
    // At half and at 80 % of the limit it is looked at again.
    let below: Vec<u32> = ran
        .trials()
        .into_iter()
        .filter(|trial| trial.purpose == Purpose::Share)
        .map(|trial| trial.clients)
        .collect();
    assert_eq!(below[..2], [10, 16]);
    let page = std::fs::read_to_string(record_in(&ran.directory).join("report.html")).unwrap();
    assert!(page.contains("Most clients: ") && page.contains("limit-served"));
}

#[test]
fn a_search_without_failure_reports_its_end() {
    let ran = limit(&["epoll", "--max", "20"]);
    let found = ran.found();
    assert_eq!(found.ending, SearchEnding::AtLeast);
    assert_eq!(found.cause, None);
    assert!(
        ran.out.contains("handles at least 20 clients"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("--max is 20"), "{}", ran.out);
}

#[test]
fn a_bound_on_any_metric_ends_a_search() {
    let ran = limit(&["epoll", "--until", "first_reply_max > 0.1us"]);
    assert_eq!(ran.found().ending, SearchEnding::Nothing);
    assert!(ran.out.contains("fails even with 1 client"), "{}", ran.out);
    assert!(
        ran.out.contains("first_reply_max > 0.1us (it was"),
        "{}",
        ran.out
    );
}

#[test]
fn an_interrupted_search_resumes() {
    let directory = tempfile::tempdir().unwrap();
    let record = record_in(&directory);
    let options = words(
        "--max-clients 30 --duration 150ms --think 10ms --warm-up 0ms --confirm 1 --probes none",
        &[],
    );
    let server = format!("epoll {} {}", options[0], options[1]);
    let mut command = Command::new(THRONG);
    command
        .args(["limit", &server, "-o"])
        .arg(&record)
        .args(&options[2..]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    // Its first line on standard error comes when the first trial is on disk.
    let stderr = child.stderr.take().expect("it is piped");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
    let first = lines.next().expect("a first line").expect("it is text");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    lines.for_each(drop);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let earlier = throng::record::read_trials(&record).unwrap().len();
    let found = throng::record::read(&record).unwrap().limit.unwrap().found;
    assert_eq!(found[0].ending, SearchEnding::Interrupted);
    assert!(found[0].passed.is_some(), "after `{first}`: {found:?}");
    let output = Command::new(THRONG)
        .args(["limit", "--resume"])
        .arg(&record)
        .output();
    assert!(output.expect("it can be started").status.success());
    let trials = throng::record::read_trials(&record).unwrap();
    assert!(trials.len() > earlier);
    let values: Vec<u64> = trials
        .iter()
        .filter_map(|trial| Some(trial.attempt.as_ref()?.value))
        .collect();
    assert_eq!(values, [16, 32, 30, 31, 30, 31, 15, 24]);
    let found = throng::record::read(&record).unwrap().limit.unwrap().found;
    assert_eq!(found[0].passed.map(|passed| passed.value), Some(30));
}
