//! Loads of several steps: files of Hurl and recordings, rows of data, and what is refused before anything is sent.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Finished, throng};

/// A service that gives each session a token and a cookie, and counts what it was asked. It closes a connection after
/// each fifth request.
struct Shop {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// The names of users that logged in, in order.
    users: Vec<String>,
    orders: usize,
    /// Tokens that came with another session's cookie, or twice.
    mixed: usize,
    used: BTreeSet<String>,
}

impl Shop {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                std::thread::spawn(move || serve(stream, &all));
            }
        });
        Self { address, seen }
    }

    fn seen<T>(&self, take: impl FnOnce(&mut Seen) -> T) -> T {
        take(&mut self.seen.lock().expect("nobody panics with it"))
    }
}

fn serve(stream: TcpStream, all: &Mutex<Seen>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    for number in 1.. {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let length =
            field("Content-Length: ").map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let body = String::from_utf8_lossy(&body);
        let mut seen = all.lock().expect("nobody panics with it");
        let (status, extra, text) = if head.starts_with("POST /login") {
            let name = body
                .trim_start_matches("{\"name\": \"")
                .trim_end_matches("\"}");
            seen.users.push(name.to_owned());
            let number = seen.users.len();
            let text = format!("{{\"token\": \"t{number}\", \"name\": \"{name}\"}}");
            (
                "200 OK",
                format!("Set-Cookie: sid=t{number}; Path=/\r\n"),
                text,
            )
        } else {
            let token = field("Authorization: Bearer ")
                .unwrap_or_default()
                .to_owned();
            let is_own = field("Cookie: ") == Some(&format!("sid={token}"));
            seen.mixed += usize::from(!is_own || !seen.used.insert(token));
            seen.orders += 1;
            (
                "201 Created",
                String::new(),
                format!("{{\"order\": \"{body}\"}}"),
            )
        };
        drop(seen);
        let close = if number % 5 == 0 {
            "Connection: close\r\n"
        } else {
            ""
        };
        let reply = format!(
            "HTTP/1.1 {status}\r\n{extra}{close}Content-Length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.get_mut().write_all(reply.as_bytes())?;
        if !close.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

const STEPS: &str = r#"
# login
POST {{host}}/login
{"name": "{{name}}"}
HTTP 200
[Captures]
token: jsonpath "$.token"
[Asserts]
jsonpath "$.name" == "{{name}}"

# order
POST {{host}}/order
Authorization: Bearer {{token}}
[Form]
item: a {{name}}
HTTP 201
[Asserts]
body contains "item"
"#;

/// Writes the steps and three rows.
fn files(directory: &Path, steps: &str) -> (String, String) {
    let (flow, rows) = (directory.join("shop.hurl"), directory.join("users.csv"));
    fs::write(&flow, steps).expect("it can be written");
    fs::write(&rows, "name\nann\nbob\ncy\n").expect("it can be written");
    (flow.display().to_string(), rows.display().to_string())
}

/// Runs `throng load` with these steps, and more flags.
fn load(shop: &Shop, steps: &str, flags: &[&str]) -> Finished {
    let directory = tempfile::tempdir().expect("a directory");
    let (flow, rows) = files(directory.path(), steps);
    let host = format!("host=http://{}", shop.address);
    let common = ["load", &flow, "--data-file", &rows, "--variable", &host];
    throng(&[&common, flags].concat())
}

fn sessions(finished: &Finished) -> Value {
    let load: Value =
        serde_json::from_str(&finished.out).unwrap_or_else(|_| panic!("{finished:?}"));
    load["sessions"].clone()
}

#[test]
fn each_session_is_served_whole_with_its_own_token() {
    let shop = Shop::start();
    let done = load(&shop, STEPS, &["-c", "4", "-n", "90", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let found = sessions(&done);
    assert_eq!(
        (&found["completed"], &found["failed"]),
        (&90.into(), &0.into())
    );
    assert_eq!(found["steps"][1]["name"], "order");
    assert_eq!(found["steps"][1]["replies"], 90);
    let users = shop.seen(|seen| seen.users.clone());
    // Rows in turn: each as often as the others, but for what the division among clients leaves.
    for name in ["ann", "bob", "cy"] {
        let count = users.iter().filter(|user| *user == name).count();
        assert!((28..=32).contains(&count), "{name}: {count}");
    }
    assert_eq!(shop.seen(|seen| (seen.orders, seen.mixed)), (90, 0));
    // In an open loop, sessions are due, and counted from then.
    let done = load(
        &shop,
        STEPS,
        &["-c", "8", "-n", "60", "--rate", "200", "--json"],
    );
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(sessions(&done)["completed"], 60, "{done:?}");
    let done = load(
        &shop,
        STEPS,
        &["-c", "3", "--each", "5", "--data-order", "random", "--json"],
    );
    assert_eq!(sessions(&done)["completed"], 15, "{done:?}");
    assert_eq!(shop.seen(|seen| seen.mixed), 0);
}

#[test]
fn a_step_that_fails_is_named() {
    let shop = Shop::start();
    let wrong = STEPS.replace("== \"{{name}}\"", "== \"ann\"");
    let done = load(&shop, &wrong, &["-c", "1", "-n", "30", "--json"]);
    let found = sessions(&done);
    assert_eq!(
        (&found["completed"], &found["failed"]),
        (&10.into(), &20.into()),
        "{done:?}"
    );
    assert_eq!(found["steps"][0]["failed"], 20);
    assert_eq!(found["steps"][1]["replies"], 10);
    let result: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(
        result["unexpected"]["login: jsonpath \"$.name\" == \"ann\""], 20,
        "{done:?}"
    );
    let none = STEPS.replace("$.token", "$.nothing");
    let done = load(&shop, &none, &["-c", "1", "-n", "5"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err.contains("no session was complete; 5 failed"),
        "{done:?}"
    );
    assert!(
        done.err.contains("login: nothing to capture: token"),
        "{done:?}"
    );
    // Thresholds are by step.
    let flags = [
        "-c",
        "1",
        "-n",
        "9",
        "--fail-if",
        "order:p50 > 1ns",
        "--fail-if",
        "login:errors > 0",
    ];
    let done = load(&shop, STEPS, &flags);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(
        done.err.contains("missed: fail if order:p50 > 1ns"),
        "{done:?}"
    );
    assert!(
        done.err.contains("met: fail if login:errors > 0: 0"),
        "{done:?}"
    );
}

#[test]
fn debug_shows_a_session_step_by_step() {
    let shop = Shop::start();
    let done = load(&shop, STEPS, &["--debug"]);
    assert_eq!(done.code, 0, "{done:?}");
    let mut rest = &*done.out;
    for line in [
        "> POST /login HTTP/1.1\n",
        "> {\"name\": \"ann\"}\n",
        "< HTTP/1.1 200 OK\n",
        "* asserted: login: jsonpath \"$.name\" == \"{{name}}\" (found: ann)\n",
        "* captured: token = t1\n",
        "> POST /order HTTP/1.1\n",
        "> Authorization: Bearer t1\n",
        "> Cookie: sid=t1\n",
        "> item=a%20ann\n",
        "< HTTP/1.1 201 Created\n",
        "* asserted: order: body contains \"item\"",
    ] {
        let at = rest
            .find(line)
            .unwrap_or_else(|| panic!("{line}: {}", done.out));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn a_recording_is_a_load() {
    let shop = Shop::start();
    let directory = tempfile::tempdir().expect("a directory");
    let har = directory.path().join("visit.har");
    let entry = |path: &str, body: &str| {
        format!(
            "{{\"startedDateTime\": \"2026-01-01T00:00:00.000Z\", \"time\": 1, \"request\": {{\"method\": \"POST\", \
             \"url\": \"http://{}{path}\", \"headers\": [{{\"name\": \"Authorization\", \"value\": \"Bearer t1\"}}], \
             \"postData\": {{\"mimeType\": \"text/plain\", \"text\": \"{body}\"}}}}}}",
            shop.address
        )
    };
    let text = format!(
        "{{\"log\": {{\"entries\": [{}, {}]}}}}",
        entry("/login", "ann"),
        entry("/order", "x")
    );
    fs::write(&har, text).expect("it can be written");
    let done = throng(&[
        "load",
        har.to_str().expect("text"),
        "-c",
        "1",
        "-n",
        "3",
        "--json",
    ]);
    assert_eq!(sessions(&done)["completed"], 3, "{done:?}");
    assert_eq!(shop.seen(|seen| (seen.users.len(), seen.orders)), (3, 3));
}

#[test]
fn wrong_files_are_refused_before_anything_is_sent() {
    let shop = Shop::start();
    let refused = |steps: &str, flags: &[&str], place: &str, why: &str| {
        let done = load(&shop, steps, flags);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(
            done.err.contains(place) && done.err.contains(why),
            "{done:?}"
        );
    };
    let retry = STEPS.replace("[Form]", "[Options]\nretry: 3\n[Form]");
    refused(
        &retry,
        &[],
        "shop.hurl:15:1: the option `retry` is not supported\n  retry: 3\n  ^",
        "",
    );
    let unknown = STEPS.replace("{{token}}", "{{tokens}}");
    refused(
        &unknown,
        &[],
        "shop.hurl:13:23",
        "no earlier step captures `tokens`",
    );
    refused(
        STEPS,
        &["--pipeline", "2"],
        "--pipeline",
        "does not go with the steps of a flow",
    );
    refused(
        STEPS,
        &["--protocol", "http2"],
        "http",
        "the steps of a flow need",
    );
    refused(
        STEPS,
        &["--fail-if", "pay:p99 > 1ms"],
        "pay:p99",
        "name a step",
    );
    let directory = tempfile::tempdir().expect("a directory");
    let short = directory.path().join("short.csv");
    fs::write(&short, "name,age\nann,1\nbob\n").expect("it can be written");
    let (flow, _) = files(directory.path(), STEPS);
    let done = throng(&[
        "load",
        &flow,
        "--data-file",
        short.to_str().expect("text"),
        "--variable",
        "host=http://127.0.0.1:1",
    ]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err
            .contains("short.csv:3:4: the row has 1 of 2 values"),
        "{done:?}"
    );
    let done = throng(&["load", &flow, "--variable", "name=x"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("no server is known"), "{done:?}");
    let done = throng(&["load", "http://127.0.0.1:1", "--variable", "name=x"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.contains("--variable needs --variables"),
        "{done:?}"
    );
    assert_eq!(shop.seen(|seen| seen.users.len()), 0);
}

#[test]
fn servers_are_compared_by_sessions() {
    let directory = tempfile::tempdir().expect("a directory");
    let flow = directory.path().join("pages.hurl");
    fs::write(
        &flow,
        "GET {{host}}/first\nHTTP 200\n\nGET {{host}}/second\nHTTP 200\n",
    )
    .expect("it can be written");
    let record = directory.path().join("record");
    let done = throng(&[
        "compare",
        "epoll",
        "thread",
        "--protocol",
        "http",
        "--flow",
        flow.to_str().expect("text"),
        "--variable",
        "host=http://h",
        "-c",
        "4",
        "--method",
        "trials",
        "--runs",
        "1",
        "--duration",
        "200ms",
        "--warm-up",
        "10ms",
        "--warm-up-limit",
        "10ms",
        "--control",
        "none",
        "--allow-rough",
        "--probes",
        "cpu",
        "--fail-if",
        "epoll:second:p50 > 10s",
        "--output",
        record.to_str().expect("text"),
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    for words in [
        "Steps of a session",
        "first",
        "second",
        "whole session",
        "Sessions/s",
    ] {
        assert!(done.out.contains(words), "{words}: {done:?}");
    }
    let page = fs::read_to_string(record.join("report.html")).expect("a page");
    assert!(page.contains("whole session"));
}
