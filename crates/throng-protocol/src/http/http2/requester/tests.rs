use super::super::super::super::Mix;
use super::super::super::super::{Requester as _, Statuses};
use super::super::super::{BodyRule, HttpRequest};
use super::super::MOST_STREAMS;
use super::super::frame::Code;
use super::*;

/// A client that has begun `count` requests, after the server's settings; and the bytes since then.
fn opened(settings: &Settings, count: usize, values: &[(u16, u32)]) -> (Http2Requester, Vec<u8>) {
    let mut requester = Http2Requester::new(settings, 0, false);
    requester.begin();
    requester.advance(requester.generated().len());
    let mut wire = Vec::new();
    frame::write_settings(&mut wire, values);
    assert_eq!(requester.receive(&wire), Ok(Replies::default()));
    (1..count).for_each(|_| {
        requester.begin();
    });
    let sent = sent(&mut requester);
    (requester, sent)
}

fn sent(requester: &mut Http2Requester) -> Vec<u8> {
    let mut sent = Vec::new();
    while !requester.generated().is_empty() {
        sent.extend_from_slice(requester.generated());
        requester.advance(requester.generated().len());
    }
    sent
}

/// The kinds and streams of these frames.
fn kinds(mut wire: &[u8]) -> Vec<(u8, u32)> {
    let mut kinds = Vec::new();
    while let Some(head) = wire.first_chunk() {
        let head = frame::FrameHead::read(*head);
        kinds.push((head.kind, head.stream));
        wire = &wire[frame::HEAD + head.length as usize..];
    }
    kinds
}

fn head(status: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    hpack::push_field(":status", status, &mut block);
    for (name, value) in fields {
        hpack::push_field(name, value, &mut block);
    }
    block
}

fn reply(stream: u32, status: &str, body: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    frame::write_block(&mut wire, 0, stream, &head(status, &[]));
    frame::write(&mut wire, frame::DATA, frame::END_STREAM, stream, body);
    wire
}

#[test]
fn replies_come_in_any_order() {
    let (mut requester, wire) = opened(&Settings::default(), 4, &[]);
    let streams = [1, 3, 5, 7].map(|stream| (frame::HEADERS, stream));
    assert_eq!(kinds(&wire)[1..], streams, "after the acknowledgement");
    let mut wire = reply(5, "200", b"c");
    wire.extend(reply(7, "404", b"d"));
    let replies = requester.receive(&wire).unwrap();
    assert_eq!((replies.completed, replies.refused), (2, 1));
    assert_eq!([requester.answered(), requester.answered()], [2, 2]);
    // Bodies of two streams, mixed.
    let mut wire = Vec::new();
    frame::write_block(&mut wire, 0, 1, &head("103", &[]));
    frame::write_block(&mut wire, 0, 3, &head("200", &[("content-length", "4")]));
    frame::write_block(&mut wire, 0, 1, &head("200", &[]));
    frame::write(&mut wire, frame::DATA, 0, 3, b"ab");
    frame::write(&mut wire, frame::DATA, 0, 1, b"ab");
    frame::write(&mut wire, frame::DATA, 0, 3, b"cd");
    let trailers = {
        let mut block = Vec::new();
        hpack::push_field("x-sum", "1", &mut block);
        block
    };
    frame::write_block(&mut wire, frame::END_STREAM, 3, &trailers);
    frame::write(&mut wire, frame::DATA, frame::END_STREAM, 1, b"");
    for byte in wire.chunks(1) {
        let replies = requester.receive(byte).unwrap();
        if replies.completed == 1 {
            let is_first = requester.0.clients[0].open_streams() == 1;
            assert_eq!(requester.answered(), u16::from(is_first));
        }
    }
    assert_eq!(requester.0.clients[0].open_streams(), 0);
    let mut counts = ReplyCounts::default();
    requester.counts(&mut counts);
    assert_eq!(counts.statuses, [(200, 3), (404, 1)].into());
    let mut sizes = Vec::new();
    requester.sizes(&mut |bytes, count| sizes.push((bytes, count)));
    assert_eq!(sizes.iter().map(|(_, count)| count).sum::<u64>(), 4);
}

#[test]
fn requests_wait_for_a_free_stream() {
    let limit = [(frame::MAX_CONCURRENT_STREAMS, 2)];
    let (mut requester, wire) = opened(&Settings::default(), 4, &limit);
    assert_eq!(kinds(&wire).len(), 3);
    assert_eq!(requester.room(), 2);
    requester.receive(&reply(3, "200", b"")).unwrap();
    assert_eq!(kinds(&sent(&mut requester)), [(frame::HEADERS, 5)]);
    // A stream that the server resets counts as an unexpected reply, and makes room.
    let mut wire = Vec::new();
    frame::write_number(&mut wire, frame::RST_STREAM, 1, 7);
    let replies = requester.receive(&wire).unwrap();
    assert_eq!((replies.completed, replies.refused), (1, 1));
    assert_eq!(kinds(&sent(&mut requester)), [(frame::HEADERS, 7)]);
    let mut counts = ReplyCounts::default();
    requester.counts(&mut counts);
    assert_eq!(counts.unexpected, [(Code::REFUSED.status(), 1)].into());
    assert_eq!(counts.limits[MOST_STREAMS], 2);
}

