//! HTTP servers whose replies end unexpectedly, on both engines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use super::engines;
use super::servers::{Hostile, keep_sending, only_receive};
use crate::support::load::{Ended, load, one};

const SHORT: &str = "--protocol http -c 5 -d 200ms --first-reply-timeout 5s";
/// More memory than a load of a few clients has any use for.
const TOO_MUCH_KIB: u64 = 100_000;

/// The head of the next request, and its body; none once the client has gone.
fn receive(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length = length.map_or(0, |length| length.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// A server that answers each request with these bytes, and closes after so many.
fn answering(reply: impl Into<Vec<u8>>, most: usize) -> Hostile {
    let reply = reply.into();
    Hostile::start(move |_, stream| {
        let mut stream = BufReader::new(stream);
        for _ in 0..most {
            if receive(&mut stream)?.is_none() {
                return Ok(());
            }
            stream.get_mut().write_all(&reply)?;
        }
        stream.get_mut().shutdown(Shutdown::Write)?;
        only_receive(stream.into_inner())
    })
}

pub(super) fn on_each_engine(server: &Hostile, options: &str, check: impl Fn(&Ended)) {
    for engine in engines() {
        let ended = load(server.address, &format!("{options} --engine {engine}"));
        assert!(ended.most_memory_kib < TOO_MUCH_KIB, "{ended:?}");
        check(&ended);
    }
}

/// All of so many requests were answered over so many connections.
fn all_right(ended: &Ended, requests: u64, connections: u64) {
    assert_eq!((ended.code, ended.errors.len()), (0, 0), "{ended:?}");
    assert_eq!(ended.count("verified"), requests, "{ended:?}");
    assert_eq!(ended.count("connections"), connections, "{ended:?}");
    assert_eq!(ended.count("reconnects"), connections - 4, "{ended:?}");
}

const ENOUGH: &str = "--protocol http -c 4 -n 40";

#[test]
fn a_server_that_closes_after_a_reply_is_asked_again_over_another_connection() {
    for reply in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n\x1f\u{8}hello",
    ] {
        let server = answering(reply, 1);
        on_each_engine(&server, ENOUGH, |ended| all_right(ended, 40, 40));
    }
}

#[test]
fn a_connection_stays_whatever_frames_the_reply() {
    for (reply, options) in [
        (
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
            "",
        ),
        ("HTTP/1.1 204 Nothing\r\nContent-Length: 5\r\n\r\n", ""),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ""),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "-X HEAD"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "-X HEAD",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nTrailer: x\r\nB: c\r\n\r\n",
            "",
        ),
    ] {
        let server = answering(reply, usize::MAX);
        on_each_engine(&server, &format!("{ENOUGH} {options}"), |ended| {
            all_right(ended, 40, 4);
        });
    }
}

#[test]
fn each_way_to_lie_about_an_end_has_a_name() {
    for (reply, most, kind) in [
        // It promises more than comes before it closes.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\nhello",
            1,
            "cut-reply",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Le", 1, "cut-reply"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            1,
            "cut-reply",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            1,
            "bad-chunk",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
            1,
            "bad-chunk",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
            1,
            "bad-length",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            1,
            "bad-length",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            1,
            "bad-length",
        ),
        ("SSH-2.0-x\r\n", 1, "not-http"),
        ("HTTP/1.1 101 Switching\r\n\r\n", 1, "wrong-reply"),
        ("", 1, "closed-early"),
    ] {
        let server = answering(reply, most);
        on_each_engine(&server, SHORT, |ended| ended.only(kind, 5));
    }
    // It sends more than it promised.
    let server = answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello", 1);
    on_each_engine(&server, SHORT, |ended| {
        assert_eq!(ended.errors, one("extra-bytes", 5), "{ended:?}");
    });
}

/// Regression test: it waited for 30 s, whatever the limit.
#[test]
fn debug_waits_no_longer_than_for_first_replies() {
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let silent = Hostile::start(|_, stream| only_receive(stream));
    let open = answering(format!("{head}hello"), usize::MAX);
    let endless = Hostile::start(move |_, stream| keep_sending(stream, head.as_bytes(), b"b"));
    let late = "no reply was complete within 200 ms (--first-reply-timeout)";
    let no_end = "1 endless-reply; the reply has no end";
    for (server, why) in [(silent, late), (open, no_end), (endless, no_end)] {
        for engine in engines() {
            let url = format!("http://{}", server.address);
            let debug = [
                "--debug",
                "--first-reply-timeout",
                "200ms",
                "--engine",
                engine,
            ];
            let out = std::process::Command::new(crate::support::program::THRONG)
                .args(["load", &url])
                .args(debug)
                .output()
                .expect("the program can be started");
            let errors = String::from_utf8_lossy(&out.stderr);
            assert!(errors.contains(why), "{engine}: {errors}");
            assert_eq!(out.status.code(), Some(1));
        }
    }
}

/// Compressed replies are not decompressed: a kilobyte could become a gigabyte.
#[test]
fn a_compressed_bomb_costs_what_it_has_on_the_wire() {
    let mut reply =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n\x1f\x8b\x08"
            .to_vec();
    reply.resize(reply.len() + 997, 0);
    let server = answering(reply, usize::MAX);
    on_each_engine(&server, ENOUGH, |ended| {
        all_right(ended, 40, 4);
        let sizes = ended.at("reply_bytes");
        assert_eq!(
            (&sizes["min"], &sizes["max"]),
            (&1000.into(), &1000.into()),
            "{ended:?}"
        );
    });
}

