//! Thresholds, earlier runs to compare with, and what is refused.

use super::compare;
use crate::support::program::{THRONG, words};

#[test]
fn an_earlier_run_is_compared_with_if_it_had_the_same_load() {
    let usual = words("epoll thread -r 8 --retries 3 -d 50ms --control none", &[]);
    let earlier = compare(&usual);
    assert_eq!(earlier.code, 0, "{}", earlier.err);
    let record = earlier.record();
    let baseline = ["--baseline", record.to_str().expect("the path is UTF-8")];
    let with = |more: &[&str]| compare(&[&baseline[..], more].concat());
    let ran = with(&[&usual[2..], &["epoll", "--fail-if-slower", "99%"]].concat());
    let judged = !earlier.has_too_few_trials() && !ran.has_too_few_trials();
    assert_eq!(ran.code == 0, judged, "{} {}", ran.out, ran.err);
    let text = ran.out.replace('\n', " ");
    assert!(text.contains("not interleaved with this run"), "{text}");
    let summary = ran.summary();
    let pairs = summary["comparison"]["baseline"]["pairs"].as_array();
    assert_eq!(pairs.map(Vec::len), Some(1), "{summary:#}");
    // The record does not need the earlier one.
    drop(earlier);
    let again = assert_cmd::Command::new(THRONG)
        .args(["report", "--json"])
        .arg(ran.record())
        .output()
        .expect("it can be started");
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(again["comparison"], summary["comparison"]);

    let record = ran.record();
    let baseline = ["--baseline", record.to_str().expect("the path is UTF-8")];
    let with = |more: &[&str]| compare(&[&baseline[..], more].concat());
    for (arguments, says) in [
        (
            &["epoll", "-d", "200ms"][..],
            "duration 50ms, and now 200ms",
        ),
        (
            &["epoll", "-d", "50ms", "--size", "10"],
            "size 1000, and now 10",
        ),
        (
            &["epoll", "-d", "50ms", "--rate", "9"],
            "rate none, and now 9",
        ),
        (
            &["thread", "-d", "50ms"],
            "no server of the same name, only epoll",
        ),
    ] {
        with(arguments).is_usage_error(says);
    }
    compare(&["epoll", "--baseline", "/nonexistent"]).is_usage_error("/nonexistent does not exist");
}

#[test]
fn one_server_is_measured_without_a_ratio() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record");
    let mut command = assert_cmd::Command::new(THRONG);
    command
        .args("measure epoll -r 2 -d 100ms --probes cpu --allow-rough --retries 0 -o".split(' '));
    let output = command.arg(&record).output().expect("it can be started");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains("How does epoll serve this load"),
        "{printed}"
    );
    assert!(
        printed.contains("Requests/s") && !printed.contains("Ratio"),
        "{printed}"
    );
    assert!(record.join("report.html").exists());
}

#[test]
fn a_threshold_that_is_missed_has_an_exit_code_of_its_own() {
    let quick = ["epoll", "-r", "2", "-d", "100ms"];
    let with = |more: &[&str]| compare(&[&quick[..], more].concat());
    let ran = with(&[
        "--fail-if",
        "p50 > 1ns",
        "--fail-if",
        "errors > 0",
        "--fail-if",
        "p99.9 < 1h",
    ]);
    ran.is_usage_error("`h` is not a unit of this metric");
    let ran = with(&["--fail-if", "p50 > 1ns", "--fail-if", "errors > 0"]);
    assert_eq!(ran.code, 3, "{} {}", ran.out, ran.err);
    let demands = ran.summary()["thresholds"].clone();
    assert_eq!(
        (&demands[0]["missed"], &demands[1]["missed"]),
        (&true.into(), &false.into())
    );
    // What was not measured cannot be judged, and is not passed over.
    let ran = with(&["--fail-if", "response_p50 > 3600s"]);
    assert_eq!(ran.code, 3, "{} {}", ran.out, ran.err);
    let printed: Vec<&str> = ran.out.split_whitespace().collect();
    let printed = printed.join(" ");
    assert!(
        printed.contains("was not measured, so the condition cannot be checked"),
        "{printed}"
    );
}
