//! `throng load` against HTTP servers that are not ours: a small one written here, which does what
//! real ones may do, and nginx where it is installed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Finished, throng};
use crate::support::program::words;

/// A load of this number of requests by four clients for a path on a server.
fn load(server: SocketAddr, path: &str, requests: u32) -> (Finished, Value) {
    let url = format!("http://{server}{path}");
    let requests = requests.to_string();
    let finished = throng(&words(
        "load {} --clients 4 --requests {} --json",
        &[&url, &requests],
    ));
    let result = finished.json();
    (finished, result)
}

/// All were answered, these with an unexpected status.
fn all_are_answered(server: SocketAddr, path: &str, requests: u32, unexpected: &Value) {
    let (finished, result) = load(server, path, requests);
    let others: u64 = unexpected
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    let right = u64::from(requests) - others;
    assert_eq!(finished.code, i32::from(right == 0), "{path}: {finished:?}");
    assert_eq!(result["errors"], json!({}), "{path}: {result}");
    assert_eq!(result["verified"], right, "{path}: {result}");
    assert_eq!(result["unexpected"], *unexpected, "{path}: {result}");
}

/// The reply to each path, and whether the server closes after it.
fn reply(path: &str, count: u64) -> (String, bool) {
    let counted = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    match path {
        "/chunked" => (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX: y\r\n\r\n"
                .to_owned(),
            false,
        ),
        "/endless" => ("HTTP/1.1 200 OK\r\n\r\nhello".to_owned(), true),
        "/old" => (format!("HTTP/1.0 200 OK\r\n{}", counted("hello")), true),
        "/interim" => (
            format!(
                "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n{}",
                counted("hello")
            ),
            false,
        ),
        "/closing" if count.is_multiple_of(3) => (
            format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\n{}",
                counted("hello")
            ),
            true,
        ),
        "/counted" | "/closing" => (format!("HTTP/1.1 200 OK\r\n{}", counted("hello")), false),
        "/sometimes" if count.is_multiple_of(2) => {
            (format!("HTTP/1.1 503 Busy\r\n{}", counted("busy")), false)
        }
        "/sometimes" => ("HTTP/1.1 204 Nothing\r\n\r\n".to_owned(), false),
        "/changing" => {
            let body = "x".repeat(5 + count as usize % 2);
            (format!("HTTP/1.1 200 OK\r\n{}", counted(&body)), false)
        }
        "/broken-off" => (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell".to_owned(),
            true,
        ),
        "/gone" => (format!("HTTP/1.1 503 Gone\r\n{}", counted("")), true),
        "/garbage" => ("220 mail.example.org ESMTP\r\n".to_owned(), false),
        _ => (
            format!("HTTP/1.1 404 Not Found\r\n{}", counted("no")),
            false,
        ),
    }
}

/// Starts the small server; counts its connections.
fn start() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let connections = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Relaxed);
            std::thread::spawn(move || serve(&stream));
        }
    });
    (address, connections)
}

fn serve(mut stream: &TcpStream) -> std::io::Result<()> {
    let host = format!("Host: {}", stream.local_addr()?);
    let mut lines = BufReader::new(stream).lines();
    for count in 0.. {
        let Some(line) = lines.next().transpose()? else {
            break;
        };
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let fields: Vec<String> = lines
            .by_ref()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        assert!(fields.contains(&host), "{fields:?}");
        let (reply, closes) = reply(&path, count);
        stream.write_all(reply.as_bytes())?;
        if closes {
            break;
        }
    }
    Ok(())
}

#[test]
fn every_framing_of_another_server_is_followed() {
    for (path, connections) in [
        ("/counted", 4),
        ("/chunked", 4),
        ("/interim", 4),
        ("/endless", 40),
        ("/old", 40),
        // Of ten requests of a client the first, fourth, seventh and tenth over a connection each.
        ("/closing", 40),
    ] {
        let (server, counted) = start();
        all_are_answered(server, path, 40, &Value::Null);
        let counted = counted.load(Relaxed);
        assert_eq!(counted, connections, "connections for {path}");
    }
}

#[test]
fn unexpected_statuses_are_counted_and_no_closed_connections() {
    let (server, _) = start();
    all_are_answered(server, "/nowhere", 40, &json!({"404": 40}));
    all_are_answered(server, "/sometimes", 40, &json!({"503": 20}));
    // It closes after a refusal without announcing that.
    all_are_answered(server, "/gone", 40, &json!({"503": 40}));
    let finished = load(server, "/nowhere", 40).0;
    assert!(
        finished.err.contains("no reply was correct: 40 404"),
        "{finished:?}"
    );
}

