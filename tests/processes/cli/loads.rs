//! `throng load` counts right, and ends by itself whatever the server does.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::super::hostile::servers::bound;
use super::{Finished, throng};
use crate::support::load::one;
use crate::support::program::{THRONG, words};
use crate::support::server::Server;

/// The result of a load and its errors by kind, once it has ended by itself.
fn load(address: SocketAddr, options: &[&str]) -> (Finished, Value, BTreeMap<String, u64>) {
    let address = address.to_string();
    let arguments = [&["load", &address, "--json"], options].concat();
    let finished = throng(&arguments);
    let result = finished.json();
    let errors = serde_json::from_value(result["errors"].clone()).expect("errors are counts");
    (finished, result, errors)
}

#[test]
fn every_reply_of_many_clients_is_verified() {
    let server = Server::start(&["epoll"]).unwrap();
    let options = words("--clients 500 --duration 500ms --warm-up 50ms", &[]);
    let (finished, result, errors) = load(server.address(), &options);
    assert_eq!((finished.code, errors), (0, BTreeMap::new()), "{result}");
    assert_eq!(result["served"], 500, "{result}");
    assert_eq!(result["verified"], result["requests"], "{result}");
    assert_eq!(result["stopped_by"], "duration", "{result}");
    assert!(result["window"]["replies"].as_u64() >= Some(1), "{result}");
    let counts = server.stop().unwrap();
    assert_eq!(
        counts["requests"], result["requests"],
        "both sides count alike"
    );
    assert_eq!(counts["accepted"], 500, "{counts}");
}

#[test]
fn ten_thousand_clients_or_as_many_as_descriptors_allow() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let clients = limit.map_or(10_000, |limit| limit.saturating_sub(100).clamp(1, 10_000));
    let server = Server::start(&["epoll"]).unwrap();
    let clients = clients.to_string();
    let options = words("--clients {} --duration 1s --warm-up 1ms", &[&clients]);
    let (finished, result, errors) = load(server.address(), &options);
    assert_eq!((finished.code, errors), (0, BTreeMap::new()), "{result}");
    assert_eq!(result["served"].to_string(), clients, "{result}");
    assert_eq!(result["verified"], result["requests"], "{result}");
    let counts = server.stop().unwrap();
    assert_eq!(
        counts["requests"], result["requests"],
        "both sides count alike"
    );
}

#[test]
fn select_serves_more_than_1024_when_its_sets_are_larger_on_purpose() {
    let options = words("--clients 1500 --duration 200ms --warm-up 1ms", &[]);
    for (size, all) in [("1024", false), ("2048", true)] {
        let server = Server::start(&["select", "--fd-setsize", size]).unwrap();
        let (_, result, errors) = load(server.address(), &options);
        assert_eq!(result["served"] == 1500, all, "{result}");
        assert_eq!(errors.is_empty(), all, "{result}");
        let counts = server.stop().unwrap();
        assert_eq!(counts["refused"]["set-size"].is_null(), all, "{counts}");
    }
}

#[test]
fn a_number_of_requests_is_kept_exactly() {
    let server = Server::start(&["thread"]).unwrap();
    let options = ["--requests", "1000", "--clients", "10"];
    let (finished, result, errors) = load(server.address(), &options);
    assert_eq!((finished.code, errors), (0, BTreeMap::new()), "{result}");
    assert_eq!(result["requests"], 1000, "{result}");
    assert_eq!(result["verified"], 1000, "{result}");
    assert_eq!(result["window"]["replies"], 1000, "{result}");
    assert_eq!(result["stopped_by"], "requests", "{result}");
    assert_eq!(server.stop().unwrap()["requests"], 1000);
}

#[test]
fn a_closed_port_is_an_error_that_is_counted() {
    // Held, so that no other process listens there meanwhile.
    let (_held, free) = bound();
    let (finished, result, errors) = load(free, &["--clients", "3", "--duration", "200ms"]);
    assert_eq!((finished.code, errors), (1, one("refused", 3)), "{result}");
    assert!(
        finished.err.contains("served no client") && finished.err.contains("3 refused"),
        "{finished:?}"
    );
    assert_eq!(result["stopped_by"], "no-clients-left", "{result}");
}

