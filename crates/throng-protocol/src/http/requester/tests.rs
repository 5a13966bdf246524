use proptest::prelude::*;

use super::super::super::{Mix, Requester as _, Statuses};
use super::super::reply::{MOST_FIELDS, MOST_HEAD};
use super::super::{BodyRule, HttpRequest, TEXT_PERIOD, text};
use super::*;

fn settings() -> Settings {
    asking(HttpRequest::new(None, "/a?b", &[], None).unwrap())
}

fn asking(request: HttpRequest) -> Settings {
    Settings {
        host: "localhost:1",
        requests: Mix::One(Box::leak(Box::new(request))),
        ..Settings::default()
    }
}

fn asked(requests: usize) -> HttpRequester {
    let mut requester = HttpRequester::new(&settings(), 9);
    let mut wire = Vec::new();
    for _ in 0..requests {
        requester.request(&mut wire);
    }
    let request = b"GET /a?b HTTP/1.1\r\nHost: localhost:1\r\nUser-Agent: throng\r\n\r\n";
    assert_eq!(wire, request.repeat(requests));
    requester
}

/// The outcome of receiving `wire`, cut at `cut`, after `requests` requests.
fn receive_all(requests: usize, wire: &[u8], cut: usize) -> Result<Replies, ProtocolError> {
    let mut requester = asked(requests);
    let mut sum = Replies::default();
    for piece in [&wire[..cut], &wire[cut..]] {
        let replies = requester.receive(piece)?;
        sum.completed += replies.completed;
        sum.refused += replies.refused;
        sum.close |= replies.close;
    }
    Ok(sum)
}

const DONE: Replies = Replies {
    completed: 1,
    refused: 0,
    close: false,
};

#[test]
fn every_framing_cut_at_every_byte() {
    let unexpected = Replies { refused: 1, ..DONE };
    let closing = Replies {
        close: true,
        ..DONE
    };
    for (wire, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", DONE),
        (
            "HTTP/1.1 200\r\ncontent-length:3\r\ncontent-length: 3\r\n\r\nabc",
            DONE,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", DONE),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", DONE),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
            DONE,
        ),
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
            unexpected,
        ),
        (
            "HTTP/1.1 503 \r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            unexpected,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 7\r\n\r\n\
             2;x=y\r\nab\r\n0\r\nX: y\r\n\r\n",
            DONE,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            DONE,
        ),
        (
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
            closing,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", closing),
        (
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
            DONE,
        ),
    ] {
        for cut in 0..=wire.len() {
            let received = receive_all(1, wire.as_bytes(), cut);
            assert_eq!(received, Ok(expected), "{wire} cut at {cut}");
        }
    }
}

/// Regression test: a cached head did not reset the count of interim replies, nor did one that came alone.
#[test]
fn interim_replies_are_limited_for_each_final_one() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(40);
    let last = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let wire = [&interim[..], last].concat();
    for cut in [0, 10, interim.len(), interim.len() + 10, wire.len()] {
        let mut requester = asked(5);
        for _ in 0..5 {
            let first = requester.receive(&wire[..cut]).unwrap();
            let second = requester.receive(&wire[cut..]).unwrap();
            assert_eq!(first.completed + second.completed, 1, "cut at {cut}");
        }
    }
}

#[test]
fn a_folded_header_is_a_single_line() {
    let wire = "HTTP/1.1 302 Found\r\nX-A: b\r\n  c:\r\nConnection: x,\r\n\tclose\r\nContent-Length:\r\n 1\r\n\
                Location:\r\n /there\r\n\r\nx";
    let closing = Replies {
        close: true,
        ..DONE
    };
    for cut in 0..=wire.len() {
        let received = receive_all(1, wire.as_bytes(), cut);
        assert_eq!(received, Ok(closing), "cut at {cut}");
    }
    let mut requester = asked(1);
    requester.receive(wire.as_bytes()).unwrap();
    let mut counts = ReplyCounts::default();
    requester.counts(&mut counts);
    assert_eq!(counts.redirect.as_deref(), Some("/there"));
}

