//! A run from its command line to its record.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use throng::measure::probes;
use throng::record::{self, SCHEMA_VERSION, StoreError};
use throng::registry::Entry as _;

use crate::support::program::THRONG;
use crate::support::runs::{
    VERIFICATION_REQUESTS, checked_run, finish, json as read_json, text, throng_run, trial_lines,
};
use crate::support::schemas::Schemas;

#[test]
fn a_record_is_as_described_and_both_sides_agree() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut command = throng_run(directory, "200ms");
    command.args(["--models", "epoll,thread,iterative", "--clients", "2,20"]);
    command.args(["--runs", "1", "--seed", "7", "--json"]);
    finish(command);

    let schemas = Schemas::read();
    let run = read_json(&directory.join("run.json"));
    schemas.check("run", &run);
    assert_eq!(run["ending"], "complete");
    assert_eq!(run["trials_planned"], 6);
    let lines = trial_lines(directory);
    assert_eq!(lines.len(), 6);
    for line in &lines {
        schemas.check("trial", line);
        assert!(line["failure"].is_null(), "{line:#}");
        sides_agree(line);
        files_agree(directory, line);
    }
    // What was read is what was written.
    let trials = record::read_trials(directory).unwrap();
    let again: Vec<Value> = trials.iter().map(|trial| json!(trial)).collect();
    assert_eq!(again, lines);
    assert_eq!(json!(record::read(directory).unwrap()), run);
}

