//! Both halves of every protocol: any input, however it is cut, gives the same result, within bounds.

use std::cell::RefCell;
use std::io;
use std::sync::OnceLock;

use throng::protocol::{
    BusiestProcesses, Close, Custom, Dialogue, Expectation, HttpRequest, Mix, OUTPUT_LIMIT, Offer,
    PROTOCOLS, ProcessTimes, Processes, Protocol, Requester, Session, Settings,
};

use super::bytes::{Choices, Cuts, edit};

/// A session may exceed [`OUTPUT_LIMIT`] by one reply, or by a piece of a long one.
pub(crate) const MOST_REPLY: usize = 66 * 1024;

/// A machine that is always the same.
#[derive(Debug)]
struct Still;

impl Processes for Still {
    fn busiest(&self) -> io::Result<BusiestProcesses> {
        let mut busiest = BusiestProcesses::default();
        for (pid, name, user, kernel) in [
            (1, &b"init"[..], 5, 10),
            (300, b"a (b) c\n\x1b[31m", 100, 20),
            (20, b"", u64::MAX, 60),
        ] {
            busiest.consider(ProcessTimes::new(pid, name, user, kernel));
        }
        Ok(busiest)
    }
}

/// The protocol of this name.
pub(crate) fn protocol(name: &str) -> &'static dyn Protocol {
    let found = PROTOCOLS.iter().find(|protocol| protocol.name() == name);
    *found.expect("there is such a protocol")
}

/// The offer of a server whose requests or replies have `size` bytes.
pub(crate) fn offer(size: usize) -> Offer {
    Offer {
        size,
        max_upload: 1000,
        processes: &Still,
    }
}

/// The result of a session.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answered {
    pub(crate) answers: Vec<u8>,
    pub(crate) requests: u64,
    pub(crate) close: Close,
    pub(crate) refused: bool,
}

/// Passes `pieces`, with the rest of earlier ones, as a connection does. `filled` bytes of output are pending each
/// time.
pub(crate) fn answer_all<'a>(
    session: &mut dyn Session,
    pieces: impl Iterator<Item = &'a [u8]>,
    filled: usize,
) -> Answered {
    // Allocated once: clearing this much each time would be most of the work.
    thread_local! {
        static OUT: [RefCell<Vec<u8>>; 2] = const { [const { RefCell::new(Vec::new()) }; 2] };
    }
    let mut result = Answered::default();
    OUT.with(|buffers| {
        let out = &mut *buffers[usize::from(filled > 0)].borrow_mut();
        if out.len() < filled {
            out.resize(filled, 0);
        }
        for mut piece in pieces {
            while !piece.is_empty() && result.close == Close::No && !result.refused {
                out.truncate(filled);
                let step = session.receive(piece, out).unwrap_or_else(|_| {
                    result.refused = true;
                    throng::protocol::Step::default()
                });
                assert!(step.consumed <= piece.len(), "took more than there was");
                assert!(
                    step.reflected <= step.consumed,
                    "answers what it did not take"
                );
                assert!(out.len() < OUTPUT_LIMIT + MOST_REPLY, "output has no bound");
                let answered = &out[filled..];
                let stands_still = step.consumed == 0 && answered.is_empty();
                assert!(
                    !stands_still || result.refused || step.close != Close::No,
                    "neither takes anything nor answers"
                );
                result.answers.extend_from_slice(answered);
                result.answers.extend_from_slice(&piece[..step.reflected]);
                result.requests += step.requests;
                result.close = step.close;
                piece = &piece[step.consumed..];
            }
        }
    });
    result
}

/// A server's input, cut and with little room for answers, gives the same result.
fn session(name: &str, sizes: &[usize], data: &[u8]) {
    let mut choices = Choices::new(data);
    let size = sizes[choices.below(sizes.len())];
    let room = usize::from(choices.byte()) + 1;
    let cuts = Cuts::choose(&mut choices);
    let mut wire = choices.rest();
    if size > OUTPUT_LIMIT {
        wire = &wire[..wire.len().min(100)]; // a few replies of that size are enough
    }
    says_the_same(name, size, room, &cuts, wire);
}

