//! The values that a page draws, compared with its record by an independent program.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::program::THRONG;

/// Points of the record below: two servers by throughput, CPU per request, p99 and once more next to the answer.
const POINTS: &str = "8";

#[test]
fn every_drawn_value_is_that_of_the_record_worked_out_again_in_python() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3 here");
        return;
    }
    let records = include_str!("../../../fuzz/corpus/records.json");
    let records: Vec<Value> = serde_json::from_str(records).expect("the corpus is JSON");
    let directory = tempfile::tempdir().expect("a directory");
    let trials = records[0]["trials"].as_array().expect("it has trials");
    let lines: String = trials.iter().map(|trial| format!("{trial}\n")).collect();
    fs::write(directory.path().join("trials.jsonl"), lines).expect("there is room");
    fs::write(
        directory.path().join("run.json"),
        records[0]["run"].to_string(),
    )
    .expect("there is room");
    let mut report = Command::new(THRONG);
    report.arg("report").arg(directory.path());
    let reported = report.output().expect("it runs");
    assert!(reported.status.success(), "{reported:?}");
    let mut check = Command::new("python3");
    check
        .args([
            "-B",
            concat!(env!("CARGO_MANIFEST_DIR"), "/benches/drawn.py"),
        ])
        .arg(directory.path())
        .arg(directory.path().join("report.html"))
        .arg(POINTS);
    let checked = check.output().expect("it runs");
    let printed = String::from_utf8_lossy(&checked.stdout);
    assert!(
        checked.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}
