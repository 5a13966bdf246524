//! Trials with packet capture.

use std::fs;
use std::process::Command;

use crate::support::runs::{VERIFICATION_REQUESTS, finish, json, text, throng_run, trial_lines};
use crate::support::schemas::Schemas;

#[test]
fn packets_agree_with_what_both_sides_counted() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut command = throng_run(directory, "100ms");
    command.args(["--models", "epoll", "--clients", "5", "--runs", "1"]);
    command.args(["--probes", "capture", "--size", "1000", "--json"]);
    finish(command);

    let run = json(&directory.join("run.json"));
    if let Some(missing) = run["unavailable"].get("capture") {
        // A missing tool or right is named, with its remedy.
        let can_capture = Command::new("tcpdump").args(["-i", "lo", "-L"]).output();
        assert!(!can_capture.is_ok_and(|listed| listed.status.success()));
        println!("skipped: {}; {}", missing["reason"], missing["remedy"]);
        return;
    }
    let schemas = Schemas::read();
    let trials = trial_lines(directory);
    assert_eq!(trials.len(), 2, "one that times, one that captures");
    let captured: Vec<_> = trials
        .iter()
        .filter(|trial| trial["purpose"] == "captured")
        .collect();
    let [trial] = captured[..] else {
        panic!("one trial was captured: {trials:#?}")
    };
    schemas.check("trial", trial);
    let network = &trial["network"];
    let figure = |name: &str| network["metrics"][name].as_f64().unwrap();
    assert_eq!(figure("flows") as u64, 5);
    assert_eq!(figure("captured_share") as u64, 1, "few clients");
    assert_eq!(figure("capture_duplicates") as u64, 0);
    assert_eq!(
        json(&directory.join("summary.json"))["rows"][0]["clients"],
        5
    );
    if figure("capture_dropped") as u64 > 0 {
        println!("skipped: this machine is too busy to capture everything");
        return;
    }
    assert_eq!(figure("complete_flows") as u64, 5);
    // Every request and every reply is on the wire, unless something was sent twice.
    let requests = trial["server_counts"]["requests"].as_u64().unwrap() - VERIFICATION_REQUESTS;
    let again = figure("retransmissions_by_client") + figure("retransmissions_by_server");
    let payload = figure("payload_bytes") as u64;
    assert!(payload >= requests * 2 * 1000);
    assert!(again > 0.0 || payload == requests * 2 * 1000);
    let flows = fs::read_dir(directory.join("flows")).unwrap();
    let files: Vec<_> = flows.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(text(&files[0]).lines().count(), 1 + 5);
    assert!(directory.join("figures/flow-throughput.svg").exists());
}