fn says_the_same(name: &str, size: usize, room: usize, cuts: &Cuts<'_>, wire: &[u8]) {
    let protocol = protocol(name);
    let offer = offer(size);
    let whole = answer_all(&mut *protocol.session(&offer), std::iter::once(wire), 0);
    let pieces = cuts.pieces(wire);
    let cut = answer_all(&mut *protocol.session(&offer), pieces, OUTPUT_LIMIT - room);
    assert_eq!(whole.requests, cut.requests, "requests depend on the cuts");
    assert_eq!(whole.close, cut.close, "the end depends on the cuts");
    assert_eq!(whole.refused, cut.refused, "refusal depends on the cuts");
    assert!(whole.answers == cut.answers, "answers depend on the cuts");
}

/// The server half of `echo`.
pub fn echo_session(data: &[u8]) {
    session("echo", &[1000, 1, 7], data);
}

/// The server half of `factorial`.
pub fn factorial_session(data: &[u8]) {
    session("factorial", &[8], data);
}

/// The server half of `upload`.
pub fn upload_session(data: &[u8]) {
    session("upload", &[8], data);
}

/// The server half of `top`.
pub fn top_session(data: &[u8]) {
    session("top", &[4], data);
}

/// The server half of `http`.
pub fn http_session(data: &[u8]) {
    session("http", &[20, 0, 1000, OUTPUT_LIMIT + 1], data);
}

/// The server half of `websocket`, usually after the opening handshake.
pub fn websocket_session(data: &[u8]) {
    let mut choices = Choices::new(data);
    let is_open = choices.byte() > 20;
    let room = usize::from(choices.byte()) + 1;
    let cuts = Cuts::choose(&mut choices);
    let mut wire = if is_open { handshake() } else { Vec::new() };
    wire.extend_from_slice(choices.rest());
    says_the_same("websocket", 1, room, &cuts, &wire);
}

/// The server half of `http2` or `grpc`, usually after the client's preface.
pub fn http2_session(data: &[u8]) {
    let mut choices = Choices::new(data);
    let first = choices.byte();
    let (is_open, name) = (first > 20, of_http2(first));
    let size = [20, 0, 1000, OUTPUT_LIMIT + 1][choices.below(4)];
    let room = usize::from(choices.byte()) + 1;
    let cuts = Cuts::choose(&mut choices);
    let mut wire = if is_open { preface() } else { Vec::new() };
    let rest = choices.rest();
    wire.extend_from_slice(&rest[..rest.len().min(2000)]);
    says_the_same(name, size, room, &cuts, &wire);
}

/// One of the protocols over HTTP/2.
fn of_http2(choice: u8) -> &'static str {
    if choice.is_multiple_of(2) {
        "http2"
    } else {
        "grpc"
    }
}

/// The bytes with which a client of `websocket` opens a connection.
fn handshake() -> Vec<u8> {
    first_bytes("websocket")
}

/// The bytes with which a client of `http2` opens a connection.
fn preface() -> Vec<u8> {
    first_bytes("http2")
}

fn first_bytes(name: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    let mut requester = protocol(name).requester(&Settings::default(), 0);
    requester.request(&mut wire);
    wire
}

/// The result of a requester.
#[derive(Debug, Default, PartialEq)]
struct Received {
    completed: u32,
    rejected: u32,
    close: bool,
    refused: bool,
}

/// Begins `count` requests, and returns the bytes sent, taken in these pieces.
fn ask(requester: &mut dyn Requester, count: usize, cuts: &Cuts<'_>) -> Vec<u8> {
    let mut wire = Vec::new();
    for _ in 0..count {
        requester.begin();
        // Some bytes are sent while other requests begin.
        let pending = pending(requester);
        let sent = cuts.pieces(pending).next().map_or(0, <[u8]>::len);
        wire.extend_from_slice(&pending[..sent]);
        requester.advance(sent);
    }
    while !pending(requester).is_empty() {
        let rest = pending(requester);
        wire.extend_from_slice(rest);
        requester.advance(rest.len());
    }
    wire
}

/// The next bytes to send, wherever they are stored.
fn pending(requester: &dyn Requester) -> &[u8] {
    match requester.generated() {
        [] => requester.pending(),
        made => {
            assert!(requester.pending().is_empty(), "two things are pending");
            made
        }
    }
}

/// Passes pieces of a reply, and then its end.
fn listen<'a>(requester: &mut dyn Requester, pieces: impl Iterator<Item = &'a [u8]>) -> Received {
    let mut received = Received::default();
    let add = |received: &mut Received, result: Result<throng::protocol::Replies, _>| match result {
        Ok(replies) => {
            received.completed += replies.completed;
            received.close |= replies.close;
            received.rejected += replies.refused;
        }
        Err(throng::protocol::ProtocolError { what }) => {
            assert!(!what.is_empty() && what.len() < 2000, "says too much");
            received.refused = true;
        }
    };
    for piece in pieces {
        if received.refused {
            return received;
        }
        let result = requester.receive(piece);
        add(&mut received, result);
    }
    if !received.refused {
        let result = requester.finish();
        add(&mut received, result);
    }
    received
}

