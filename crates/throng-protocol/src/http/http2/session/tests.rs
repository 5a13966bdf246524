use super::super::super::super::WireProtocol;
use super::*;

const NO_BODY: u8 = frame::END_STREAM | frame::END_HEADERS;

/// The block of a request.
fn block(method: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [(":method", method), (":scheme", "http"), (":path", "/a")]
        .iter()
        .chain(more)
    {
        hpack::push_field(name, value, &mut block);
    }
    block
}

/// A client's beginning.
fn opened() -> Vec<u8> {
    let mut wire = PREFACE.to_vec();
    frame::write_settings(&mut wire, &[]);
    wire
}

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// The frames of the server after its SETTINGS and the acknowledgement, with their payload.
    frames: Vec<(u8, u8, u32, Vec<u8>)>,
    requests: u64,
    close: Close,
    fault: Option<String>,
}

impl Outcome {
    fn codes(&self) -> Vec<(u8, u32, &'static str)> {
        let errors = self.frames.iter().filter_map(|(kind, _, stream, payload)| {
            let code = match *kind {
                frame::RST_STREAM => &payload[..4],
                frame::GOAWAY => &payload[4..8],
                _ => return None,
            };
            let code = Code(frame::number(code).unwrap());
            Some((*kind, *stream, code.name()))
        });
        errors.collect()
    }
}

fn exchange<'a>(size: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut session = Http2Session::new(size, false);
    let (mut outcome, mut sent) = (Outcome::default(), Vec::new());
    'all: for mut piece in pieces {
        while !piece.is_empty() && outcome.close == Close::No {
            let mut out = Vec::new();
            let step = session.receive(piece, &mut out);
            assert!(out.len() < OUTPUT_LIMIT + 20_000);
            sent.extend_from_slice(&out);
            match step {
                Ok(step) => {
                    outcome.requests += step.requests;
                    outcome.close = step.close;
                    piece = &piece[step.consumed..];
                }
                Err(error) => {
                    outcome.fault = Some(error.what);
                    break 'all;
                }
            }
        }
    }
    let mut rest = &sent[..];
    while let Some(head) = rest.first_chunk() {
        let head = FrameHead::read(*head);
        let end = frame::HEAD + head.length as usize;
        let payload = rest[frame::HEAD..end].to_vec();
        let frame = (head.kind, head.flags, head.stream, payload);
        outcome.frames.push(frame);
        rest = &rest[end..];
    }
    outcome
}

/// The same outcome whatever the pieces.
fn cut_everywhere(size: usize, wire: &[u8]) -> Outcome {
    let whole = exchange(size, [wire]);
    for cut in 1..wire.len() {
        assert_eq!(
            exchange(size, [&wire[..cut], &wire[cut..]]),
            whole,
            "cut at {cut}"
        );
    }
    assert_eq!(exchange(size, wire.chunks(1)), whole, "byte by byte");
    whole
}

#[test]
fn requests_are_answered() {
    let mut wire = opened();
    frame::write_block(&mut wire, frame::END_STREAM, 1, &block("GET", &[]));
    frame::write_block(&mut wire, frame::END_STREAM, 3, &block("HEAD", &[]));
    frame::write_block(&mut wire, frame::END_STREAM, 5, &block("DELETE", &[]));
    frame::write_block(&mut wire, 0, 7, &block("GET", &[("content-length", "5")]));
    frame::write(&mut wire, frame::DATA, frame::PADDED, 7, b"\x02he\0\0");
    frame::write(&mut wire, frame::DATA, frame::END_STREAM, 7, b"llo");
    frame::write(&mut wire, frame::PING, 0, 0, b"12345678");
    frame::write(&mut wire, frame::GOAWAY, 0, 0, &[0; 8]);
    let outcome = cut_everywhere(20, &wire);
    assert_eq!((outcome.requests, outcome.close), (4, Close::Yes));
    let answers = &Answers::new(20, false);
    let text = text()[..20].to_vec();
    let end = frame::END_STREAM;
    let expected = [
        (
            frame::HEADERS,
            frame::END_HEADERS,
            1,
            answers.granted.clone(),
        ),
        (frame::DATA, end, 1, text.clone()),
        (frame::HEADERS, NO_BODY, 3, answers.granted.clone()),
        (frame::HEADERS, NO_BODY, 5, answers.refused.clone()),
        (
            frame::HEADERS,
            frame::END_HEADERS,
            7,
            answers.granted.clone(),
        ),
        (frame::DATA, end, 7, text),
        (frame::PING, frame::ACK, 0, b"12345678".to_vec()),
    ];
    assert_eq!(outcome.frames[3..], expected);
}