#[test]
fn events_are_counted_in_the_requested_number_of_trials() {
    let mut kinds = probes::PROBES.iter();
    let syscalls = kinds.find(|kind| kind.info.name == "syscalls").unwrap();
    if let Err(why) = syscalls.supported() {
        println!("not tried: {}", why.reason);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut command = throng_run(directory, "50ms");
    command.args(["--models", "epoll,poll", "--clients", "2", "--runs", "1"]);
    command.args(["--probes", "syscalls", "--profiled-runs", "3"]);
    finish(command);
    let run = read_json(&directory.join("run.json"));
    Schemas::read().check("run", &run);
    assert_eq!(run["settings"]["profiled_runs"], 3);
    let lines = trial_lines(directory);
    let rounds = |server: &str| -> Vec<u64> {
        let counted = lines
            .iter()
            .filter(|line| line["purpose"] == "profiled" && line["server"] == server);
        counted
            .map(|line| line["round"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(
        (rounds("epoll"), rounds("poll")),
        (vec![0, 1, 2], vec![0, 1, 2])
    );
}

#[test]
fn a_server_is_its_own_control_and_the_clients_have_a_ceiling() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut command = checked_run(directory, "50ms");
    command.args(["--models", "thread,poll", "--control", "poll"]);
    command.args(["--clients", "5", "--runs", "2", "--probes", "cpu"]);
    command.arg("--json");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");

    let schemas = Schemas::read();
    schemas.check("run", &read_json(&directory.join("run.json")));
    let trials = trial_lines(directory);
    let of = |purpose: &str| -> Vec<&Value> {
        trials
            .iter()
            .filter(|trial| trial["purpose"] == purpose)
            .collect()
    };
    assert_eq!(of("timed").len(), 4);
    for control in of("control") {
        schemas.check("trial", control);
        assert_eq!(control["server"], "poll");
    }
    for trial in of("ceiling") {
        schemas.check("trial", trial);
        assert!(trial["server_side"]["metrics"]["cpu_ms"].is_number());
        assert!(trial["spin"]["client_after_ns"].as_f64() > Some(0.0));
    }
    assert_eq!((of("control").len(), of("ceiling").len()), (2, 2));
    assert_eq!(trials.len(), 8);

    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Neither is a row of its own, and both are checks.
    assert_eq!(summary["rows"].as_array().unwrap().len(), 2);
    let checks = &summary["checks"][0];
    assert_eq!(checks["control"]["server"], "poll");
    // Other programs can take the CPU from a trial, which then counts for nothing.
    let spoilt = trials.iter().any(is_invalid);
    for ratio in ["rate_ratio", "cost_ratio"] {
        let value = checks["control"][ratio]["value"].as_f64();
        assert!(value > Some(0.0) || (value.is_none() && spoilt), "{checks}");
    }
    let ceiling = &checks["ceiling"];
    assert!(ceiling["reachable_per_s"].as_f64() >= ceiling["requests_per_s"].as_f64());
}

/// All that clients with a job each do counts, and a table of one's own is enough for the server.
#[test]
fn clients_with_a_job_each_are_recorded_with_their_end() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut command = std::process::Command::new(THRONG);
    command.args("run --allow-rough --retries 0 --models thread,poll --control none -o".split(' '));
    command.arg(directory);
    command.args("--clients 5,50 --runs 1 --each 2 --at-once 10".split(' '));
    command.args(["--think", "1ms", "--no-ceiling", "--json"]);
    command.args(["--probes", "cpu,memory,accept-queue,established"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");

    let schemas = Schemas::read();
    schemas.check("run", &read_json(&directory.join("run.json")));
    for trial in trial_lines(directory) {
        schemas.check("trial", &trial);
        let (load, clients) = (&trial["load"], &trial["clients"]);
        let jobs = &load["completion"];
        assert_eq!(jobs["clients_done"], *clients, "{trial}");
        assert_eq!(load["requests"].as_u64(), clients.as_u64().map(|n| 2 * n));
        assert!(jobs["think_s_mean"].as_f64() > Some(0.0009), "{trial}");
        // The connection by which it was verified is the server's alone.
        let accepted = trial["server_counts"]["accepted"].as_u64();
        assert!(accepted > clients.as_u64(), "{trial}");
        assert!(
            trial["server_side"]["metrics"]["cpu_ms"].is_number(),
            "{trial}"
        );
        let kinds: Vec<&Value> = trial["findings"].as_array().into_iter().flatten().collect();
        assert!(
            !kinds.iter().any(|warning| warning["kind"] == "unsteady"),
            "{trial}"
        );
    }
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert!(row["metrics"]["completion_s"]["value"].as_f64() > Some(0.0));
        assert_eq!(row["served_all"], true, "{row}");
    }
    assert_eq!(summary["first_connect_failures"][0]["none_with"], 50);
    assert!(directory.join("figures/completion.svg").exists());
}

/// Whether a trial must not be used.
fn is_invalid(trial: &Value) -> bool {
    let findings = trial["findings"].as_array().into_iter().flatten();
    findings
        .map(|finding| &finding["severity"])
        .any(|severity| severity == "invalid")
}

/// The totals of clients and server, where every request was answered.
fn sides_agree(trial: &Value) {
    let (load, counts) = (&trial["load"], &trial["server_counts"]);
    let number = |value: &Value| value.as_u64().expect("a count");
    let (requests, verified) = (number(&load["requests"]), number(&load["verified"]));
    let counted = number(&counts["requests"]) - VERIFICATION_REQUESTS;
    if trial["server"] == "iterative" {
        // Clients that it never accepted had sent requests too, and it may still have answered some of them after they
        // had gone.
        assert_eq!(load["served"], 1, "{trial:#}");
        assert_eq!(number(&load["never_served"]), number(&load["clients"]) - 1);
        assert!((verified..=requests).contains(&counted), "{trial:#}");
    } else {
        assert_eq!(load["served"], load["clients"], "{trial:#}");
        assert_eq!((verified, counted), (requests, requests), "{trial:#}");
        assert_eq!(
            number(&counts["accepted"]),
            number(&load["clients"]) + 1,
            "{trial:#}"
        );
        assert_eq!(
            counts["bytes_in"],
            1000 * (requests + VERIFICATION_REQUESTS),
            "{trial:#}"
        );
    }
    assert!(
        load["errors"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty),
        "{trial:#}"
    );
}

/// The CSV files of a trial: all there, a line a client, each client the same on both sides.
fn files_agree(directory: &Path, trial: &Value) {
    let typed: record::Trial = serde_json::from_value(trial.clone()).expect("a trial");
    let file = |part: &str| text(&directory.join(part).join(typed.file_stem() + ".csv"));
    let samples = file("samples");
    assert_eq!(samples.lines().next(), Some("at_s,side,metric,value"));
    assert!(samples.lines().count() > 1, "{samples}");
    let clients = file("clients");
    let clients = rows(
        &clients,
        "client,worker,source,connected_at_us,connect_us,first_reply_us,done_at_us,connections,requests,\
         replies,window_replies,bytes_sent,bytes_received,errors,error",
    );
    let server = file("server");
    let server = rows(
        &server,
        "client,address,connected_at_us,closed_at_us,requests,bytes_in,bytes_out,worker,outcome",
    );
    assert_eq!(clients.len(), typed.clients as usize);
    let summed: u64 = clients.iter().map(|client| number(client["replies"])).sum();
    assert_eq!(trial["load"]["verified"], summed);
    assert_eq!(trial["server_counts"]["accepted"], server.len());
    if trial["server"] == "iterative" {
        return;
    }
    let by_address: BTreeMap<&str, &BTreeMap<&str, &str>> = server
        .iter()
        .map(|client| (client["address"], client))
        .collect();
    assert_eq!(
        server.len(),
        clients.len() + 1,
        "all clients, and the verification"
    );
    for client in &clients {
        let there = by_address[client["source"]];
        assert_eq!(
            there["requests"], client["requests"],
            "{client:?} {there:?}"
        );
        assert_eq!(
            there["bytes_in"], client["bytes_sent"],
            "{client:?} {there:?}"
        );
        assert_eq!(
            there["bytes_out"], client["bytes_received"],
            "{client:?} {there:?}"
        );
        // When it is stopped, a server may not have seen yet that its last clients have left.
        let outcomes = ["client-closed", "drained"];
        assert!(outcomes.contains(&there["outcome"]), "{client:?} {there:?}");
        assert_eq!(client["error"], "", "{client:?}");
    }
}

/// The rows of a CSV file with this header, by column.
fn rows<'a>(csv: &'a str, header: &str) -> Vec<BTreeMap<&'a str, &'a str>> {
    let mut lines = csv.lines();
    let first = lines.next().expect("a header");
    assert_eq!(first, header);
    lines
        .map(|line| first.split(',').zip(line.split(',')).collect())
        .collect()
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

#[test]
fn a_seed_repeats_the_order() {
    let order = |seed: &str| -> Vec<(String, u64)> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = throng_run(directory.path(), "10ms");
        command.args("--models epoll,poll,select --clients 1,2 --runs 1".split(' '));
        command.args(["--seed", seed, "--json"]);
        finish(command);
        let trials = record::read_trials(directory.path()).expect("a record");
        trials
            .into_iter()
            .map(|trial| (trial.server, trial.clients.into()))
            .collect()
    };
    let first = order("1");
    assert_eq!(first.len(), 6);
    assert_eq!(first, order("1"));
    assert_ne!(first, order("2"));
}

/// A record with these two files, whose content does not matter here.
fn record_of(run: &str, trials: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("run.json"), run).expect("a file");
    std::fs::write(directory.path().join("trials.jsonl"), trials).expect("a file");
    directory
}

#[test]
fn a_record_of_a_newer_form_is_refused() {
    let newer = SCHEMA_VERSION + 1;
    let run = format!("{{\"schema_version\": {newer}, \"something_new\": true}}");
    let directory = record_of(&run, "");
    let error = record::read(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::Content { .. }), "{error:?}");
    let command = std::process::Command::new(THRONG)
        .arg("report")
        .arg(directory.path())
        .output();
    let output = command.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let reported = String::from_utf8(output.stderr).unwrap();
    let says = format!(
        "format version {newer}, and this throng reads version {SCHEMA_VERSION}; read it with a newer throng"
    );
    assert!(
        reported.contains(&says) && reported.contains("run.json"),
        "{reported}"
    );
}

