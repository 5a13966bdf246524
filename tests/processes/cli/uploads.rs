//! Bulk uploads: few and many clients, of equal and of mixed sizes, within the limit and beyond it.
//! `tests/README.md` lists all cases. Cases with many clients have one in [`PART`] of the clients in their names,
//! and all of them with `THRONG_FULL=1`.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use serde_json::Value;

use super::{Finished, full, throng};
use crate::support::program::THRONG;
use crate::support::server::Server;
use crate::support::sockets;

/// The servers whose uploads are compared. Sets of `select` are larger than the C library's on purpose, since there are
/// more clients.
const SERVERS: [&[&str]; 4] = [
    &["thread"],
    &["aio"],
    &["polling"],
    &["select", "--fd-setsize", "16384"],
];

/// Most bytes of an upload that a server takes.
const LIMIT: usize = 10_000_000;

/// Sizes up to the limit, 0.73 MB per client on average.
const MIXED: &str = "100kB:16,1MB:3,10MB:1";

/// The divisor of the number of clients, to save time.
const PART: u64 = 20;

/// This number of clients, or a part of them.
fn all_clients(clients: u64) -> u64 {
    if full() { clients } else { clients / PART }
}

fn server(options: &[&str]) -> Server {
    let protocol = ["--protocol", "upload"];
    Server::start(&[options, &protocol].concat()).unwrap_or_else(|e| panic!("{options:?}: {e:#}"))
}

fn load(server: &Server, clients: u64, requests: u64, sizes: &str, more: &[&str]) -> Finished {
    let numbers = [clients, requests].map(|number| number.to_string());
    let address = server.address().to_string();
    let asked = ["load", &address, "--protocol", "upload", "--size", sizes];
    // All upload at once, so the first of many megabytes may take long to complete.
    let how = [
        "--first-reply-timeout",
        "60s",
        "--connect-timeout",
        "60s",
        "--json",
    ];
    let many = ["--clients", &numbers[0], "--requests", &numbers[1]];
    throng(&[&asked[..], &how, &many, more].concat())
}

/// Every server takes so many uploads of so many clients whole, both sides count the same bytes, and
/// every size occurs.
fn all_arrive(clients: u64, requests: u64, sizes: &str) {
    let descriptors = getrlimit(Resource::Nofile).maximum;
    if descriptors.is_some_and(|limit| limit < clients + 100) {
        println!("not tried: {clients} clients need more descriptors than this machine allows");
        return;
    }
    let directory = tempfile::tempdir().expect("there is room");
    let csv = directory.path().join("clients.csv");
    for options in SERVERS {
        let server = server(options);
        let log = ["--clients-csv", csv.to_str().expect("it is UTF-8")];
        let finished = load(&server, clients, requests, sizes, &log);
        assert_eq!(finished.code, 0, "{options:?}: {finished:?}");
        let result = finished.json();
        assert_eq!(result["errors"], serde_json::json!({}), "{result}");
        assert_eq!(result["served"], clients, "{options:?}: {result}");
        assert_eq!(result["verified"], requests, "{options:?}: {result}");
        assert_eq!(result["rejected"], Value::Null, "{options:?}: {result}");
        let counts = server.stop().expect("it ends in time");
        assert_eq!(counts["requests"], requests, "{options:?}: {counts}");
        assert_eq!(counts["outcomes"]["server-closed"], requests, "{counts}");
        let sent = bytes_by_client(&std::fs::read_to_string(&csv).expect("it was written"));
        assert_eq!(counts["bytes_in"], sent.iter().sum::<u64>(), "{counts}");
        if clients == requests {
            assert_eq!(BTreeSet::from_iter(sent), on_the_wire(sizes), "{options:?}");
        }
    }
}

fn bytes_by_client(csv: &str) -> Vec<u64> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let mut header = lines.next().expect("a header");
    let column = header
        .position(|name| name == "bytes_sent")
        .expect("a column");
    let cell = |mut line: std::str::Split<'_, char>| line.nth(column)?.parse().ok();
    lines.map(|line| cell(line).expect("a number")).collect()
}

/// Bytes on the wire of uploads of these sizes: the length comes first.
fn on_the_wire(sizes: &str) -> BTreeSet<u64> {
    let size = |part: &str| {
        let size = part
            .split(':')
            .next()
            .unwrap_or(part)
            .replace("kB", "000")
            .replace("MB", "000000");
        size.parse::<u64>().expect("a size") + 8
    };
    sizes.split(',').map(size).collect()
}