/// Regression: it reported that no client was served, and exited with 1, though there were replies.
#[test]
fn an_interrupted_load_reports_the_clients_so_far() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let arguments = ["load", &address, "--json", "-c", "2", "--size", "3"];
    let begin = || {
        let mut command = Command::new(THRONG);
        command.args(arguments).stdout(Stdio::piped());
        let load = command.stderr(Stdio::piped()).spawn().unwrap();
        let clients = [silent.accept().unwrap().0, silent.accept().unwrap().0];
        (load, clients)
    };
    for replies in [0, 1] {
        let (load, mut clients) = begin();
        let mut request = [0; 3];
        for client in &mut clients {
            client.read_exact(&mut request).unwrap();
        }
        for client in &mut clients[..replies] {
            client.write_all(&request).unwrap();
        }
        kill_process(Pid::from_child(&load), Signal::INT).unwrap();
        let output = load.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{printed}");
        assert!(!printed.contains("error"), "{printed}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["stopped_by"], "interrupted", "{result}");
        assert_eq!(result["served"], result["verified"], "{result}");
        assert!(result["verified"].as_u64().unwrap() <= replies as u64);
    }
}

// Protocols that close after each reply.

#[test]
fn every_upload_has_a_connection_of_its_own() {
    let server = Server::start(&["epoll-et", "--protocol", "upload"]).unwrap();
    let options = ["--protocol", "upload", "--size", "3000000"];
    let options = [&options[..], &["--requests", "20", "--clients", "5"]].concat();
    let (finished, result, errors) = load(server.address(), &options);
    assert_eq!((finished.code, errors), (0, BTreeMap::new()), "{result}");
    assert_eq!(result["verified"], 20, "{result}");
    assert_eq!(result["rejected"], Value::Null, "{result}");
    let counts = server.stop().unwrap();
    assert_eq!(counts["accepted"], 20, "{counts}");
    assert_eq!(counts["bytes_in"], 20 * 3_000_008, "{counts}");
    assert_eq!(counts["outcomes"]["server-closed"], 20, "{counts}");
}

/// The reply comes while they still send.
#[test]
fn rejected_uploads_are_counted_and_no_error() {
    for model in ["epoll", "thread", "fork"] {
        let server =
            Server::start(&[model, "--protocol", "upload", "--max-upload", "1000"]).unwrap();
        let options = ["--protocol", "upload", "--size", "20000000"];
        let options = [&options[..], &["--requests", "60", "--clients", "20"]].concat();
        let (finished, result, errors) = load(server.address(), &options);
        assert_eq!((finished.code, errors), (0, BTreeMap::new()), "{result}");
        assert_eq!(result["verified"], 60, "{result}");
        assert_eq!(result["rejected"]["over-limit"], 60, "{result}");
        assert_eq!(server.stop().unwrap()["requests"], 60);
    }
    let server = Server::start(&["epoll", "--protocol", "upload", "--max-upload", "9"]).unwrap();
    let address = server.address().to_string();
    let finished = throng(&["load", &address, "--protocol", "upload", "--requests", "50"]);
    assert!(
        finished.out.contains("50 of them: 50 over-limit"),
        "{finished:?}"
    );
    assert!(
        finished.out.contains("upload of 1000 bytes"),
        "{finished:?}"
    );
}

/// A server that rejects an upload and closes though the client still sends: the client's kernel gets a reset, but the
/// reply arrived before it.
#[test]
fn a_reset_after_the_reply_is_no_error() {
    let serve = |mut stream: TcpStream| {
        stream.read_exact(&mut [0; 1000])?;
        stream.write_all(&[1, 0, 0, 0, 0, 0, 0, 0, 0])
    };
    let options = ["--protocol", "upload", "--size", "50000000"];
    let options = [&options[..], &["--requests", "6", "--clients", "2"]].concat();
    let (finished, result, errors) = load(garbage(serve), &options);
    assert_eq!((finished.code, errors), (0, BTreeMap::new()), "{result}");
    assert_eq!(result["rejected"]["over-limit"], 6, "{result}");
}