#[test]
fn a_reply_keeps_to_the_windows() {
    let mut wire = PREFACE.to_vec();
    frame::write_settings(&mut wire, &[(frame::INITIAL_WINDOW_SIZE, 10)]);
    frame::write_block(&mut wire, frame::END_STREAM, 1, &block("GET", &[]));
    frame::write_block(&mut wire, frame::END_STREAM, 3, &block("GET", &[]));
    frame::write_number(&mut wire, frame::WINDOW_UPDATE, 3, 5);
    frame::write_settings(&mut wire, &[(frame::INITIAL_WINDOW_SIZE, 5)]);
    frame::write_number(&mut wire, frame::WINDOW_UPDATE, 1, 7);
    frame::write_settings(&mut wire, &[(frame::INITIAL_WINDOW_SIZE, 100)]);
    let outcome = cut_everywhere(30, &wire);
    let sent: Vec<(u32, usize)> = outcome
        .frames
        .iter()
        .filter(|frame| frame.0 == frame::DATA)
        .map(|frame| (frame.2, frame.3.len()))
        .collect();
    assert_eq!(sent, [(1, 10), (3, 10), (3, 5), (1, 2), (1, 18), (3, 15)]);
    assert_eq!(outcome.requests, 2);
}

#[test]
fn a_long_reply_leaves_in_bounded_parts() {
    let size = 3 * OUTPUT_LIMIT + 7;
    let mut wire = opened();
    frame::write_number(&mut wire, frame::WINDOW_UPDATE, 0, 1 << 30);
    frame::write_settings(&mut wire, &[(frame::INITIAL_WINDOW_SIZE, 1 << 30)]);
    frame::write_block(&mut wire, frame::END_STREAM, 1, &block("GET", &[]));
    frame::write_block(&mut wire, frame::END_STREAM, 3, &block("GET", &[]));
    let outcome = cut_everywhere(size, &wire);
    let bytes: usize = outcome
        .frames
        .iter()
        .filter(|frame| frame.0 == frame::DATA)
        .map(|frame| frame.3.len())
        .sum();
    assert_eq!((bytes, outcome.requests), (2 * size, 2));
}

