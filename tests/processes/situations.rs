//! Real situations in which a tool could be wrong without noticing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::program::THRONG;
use crate::support::runs::number;

/// Bytes of a request.
const SIZE: usize = 100;

/// An echo server that works on one request at a time, over all its clients, for as long as `takes` returns for the
/// time since its start. It ends with the test.
fn one_at_a_time(takes: fn(Duration) -> Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let turn = Arc::new(Mutex::new(()));
        let began = Instant::now();
        for client in listener.incoming().flatten() {
            let turn = Arc::clone(&turn);
            std::thread::spawn(move || answer(client, &turn, began, takes));
        }
    });
    address
}

fn answer(
    mut client: TcpStream,
    turn: &Mutex<()>,
    began: Instant,
    takes: fn(Duration) -> Duration,
) {
    let mut request = [0; SIZE];
    let _ = client.set_nodelay(true);
    while client.read_exact(&mut request).is_ok() {
        let turn = turn.lock().expect("nobody panics with it");
        std::thread::sleep(takes(began.elapsed()));
        drop(turn);
        if client.write_all(&request).is_err() {
            return;
        }
    }
}

fn throng(arguments: &str) -> Output {
    let output = Command::new(THRONG)
        .args(arguments.split_whitespace())
        .output()
        .expect("the program can be started");
    assert!(output.status.success(), "{arguments}: {output:?}");
    output
}

fn json(arguments: &str) -> Value {
    serde_json::from_slice(&throng(arguments).stdout).expect("JSON")
}

#[test]
fn a_server_too_slow_for_a_rate_shows_in_response_time_far_above_service_time() {
    let address = one_at_a_time(|_| Duration::from_millis(4));
    let load = json(&format!(
        "load {address} --size {SIZE} --clients 2 --rate 1000 --duration 1s --warm-up 0s --json"
    ));
    let service = number(&load["service_time"]["p50_us"]);
    let response = number(&load["open_loop"]["response_time"]["p50_us"]);
    assert!(
        response > 5.0 * service,
        "response time {response} µs, service time {service} µs"
    );
}

#[test]
fn a_rate_that_no_client_was_free_for_is_reported() {
    let address = one_at_a_time(|_| Duration::from_millis(4));
    let output = throng(&format!(
        "load {address} --size {SIZE} --clients 2 --rate 1000 --duration 500ms --warm-up 0s"
    ));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("overloaded:"), "{text}");
}

#[test]
fn a_server_that_grows_slower_is_unsteady() {
    // The rate falls evenly from 500 to 100 a second.
    let slower = |since: Duration| {
        Duration::from_millis(2).div_f64(1.0 - 0.4 * since.as_secs_f64().min(2.0))
    };
    // What else the machine does may hide it once.
    let is_seen = (0..15).any(|_| {
        let address = one_at_a_time(slower);
        let output = throng(&format!(
            "load {address} --size {SIZE} --clients 4 --duration 2s --warm-up 0s"
        ));
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("unsteady:")
    });
    assert!(is_seen);
}

#[test]
fn a_warm_up_is_as_long_as_asked_or_until_the_rate_is_level() {
    let address = one_at_a_time(|_| Duration::from_micros(200));
    let of = |more: &str| {
        let load = json(&format!(
            "load {address} --size {SIZE} --clients 4 --duration 100ms --warm-up 100ms --json {more}"
        ));
        load["warm_up"].clone()
    };
    let level = of("");
    assert!(number(&level["took_s"]) >= 0.1, "{level}");
    assert!(of("--rate 200").is_null(), "the clients set the rate");
    assert!(of("--warm-up-limit 1ms").is_null(), "no longer than asked");
}

/// One server under one load, measured without checks.
fn row(model: &str, more: &str) -> Value {
    row_of_any_load(
        model,
        &format!("--duration 300ms --warm-up 50ms --warm-up-limit 50ms {more}"),
    )
}

fn row_of_any_load(model: &str, load: &str) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record");
    let summary = json(&format!(
        "run --allow-rough --retries 0 --models {model} --runs 1 --control none --probes cpu,memory --json -o {} \
         {load}",
        record.display()
    ));
    summary["rows"][0].clone()
}

#[test]
fn the_memory_of_forked_children_is_shared_out_and_not_summed() {
    let fork = row("fork", "--clients 60 --no-ceiling");
    let of = |row: &Value, metric: &str| number(&row["metrics"][metric]["value"]);
    assert!(of(&fork, "server_processes") >= 61.0, "{fork}");
    let single = row("epoll", "--clients 60 --no-ceiling");
    let alone = of(&single, "server_pss_bytes");
    // Resident sizes would add up to 61 times that of one process.
    let all = of(&fork, "server_pss_bytes");
    assert!(all > alone && all < 30.0 * alone, "{all} and {alone} bytes");
}

/// Regression: short-lived clients had left when memory was read, and a process per client showed as one.
#[test]
fn memory_of_short_lived_clients_is_that_of_their_peak() {
    // Each is connected for as long as it thinks.
    let more = "--clients 300 --each 1 --think 4s --no-ceiling";
    let fork = row_of_any_load("fork", more);
    let of = |metric: &str| number(&fork["metrics"][metric]["value"]);
    assert!(of("server_processes") >= 150.0, "{fork}");
    assert!(of("server_threads") >= of("server_processes"), "{fork}");
    assert!(
        (100.0..=300.0).contains(&of("server_pss_clients")),
        "{fork}"
    );
    let children = of("server_pss_bytes") / of("server_parent_rss_bytes");
    assert!(children > 1.0, "{fork}");
}

#[test]
fn cpu_time_of_ended_children_counts() {
    // A child per request, gone when it is answered.
    let more = "--protocol upload --size 100kB --clients 4 --no-ceiling";
    let cost = |model| number(&row(model, more)["metrics"]["server_cpu_us_per_request"]["value"]);
    let (fork, epoll) = (cost("fork"), cost("epoll"));
    assert!(fork > epoll, "{fork} and {epoll} µs a request");
}

#[test]
fn rates_near_what_clients_can_reach_are_not_ranked() {
    // It is the very server that the ceiling is measured against.
    let directory = tempfile::tempdir().unwrap();
    let summary = json(&format!(
        "run --allow-rough --retries 0 --models epoll-et,epoll --clients 20 --runs 2 --duration 300ms --warm-up 50ms \
         --warm-up-limit 50ms --probes cpu --json -o {}",
        directory.path().join("record").display()
    ));
    let reachable = number(&summary["checks"][0]["ceiling"]["reachable_per_s"]);
    let report = std::fs::read_to_string(directory.path().join("record/report.md")).unwrap();
    let withheld = report.contains("the load generator was the limit");
    let rows = summary["rows"].as_array().unwrap();
    let near = rows
        .iter()
        .any(|row| number(&row["metrics"]["requests_per_s"]["value"]) >= 0.8 * reachable);
    let full = rows
        .iter()
        .any(|row| row["full"] == "client" || row["full"] == "both");
    assert_eq!(withheld, near || full, "{summary:#}");
    assert!(!(withheld && report.contains("is fastest")), "{report}");
}
