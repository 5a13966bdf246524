//! Clients with a job each: both sides count the same, however many are there at once.

use std::path::Path;

use serde_json::{Value, json};

use super::throng;
use crate::support::load::engines;
use crate::support::program::words;
use crate::support::server::Server;

/// The result of a load with these options, and what its server counted.
fn load(server: &[&str], options: &str) -> (Value, Value) {
    let server = Server::start(server).expect("it can be started");
    let address = server.address().to_string();
    let options: Vec<&str> = options.split_whitespace().collect();
    let finished = throng(&[&["load", &address, "--json"], &options[..]].concat());
    let result = finished.json();
    assert_eq!(finished.code, 0, "{finished:?}");
    (result, server.stop().expect("it ends well"))
}

fn jobs<'a>(result: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    let jobs = &result["completion"];
    names.iter().map(|name| &jobs[*name]).collect()
}

/// When clients were done, of those that were.
fn done_at_us(csv: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(csv).expect("it was written");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let column = header.iter().position(|name| *name == "done_at_us");
    let column = column.expect("the column is there");
    lines.filter_map(|line| line[column].parse().ok()).collect()
}

#[test]
fn the_counts_of_both_sides_balance() {
    let scratch = tempfile::tempdir().unwrap();
    let csv = scratch.path().join("clients.csv");
    for engine in engines() {
        let file = csv.display();
        let options =
            format!("-c 2000 --each 3 --at-once 100 --engine {engine} --clients-csv {file}");
        let (result, counts) = load(&["epoll"], &options);
        assert_eq!(result["stopped_by"], "clients", "{result}");
        assert_eq!(result["errors"], json!({}), "{result}");
        let names = ["clients_done", "failed", "unfinished", "at_once"];
        assert_eq!(jobs(&result, &names), [2000, 0, 0, 100], "{result}");
        for name in ["clients", "connected", "served", "connections"] {
            assert_eq!(result[name], 2000, "{name}: {result}");
        }
        for count in [
            &result["requests"],
            &result["verified"],
            &counts["requests"],
        ] {
            assert_eq!(*count, 6000, "{result} {counts}");
        }
        assert_eq!(result["window"]["replies"], 6000, "{result}");
        assert_eq!(counts["accepted"], 2000, "{counts}");
        // When it is stopped, it may not have seen yet that the last clients have left.
        let left = ["client-closed", "drained"].map(|how| counts["outcomes"][how].as_u64());
        assert_eq!(left.into_iter().flatten().sum::<u64>(), 2000, "{counts}");
        let completion = &result["completion"];
        assert_eq!(completion["job_time"]["count"], 2000, "{result}");
        let seconds = |value: &Value| value.as_f64().expect("it is a time");
        let rest = seconds(&result["window"]["duration_s"]) - seconds(&completion["last_done_s"]);
        assert!((0.0..1e-6).contains(&rest), "{result}");
        assert_eq!(result["fairness"], Value::Null, "each got what it came for");
        let done = done_at_us(&csv);
        assert_eq!(done.len(), 2000, "all are done");
        let last = done.into_iter().fold(0.0, f64::max);
        let apart = last - seconds(&completion["last_done_s"]) * 1e6;
        assert!(apart.abs() < 1.0, "{apart} µs: {result}");
    }
}

#[test]
fn uploads_of_several_sizes_are_one_connection_each() {
    for model in ["epoll", "thread", "polling"] {
        let options = "--protocol upload --size 1kB:2,100kB:1,1MB:1 -c 60 --each 1";
        let (result, counts) = load(&[model, "--protocol", "upload"], options);
        assert_eq!(
            jobs(&result, &["clients_done", "failed"]),
            [60, 0],
            "{result}"
        );
        assert_eq!(counts["accepted"], 60, "{counts}");
        assert_eq!(counts["outcomes"]["server-closed"], 60, "{counts}");
        assert_eq!(
            counts["bytes_in"], result["window"]["bytes_sent"],
            "{counts}"
        );
        // The largest are a quarter, and which client has which is reported by its number.
        assert!(counts["bytes_in"].as_u64() > Some(10_000_000), "{counts}");
    }
}

#[test]
fn a_client_may_have_a_connection_a_request() {
    let options = "-c 20 --each 4 --requests-per-connection 1 --think 1ms";
    let (result, counts) = load(&["thread"], options);
    assert_eq!(result["completion"]["clients_done"], 20, "{result}");
    assert_eq!(
        (&result["connections"], &counts["accepted"]),
        (&json!(80), &json!(80))
    );
    assert_eq!(result["completion"]["think_s_mean"], 0.001, "{result}");
    let least = result["completion"]["job_time"]["min_us"].as_f64();
    assert!(least >= Some(4000.0), "{result}");
}

#[test]
fn unfinished_jobs_are_counted() {
    let (result, _) = load(&["epoll"], "-c 5 --each 4000000 --time-limit 200ms");
    assert_eq!(result["stopped_by"], "time-limit", "{result}");
    assert_eq!(
        jobs(&result, &["clients_done", "unfinished"]),
        [0, 5],
        "{result}"
    );
    assert_eq!(result["completion"]["last_done_s"], Value::Null, "{result}");
    assert_eq!(result["served"], 5, "{result}");
}

#[test]
fn background_clients_are_separate() {
    let options = "-c 5 --each 100 --think 2ms --probe-clients 2 --probe-rate 200";
    let (result, counts) = load(&["epoll"], options);
    assert_eq!(result["completion"]["clients_done"], 5, "{result}");
    assert_eq!(result["verified"], 500, "{result}");
    assert_eq!(result["probe"]["clients"], 2, "{result}");
    assert!(counts["requests"].as_u64() > Some(500), "{counts}");
}

#[test]
fn options_that_conflict_with_jobs_are_refused() {
    let refused = |options: &str, says: &[&str]| {
        let options: Vec<&str> = options.split_whitespace().collect();
        let finished = throng(&[&["load", "127.0.0.1:9"], &options[..]].concat());
        finished.is_usage_error(says);
    };
    for other in [
        "--duration 1s",
        "--requests 100",
        "--bytes 100",
        "--warm-up 1s",
        "--eager",
        "--rate 10",
    ] {
        let name = other.split(' ').next().unwrap();
        refused(
            &format!("--each 1 {other}"),
            &["--requests-per-client", name],
        );
    }
    refused("--at-once 5", &["--requests-per-client"]);
    refused("--time-limit 5s", &["--requests-per-client"]);
    refused("--live 1s --duration 1s", &["--live", "--duration"]);
    refused("--live 1s --rate 10", &["--live", "--rate"]);
    refused("--live 0s", &["0s"]);
    refused("--each 0", &["at least 1"]);
    refused("--each 1 --at-once 0", &["at least 1"]);
    let run = words(
        "run --allow-rough --retries 0 --models epoll --each 1 --duration 1s",
        &[],
    );
    throng(&run).is_usage_error(&["--each", "--duration", "--time-limit"]);
    let compare = words(
        "compare --allow-rough --retries 0 epoll poll --each 1 --warm-up 1s",
        &[],
    );
    throng(&compare).is_usage_error(&["--each", "--warm-up", "--time-limit"]);
}
