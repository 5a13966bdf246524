//! Requests as users describe them: files of requests, variables, `--debug`, aliases of flags, numbers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Finished, throng};
use crate::support::program::words;
use crate::support::server::Server;

/// A small HTTP server that records method, path and body of its requests.
fn start() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let all = Arc::clone(&all);
            std::thread::spawn(move || serve(stream, &all));
        }
    });
    (address, asked)
}

fn serve(stream: TcpStream, all: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
        stream.read_exact(&mut body)?;
        let first = head
            .lines()
            .next()
            .unwrap_or_default()
            .strip_suffix(" HTTP/1.1")
            .unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        let asked = format!("{first} {body}");
        all.lock()
            .expect("nobody panics with it")
            .push(asked.trim().to_owned());
        let status = if first.contains("/missing") {
            "404 Not Found"
        } else {
            "200 OK"
        };
        let reply = "y".repeat(first.len());
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{reply}",
            reply.len()
        );
        stream.get_mut().write_all(reply.as_bytes())?;
    }
}

/// An echo server of throng's own for requests of this size.
pub(super) fn echo(size: &str) -> Server {
    Server::start(&["epoll", "--size", size]).expect("it listens")
}

fn counts(asked: &Mutex<Vec<String>>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for what in asked.lock().expect("nobody panics with it").drain(..) {
        *counts.entry(what).or_insert(0) += 1;
    }
    counts
}

pub(super) fn finished(line: &[&str]) -> Finished {
    let finished = throng(line);
    assert_eq!(finished.code, 0, "{line:?}: {finished:?}");
    finished
}

#[test]
fn a_file_of_requests_is_asked_by_its_weights() {
    let (server, asked) = start();
    let url = format!("http://{server}");
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("requests.jsonl");
    let path = file.display().to_string();
    fs::write(place.path().join("body"), "from a file").expect("it can be written");
    let lines = [
        r#"{"path": "/a", "weight": 5}"#,
        r#"{"method": "PUT", "path": "/b", "body": "x=1", "weight": 2}"#,
        r#"{"path": "/missing", "expect": 404}"#,
        r#"{"path": "/c", "body": {"file": "body"}, "headers": {"Accept": "*/*"}, "weight": 2}"#,
    ];
    fs::write(&file, lines.join("\n")).expect("it can be written");
    let load = finished(&words(
        "load {} --request-file {} -c 1 -n 1030 --json",
        &[&url, &path],
    ))
    .json();
    assert_eq!(
        (&load["verified"], &load["errors"], &load["unexpected"]),
        (&json!(1030), &json!({}), &Value::Null),
        "{load}"
    );
    let expected = [
        ("GET /a", 515),
        ("PUT /b x=1", 206),
        ("GET /missing", 103),
        ("POST /c from a file", 206),
    ];
    assert_eq!(
        counts(&asked),
        expected
            .map(|(what, count)| (what.to_owned(), count))
            .into()
    );
    let sizes = &load["reply_bytes"];
    assert_eq!(
        (
            &sizes["replies"],
            &sizes["min"],
            &sizes["p50"],
            &sizes["max"]
        ),
        (&json!(1030), &json!(6), &json!(6), &json!(12)),
        "{load}"
    );
    let text = finished(&words(
        "load {} --request-file {} -c 1 -n 100",
        &[&url, &path],
    ))
    .out;
    assert!(
        text.replace('\n', " ")
            .contains("http GET /a (5), PUT /b (2), GET /missing (1), POST /c (2)"),
        "{text}"
    );
    assert!(
        text.contains("reply body") && text.contains("6 B to 12 B, p50 6 B"),
        "{text}"
    );
}

/// Regression test: of ten paths, three were never requested and one three times, in the same order with every seed.
#[test]
fn a_client_requests_each_of_several_paths_once_in_an_order_of_the_seed() {
    let (server, asked) = start();
    let url = format!("http://{server}");
    let paths: Vec<String> = (0..10).map(|number| format!("/{number}")).collect();
    let order = |seed: &str| {
        let mut line = vec!["load", &url, "-c", "1", "-n", "20", "--seed", seed];
        line.extend(paths.iter().flat_map(|path| ["--path", path]));
        finished(&line);
        let order: Vec<String> = asked.lock().unwrap().drain(..).collect();
        for round in order.chunks(10) {
            let mut sorted = round.to_vec();
            sorted.sort();
            let all = paths.iter().map(|path| format!("GET {path}"));
            assert_eq!(sorted, all.collect::<Vec<_>>(), "seed {seed}");
        }
        order
    };
    assert_eq!(order("1"), order("1"));
    assert_ne!(order("1"), order("2"));
}