/// A server that replies with the request, and sets a cookie.
fn recording() -> (Hostile, std::sync::mpsc::Receiver<(String, String)>) {
    let (sender, asked) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let server = Hostile::start(move |connection, stream| {
        let mut stream = BufReader::new(stream);
        while let Some((head, body)) = receive(&mut stream)? {
            let reply = format!(
                "HTTP/1.1 200 OK\r\nSet-Cookie: c={connection}; Path=/\r\nContent-Length: {}\r\n\r\n{}",
                body.len(),
                "x".repeat(body.len())
            );
            let text = String::from_utf8_lossy(&body).into_owned();
            let sent = sender
                .lock()
                .expect("nobody panics with it")
                .send((head, text));
            sent.expect("the test still listens");
            stream.get_mut().write_all(reply.as_bytes())?;
        }
        Ok(())
    });
    (server, asked)
}

#[test]
fn requests_with_variables_are_all_different_and_the_same_for_the_same_seed() {
    for engine in engines() {
        for pipeline in [1, 4] {
            let run = || {
                let (server, asked) = recording();
                let options = format!(
                    "--protocol http --variables -c 4 -n 400 --pipeline {pipeline} --engine {engine} --seed 7 \
                     --path /{{client}}/{{number}} -H X-Id:{{uuid}} --data {{\"a\":[{{number}},\"{{random:5}}\"]}}"
                );
                let ended = load(server.address, &options);
                all_right(&ended, 400, 4);
                drop(server);
                let mut asked: Vec<(String, String)> = asked.try_iter().collect();
                // Connecting may happen in another order, and so do ports.
                for (head, _) in &mut asked {
                    let lines = head.lines().filter(|line| !line.starts_with("Host: "));
                    *head = lines.collect::<Vec<_>>().join("\n");
                }
                asked.sort();
                asked
            };
            let asked = run();
            assert_eq!(asked.len(), 400);
            let mut numbers: Vec<u64> = Vec::new();
            for (head, body) in &asked {
                let path = head.split(' ').nth(1).expect("a path");
                let (client, number) = path[1..].split_once('/').expect("two parts");
                let number: u64 = number.parse().expect("a number");
                assert_eq!(number % 4, client.parse::<u64>().expect("a number"));
                let json: serde_json::Value = serde_json::from_str(body).expect("still JSON");
                assert_eq!(json["a"][0], number);
                assert_eq!(json["a"][1].as_str().map(str::len), Some(5));
                numbers.push(number);
            }
            numbers.sort_unstable();
            assert_eq!(numbers, (0..400).collect::<Vec<_>>());
            assert_eq!(asked, run(), "{engine}, {pipeline}");
        }
    }
}

#[test]
fn every_client_sends_back_its_own_cookie() {
    for engine in engines() {
        let (server, asked) = recording();
        let options = format!("--protocol http --cookies -c 4 -n 40 --engine {engine}");
        all_right(&load(server.address, &options), 40, 4);
        let mut cookies = std::collections::BTreeMap::new();
        for (head, _) in asked.try_iter() {
            let cookie = head
                .lines()
                .find_map(|line| line.strip_prefix("Cookie: c="));
            *cookies.entry(cookie.map(str::to_owned)).or_insert(0) += 1;
        }
        assert_eq!(cookies.remove(&None), Some(4), "the first of each has none");
        assert_eq!(cookies.into_values().collect::<Vec<_>>(), [9; 4]);
        drop(server);
    }
}

/// Large ones are put together too, and leave whole.
#[test]
fn a_large_request_with_variables_leaves_whole() {
    let place = tempfile::tempdir().expect("a directory");
    let body = place.path().join("body");
    std::fs::write(&body, "x".repeat(3_000_000) + "{number}").expect("it can be written");
    for engine in engines() {
        let (server, asked) = recording();
        let options = format!(
            "--protocol http --variables -c 2 -n 6 --engine {engine} --data @{}",
            body.display()
        );
        let ended = load(server.address, &options);
        assert_eq!((ended.code, ended.count("verified")), (0, 6), "{ended:?}");
        assert_eq!(ended.count("reply_bytes.max"), 3_000_001, "{ended:?}");
        assert!(asked.try_iter().all(|(_, body)| body.len() == 3_000_001));
        drop(server);
    }
}

#[test]
fn redirects_are_counted_and_one_is_named() {
    let server = answering(
        "HTTP/1.1 301 Moved\r\nLocation: http://other/a\r\nContent-Length: 0\r\n\r\n",
        usize::MAX,
    );
    on_each_engine(&server, ENOUGH, |ended| {
        all_right(ended, 40, 4);
        assert_eq!(ended.at("redirect"), "http://other/a", "{ended:?}");
        assert_eq!(ended.count("statuses.301"), 40, "{ended:?}");
    });
    let out = std::process::Command::new(crate::support::program::THRONG)
        .args(["load", &format!("http://{}", server.address), "-n", "50"])
        .output();
    let out = String::from_utf8(out.expect("the program can be started").stdout).expect("text");
    assert!(
        out.contains("all replies are redirects to http://other/a"),
        "{out}"
    );
}