#[test]
fn a_status_that_is_expected_is_right() {
    let (server, _) = start();
    let url = format!("http://{server}/nowhere");
    for (statuses, code, right) in [("2xx,404", 0, 50), ("500", 1, 0)] {
        let flags = ["-n", "50", "--json", "--expect-status", statuses];
        let finished = throng(&[&["load", &url], &flags[..]].concat());
        assert_eq!(finished.code, code, "{finished:?}");
        let result = finished.json();
        assert_eq!(result["verified"], right, "{result}");
        assert_eq!(result["statuses"], json!({"404": 50}));
    }
    for wrong in ["ok", "2xx,", "700"] {
        throng(&["load", &url, "--expect-status", wrong]).is_usage_error(&["is not a status"]);
    }
    throng(&words(
        "load 127.0.0.1:1 --protocol echo --expect-status 200",
        &[],
    ))
    .is_usage_error(&["is for http, not for echo"]);
}

/// Regression: a reply of varying length made every client fail.
#[test]
fn replies_may_differ_without_a_rule() {
    let (server, _) = start();
    all_are_answered(server, "/changing", 40, &Value::Null);
    let url = format!("http://{server}/changing");
    for (rule, why) in [
        (
            ["--expect-length", "5"],
            "the body has 6 bytes instead of 5",
        ),
        (
            ["--expect-body", "same"],
            "not the same as before but `xxxxx",
        ),
        (
            ["--expect-body", "text:xxxxx"],
            "the body is not text:xxxxx but `xxxxxx`",
        ),
        (["--expect-body", "regex:^x+y"], "not regex:^x+y but `xxxxx"),
    ] {
        let finished = throng(&[&["load", &url, "-n", "400"], &rule[..]].concat());
        let printed = finished.out.clone() + &finished.err;
        assert!(
            printed.contains("wrong-reply") && printed.contains(why),
            "{printed}"
        );
    }
    let finished = throng(&words(
        "load {} -n 400 --expect-body contains:xxx --json",
        &[&url],
    ));
    assert_eq!(finished.json()["verified"], 400, "{finished:?}");
}

#[test]
fn a_server_that_speaks_something_else_is_known_by_it() {
    let (server, _) = start();
    let picky = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = picky.local_addr().expect("it has an address").to_string();
    std::thread::spawn(move || {
        for stream in picky.incoming().flatten() {
            let _ = (&stream).write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            // Closed with something unread it would be reset.
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut std::io::sink()));
        }
    });
    let garbage = format!("http://{server}/garbage");
    for (target, why) in [
        (&address, "this server speaks HTTP: use http://"),
        (&garbage, "this server speaks SMTP or FTP"),
    ] {
        let finished = throng(&["load", target, "-c", "2"]);
        assert_eq!(finished.code, 1, "{finished:?}");
        assert!(finished.err.contains(why), "{finished:?}");
    }
}

/// Sends a request to a server that replies with the request.
fn mirrored(flags: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let asked = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut reader = BufReader::new(&stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).expect("a line") > 0, "{head}");
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
        reader.read_exact(&mut body).expect("a body");
        let reply = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        (&stream).write_all(reply).expect("it listens");
        head + &String::from_utf8(body).expect("text")
    });
    let url = format!("http://{address}/a?b=c");
    let finished = throng(&[&["load", &url, "-c", "1", "-n", "1"], flags].concat());
    assert_eq!(finished.code, 0, "{finished:?}");
    asked.join().expect("it does not panic")
}

#[test]
fn any_request_can_be_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("data");
    fs::write(&file, "from a file").expect("it can be written");
    let file = format!("@{}", file.display());
    let asked = mirrored(&words(
        "-X PUT -H {} -H {} --data {}",
        &["X-A: b", "user-agent: me", &file],
    ));
    let [line, host, rest @ ..] = &asked.split("\r\n").collect::<Vec<_>>()[..] else {
        panic!("{asked}");
    };
    assert_eq!(*line, "PUT /a?b=c HTTP/1.1");
    assert!(host.starts_with("Host: 127.0.0.1:"), "{host}");
    let expected = [
        "X-A: b",
        "user-agent: me",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 11",
        "",
        "from a file",
    ];
    assert_eq!(rest, expected);
    let asked = mirrored(&["--body", "{\"a\": \"\\n\"}", "-u", "me:secret"]);
    assert!(asked.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{asked}");
    assert!(
        asked.contains("\r\nContent-Type: application/json\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n"),
        "{asked}"
    );
    assert!(asked.ends_with("{\"a\": \"\\n\"}"), "{asked}");
    let asked = mirrored(&["--data", "x", "--content-type", "text/plain"]);
    assert!(
        asked.contains("\r\nContent-Type: text/plain\r\n"),
        "{asked}"
    );
}