/// Whether a connection was opened before the input under test.
#[derive(Clone, Copy, PartialEq)]
enum Opened {
    No,
    /// By an exchange for which a request was begun.
    ByRequest,
}

/// Opens a connection of a dialogue with a handshake, whose server gives this reply.
fn open(requester: &mut dyn Requester, reply: &dyn Fn(&[u8]) -> Vec<u8>) {
    let mut wire = Vec::new();
    requester.request(&mut wire);
    let received = requester
        .receive(&reply(&wire))
        .expect("it is the right reply");
    assert!(received.completed == 0 && !pending(requester).is_empty());
}

/// The reply of a built-in server to the first bytes of a connection.
fn first_reply(name: &'static str) -> impl Fn(&[u8]) -> Vec<u8> {
    move |wire| {
        let mut session = protocol(name).session(&offer(1));
        answer_all(&mut *session, std::iter::once(wire), 0).answers
    }
}

/// A client's input, cut, gives the same result. `answer` gives correct replies to requests.
fn requester(
    dialogue: &dyn Dialogue,
    settings: &Settings,
    answer: impl Fn(&[u8]) -> Vec<u8>,
    mut choices: Choices<'_>,
    opened: Opened,
) {
    let client = u64::from(choices.byte());
    let most = if dialogue.closes() { 1 } else { 8 };
    let count = choices.below(most) + 1;
    let is_right = choices.byte() < 128;
    let cuts = Cuts::choose(&mut choices);
    let mut patient = dialogue.requester(settings, client);
    let mut eager = dialogue.requester(settings, client);
    if opened == Opened::ByRequest {
        let reply = first_reply(if dialogue.generates_requests(settings) {
            "http2"
        } else {
            "websocket"
        });
        open(&mut *patient, &reply);
        open(&mut *eager, &reply);
    }
    let asked = ask(&mut *patient, count, &Cuts::choose(&mut Choices::new(&[])));
    let again = ask(&mut *eager, count, &cuts);
    assert!(asked == again, "what is asked depends on how it leaves");
    let mut wire = Vec::new();
    if is_right {
        wire = answer(&asked);
        edit(&mut wire, &mut choices);
    }
    wire.extend_from_slice(choices.rest());
    let whole = listen(
        &mut *patient,
        std::iter::once(&wire[..]).filter(|wire| !wire.is_empty()),
    );
    let cut = listen(&mut *eager, cuts.pieces(&wire));
    assert!(
        cut.completed as usize <= count + usize::from(opened == Opened::ByRequest),
        "more replies than requests"
    );
    assert_eq!(whole.refused, cut.refused, "refusal depends on the cuts");
    if !whole.refused {
        assert_eq!(whole, cut, "what is received depends on the cuts");
    }
    eager.drop_requests();
    assert!(
        pending(&*eager).is_empty(),
        "what is forgotten is still sent"
    );
}

/// The answer of a built-in server.
fn own_answer(protocol: &'static dyn Protocol, size: usize) -> impl Fn(&[u8]) -> Vec<u8> {
    move |asked| {
        answer_all(
            &mut *protocol.session(&offer(size)),
            std::iter::once(asked),
            0,
        )
        .answers
    }
}

fn own_requester(name: &str, settings: &[Settings], size: usize, data: &[u8]) {
    let mut choices = Choices::new(data);
    let settings = &settings[choices.below(settings.len())];
    let protocol = protocol(name);
    let answer = own_answer(protocol, size);
    requester(protocol, settings, answer, choices, Opened::No);
}

fn sized(size: Mix<usize>) -> Settings {
    Settings {
        size,
        ..Settings::default()
    }
}

/// The client half of `echo`.
pub fn echo_requester(data: &[u8]) {
    let sizes = [Mix::One(10), Mix::One(1), Mix::Several(&[(5, 3), (60, 1)])];
    own_requester("echo", &sizes.map(sized), 10, data);
}

/// The client half of `factorial`.
pub fn factorial_requester(data: &[u8]) {
    own_requester("factorial", &[Settings::default()], 8, data);
}