// A load that ends by itself whatever the server does.

/// Answers every connection with `serve`, each on a thread of its own.
fn garbage(serve: fn(TcpStream) -> std::io::Result<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Two clients of a server that never serves any, with this timeout for first replies: what they report.
fn two_victims(
    first_reply_timeout: &str,
    serve: fn(TcpStream) -> std::io::Result<()>,
) -> (Value, BTreeMap<String, u64>) {
    let options = words(
        "--clients 2 --duration 300ms --first-reply-timeout {}",
        &[first_reply_timeout],
    );
    let (finished, result, errors) = load(garbage(serve), &options);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert_eq!(result["served"], 0, "{result}");
    assert_eq!(result["verified"], 0, "{result}");
    assert_eq!(result["stopped_by"], "no-clients-left", "{result}");
    (result, errors)
}

#[test]
fn wrong_bytes_are_a_wrong_reply() {
    let (result, errors) = two_victims("30s", |mut stream| {
        stream.read_exact(&mut [0; 1000])?;
        stream.write_all(&[0; 1000])
    });
    assert_eq!(errors, one("wrong-reply", 2), "{result}");
}

#[test]
fn a_server_that_closes_at_once_closes_early() {
    let (result, errors) = two_victims("30s", |stream| {
        drop(stream);
        Ok(())
    });
    // Which of the two depends on whether the request came before the close.
    let seen: u64 = ["closed-early", "reset"]
        .iter()
        .filter_map(|kind| errors.get(*kind))
        .sum();
    assert_eq!(seen, 2, "{result}");
}

#[test]
fn half_a_reply_is_closed_early() {
    let (result, errors) = two_victims("30s", |mut stream| {
        let mut request = [0; 1000];
        stream.read_exact(&mut request)?;
        stream.write_all(&request[..500])
    });
    assert_eq!(errors, one("closed-early", 2), "{result}");
}

#[test]
fn a_server_that_never_answers_ends_the_load_after_the_timeout() {
    let (result, errors) = two_victims("300ms", |mut stream| {
        let _ = stream.read_to_end(&mut Vec::new())?;
        Ok(())
    });
    assert_eq!(errors, BTreeMap::new(), "{result}");
    assert_eq!(result["connected"], 2, "{result}");
    assert_eq!(result["never_served"], 2, "{result}");
}

#[test]
fn a_reset_is_a_reset() {
    let (result, errors) = two_victims("30s", |mut stream| {
        stream.read_exact(&mut [0; 1000])?;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))
    });
    assert_eq!(errors, one("reset", 2), "{result}");
}

#[test]
fn more_than_was_asked_for_is_a_wrong_reply() {
    let serve = |mut stream: TcpStream| {
        let mut request = [0; 1000];
        loop {
            stream.read_exact(&mut request)?;
            let mut answer = request.to_vec();
            answer.push(0);
            stream.write_all(&answer)?;
        }
    };
    let options = [
        "--clients",
        "2",
        "--duration",
        "30s",
        "--first-reply-timeout",
        "30s",
    ];
    let (_, result, errors) = load(garbage(serve), &options);
    assert_eq!(errors, one("wrong-reply", 2), "{result}");
}

#[test]
fn a_server_that_stops_answering_leaves_requests_unanswered() {
    let serve = |mut stream: TcpStream| {
        let mut request = [0; 1000];
        for _ in 0..3 {
            stream.read_exact(&mut request)?;
            stream.write_all(&request)?;
        }
        let _ = stream.read_to_end(&mut Vec::new())?;
        Ok(())
    };
    let options = ["--clients", "2", "--duration", "2s", "--warm-up", "0s"];
    let (finished, result, errors) = load(garbage(serve), &options);
    assert_eq!(
        (finished.code, errors),
        (0, one("unanswered", 2)),
        "{result}"
    );
    assert_eq!(result["verified"], 6, "{result}");
    assert_eq!(result["requests"], 8, "{result}");
}