#[test]
fn a_body_keeps_to_the_windows() {
    let request = HttpRequest::new(None, "/", &[], Some(vec![b'x'; 100_000])).unwrap();
    let settings = Settings {
        requests: Mix::One(Box::leak(Box::new(request))),
        ..Settings::default()
    };
    let (mut requester, wire) = opened(&settings, 1, &[(frame::INITIAL_WINDOW_SIZE, 10)]);
    let bytes = |wire: &[u8]| memchr::memchr_iter(b'x', wire).count();
    let before = bytes(&wire);
    assert_eq!(kinds(&wire)[1..], [(frame::HEADERS, 1), (frame::DATA, 1)]);
    let mut wire = Vec::new();
    frame::write_number(&mut wire, frame::WINDOW_UPDATE, 1, 80_000);
    requester.receive(&wire).unwrap();
    let sent_now = bytes(&sent(&mut requester));
    assert!(
        (65_500..65_600).contains(&(before + sent_now)),
        "all of the connection's window"
    );
    wire.clear();
    frame::write_number(&mut wire, frame::WINDOW_UPDATE, 0, 80_000);
    frame::write_number(&mut wire, frame::WINDOW_UPDATE, 1, 80_000);
    requester.receive(&wire).unwrap();
    let rest = sent(&mut requester);
    assert!(before + sent_now + bytes(&rest) >= 100_000);
    // Another request, whose reply comes before its body is sent.
    requester.receive(&reply(1, "200", b"")).unwrap();
    requester.begin();
    sent(&mut requester);
    requester.receive(&reply(3, "413", b"")).unwrap();
    let last = kinds(&sent(&mut requester));
    assert!(
        last.is_empty() || last.contains(&(frame::RST_STREAM, 3)),
        "{last:?}"
    );
}