#[test]
fn one_client_with_one_upload() {
    all_arrive(1, 1, "100kB");
}

#[test]
fn one_client_with_many_uploads() {
    all_arrive(1, 200, "100kB");
}

#[test]
fn one_client_with_the_largest_upload() {
    all_arrive(1, 1, &LIMIT.to_string());
}

#[test]
fn many_clients_with_uploads_of_the_same_size() {
    all_arrive(100, 100, "100kB");
    all_arrive(100, 300, "100kB");
}

#[test]
fn many_clients_with_uploads_of_different_sizes() {
    all_arrive(100, 100, "1kB,10kB,100kB,1MB");
}

#[test]
fn a_thousand_clients_with_mixed_sizes() {
    let clients = all_clients(1000);
    all_arrive(clients, clients, MIXED);
}

#[test]
fn five_thousand_clients_of_a_megabyte() {
    let clients = all_clients(5000);
    all_arrive(clients, clients, "1MB");
}

#[test]
fn ten_thousand_clients_with_mixed_sizes() {
    let clients = all_clients(10_000);
    all_arrive(clients, clients, MIXED);
}

/// One upload, some, most and all of them exceed the limit: these are rejected, the others are taken, and the load
/// continues.
#[test]
fn clients_over_the_limit_are_rejected_and_others_served() {
    let over = LIMIT + 1;
    for options in SERVERS {
        let server = server(options);
        for (clients, requests, sizes, rejected) in [
            // Each client makes a whole round of its mix.
            (20, 400, format!("1000:19,{over}:1"), 20),
            (40, 160, format!("1000:3,{over}:1"), 40),
            (40, 160, format!("1000:1,{over}:3"), 120),
            (40, 40, over.to_string(), 40),
            (1, 1, over.to_string(), 1),
            (10, 10, LIMIT.to_string(), 0),
        ] {
            let finished = load(&server, clients, requests, &sizes, &[]);
            let result = finished.json();
            assert_eq!(finished.code, 0, "{options:?}, {sizes}: {finished:?}");
            assert_eq!(result["errors"], serde_json::json!({}), "{result}");
            assert_eq!(result["verified"], requests, "{options:?}: {result}");
            let found = result["rejected"]["over-limit"].as_u64().unwrap_or(0);
            assert_eq!(found, rejected, "{options:?}, {sizes}: {result}");
        }
        assert_eq!(server.stop().unwrap()["requests"], 771);
    }
}

/// Clients that find the descriptor table full are rejected at once, others stay connected, later ones are served when
/// there is room again, and the server names the shortage at its end.
#[test]
fn too_many_open_files_are_reported_and_service_continues() {
    let directory = tempfile::tempdir().unwrap();
    let complaints = directory.path().join("stderr");
    for options in SERVERS {
        let mut command = std::process::Command::new("sh");
        let script = "ulimit -n 64; exec \"$@\" 2> \"$0\"";
        command.args(["-c", script]).arg(&complaints);
        command.args([THRONG, "serve", "--protocol", "upload"]);
        command.args(options);
        let server = Server::spawn(command).unwrap();
        let silent: Vec<TcpStream> = (0..100)
            .map(|_| TcpStream::connect(server.address()).unwrap())
            .collect();
        let finished = load(&server, 10, 10, "1000", &[]);
        assert_eq!(finished.code, 1, "{options:?}: {finished:?}");
        let errors = finished.json()["errors"].clone();
        let count = |kind: &str| errors[kind].as_u64().unwrap_or(0);
        assert_eq!(count("closed-early") + count("reset"), 10, "{errors}");
        drop(silent);
        // Until the server has seen all of them leave.
        let deadline = Instant::now() + Duration::from_mins(2);
        while sockets::connections(server.address().port()).unwrap() > 0 {
            assert!(Instant::now() < deadline, "{options:?}: still there");
            std::thread::sleep(Duration::from_millis(5));
        }
        let finished = load(&server, 10, 10, "1000", &["--reconnect"]);
        assert_eq!(finished.json()["verified"], 10, "{options:?}: {finished:?}");
        let counts = server.stop().unwrap();
        let away = counts["refused"]["descriptors"].as_u64().unwrap();
        assert!(away > 10, "{options:?}: {counts}");
        let printed = std::fs::read_to_string(&complaints).unwrap();
        let expected = format!(
            "warning: {away} clients rejected: out of file descriptors (limit 64); \
             raise the limit with `ulimit -n`"
        );
        assert!(printed.contains(&expected), "{options:?}: {printed}");
    }
}