const TRIAL: &str = r#"{"index":0,"round":0,"server":"epoll","clients":1,"started_at":"2026-01-01T12:00:00Z","took_s":1.0}"#;

/// The run of a whole record, which bounds its trials.
fn run_of_fuzzing() -> String {
    let whole = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/record/whole");
    let bytes = std::fs::read(whole).expect("it is there");
    let run = bytes.split(|byte| *byte == 0xff).next();
    String::from_utf8(run.unwrap_or_default().to_vec()).expect("it is text")
}

#[test]
fn a_torn_last_line_is_left_out() {
    for length in 0..=TRIAL.len() {
        let torn = &TRIAL[..length];
        let directory = record_of(&run_of_fuzzing(), &format!("{TRIAL}\n{TRIAL}\n{torn}"));
        let trials = record::read_trials(directory.path()).unwrap();
        assert_eq!(trials.len(), 2, "after {length} bytes");
    }
}

#[test]
fn a_last_line_torn_within_a_character_is_left_out() {
    let directory = record_of(&run_of_fuzzing(), &format!("{TRIAL}\n"));
    let path = directory.path().join("trials.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"server\":\"\xc3");
    std::fs::write(path, bytes).unwrap();
    assert_eq!(record::read_trials(directory.path()).unwrap().len(), 1);
}

#[test]
fn a_wrong_line_in_the_middle_is_named() {
    let directory = record_of(
        &run_of_fuzzing(),
        &format!("{TRIAL}\n{{\"index\":1}}\n{TRIAL}\n"),
    );
    let error = record::read_trials(directory.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("trials.jsonl, line 2, column 11: missing field"),
        "{error}"
    );
}
