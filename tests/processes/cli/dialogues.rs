//! User-defined requests: bytes and a pattern, or a mix of sizes and paths.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::Value;

use super::{Finished, throng};
use crate::support::server::Server;

/// Answers each line that comes over any connection with `reply`; after `closes` of them, if that
/// is not 0, it closes.
fn serve_lines(reply: &'static [u8], closes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer_lines(stream, reply, closes));
        }
    });
    address
}

fn answer_lines(mut stream: TcpStream, reply: &[u8], closes: usize) {
    let mut input = [0; 4096];
    let mut answered = 0;
    while let Ok(count @ 1..) = stream.read(&mut input) {
        let lines = input[..count].split(|&byte| byte == b'\n').count() - 1;
        if stream.write_all(&reply.repeat(lines)).is_err() {
            return;
        }
        answered += lines;
        if closes > 0 && answered >= closes {
            return;
        }
    }
}

/// A load of 200 requests from 4 clients, and its result.
fn load(address: &str, options: &[&str]) -> (Finished, Value) {
    let arguments = ["load", address, "--json", "-c", "4", "-n", "200"];
    let finished = throng(&[&arguments, options].concat());
    let result = finished.json();
    (finished, result)
}

#[test]
fn users_define_requests_and_expected_replies() {
    let address = serve_lines(b"+PONG\r\n", 0).to_string();
    for expect in [
        "text:+PONG\\r\\n",
        "until:\\n",
        "bytes:7",
        "regex:^\\+[A-Z]+\\r\\n",
    ] {
        for pipeline in ["1", "8"] {
            let options = [
                "--send",
                "PING\\r\\n",
                "--expect",
                expect,
                "--pipeline",
                pipeline,
            ];
            let (finished, result) = load(&address, &options);
            assert_eq!(finished.code, 0, "{expect}: {finished:?}");
            assert_eq!(result["verified"], 200, "{expect}: {result}");
            assert_eq!(result["errors"], serde_json::json!({}), "{expect}");
        }
    }
    let arguments = ["load", &address, "-n", "50", "--send", "PING\\r\\n"];
    let finished = throng(&[&arguments[..], &["--expect", "until:\\n"]].concat());
    let words = "\"PING\\r\\n\" answered by until:\\n";
    assert!(finished.out.contains(words), "{finished:?}");
}

#[test]
fn replies_may_end_with_their_connections() {
    let address = serve_lines(b"any bytes", 1).to_string();
    let (finished, result) = load(&address, &["--send", "GET /\\n", "--expect", "close"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(result["verified"], 200, "{result}");
    assert_eq!(result["errors"], serde_json::json!({}), "{result}");
}

#[test]
fn a_file_can_be_sent() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "a line\\n\n").unwrap();
    let address = serve_lines(b"ok\n", 0).to_string();
    let sent = format!("@{}", file.path().display());
    let (finished, result) = load(&address, &["--send", &sent, "--expect", "text:ok\\n"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(result["verified"], 200, "{result}");
}

#[test]
fn replies_that_are_not_expected_are_counted() {
    let address = serve_lines(b"-ERR\r\n", 0).to_string();
    for expect in ["text:+PONG\\r\\n", "regex:^\\+", "bytes:5"] {
        let (finished, result) = load(&address, &["--send", "PING\\r\\n", "--expect", expect]);
        assert_eq!(result["errors"]["wrong-reply"], 4, "{expect}: {finished:?}");
    }
}

#[test]
fn sizes_are_mixed_by_weight() {
    let server = Server::start(&["epoll", "--protocol", "upload"]).unwrap();
    let address = server.address().to_string();
    let options = ["--protocol", "upload", "--size", "1kB:3,64KiB:1"];
    let (finished, result) = load(&address, &options);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(result["verified"], 200, "{result}");
    assert_eq!(server.stop().unwrap()["requests"], 200);
    // Of each client 50 of the 1024 in its order, which need not have the exact shares.
    let sent = result["window"]["bytes_sent"].as_u64().unwrap();
    let sizes = 200 * 1008..200 * 65_544;
    assert!(sizes.contains(&sent), "{result}");

    let server = Server::start(&["thread"]).unwrap();
    let address = server.address().to_string();
    let finished = throng(&["load", &address, "-n", "200", "--size", "1:7,100kB:1"]);
    assert!(
        finished.out.contains("echo of 1 B (7), 100 kB (1)"),
        "{finished:?}"
    );
    assert!(finished.out.contains("200 correct of 200"), "{finished:?}");
}

#[test]
fn paths_are_mixed_by_weight() {
    let server = Server::start(&["epoll", "--protocol", "http"]).unwrap();
    let url = format!("http://{}", server.address());
    let finished = throng(&["load", &url, "-n", "200", "--path", "/:3", "--path", "/a"]);
    assert!(
        finished.out.contains("http GET / (3), /a (1)"),
        "{finished:?}"
    );
    assert!(finished.out.contains("200 correct of 200"), "{finished:?}");
}