#[test]
fn goaway_ends_it_after_the_replies_that_still_come() {
    let (mut requester, _) = opened(&Settings::default(), 3, &[]);
    let mut wire = Vec::new();
    frame::write(&mut wire, frame::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(requester.receive(&wire).unwrap(), Replies::default());
    assert_eq!(requester.room(), 0);
    assert!(!requester.receive(&reply(1, "200", b"")).unwrap().close);
    let last = requester.receive(&reply(3, "200", b"")).unwrap();
    assert!(last.close && last.completed == 1);
    let (mut requester, _) = opened(&Settings::default(), 1, &[]);
    let mut wire = Vec::new();
    let payload = [&[0, 0, 0, 1, 0, 0, 0, 11][..], b"slow down"].concat();
    frame::write(&mut wire, frame::GOAWAY, 0, 0, &payload);
    let error = requester.receive(&wire).unwrap_err();
    assert_eq!(
        error.what,
        "the server ended the connection with ENHANCE_YOUR_CALM slow down"
    );
    assert_eq!(requester.fault(), Some("goaway"));
}

#[test]
fn bodies_are_checked_stream_by_stream() {
    let settings = Settings {
        body: Some(Box::leak(Box::new(BodyRule::parse("text:abcd").unwrap()))),
        ..Settings::default()
    };
    let (mut requester, _) = opened(&settings, 3, &[]);
    let mut wire = Vec::new();
    for stream in [1, 3] {
        frame::write_block(&mut wire, 0, stream, &head("200", &[]));
    }
    for stream in [1, 3] {
        frame::write(&mut wire, frame::DATA, 0, stream, b"ab");
    }
    for stream in [3, 1] {
        frame::write(&mut wire, frame::DATA, frame::END_STREAM, stream, b"cd");
    }
    assert_eq!(requester.receive(&wire).unwrap().completed, 2);
    assert!(requester.receive(&reply(5, "200", b"abce")).is_err());
}

/// What servers must not send, and its kind in records.
#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn faults_have_their_kind() {
    type Write = fn(&mut Vec<u8>);
    let faults: &[(&str, Write)] = &[
        ("bad-frame", |wire| {
            frame::write(wire, frame::DATA, 0, 1, b"x");
        }),
        ("bad-frame", |wire| {
            frame::write(wire, frame::DATA, 0, 9, b"x");
        }),
        ("bad-frame", |wire| {
            frame::write(wire, frame::PUSH_PROMISE, 4, 1, &[0; 4]);
        }),
        ("bad-frame", |wire| {
            frame::write(wire, 99, 0, 0, &vec![0; 16_385]);
        }),
        ("bad-frame", |wire| {
            frame::write(wire, frame::PRIORITY, 0, 1, b"x");
        }),
        ("bad-frame", |wire| {
            frame::write(wire, frame::PING, 0, 0, b"x");
        }),
        ("bad-frame", |wire| {
            frame::write_settings(wire, &[(frame::ENABLE_PUSH, 1)]);
        }),
        ("bad-frame", |wire| {
            frame::write(wire, frame::CONTINUATION, 4, 1, b"");
        }),
        ("bad-window", |wire| {
            frame::write_number(wire, frame::WINDOW_UPDATE, 0, 0);
        }),
        ("bad-window", |wire| {
            frame::write_number(wire, frame::WINDOW_UPDATE, 0, MOST);
        }),
        ("bad-headers", |wire| {
            frame::write(wire, frame::HEADERS, 5, 1, b"\x80");
        }),
        ("bad-headers", |wire| {
            frame::write(wire, frame::HEADERS, 5, 1, b"\x82");
        }),
        ("bad-headers", |wire| {
            frame::write_block(wire, 0, 1, &head("99", &[]));
        }),
        ("bad-headers", |wire| {
            frame::write_block(wire, 0, 1, &head("101", &[]));
        }),
        ("bad-headers", |wire| {
            (0..100).for_each(|_| frame::write_block(wire, 0, 1, &head("103", &[])));
        }),
        ("bad-length", |wire| {
            frame::write_block(wire, 1, 1, &head("200", &[("content-length", "1")]));
        }),
        ("bad-length", |wire| {
            frame::write_block(wire, 0, 1, &head("200", &[("content-length", "1")]));
            frame::write(wire, frame::DATA, 0, 1, b"xx");
        }),
        ("long-head", |wire| {
            frame::write(wire, frame::HEADERS, 0, 1, b"");
            (0..100).for_each(|_| frame::write(wire, frame::CONTINUATION, 0, 1, b""));
        }),
        ("long-head", |wire| {
            let long = head("200", &[("x", &*"y".repeat(1_000_000))]);
            frame::write_block(wire, 0, 1, &long);
        }),
        ("extra-bytes", |wire| {
            wire.extend(reply(1, "200", b"x"));
            wire.extend(reply(1, "200", b"x"));
        }),
        ("frame-flood", |wire| {
            (0..=MOST_IDLE_FRAMES).for_each(|_| frame::write(wire, frame::PING, 0, 0, &[0; 8]));
        }),
        ("frame-flood", |wire| {
            (0..=MOST_IDLE_FRAMES).for_each(|_| frame::write_settings(wire, &[]));
        }),
        ("frame-flood", |wire| {
            frame::write_block(wire, 0, 1, &head("200", &[]));
            (0..=MOST_IDLE_FRAMES).for_each(|_| frame::write(wire, frame::DATA, 0, 1, b""));
        }),
    ];
    for (kind, write) in faults {
        let mut wire = Vec::new();
        write(&mut wire);
        let (mut requester, _) = opened(&Settings::default(), 1, &[]);
        let error = requester.receive(&wire);
        assert_eq!(requester.fault(), Some(*kind), "{error:?}");
        let (mut requester, _) = opened(&Settings::default(), 1, &[]);
        let cut = wire
            .chunks(7)
            .find_map(|piece| requester.receive(piece).err());
        assert_eq!((cut, requester.fault()), (error.err(), Some(*kind)));
    }
    for other in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"\0\0\0\x06\0\0\0\0\0",
        b"x",
    ] {
        let mut requester = Http2Requester::new(&Settings::default(), 0, false);
        requester.begin();
        assert!(requester.receive(other).is_err());
        assert_eq!(requester.fault(), Some("not-http2"));
    }
    let expected: Statuses = "404".parse().unwrap();
    let settings = Settings {
        expected,
        ..Settings::default()
    };
    let (mut requester, _) = opened(&settings, 1, &[]);
    assert_eq!(requester.receive(&reply(1, "200", b"")).unwrap().refused, 1);
}

/// A million clients fit into memory, whatever they did before.
#[test]
fn an_idle_client_is_small() {
    assert!(
        size_of::<Http2Client>() <= 96,
        "{}",
        size_of::<Http2Client>()
    );
    let (mut requester, _) = opened(&Settings::default(), 2, &[]);
    let wire = [reply(1, "200", b"x"), reply(3, "200", b"x")].concat();
    requester.receive(&wire).unwrap();
    let client = &requester.0.clients[0];
    assert!(client.busy.is_none() && client.rare.is_none());
}