#[test]
fn a_timeout_without_a_request_only_ends_the_connection() {
    let timeout = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate";
    let ended = Replies {
        close: true,
        ..Replies::default()
    };
    for cut in 12..timeout.len() {
        let mut requester = asked(0);
        assert_eq!(requester.receive(&timeout[..cut]), Ok(ended));
        assert_eq!(requester.receive(&timeout[cut..]), Ok(ended));
        requester.drop_requests();
        requester.request(&mut Vec::new());
        // With a request, it is the reply.
        let refused = requester.receive(timeout).map(|replies| replies.refused);
        assert_eq!(refused, Ok(1));
    }
}

#[test]
fn a_body_may_end_with_the_connection() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    ] {
        let mut requester = asked(1);
        for piece in [head, "abc", "def"] {
            assert_eq!(requester.awaits_close(), piece != head);
            let received = requester.receive(piece.as_bytes());
            assert_eq!(received, Ok(Replies::default()));
        }
        assert!(requester.awaits_close());
        let closing = Replies {
            close: true,
            ..DONE
        };
        assert_eq!(requester.finish(), Ok(closing));
        // A reply without a body.
        requester.request(&mut Vec::new());
        requester.receive(head.as_bytes()).unwrap();
        assert_eq!(requester.finish(), Ok(closing));
    }
}

#[test]
fn a_reply_broken_off_is_no_reply() {
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let mut requester = asked(1);
    assert_eq!(requester.finish(), Ok(Replies::default()), "nothing came");
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n";
    for (wire, why) in [
        (&wire[..], "2 of 3 bytes of a body"),
        (chunked, "before its last chunk"),
    ] {
        for cut in 1..wire.len() {
            let mut requester = asked(1);
            requester.receive(&wire[..cut]).unwrap();
            let error = requester.finish().unwrap_err();
            assert_eq!(requester.fault(), Some("cut-reply"), "cut at {cut}");
            assert!(cut + 1 < wire.len() || error.what.contains(why), "{error}");
        }
    }
}

/// The outcome of replies with these bodies under the rule `body`.
fn judged(length: Option<u64>, body: Option<&str>, bodies: &[&str]) -> Result<Replies, String> {
    let rule = body.map(|spec| &*Box::leak(Box::new(BodyRule::parse(spec).unwrap())));
    let settings = Settings {
        length,
        body: rule,
        ..settings()
    };
    let mut requester = HttpRequester::new(&settings, 9);
    let mut received = Replies::default();
    for body in bodies {
        requester.begin();
        let length = body.len();
        let wire = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        let replies = requester.receive(wire.as_bytes());
        received.completed += replies.map_err(|error| error.what)?.completed;
    }
    Ok(received)
}

#[test]
fn bodies_may_differ_without_a_rule() {
    let three = Ok(Replies {
        completed: 3,
        ..Replies::default()
    });
    assert_eq!(judged(None, None, &["", "a", "bcd"]), three);
    assert_eq!(judged(Some(2), None, &["ab", "cd", "ef"]), three);
    assert_eq!(judged(None, Some("same"), &["ab", "ab", "ab"]), three);
    assert_eq!(judged(None, Some("contains:b"), &["ab", "b", "cb"]), three);
    for (length, body, bodies, why) in [
        (
            Some(2),
            None,
            ["ab", "c"],
            "the body has 1 bytes instead of 2",
        ),
        (
            None,
            Some("same"),
            ["ab", "ac"],
            "not the same as before but `ac`",
        ),
        (
            None,
            Some("same"),
            ["ab", ""],
            "not the same as before but ``",
        ),
        (
            None,
            Some("text:ab"),
            ["ab", "abc"],
            "not text:ab but `abc`",
        ),
    ] {
        let found = judged(length, body, &bodies).unwrap_err();
        assert!(found.contains(why), "{found}");
    }
}

#[test]
fn replies_to_head_have_no_body() {
    let settings = asking(HttpRequest::new(Some("HEAD"), "/", &[], None).unwrap());
    let mut requester = HttpRequester::new(&settings, 9);
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        requester.begin();
        assert_eq!(requester.receive(head.as_bytes()), Ok(DONE), "{head}");
    }
}