#[test]
fn errors_in_request_files_have_line_and_column() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("r.jsonl");
    let path = file.display().to_string();
    let url = "http://127.0.0.1:1";
    fs::write(&file, "{\"path\": \"/\"}\n{\"path\": \"/\", \"wait\": 2}\n")
        .expect("it can be written");
    throng(&["load", url, "--request-file", &path]).is_usage_error(&[
        "r.jsonl:2:20: unknown field 'wait', expected one of 'method', 'path'",
        "each line is a request, like",
    ]);
    throng(&words(
        "compare epoll --protocol http --request-file {}",
        &[&path],
    ))
    .is_usage_error(&["r.jsonl:2:20"]);
    throng(&[
        "load",
        url,
        "--variables",
        "--data",
        "{\"a\": {random:x}, \"b\": {random}}",
    ])
    .is_usage_error(&["unknown variable `{random}`"]);
}

#[test]
fn variables_without_the_switch_are_sent_verbatim_with_a_note() {
    let (server, asked) = start();
    let url = format!("http://{server}/a{{number}}");
    let printed = finished(&["load", &url, "-c", "1", "-n", "5"]).err;
    assert!(printed.contains("add --variables"), "{printed}");
    assert_eq!(counts(&asked), [("GET /a{number}".to_owned(), 5)].into());
    let printed = finished(&["load", &url, "-c", "1", "-n", "3", "--variables"]).err;
    assert!(!printed.contains("--variables"), "{printed}");
    let expected = ["GET /a0", "GET /a1", "GET /a2"];
    assert_eq!(
        counts(&asked),
        expected.map(|what| (what.to_owned(), 1)).into()
    );
}

