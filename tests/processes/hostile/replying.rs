//! Servers that send a wrong reply, a part of it, or far too much.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::engines;
use super::servers::{ECHO, Hostile, echo_on, echo_once, keep_sending, only_receive, reset, send};
use crate::support::load::{load, one};

const SHORT: &str = "-c 5 -d 200ms --first-reply-timeout 5s";
/// The same for servers whose bytes keep both sides busy, but are never a reply.
const ENDLESS: &str = "-c 5 -d 200ms --first-reply-timeout 1s";
/// More memory than a load of a few clients has any use for.
const TOO_MUCH_KIB: u64 = 100_000;

const PROTOCOLS: [&str; 4] = ["echo", "factorial", "http", "upload"];

#[test]
fn garbage_is_a_wrong_reply() {
    for garbage in [
        &b"220 mail.example.org ESMTP ready\r\n"[..],
        &[0xff; 4000],
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
    ] {
        let server = Hostile::start(|_, stream| send(stream, garbage));
        for protocol in PROTOCOLS {
            let ended = load(server.address, &format!("{SHORT} --protocol {protocol}"));
            ended.only(no_reply_of(protocol), 5);
        }
    }
}

/// The kind of error of an invalid reply.
fn no_reply_of(protocol: &str) -> &'static str {
    match protocol {
        "http" => "not-http",
        _ => "wrong-reply",
    }
}

/// It replies only after a request, like a server that changed since.
#[test]
fn garbage_in_place_of_the_reply_is_a_wrong_reply() {
    let server = Hostile::start(|_, mut stream| {
        stream.read_exact(&mut [0; 8])?; // no request is shorter
        send(stream, &[0x55; 64])
    });
    for protocol in PROTOCOLS {
        let ended = load(server.address, &format!("{SHORT} --protocol {protocol}"));
        ended.only(no_reply_of(protocol), 5);
    }
}

#[test]
fn one_wrong_byte_in_the_thousandth_reply_is_noticed() {
    let server = Hostile::start(|_, mut stream| {
        for _ in 0..999 {
            echo_once(&mut stream)?;
        }
        let mut request = [0; ECHO];
        stream.read_exact(&mut request)?;
        request[ECHO - 1] ^= 1;
        stream.write_all(&request)?;
        echo_on(stream)
    });
    let ended = load(server.address, "-c 2 -n 2000");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(ended.errors, one("wrong-reply", 2), "{ended:?}");
    assert_eq!(ended.count("verified"), 2 * 999, "{ended:?}");
    assert_eq!(ended.count("requests"), 2000, "{ended:?}");
}

/// The reply that is due to the first request of a client, and a byte more.
fn one_more_byte(protocol: &str, stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut request = match protocol {
        "echo" => vec![0; ECHO],
        "factorial" => vec![0; 8],
        "upload" => vec![0; 8 + ECHO],
        _ => Vec::new(),
    };
    stream.read_exact(&mut request)?;
    let mut reply = match protocol {
        "echo" => request,
        "factorial" => {
            let n = u64::from_be_bytes(request.try_into().expect("8 bytes"));
            (1..=n.min(20)).product::<u64>().to_be_bytes().to_vec()
        }
        "upload" => [&[0], &request[..8]].concat(),
        _ => {
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte)?;
                request.extend(byte);
            }
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec()
        }
    };
    reply.push(b'!');
    Ok(reply)
}

#[test]
fn more_than_was_asked_for_is_a_wrong_reply() {
    for protocol in PROTOCOLS {
        let server = Hostile::start(move |_, mut stream| {
            let reply = one_more_byte(protocol, &mut stream)?;
            send(stream, &reply)
        });
        let ended = load(server.address, &format!("{SHORT} --protocol {protocol}"));
        let kind = match protocol {
            "http" => "extra-bytes",
            _ => "wrong-reply",
        };
        assert_eq!(ended.errors, one(kind, 5), "{ended:?}");
    }
}