#[test]
fn a_client_is_small() {
    // Only clients that need more allocate it.
    assert!(asked(1).0.clients[0].rare.is_none());
}

#[test]
fn throngs_own_text_is_checked() {
    for length in [1, TEXT_PERIOD - 1, 2 * TEXT_PERIOD + 3] {
        let head = format!("HTTP/1.1 200 OK\r\nServer: throng\r\nContent-Length: {length}\r\n\r\n");
        let text = text();
        let body = text.iter().cycle().take(length);
        let mut wire: Vec<u8> = head.bytes().chain(body.copied()).collect();
        assert_eq!(receive_all(1, &wire, head.len() + length / 2), Ok(DONE));
        let flipped = wire.len() - 1 - length / 3;
        wire[flipped] ^= 1;
        assert!(receive_all(1, &wire, head.len()).is_err());
    }
}

#[test]
fn wrong_replies_are_refused() {
    let fields = "a: b\r\n".repeat(MOST_FIELDS + 2);
    for (wire, kind, why) in [
        ("SSH-2.0-OpenSSH_9.2\r\n", "not-http", "not HTTP/1.1"),
        ("HTTP/2 200\r\n\r\n", "not-http", "not HTTP/1.1"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "bad-length",
            "an invalid content length: `x`",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
            "bad-length",
            "an invalid content length: `18446744073709551616`",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "bad-length",
            "two different content lengths",
        ),
        (
            "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
            "not-http",
            "000 is not a status",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "wrong-reply",
            "another protocol",
        ),
        (
            &"HTTP/1.1 102 Processing\r\n\r\n".repeat(65),
            "wrong-reply",
            "more than 64 replies of status 1xx",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx",
            "extra-bytes",
            "1 bytes came after the reply: `x`",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx",
            "bad-chunk",
            "a chunk has no size",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
            "bad-chunk",
            "a chunk has a size that is too large",
        ),
        (
            &format!("HTTP/1.1 200 OK\r\n{fields}"),
            "long-head",
            "too many headers",
        ),
        (
            &format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MOST_HEAD)),
            "long-head",
            "a head of more than",
        ),
    ] {
        for cut in [0, 1, wire.len() / 2, wire.len()] {
            let mut requester = asked(1);
            let (head, tail) = wire.as_bytes().split_at(cut);
            let first = requester.receive(head);
            let second = first.and_then(|_| requester.receive(tail));
            let error = second.expect_err(wire);
            assert!(error.what.contains(why), "{error} for {wire}");
            assert_eq!(requester.fault().unwrap_or("wrong-reply"), kind, "{error}");
        }
    }
    let closed = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert!(receive_all(2, closed.repeat(2).as_bytes(), 0).is_err());
}