/// What ends a connection, and what only a stream (RFC 9113).
#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn faults_have_their_code() {
    type Write = fn(&mut Vec<u8>);
    let get = |wire: &mut Vec<u8>, stream, more: &[(&str, &str)]| {
        frame::write_block(wire, frame::END_STREAM, stream, &block("GET", more));
    };
    let of_connection: &[(&str, Write)] = &[
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::DATA, 0, 0, b"x");
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::DATA, 0, 9, b"x");
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::HEADERS, NO_BODY, 0, b"\x82");
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::HEADERS, NO_BODY, 2, b"\x82");
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write_number(wire, frame::RST_STREAM, 9, 8);
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write_number(wire, frame::WINDOW_UPDATE, 9, 8);
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write_number(wire, frame::WINDOW_UPDATE, 0, 0);
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::PUSH_PROMISE, 4, 1, &[0; 4]);
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::CONTINUATION, 4, 1, b"");
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::SETTINGS, 0, 1, b"");
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write_settings(wire, &[(frame::ENABLE_PUSH, 2)]);
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write_settings(wire, &[(frame::MAX_FRAME_SIZE, 1)]);
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::HEADERS, 0, 3, b"\x82");
            frame::write(wire, frame::PING, 0, 0, &[0; 8]);
        }),
        ("PROTOCOL_ERROR", |wire| {
            let padded = frame::PADDED | NO_BODY;
            frame::write(wire, frame::HEADERS, padded, 3, b"\x09\x82");
        }),
        ("FLOW_CONTROL_ERROR", |wire| {
            frame::write_settings(wire, &[(frame::INITIAL_WINDOW_SIZE, 1 << 31)]);
        }),
        ("FLOW_CONTROL_ERROR", |wire| {
            frame::write_number(wire, frame::WINDOW_UPDATE, 0, MOST);
        }),
        ("FRAME_SIZE_ERROR", |wire| {
            frame::write(wire, frame::PING, 0, 0, b"1234567");
        }),
        ("FRAME_SIZE_ERROR", |wire| {
            frame::write(wire, frame::SETTINGS, 0, 0, b"12345");
        }),
        ("FRAME_SIZE_ERROR", |wire| {
            frame::write(wire, frame::SETTINGS, frame::ACK, 0, b"x");
        }),
        ("FRAME_SIZE_ERROR", |wire| {
            frame::write(wire, frame::RST_STREAM, 0, 1, b"x");
        }),
        ("FRAME_SIZE_ERROR", |wire| {
            frame::write(wire, 99, 0, 0, &vec![0; 16_385]);
        }),
        ("FRAME_SIZE_ERROR", |wire| {
            frame::write(wire, frame::GOAWAY, 0, 0, b"1234567");
        }),
        ("COMPRESSION_ERROR", |wire| {
            frame::write(wire, frame::HEADERS, NO_BODY, 3, b"\x80");
        }),
        ("STREAM_CLOSED", |wire| {
            frame::write(wire, frame::HEADERS, NO_BODY, 1, b"\x82");
        }),
        ("ENHANCE_YOUR_CALM", |wire| {
            frame::write(wire, frame::HEADERS, 0, 3, b"\x82");
            (0..100).for_each(|_| frame::write(wire, frame::CONTINUATION, 0, 3, b""));
        }),
    ];
    for (code, write) in of_connection {
        let mut wire = opened();
        get(&mut wire, 1, &[]);
        let start = wire.len();
        write(&mut wire);
        let outcome = exchange(5, [&wire[..]]);
        assert_eq!(
            outcome.codes(),
            [(frame::GOAWAY, 0, *code)],
            "{:?}",
            &wire[start..]
        );
        assert_eq!(outcome.requests, 1, "the one before counts");
        assert_eq!(exchange(5, wire.chunks(1)), outcome);
    }
    let of_stream: &[(&str, Write)] = &[
        ("PROTOCOL_ERROR", |wire| {
            frame::write(wire, frame::HEADERS, NO_BODY, 3, b"\x82");
        }),
        ("PROTOCOL_ERROR", |wire| {
            let upper = block("GET", &[("X-Upper", "1")]);
            frame::write_block(wire, frame::END_STREAM, 3, &upper);
        }),
        ("PROTOCOL_ERROR", |wire| {
            let of_connection = block("GET", &[("connection", "close")]);
            frame::write_block(wire, frame::END_STREAM, 3, &of_connection);
        }),
        ("PROTOCOL_ERROR", |wire| {
            let late = block("GET", &[("a", "1"), (":authority", "x")]);
            frame::write_block(wire, frame::END_STREAM, 3, &late);
        }),
        ("PROTOCOL_ERROR", |wire| {
            let twice = block("GET", &[(":path", "/")]);
            frame::write_block(wire, frame::END_STREAM, 3, &twice);
        }),
        ("PROTOCOL_ERROR", |wire| {
            let false_length = block("GET", &[("content-length", "3")]);
            frame::write_block(wire, frame::END_STREAM, 3, &false_length);
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write_block(wire, 0, 3, &block("GET", &[]));
            frame::write_block(wire, 0, 3, &block("GET", &[]));
        }),
        ("PROTOCOL_ERROR", |wire| {
            frame::write_block(wire, 0, 3, &block("GET", &[]));
            frame::write_number(wire, frame::WINDOW_UPDATE, 3, 0);
        }),
        ("FLOW_CONTROL_ERROR", |wire| {
            frame::write_block(wire, 0, 3, &block("GET", &[]));
            frame::write_number(wire, frame::WINDOW_UPDATE, 3, MOST);
        }),
        ("STREAM_CLOSED", |wire| {
            frame::write_block(wire, frame::END_STREAM, 3, &block("GET", &[]));
            frame::write(wire, frame::DATA, 0, 3, b"x");
        }),
        ("FRAME_SIZE_ERROR", |wire| {
            frame::write(wire, frame::PRIORITY, 0, 3, b"1234");
        }),
    ];
    for (code, write) in of_stream {
        let mut wire = opened();
        write(&mut wire);
        let start = wire.len();
        get(&mut wire, 5, &[("te", "trailers")]);
        let outcome = cut_everywhere(5, &wire);
        assert_eq!(
            outcome.codes(),
            [(frame::RST_STREAM, 3, *code)],
            "{:?}",
            &wire[..start]
        );
        let answered = outcome.frames.iter().any(|frame| frame.2 == 5);
        assert!(answered && outcome.fault.is_none(), "other streams go on");
    }
}

#[test]
fn other_protocols_are_told() {
    let mut out = Vec::new();
    let mut session = Http2Session::new(5, false);
    assert!(
        session
            .receive(b"GET / HTTP/1.1\r\n\r\n", &mut out)
            .is_err()
    );
    // So that the client knows what is spoken here.
    assert_eq!(WireProtocol::of(&out), Some(WireProtocol::Http2));
    let mut wire = PREFACE.to_vec();
    frame::write(&mut wire, frame::PING, 0, 0, &[0; 8]);
    let outcome = exchange(5, [&wire[..]]);
    assert_eq!(outcome.codes(), [(frame::GOAWAY, 0, "PROTOCOL_ERROR")]);
}

#[test]
fn too_many_streams_are_refused() {
    let mut wire = opened();
    for stream in 0..=MOST_STREAMS {
        frame::write_block(&mut wire, 0, 2 * stream + 1, &block("GET", &[]));
    }
    let outcome = exchange(5, [&wire[..]]);
    let last = 2 * MOST_STREAMS + 1;
    assert_eq!(
        outcome.codes(),
        [(frame::RST_STREAM, last, "REFUSED_STREAM")]
    );
}