/// Answers this many requests over a connection. Then it reads on in silence.
fn answer_only(stream: &mut TcpStream, replies: u32) -> std::io::Result<()> {
    let mut request = [0; 1000];
    for _ in 0..replies {
        stream.read_exact(&mut request)?;
        stream.write_all(&request)?;
    }
    stream.read_exact(&mut request)
}

/// Regression test: they ended with 0 and "stopped by requests", since only the way in which a load ended counted.
#[test]
fn a_load_that_does_not_reach_its_count_fails() {
    let serve = |mut stream: TcpStream| answer_only(&mut stream, 5);
    let answered = "only 10 of 400 requests were answered: 2 closed-early";
    for (options, ending, why) in [
        ("-n 400", "no-clients-left", answered),
        ("--each 200", "no-clients-left", answered),
        (
            "--bytes 1000000",
            "no-clients-left",
            "of 1000000 bytes were transferred",
        ),
    ] {
        let options = [&words("-c 2", &[])[..], &words(options, &[])].concat();
        let (finished, result, errors) = load(garbage(serve), &options);
        assert_eq!(
            (finished.code, errors),
            (1, one("closed-early", 2)),
            "{result}"
        );
        assert!(finished.err.contains(why), "{finished:?}");
        assert_eq!(result["stopped_by"], ending, "{result}");
    }
    // Shares are of what the load asked for.
    for (condition, seen) in [("errors > 90%", "missed"), ("errors > 98%", "met")] {
        let options = ["-c", "2", "-n", "400", "--fail-if", condition];
        let (finished, result, _) = load(garbage(serve), &options);
        assert_eq!((finished.code, &result["left"]), (1, &Value::from(388)));
        let judged = format!("{seen}: fail if {condition}: 97.5 %");
        assert!(finished.err.contains(&judged), "{finished:?}");
    }
}

/// Regression test: the CPU time of the wait for further replies counted as that of the few milliseconds before it:
/// "client 1525 % of its 2 CPUs used", and a warning.
#[test]
fn a_load_that_falls_silent_has_no_share_of_cpu() {
    let serve = |mut stream: TcpStream| {
        answer_only(&mut stream, 5)?;
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    };
    let address = garbage(serve).to_string();
    let options = words("-c 2 -n 40 --first-reply-timeout 300ms", &[]);
    let finished = throng(&[&["load", &address], &options[..]].concat());
    assert_eq!(finished.code, 1, "{finished:?}");
    let why = "only 10 of 40 requests were answered: 2 unanswered";
    assert!(finished.err.contains(why), "{finished:?}");
    assert!(!finished.out.contains("CPUs"), "{finished:?}");
}

/// Regression test: it ended with 0 and a rate of 0.
#[test]
fn a_load_without_a_reply_in_its_duration_fails() {
    let serve = |mut stream: TcpStream| {
        answer_only(&mut stream, 1)?;
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    };
    let options = words("-c 2 -d 200ms --warm-up 0s", &[]);
    let (finished, result, errors) = load(garbage(serve), &options);
    assert_eq!(
        (finished.code, errors),
        (1, one("unanswered", 2)),
        "{result}"
    );
    assert!(
        finished.err.contains("no reply arrived in the 200 ms"),
        "{finished:?}"
    );
}

/// Regression test: requests without a reply left the percentiles, so the threshold was met.
#[test]
fn thresholds_see_requests_that_timed_out() {
    let serve = |mut stream: TcpStream| {
        answer_only(&mut stream, 9)?;
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    };
    let options = "-c 5 -d 500ms --warm-up 0s --request-timeout 100ms --reconnect";
    let options = [&words(options, &[])[..], &["--fail-if", "max > 99ms"]].concat();
    let (finished, result, errors) = load(garbage(serve), &options);
    assert_eq!(finished.code, 3, "{finished:?}");
    assert!(errors.contains_key("request-timeout"), "{result}");
    let longest = result["service_time"]["max_us"].as_f64();
    assert!(longest >= Some(99_000.0), "{result}");
}
