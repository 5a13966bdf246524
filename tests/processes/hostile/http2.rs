//! HTTP/2 servers that break the protocol, or send frames without end, on both engines.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use super::http::on_each_engine;
use super::servers::{Hostile, keep_sending, only_receive};

const SHORT: &str = "--http2 -c 5 -d 200ms --warm-up 0s --first-reply-timeout 5s";
const HEADERS: u8 = 1;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// The kind and the stream of the client's next frame.
fn next(stream: &mut TcpStream) -> io::Result<(u8, u32)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    io::copy(&mut stream.take(length.into()), &mut io::sink())?;
    Ok((
        head[3],
        u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
    ))
}

/// Sends settings, and waits for the first request.
fn begin(stream: &mut TcpStream, settings: &[u8]) -> io::Result<()> {
    stream.write_all(&frame(4, 0, 0, settings))?;
    stream.read_exact(&mut [0; 24])?;
    while next(stream)?.0 != HEADERS {}
    Ok(())
}

/// A server that answers the first request of each connection with these bytes, and then with others without end.
fn answering(first: Vec<u8>, again: Vec<u8>) -> Hostile {
    Hostile::start(move |_, mut stream| {
        begin(&mut stream, &[])?;
        if again.is_empty() {
            stream.write_all(&first)?;
            return only_receive(stream);
        }
        keep_sending(stream, &first, &again)
    })
}

#[test]
fn each_violation_of_http2_has_a_name() {
    let ok = frame(HEADERS, 4, 1, b"\x88");
    // A field of 4,000 bytes, added to the table, then named twenty times.
    let mut bomb = vec![0x88, 0x40, 1, b'x', 0x7f, 0xa1, 0x1e];
    bomb.extend([b'y'; 4000]);
    bomb.extend([0xbe; 20]);
    let endless = |frame: Vec<u8>| (Vec::new(), frame);
    for ((first, again), kind) in [
        (
            (frame(HEADERS, 0, 1, b"\x88"), frame(9, 0, 1, b"")),
            "long-head",
        ),
        (
            (
                frame(HEADERS, 0, 1, b"\x88"),
                frame(9, 0, 1, &[0x88; 16_000]),
            ),
            "long-head",
        ),
        ((frame(HEADERS, 5, 1, &bomb), Vec::new()), "long-head"),
        (endless(frame(4, 0, 0, &[])), "frame-flood"),
        (endless(frame(6, 0, 0, &[0; 8])), "frame-flood"),
        (endless(frame(99, 0, 0, b"x")), "frame-flood"),
        ((ok.clone(), frame(0, 0, 1, b"")), "frame-flood"),
        (
            (frame(0, 0, 1, &vec![0; 16 << 20]), Vec::new()),
            "bad-frame",
        ),
        ((frame(3, 0, 99, &[0; 4]), Vec::new()), "bad-frame"),
        ((frame(5, 4, 1, b"\0\0\0\x02\x82"), Vec::new()), "bad-frame"),
        ((frame(2, 0, 1, b"garbage"), Vec::new()), "bad-frame"),
        (
            (frame(7, 0, 0, b"\0\0\0\0\0\0\0\x0b"), Vec::new()),
            "goaway",
        ),
        ((frame(8, 0, 0, &[0; 4]), Vec::new()), "bad-window"),
        ((frame(HEADERS, 5, 1, b"\xff"), Vec::new()), "bad-headers"),
    ] {
        let server = answering(first, again);
        on_each_engine(&server, SHORT, |ended| ended.only(kind, 5));
    }
}

#[test]
fn a_window_that_stays_shut_ends_with_a_timeout() {
    let server = Hostile::start(|_, mut stream| {
        begin(&mut stream, b"\0\x04\0\0\0\0")?;
        only_receive(stream)
    });
    let options = "--http2 -c 5 -d 1s --data hello --request-timeout 200ms";
    on_each_engine(&server, options, |ended| ended.only("request-timeout", 5));
}

#[test]
fn streams_that_are_reset_at_once_are_failed_requests() {
    let server = Hostile::start(|_, mut stream| {
        stream.write_all(&frame(4, 0, 0, &[]))?;
        stream.read_exact(&mut [0; 24])?;
        loop {
            if let (HEADERS, number) = next(&mut stream)? {
                stream.write_all(&frame(3, 0, number, &[0, 0, 0, 8]))?;
            }
        }
    });
    on_each_engine(&server, "--http2 -c 5 -n 500 --streams 3", |ended| {
        assert_eq!((ended.code, ended.errors.len()), (1, 0), "{ended:?}");
        assert_eq!(
            ended.result["unexpected"],
            serde_json::json!({ "reset: CANCEL": 500 })
        );
    });
}

/// As servers do that answer a number of requests per connection.
#[test]
fn requests_that_a_leaving_server_left_are_sent_again() {
    let server = Hostile::start(|_, mut stream| {
        begin(&mut stream, &[])?;
        let mut reply = frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0");
        reply.extend(frame(HEADERS, 5, 1, b"\x88"));
        stream.write_all(&reply)?;
        only_receive(stream)
    });
    on_each_engine(&server, "--http2 -c 4 -n 40 --streams 2", |ended| {
        assert_eq!((ended.code, ended.errors.len()), (0, 0), "{ended:?}");
        assert_eq!(ended.count("verified"), 40, "{ended:?}");
    });
}