/// A complete reply with these headers.
fn reply(fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

#[test]
fn requests_with_variables_are_made_for_one_client() {
    let request = HttpRequest::new(None, "/{number}/{client}", &[], None).unwrap();
    let settings = Settings {
        clients: 10,
        ..asking(request.with_variables_if(true, &[]).unwrap())
    };
    let mut requester = HttpRequester::new(&settings, 3);
    let head =
        |n: u32| format!("GET /{n}/3 HTTP/1.1\r\nHost: localhost:1\r\nUser-Agent: throng\r\n\r\n");
    assert_eq!(requester.begin(), b"", "nothing is shared");
    assert_eq!(requester.generated(), head(3).as_bytes());
    requester.advance(4);
    requester.begin();
    let rest = [&head(3)[4..], &head(13)].concat();
    assert_eq!(requester.generated(), rest.as_bytes());
    requester.advance(rest.len());
    assert_eq!(requester.generated(), b"");
    assert_eq!(
        requester
            .receive(reply("", "a").repeat(2).as_bytes())
            .unwrap()
            .completed,
        2
    );
    // Cancelled requests are not sent, and no number is repeated.
    requester.begin();
    requester.drop_requests();
    assert_eq!(requester.generated(), b"");
    requester.begin();
    requester.begin();
    let generated = requester.generated().len();
    requester.advance(generated);
    assert_eq!(
        (generated, requester.generated().len()),
        (head(33).len() * 2, 0)
    );
}

#[test]
fn cookies_come_back_with_the_next_request() {
    let settings = Settings {
        cookies: true,
        ..settings()
    };
    let mut requester = HttpRequester::new(&settings, 3);
    for (fields, sent) in [
        ("Set-Cookie: a=1; Path=/\r\n", ""),
        ("", "Cookie: a=1\r\n"),
        ("Set-Cookie: a=1; Path=/\r\n", "Cookie: a=1\r\n"),
        (
            "Set-Cookie: a=;\r\n Max-Age=0\r\nSet-Cookie: b=2\r\n",
            "Cookie: a=1\r\n",
        ),
        ("", "Cookie: b=2\r\n"),
    ] {
        let mut wire = Vec::new();
        requester.request(&mut wire);
        let wire = String::from_utf8(wire).unwrap();
        let expected = format!("User-Agent: throng\r\n{sent}\r\n");
        assert!(wire.ends_with(&expected), "{wire}");
        let reply = reply(fields, "x");
        let (head, tail) = reply.as_bytes().split_at(reply.len() / 2);
        requester.receive(head).unwrap();
        requester.receive(tail).unwrap();
    }
}

#[test]
fn each_request_has_its_own_right_statuses() {
    let leak = |request| &*Box::leak(Box::new(request));
    let get = leak(HttpRequest::new(None, "/", &[], None).unwrap());
    let gone = HttpRequest::new(Some("HEAD"), "/gone", &[], None).unwrap();
    let gone = leak(gone.expecting("404".parse::<Statuses>().unwrap()));
    let settings = Settings {
        requests: Mix::new(&[(get, 1), (gone, 1)]).unwrap(),
        ..settings()
    };
    let mut requester = HttpRequester::new(&settings, 3);
    let mut wire = Vec::new();
    (0..100).for_each(|_| requester.request(&mut wire));
    let asked = String::from_utf8(wire).unwrap();
    let mut replies = String::new();
    for head in asked.split_terminator("\r\n\r\n") {
        // A reply to HEAD has no body, regardless of its length.
        replies += if head.starts_with("HEAD /gone ") {
            "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n"
        } else {
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
        };
    }
    let received = requester.receive(replies.as_bytes()).unwrap();
    assert_eq!((received.completed, received.refused), (100, 0));
}

#[test]
fn redirects_are_named() {
    let mut requester = asked(3);
    let redirect =
        |status, fields: &str| format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: 0\r\n\r\n");
    let wire = [
        redirect(304, "Location: /not-this\r\n"),
        redirect(301, "lOCATION:  https://h/a?b \r\n"),
        redirect(302, "Location: /later\r\n"),
    ];
    requester.receive(wire.concat().as_bytes()).unwrap();
    let mut counts = ReplyCounts::default();
    requester.counts(&mut counts);
    assert_eq!(counts.redirect.as_deref(), Some("https://h/a?b"));
    assert_eq!(counts.statuses.len(), 3);
}

#[test]
fn sizes_of_bodies_are_those_of_their_content() {
    let mut requester = asked(4);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n3\r\ncde\r\n0\r\nA: b\r\n\r\n";
    let wire = [
        &reply("", "abc"),
        chunked,
        &reply("", ""),
        &reply("", "abcde"),
    ]
    .concat();
    requester.receive(wire.as_bytes()).unwrap();
    let mut sizes = Vec::new();
    requester.sizes(&mut |bytes, count| sizes.push((bytes, count)));
    assert_eq!(sizes, [(3, 1), (5, 1), (0, 1), (5, 1)]);
}

proptest! {
    #[test]
    fn garbage_is_no_trouble(
        garbage in prop::collection::vec(any::<u8>(), 0..3000),
        head in prop::sample::select(vec![
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
        ]),
    ) {
        let mut requester = asked(2);
        let wire = [head.as_bytes(), &garbage].concat();
        for piece in wire.chunks(700) {
            if requester.receive(piece).is_err() {
                break;
            }
        }
        let rare = requester.0.clients[0].rare.as_ref();
        prop_assert!(rare.is_none_or(|rare| rare.part.capacity() <= 2 * MOST_HEAD));
    }
}
