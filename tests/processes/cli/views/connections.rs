//! Connections to the view never block other clients.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;

use super::{View, record, write};

/// More than are connected at once.
const IDLE: usize = 540;
/// The size of a page for clients that read nothing of it: more than socket buffers hold.
const LARGE: usize = 8 << 20;
const SLOW: usize = 40;
/// The view's memory limit in KiB; unread replies may take 128 MiB of it.
const MOST_KIB: u64 = 700 << 10;

/// The most memory that a process had, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("it is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let number = number.and_then(|number| number.parse().ok());
    number.expect("the kernel says it")
}

#[test]
fn idle_connections_and_slow_readers_lock_out_no_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (place, record) = (
        directory.path().join("run"),
        record(0, "2026-01-01T00:00:00Z"),
    );
    write(&place, &record);
    let samples = place.join(format!("samples/{}.csv", record.1[0].file_stem()));
    fs::write(samples, "0123456\n".repeat(LARGE / 8)).expect("there is room");
    let view = View::start(directory.path());
    let connect = || TcpStream::connect(view.address).expect("it listens");
    let large = format!("/run/run/samples.csv?index={}", record.1[0].index);
    assert_eq!(view.get(&large).body.len(), LARGE);
    let slow: Vec<TcpStream> = (0..SLOW)
        .map(|_| {
            let mut stream = connect();
            let host = view.address;
            let request = format!("GET {large} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let request = view.with_cookie(&request);
            stream.write_all(request.as_bytes()).expect("it reads");
            stream
        })
        .collect();
    let mut idle: Vec<TcpStream> = Vec::new();
    for number in 0..IDLE {
        idle.push(connect());
        if number % 2 == 0 {
            let half = idle.last_mut().expect("there is one");
            // A client that had to make room gets no reply.
            let _ = half.write_all(b"GET / HTTP/1.1\r\nHo");
        }
        if number % 90 == 0 {
            view.get("/").assert_contains(200, &["1 run"]);
        }
    }
    for path in ["/", "/run/run/report.html", "/run/run/", "/runs.json"] {
        assert_eq!(view.get(path).status, 200, "{path}");
    }
    assert_eq!(view.get(&large).body.len(), LARGE);
    let peak = peak(view.child.id());
    assert!(peak < MOST_KIB, "{peak} KiB");
    drop((slow, idle));
    assert_eq!(view.end(), Some(0));
}
