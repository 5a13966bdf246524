//! Options about connections, ends and reports of many clients, on every engine.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Finished, throng};
use crate::hostile::servers::{Hostile, echo_once};
use crate::support::load::engines;
use crate::support::program::THRONG;
use crate::support::runs::count;
use crate::support::server::Server;

/// The result of a load with these options; its server, which has ended, counted the same.
fn load(options: &[&str]) -> (Finished, Value) {
    let server = Server::start(&["epoll"]).expect("it can be started");
    let address = server.address().to_string();
    let finished = throng(&[&["load", &address, "--json", "-c", "20"], options].concat());
    let result = finished.json();
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(result["errors"], serde_json::json!({}), "{result}");
    let counts = server.stop().expect("it ends well");
    assert_eq!(counts["requests"], result["requests"], "{result}");
    assert_eq!(counts["accepted"], result["connections"], "{result}");
    (finished, result)
}

#[test]
fn engines_do_the_same() {
    for engine in engines() {
        let all = [
            &["--engine", engine, "-n", "1000"][..],
            &["--engine", engine, "-n", "1000", "--pipeline", "8"],
            &["--engine", engine, "-n", "1000", "--size", "100kB:1,10B:3"],
        ];
        for options in all {
            let mixed = options.contains(&"--size");
            let server = Server::start(&["epoll-et"]).expect("it can be started");
            let address = server.address().to_string();
            let finished = throng(&[&["load", &address, "--json", "-c", "20"], options].concat());
            let result = finished.json();
            assert_eq!(result["verified"], 1000, "{result}");
            assert_eq!(result["engine"], engine, "{result}");
            let counts = server.stop().expect("it ends well");
            let sent = count(&result["window"]["bytes_sent"]);
            assert_eq!(counts["bytes_in"], sent, "{options:?}: {result}");
            assert_eq!(counts["requests"] == 1000, !mixed, "{options:?}: {counts}");
        }
    }
}

#[test]
fn a_connection_ends_after_its_requests() {
    for engine in engines() {
        for close in ["orderly", "reset"] {
            let options = ["--engine", engine, "-n", "1000", "--close", close];
            let (_, result) = load(&[&options[..], &["--requests-per-connection", "7"]].concat());
            // 50 requests of each client, over 8 connections.
            assert_eq!(result["connections"], 160, "{result}");
            assert_eq!(result["verified"], 1000, "{result}");
        }
    }
}

#[test]
fn a_connection_ends_after_its_lifetime() {
    let (_, result) = load(&["-d", "600ms", "--warm-up", "0s", "--lifetime", "100ms"]);
    // Some reconnect, even on a busy machine.
    assert!(count(&result["connections"]) > 20, "{result}");
    assert_eq!(result["served"], 20, "{result}");
}

#[test]
fn clients_come_at_their_rate() {
    let (_, result) = load(&["-d", "50ms", "--warm-up", "0s", "--ramp", "400ms"]);
    assert_eq!(result["served"], 20, "{result}");
    let (_, result) = load(&["-n", "20", "--connect-rate", "50"]);
    // The last one comes 380 ms after the first.
    let took = result["window"]["duration_s"].as_f64();
    assert!(took >= Some(0.38), "{result}");
}

#[test]
fn a_load_may_end_after_so_many_bytes() {
    let (_, result) = load(&["--bytes", "3000000"]);
    assert_eq!(result["stopped_by"], "bytes", "{result}");
    let window = &result["window"];
    let bytes = count(&window["bytes_sent"]) + count(&window["bytes_received"]);
    assert!(bytes >= 2_900_000, "{result}");
    assert_eq!(result["verified"], result["requests"], "{result}");
}

#[test]
fn an_interrupt_leaves_the_result_so_far() {
    const CLIENTS: u64 = 5;
    let answered = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&answered);
    let server = Hostile::start(move |_, mut stream| {
        loop {
            echo_once(&mut stream)?;
            counted.fetch_add(1, Relaxed);
        }
    });
    let address = server.address.to_string();
    let mut command = Command::new(THRONG);
    command.args(["load", &address, "--json", "-c", &CLIENTS.to_string()]);
    command.args(["-d", "600s", "--warm-up", "0s"]);
    let mut load = command.stdout(Stdio::piped()).spawn().unwrap();
    // Each sends again after all have had a first reply, and that counts.
    while answered.load(Relaxed) < 3 * CLIENTS {
        assert!(load.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&load), Signal::INT).unwrap();
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["stopped_by"], "interrupted", "{result}");
    assert!(count(&result["window"]["replies"]) > 0, "{result}");
    assert_eq!(result["verified"], result["requests"], "{result}");
}

#[test]
fn background_clients_are_reported_separately() {
    let server = Server::start(&["epoll"]).expect("it can be started");
    let address = server.address().to_string();
    let options = ["--probe-clients", "3", "--probe-rate", "100", "-d", "1s"];
    let finished = throng(&[&["load", &address, "--json", "-c", "20"], &options[..]].concat());
    let result = finished.json();
    let probe = &result["probe"];
    assert_eq!(probe["clients"], 3, "{result}");
    assert_eq!(result["served"], 20, "{result}");
    assert_eq!(
        probe["response_time"]["count"], probe["due"],
        "all that came due are in it: {result}"
    );
    assert!(count(&probe["due"]) > 100, "{result}");
    assert_eq!(server.stop().expect("it ends well")["accepted"], 23);
}

#[test]
fn a_ceiling_is_measured_against_a_server_of_our_own() {
    for engine in engines() {
        let (_, result) = load(&["--engine", engine, "-d", "200ms", "--calibrate"]);
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        let (ceiling, rate) = (&result["ceiling"], &result["window"]["replies_per_s"]);
        let most = number(&ceiling["replies_per_s"]);
        assert!(most > 0.0, "{result}");
        let off = number(&ceiling["share"]) * most - number(rate);
        assert!(off.abs() < 1.0, "{result}");
        assert!(result["cpu_s"].as_f64() > Some(0.0), "{result}");
    }
    let send = ["--send", "x", "--expect", "bytes:1", "--calibrate"];
    let finished = throng(&[&["load", "127.0.0.1:9"], &send[..]].concat());
    finished.is_usage_error(&["--calibrate", "--send"]);
}

#[test]
fn errors_have_their_first_time() {
    let finished = throng(&["load", "127.0.0.1:9", "--json", "-c", "3", "-d", "200ms"]);
    let result = finished.json();
    assert_eq!(finished.code, 1, "{finished:?}");
    for (kind, _) in result["errors"].as_object().expect("kinds") {
        let began = result["errors_first_s"][kind].as_f64();
        assert!(began >= Some(0.0), "{result}");
    }
    assert!(result["errors"]["refused"].is_u64(), "{result}");
}