#[test]
fn rows_of_data_fill_in_requests() {
    let (server, asked) = start();
    let directory = tempfile::tempdir().unwrap();
    let rows = directory.path().join("users.csv");
    fs::write(&rows, "name,age\n\"a b\",1\nc,2\n").unwrap();
    let rows = rows.to_str().unwrap();
    let url = format!("http://{server}/{{name}}");
    let flags = [
        "--variables",
        "--data-file",
        rows,
        "--variable",
        "kind=x y",
        "--data",
        "{age}/{kind}/{number}",
    ];
    let done = throng(&[&["load", &url, "-c", "1", "-n", "4"], &flags[..]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let expected = [
        "POST /a%20b 1/x y/0",
        "POST /c 2/x y/1",
        "POST /a%20b 1/x y/2",
        "POST /c 2/x y/3",
    ];
    assert_eq!(
        counts(&asked),
        expected.map(|what| (what.to_owned(), 1)).into()
    );
    let file = directory.path().join("requests.jsonl");
    fs::write(&file, "{\"path\": \"/f/{age}\"}\n").unwrap();
    let file = file.to_str().unwrap();
    let target = format!("http://{server}");
    let common = [
        "load",
        &target,
        "-c",
        "2",
        "-n",
        "4",
        "--data-file",
        rows,
        "--request-file",
        file,
    ];
    let done = throng(&[&common, &["--variables"][..]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        counts(&asked),
        [("GET /f/1".to_owned(), 2), ("GET /f/2".to_owned(), 2)].into()
    );
    let done = throng(&common);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.contains("--data-file needs --variables"),
        "{done:?}"
    );
    let done = throng(&[
        "load",
        &format!("{target}/{{who}}"),
        "--variables",
        "--data-file",
        rows,
    ]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.contains("unknown variable `{who}`")
            && done.err.contains("the data has name, age"),
        "{done:?}"
    );
}

#[test]
fn debug_shows_both_messages() {
    let (server, asked) = start();
    let url = format!("http://{server}");
    let shown = finished(&words(
        "load {} --variables --debug -X PUT --data {}",
        &[&format!("{url}/a{{number}}"), "\u{1b}[2J"],
    ));
    assert_eq!(counts(&asked).len(), 1);
    for line in [
        "> PUT /a0 HTTP/1.1\n",
        "> Content-Length: 4\n",
        "> \\x1b[2J\n",
        "< HTTP/1.1 200 OK\n",
        "< yyyyyyy\n",
    ] {
        assert!(shown.out.contains(line), "{line}: {shown:?}");
    }
    assert!(!shown.out.contains('\u{1b}'), "{shown:?}");
    let missing = throng(&["load", &format!("{url}/missing"), "--debug"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(
        missing.out.contains("< HTTP/1.1 404 Not Found"),
        "{missing:?}"
    );
    assert!(
        missing
            .err
            .contains("unexpected status 404; --expect-status accepts other HTTP statuses"),
        "{missing:?}"
    );
    let nobody = throng(&["load", "http://127.0.0.1:1", "--debug"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert!(nobody.err.contains("refused"), "{nobody:?}");
    // Any protocol, and on the other engine too.
    let echo = echo("20");
    let shown = finished(&[
        "load",
        &echo.address().to_string(),
        "--size",
        "20",
        "--debug",
    ]);
    assert!(
        shown.out.contains("20 bytes sent, 20 bytes received"),
        "{shown:?}"
    );
}

#[test]
fn flags_of_other_tools_are_accepted() {
    let echo = echo("1000");
    let address = echo.address().to_string();
    for (line, clients, requests, connections) in [
        ("--connections 3 --requests 1k", 3, 1000, 3),
        ("--concurrency 3 -n 1e2 --timeout 30s", 3, 100, 3),
        ("-c 2 -n 20 --disable-keepalive", 2, 20, 20),
        ("-c 2 -n 0.02k --no-keepalive", 2, 20, 20),
    ] {
        let words = ["load", &address, "--json"]
            .into_iter()
            .chain(line.split(' '));
        let load = finished(&words.collect::<Vec<_>>()).json();
        assert_eq!(
            (&load["clients"], &load["verified"], &load["connections"]),
            (&json!(clients), &json!(requests), &json!(connections)),
            "{line}: {load}"
        );
        assert_eq!(load["reconnects"], connections - clients, "{line}: {load}");
    }
}

#[test]
fn node_gets_the_requests_of_a_file() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("not tried: there is no node");
        return;
    }
    let script = "const counts = {}; require('http').createServer((q, r) => { let b = ''; q.on('data', d => b += d).on('end', () => { \
                  const k = q.method + ' ' + q.url + ' ' + b.length + ' ' + (q.headers.cookie || ''); counts[k] = (counts[k] || 0) + 1; \
                  if (q.url === '/counts') { r.end(JSON.stringify(counts)); return; } \
                  r.setHeader('Set-Cookie', 's=1; Path=/; HttpOnly'); r.end('x'.repeat(counts[k] % 50)); }); }) \
                  .listen(0, '127.0.0.1', function () { console.log(this.address().port); });";
    let mut node = Command::new("node");
    node.args(["-e", script])
        .stdout(std::process::Stdio::piped());
    let mut node = node.spawn().expect("node was there a moment ago");
    let mut port = String::new();
    let out = node.stdout.as_mut().expect("it is piped");
    BufReader::new(out)
        .read_line(&mut port)
        .expect("it says its port");
    let url = format!("http://127.0.0.1:{}", port.trim());
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("r");
    fs::write(&file, "{\"path\": \"/a\", \"weight\": 3}\n{\"method\": \"PUT\", \"path\": \"/b\", \"body\": \"{\\\"id\\\": \\\"{random:6}\\\"}\"}\n")
        .expect("it can be written");
    let path = file.display().to_string();
    let load = throng(&words(
        "load {} --request-file {} --variables --cookies -c 1 -n 1024 --json",
        &[&url, &path],
    ));
    let shown = throng(&["load", &format!("{url}/counts"), "--debug"]);
    let _ = node.kill();
    let _ = node.wait();
    let load = load.json();
    assert_eq!(load["verified"], 1024, "{load}");
    assert_eq!(
        (&load["reply_bytes"]["min"], &load["reply_bytes"]["max"]),
        (&json!(0), &json!(49)),
        "{load}"
    );
    // All but the first have the cookie.
    let of = |what: &str| {
        let counts = shown.out.lines().find_map(|line| line.strip_prefix("< {"));
        let counts: Value =
            serde_json::from_str(&format!("{{{}", counts.unwrap_or("}"))).expect("JSON");
        counts[what].as_u64().unwrap_or(0)
    };
    assert_eq!(of("GET /a 0 s=1") + of("GET /a 0 "), 768, "{shown:?}");
    assert_eq!(of("PUT /b 16 s=1") + of("PUT /b 16 "), 256, "{shown:?}");
    assert_eq!(of("GET /a 0 ") + of("PUT /b 16 "), 1, "{shown:?}");
}