/// Whether it is wrong at once or only never over: it costs neither memory nor the end.
#[test]
fn bytes_without_end_are_not_kept() {
    let head = "HTTP/1.1 200 OK\r\n";
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    for (protocol, first, again, kind) in [
        ("echo", String::new(), "garbage", Some("wrong-reply")),
        ("factorial", String::new(), "garbage", Some("wrong-reply")),
        ("upload", String::new(), "garbage", Some("wrong-reply")),
        ("http", String::new(), "garbage", Some("not-http")),
        // A head that does not end, by its fields and by one of them.
        ("http", head.to_owned(), "A: b\r\n", Some("long-head")),
        ("http", format!("{head}A: "), "b", Some("long-head")),
        // Replies before the reply, and a body without an end.
        (
            "http",
            String::new(),
            "HTTP/1.1 103 Early Hints\r\n\r\n",
            Some("wrong-reply"),
        ),
        ("http", format!("{head}\r\n"), "b", Some("endless-reply")),
        (
            "http",
            format!("{head}Content-Length: 10000000000\r\n\r\n"),
            "b",
            None,
        ),
        ("http", chunked.clone(), "1\r\nb\r\n", None),
        // The length of a chunk, longer than any, an extension of it, and fields at the end.
        ("http", chunked.clone(), "1", Some("bad-chunk")),
        ("http", format!("{chunked}1;"), "b", Some("bad-chunk")),
        (
            "http",
            format!("{chunked}0\r\n"),
            "A: b\r\n",
            Some("bad-chunk"),
        ),
    ] {
        let server = Hostile::start(move |_, stream| {
            keep_sending(stream, first.as_bytes(), again.as_bytes())
        });
        for engine in engines() {
            let is_awaited = matches!(kind, None | Some("endless-reply"));
            let short = if is_awaited { ENDLESS } else { SHORT };
            let options = format!("{short} --protocol {protocol} --engine {engine}");
            let ended = load(server.address, &options);
            match kind {
                Some(kind) => ended.only(kind, 5),
                None => ended.never_served(5),
            }
            assert!(ended.most_memory_kib < TOO_MUCH_KIB, "{ended:?}");
        }
    }
}

/// Bytes that come in time, one by one, are no reply in time.
#[test]
fn a_trickle_is_a_request_timeout() {
    let server = Hostile::start(|_, stream| trickle(stream, Duration::from_millis(100)));
    let options = format!("{SHORT} --protocol factorial --request-timeout 300ms");
    let ended = load(server.address, &options);
    ended.only("request-timeout", 5);
    assert!(ended.took >= Duration::from_millis(300), "{ended:?}");
}

#[test]
fn a_trickle_counts_as_service() {
    let server = Hostile::start(|_, stream| trickle(stream, Duration::from_millis(40)));
    let ended = load(server.address, "-c 5 -n 10 --protocol factorial");
    assert_eq!((ended.code, ended.errors.len()), (0, 0), "{ended:?}");
    assert_eq!(ended.count("verified"), 10, "{ended:?}");
    let whole = Duration::from_millis(7 * 40);
    assert_eq!(ended.at_least("service_time", whole), 10, "{ended:?}");
}

#[test]
fn one_byte_a_second_does_not_keep_a_load_from_ending() {
    let server = Hostile::start(|_, stream| trickle(stream, Duration::from_secs(1)));
    let ended = load(server.address, &format!("{SHORT} --protocol factorial"));
    ended.never_served(5);
}

/// Answers factorials a byte at a time, with a pause before each.
fn trickle(mut stream: TcpStream, pause: Duration) -> std::io::Result<()> {
    let mut question = [0; 8];
    loop {
        stream.read_exact(&mut question)?;
        let n = u64::from_be_bytes(question);
        for byte in (1..=n.min(20)).product::<u64>().to_be_bytes() {
            std::thread::sleep(pause);
            stream.write_all(&[byte])?;
        }
    }
}

#[test]
fn half_a_reply_and_a_reset_is_a_reset() {
    let server = Hostile::start(|_, mut stream| {
        let mut request = [0; ECHO];
        stream.read_exact(&mut request)?;
        stream.write_all(&request[..ECHO / 2])?;
        reset(stream)
    });
    load(server.address, SHORT).only("reset", 5);
}

#[test]
fn half_a_reply_and_an_end_is_closed_early() {
    let server = Hostile::start(|_, mut stream| {
        let mut request = [0; ECHO];
        stream.read_exact(&mut request)?;
        stream.write_all(&request[..ECHO / 2])?;
        // It continues to read, but sends no more.
        stream.shutdown(std::net::Shutdown::Write)?;
        only_receive(stream)
    });
    load(server.address, SHORT).only("closed-early", 5);
}

#[test]
fn a_server_that_stops_answering_runs_into_the_request_timeout() {
    let server = Hostile::start(|_, mut stream| {
        for _ in 0..3 {
            echo_once(&mut stream)?;
        }
        only_receive(stream)
    });
    let ended = load(
        server.address,
        "-c 5 -d 45s --warm-up 0s --request-timeout 300ms",
    );
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(ended.errors, one("request-timeout", 5), "{ended:?}");
    assert_eq!(
        (ended.count("verified"), ended.count("requests")),
        (15, 20),
        "{ended:?}"
    );
    assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
}
