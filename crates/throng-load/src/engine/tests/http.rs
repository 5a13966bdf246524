//! HTTP servers that end connections and replies in their own ways.

use super::*;

/// Reads requests without a body, and calls `answer` after each with its number, from 1, while that returns true.
fn asked(stream: &mut TcpStream, mut answer: impl FnMut(&mut TcpStream, usize) -> bool) {
    const END: &[u8] = b"\r\n\r\n";
    let (mut received, mut bytes, mut number) = (Vec::new(), [0; 4096], 0);
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        received.extend_from_slice(&bytes[..count]);
        while let Some(end) = received.windows(END.len()).position(|four| four == END) {
            received.drain(..end + END.len());
            number += 1;
            if !answer(stream, number) {
                return;
            }
        }
    }
}

fn says(text: &'static str) -> impl FnMut(&mut TcpStream, usize) -> bool {
    move |stream, _| stream.write_all(text.as_bytes()).is_ok()
}

/// Regression test: clients waited for the close that a server had announced, for ever.
#[test]
fn a_server_may_leave_the_announced_close_to_its_clients() {
    let server = server(|mut stream, _| {
        let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
        asked(&mut stream, says(closing));
    });
    let plan = plan(server.address, "http", 1, 2, Until::Requests(20));
    on_each(&plan, |engine, load| {
        all_verified(20)(engine, load);
        assert_eq!(load.connections, 20, "{}", engine.name());
    });
}

/// Regression test: the reply 408 with which a server closes an idle connection ended its client.
#[test]
fn a_timeout_of_an_idle_connection_is_no_error() {
    let server = server(|mut stream, _| {
        asked(&mut stream, |stream, _| {
            // In one piece, lest the next request comes between.
            let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\
                         HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
            for part in [reply, "late"] {
                let _ = stream.write_all(part.as_bytes());
            }
            false
        });
    });
    let think = Think::Fixed(Duration::from_millis(20));
    let until = Until::Requests(20);
    let rate = Some(fixture::rate(200.0, Spacing::Constant));
    let closed = plan(server.address, "http", 1, 2, until);
    for (think, rate) in [(think, None), (Think::None, rate)] {
        let plan = Plan {
            rate,
            think,
            ..closed.clone()
        };
        on_each(&plan, |engine, load| {
            all_verified(20)(engine, load);
            assert_eq!(load.connections, 20, "{}", engine.name());
        });
    }
}

/// Regression test: such a load had neither replies nor errors.
#[test]
fn a_reply_without_an_end_is_an_error() {
    let server = server(|mut stream, _| {
        asked(&mut stream, says("HTTP/1.1 200 OK\r\n\r\nhello"));
    });
    let each = Until::Each {
        requests: Some(1),
        live: None,
        limit: None,
    };
    let silence = Duration::from_millis(200);
    for until in [
        Until::Duration(silence),
        Until::Requests(20),
        Until::Bytes(1_000_000),
        each,
    ] {
        let plan = Plan {
            first_reply_timeout: silence,
            connect_timeout: silence,
            ..plan(server.address, "http", 1, 2, until)
        };
        on_each(&plan, |engine, load| {
            let name = engine.name();
            assert_eq!(
                load.errors,
                [("endless-reply".to_owned(), 2)].into(),
                "{name}"
            );
            let detail = &load.error_details["endless-reply"];
            assert!(detail.starts_with("the reply has no end"), "{detail}");
            assert_eq!((load.served, load.never_served), (0, 0), "{name}");
        });
    }
}
