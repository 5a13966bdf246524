//! More clients than one descriptor table and one pair of addresses hold.

use std::collections::BTreeMap;

use rustix::process::{Resource, getrlimit};
use serde_json::Value;

use super::{throng, throng_in_shell};
use crate::support::server::Server;

/// Runs a load with so many descriptors a table; all its clients are served, and the server counts what
/// it counts.
fn all_are_served(server: Server, limit: u64, clients: u64, options: &[&str]) -> Value {
    let (address, count) = (server.address().to_string(), clients.to_string());
    let always = ["--clients", &count, "--json", "--warm-up", "1ms"];
    let patient = ["--first-reply-timeout", "20s", "--connect-timeout", "30s"];
    let arguments = [&["load", &address], &always[..], &patient, options].concat();
    let finished = throng_in_shell(&format!("ulimit -n {limit}; exec \"$@\""), &arguments);
    let result = finished.json();
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(result["errors"], serde_json::json!({}), "{result}");
    assert_eq!(result["served"], clients, "{result}");
    let counts = server.stop().expect("it ends in time");
    assert_eq!(counts["requests"], result["requests"], "{counts}");
    assert_eq!(counts["peak_open"], clients, "{counts}");
    assert_eq!(counts["outcomes"]["open"], Value::Null, "{counts}");
    result
}

#[test]
fn threads_take_a_descriptor_table_each_when_one_is_too_small() {
    let server = Server::start(&["epoll"]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("clients.csv");
    let options = [
        // More threads could do without more tables.
        "--threads",
        "1",
        "--duration",
        "200ms",
        "--source",
        "127.0.5.0/30,127.0.6.9",
        "--clients-csv",
        csv.to_str().unwrap(),
    ];
    let result = all_are_served(server, 256, 1000, &options);
    assert_eq!(result["threads"], 5, "{result}");
    let csv = std::fs::read_to_string(csv).unwrap();
    let mut sources = BTreeMap::new();
    for line in csv.lines().skip(1) {
        let (source, _) = line.split(',').nth(2).unwrap().split_once(':').unwrap();
        *sources.entry(source).or_insert(0) += 1;
    }
    let even = [("127.0.5.1", 334), ("127.0.5.2", 333), ("127.0.6.9", 333)];
    assert_eq!(sources, BTreeMap::from(even));
}

#[test]
fn more_clients_than_a_descriptor_table_and_the_ports_of_a_pair() {
    const CLIENTS: u64 = 25_000;
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20);
    if limit < 2000 {
        println!("not tried: {limit} descriptors are too few for a server of {CLIENTS} clients");
        return;
    }
    // The kernel deals clients out by a hash, so each loop gets room for a quarter more.
    let loops = (CLIENTS * 5 / 4).div_ceil(limit - 200).max(2).to_string();
    let arguments = ["reactors", "--own-descriptors", "--workers", &loops];
    let server = Server::start(&arguments).unwrap();
    let limit = limit.min(10_000);
    let options = ["--threads", "1", "--duration", "1s"];
    let result = all_are_served(server, limit, CLIENTS, &options);
    let threads = CLIENTS.div_ceil(limit - 32);
    assert_eq!(result["threads"], threads, "{result}");
}

#[test]
fn clients_take_targets_in_turn() {
    let servers = [(); 3].map(|()| Server::start(&["epoll-et"]).unwrap());
    let addresses = servers
        .each_ref()
        .map(|server| server.address().to_string());
    let addresses = addresses.each_ref().map(String::as_str);
    let arguments = [
        &["load"],
        &addresses[..],
        &["-c", "10", "-n", "10", "--json"],
    ];
    let finished = throng(&arguments.concat());
    assert_eq!(finished.json()["served"], 10, "{finished:?}");
    let accepted = servers.map(|server| server.stop().unwrap()["accepted"].as_u64().unwrap());
    assert_eq!(accepted, [4, 3, 3]);
}

/// Were a socket of one thread open in the table of another too, its server would wait forever for the client to close.
#[test]
fn connections_end_though_other_threads_go_on() {
    let server = Server::start(&["epoll", "--protocol", "upload"]).unwrap();
    let address = server.address().to_string();
    let options = "--protocol upload --clients 100 -n 1000 --threads 1";
    let mut arguments = vec!["load", &address, "--json"];
    arguments.extend(options.split(' '));
    let finished = throng_in_shell("ulimit -n 64; exec \"$@\"", &arguments);
    let result = finished.json();
    assert_eq!(result["verified"], 1000, "{result}");
    assert_eq!(result["threads"], 4, "{result}");
    let counts = server.stop().unwrap();
    assert_eq!(counts["outcomes"]["server-closed"], 1000, "{counts}");
}

#[test]
fn sources_that_cannot_be_are_reported() {
    let load = |options: &[&str]| throng(&[&["load", "127.0.0.1:1"], options].concat());
    load(&["--source", "192.0.2.1"]).is_usage_error(&["cannot connect from 192.0.2.1"]);
    load(&["--source", "::1"]).is_usage_error(&["needs a source address of IPv4"]);
    let many = throng(&["load", "[::1]:1", "--clients", "65536"]);
    many.is_usage_error(&["65536 clients need a local port each", "--source"]);
}