/// The client half of `upload`.
pub fn upload_requester(data: &[u8]) {
    // An accepted upload, an empty one, a rejected one, and several.
    let sizes = [
        Mix::One(20),
        Mix::One(0),
        Mix::One(1001),
        Mix::Several(&[(5, 3), (1100, 1)]),
    ];
    own_requester("upload", &sizes.map(sized), 8, data);
}

/// The client half of `top`.
pub fn top_requester(data: &[u8]) {
    own_requester("top", &[Settings::default()], 4, data);
}

/// HTTP requests for these paths, with weights.
fn requests(paths: &[(&str, u32)]) -> Mix<&'static HttpRequest> {
    let request = |(path, weight): &(&str, u32)| {
        let request = HttpRequest::new(None, path, &[], None)
            .expect("there is such a request")
            .with_variables_if(true, &[])
            .expect("there are such variables");
        (&*Box::leak(Box::new(request)), *weight)
    };
    Mix::new(&paths.iter().map(request).collect::<Vec<_>>()).expect("there is such a mix")
}

/// The client half of `http`.
pub fn http_requester(data: &[u8]) {
    static ALL: OnceLock<[Settings; 3]> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let several = Settings {
            requests: requests(&[("/a", 3), ("/{number}?{random:9}", 1)]),
            ..Settings::default()
        };
        let cookies = Settings {
            cookies: true,
            ..Settings::default()
        };
        [Settings::default(), several, cookies]
    });
    own_requester("http", all, 100, data);
}

/// The client half of `websocket`, with the opening handshake and after it.
pub fn websocket_requester(data: &[u8]) {
    let mut choices = Choices::new(data);
    let sizes = [Mix::One(20), Mix::One(1), Mix::Several(&[(5, 3), (200, 1)])];
    let settings = Settings {
        text: choices.byte() < 128,
        ..sized(sizes[choices.below(sizes.len())])
    };
    let opened = if choices.byte() < 60 {
        Opened::No
    } else {
        Opened::ByRequest
    };
    let answer = |asked: &[u8]| {
        let mut session = protocol("websocket").session(&offer(1));
        if opened == Opened::ByRequest {
            answer_all(&mut *session, std::iter::once(&handshake()[..]), 0);
        }
        answer_all(&mut *session, std::iter::once(asked), 0).answers
    };
    let dialogue = protocol("websocket");
    requester(dialogue, &settings, answer, choices, opened);
}

/// The client half of `http2` or `grpc`, before and after the server's settings.
pub fn http2_requester(data: &[u8]) {
    let mut choices = Choices::new(data);
    let first = choices.byte();
    let name = of_http2(first);
    let settings = Settings {
        cookies: first < 60,
        ..Settings::default()
    };
    let opened = if choices.byte() < 60 {
        Opened::No
    } else {
        Opened::ByRequest
    };
    let answer = |asked: &[u8]| {
        let mut session = protocol(name).session(&offer(20));
        if opened == Opened::ByRequest {
            answer_all(&mut *session, std::iter::once(&preface()[..]), 0);
        }
        answer_all(&mut *session, std::iter::once(asked), 0).answers
    };
    requester(protocol(name), &settings, answer, choices, opened);
}

/// Expectations, each with a correct reply.
const EXPECTED: [(&str, &[u8]); 10] = [
    ("bytes:5", b"12345"),
    ("text:+PONG\\r\\n", b"+PONG\r\n"),
    ("until:\\r\\n", b"+PO\rNG\r\n"),
    ("until:aab", b"aaaaab"),
    ("until:abab", b"abaabab"),
    ("regex:^\\+(OK|PONG)\\r\\n", b"+PONG\r\n"),
    ("regex:END\\r?\\n", b"VALUE x\r\nEND\n"),
    ("regex:(?s-u)^.\\xff.", b"a\xffb"),
    ("regex:(?i)\\d{3}[ -]ok", b"220-OK"),
    ("close", b"anything"),
];

/// The client half of a user-defined dialogue.
pub fn custom_requester(data: &[u8]) {
    static ALL: OnceLock<Vec<Custom>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let custom = |(spec, _): &(&str, _)| {
            let expectation = Expectation::parse(spec).expect("it can be read");
            Custom::new(b"PING\r\n", Box::leak(Box::new(expectation))).expect("there is a request")
        };
        EXPECTED.iter().map(custom).collect()
    });
    let mut choices = Choices::new(data);
    let which = choices.below(EXPECTED.len());
    let answer = |asked: &[u8]| EXPECTED[which].1.repeat(asked.len() / b"PING\r\n".len());
    let settings = Settings::default();
    requester(&all[which], &settings, answer, choices, Opened::No);
}