#[test]
fn wrong_replies_are_errors() {
    let (server, _) = start();
    for (path, kind) in [("/garbage", "not-http"), ("/broken-off", "cut-reply")] {
        let (_, result) = load(server, path, 40);
        assert_eq!(result["errors"], json!({kind: 4}), "{path}: {result}");
    }
}

#[test]
fn text_names_what_was_asked_for() {
    let (server, _) = start();
    let url = format!("http://{server}/counted?a=b");
    let finished = throng(&["load", &url, "--requests", "50"]);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(
        finished.out.contains("http GET /counted?a=b"),
        "{finished:?}"
    );
    assert!(finished.out.contains("50 of them: 50 404"), "{finished:?}");
    let finished = throng(&words(
        "load {} --protocol http -n 50",
        &[&server.to_string()],
    ));
    assert!(finished.out.contains("http GET /;"), "{finished:?}");
}

// nginx.

/// A running server, stopped when dropped.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Not SIGKILL: the worker of nginx would live on.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

const NGINX: &str = "
daemon off;
user root;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events {}
http {
  keepalive_requests 100;
  client_body_temp_path temporary;
  DIRECTIVES
}
";

/// Starts nginx in a directory with these directives of HTTP. Their ADDRESS is a socket that it inherits: the
/// port is free, and clients may connect at once.
pub(super) fn start_nginx(directory: &Path, directives: &str) -> Option<(Running, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let configuration = NGINX
        .replace("DIRECTIVES", directives)
        .replace("ADDRESS", &address.to_string());
    fs::write(directory.join("nginx.conf"), configuration).expect("the directory is ours");
    rustix::io::fcntl_setfd(&listener, FdFlags::empty()).expect("it is open");
    let nginx = Command::new("nginx")
        .arg("-p")
        .arg(directory)
        .args(["-c", "nginx.conf"])
        .env("NGINX", format!("{};", listener.as_raw_fd()))
        .stderr(Stdio::null())
        .spawn();
    match nginx {
        Ok(child) => Some((Running(child), address)),
        Err(error) => {
            println!("not tried: nginx cannot be started ({error}); install nginx-light");
            None
        }
    }
}

const PLAIN: &str = "
  log_format connections '$connection';
  access_log connections.log connections;
  server {
    listen ADDRESS;
    root html;
    location /chunked/ { ssi on; }
    location /endless/ { ssi on; chunked_transfer_encoding off; }
    location /closing { keepalive_timeout 0; return 200 'hello'; }
    location /forbidden { return 403; }
  }";

#[test]
fn nginx_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    let html = directory.path().join("html");
    for folder in ["chunked", "endless"] {
        let folder = html.join(folder);
        fs::create_dir_all(&folder).expect("the directory is ours");
        fs::write(folder.join("index.html"), "x".repeat(100_000)).expect("the directory is ours");
    }
    fs::write(html.join("index.html"), "x".repeat(1000)).expect("the directory is ours");
    let Some((_nginx, server)) = start_nginx(directory.path(), PLAIN) else {
        return; // the small server above is foreign too
    };
    all_are_answered(server, "/", 1000, &Value::Null);
    let log = fs::read_to_string(directory.path().join("connections.log")).unwrap();
    let connections: BTreeSet<&str> = log.lines().collect();
    assert_eq!(log.lines().count(), 1000);
    assert_eq!(
        connections.len(),
        12,
        "100 requests over each, but 250 are no multiple"
    );
    all_are_answered(server, "/chunked/", 40, &Value::Null);
    all_are_answered(server, "/endless/", 40, &Value::Null);
    all_are_answered(server, "/closing", 40, &Value::Null);
    all_are_answered(server, "/nowhere", 40, &json!({"404": 40}));
    all_are_answered(server, "/forbidden", 40, &json!({"403": 40}));
}
