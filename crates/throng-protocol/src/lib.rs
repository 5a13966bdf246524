//! Protocols without I/O: bytes in, bytes out, no file descriptors and no clock.
//!
//! A protocol is one file with both halves: the [`Session`] replies, the [`Requester`] sends requests and checks every
//! byte of the replies. All models and the load generator drive them in the same way, and tests need no socket. A
//! protocol with only a client half is a [`Dialogue`].
//!
//! To add a protocol: create its file, add a `mod` line, and add a line to [`PROTOCOLS`].
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

mod custom;
mod cycle;
mod echo;
mod factorial;
mod http;
mod mix;
mod number;
mod pattern;
mod requesters;
mod status;
mod top;
mod upload;
mod websocket;
mod wire_protocol;

use std::fmt;

pub use custom::{Custom, Expectation, Pattern, unescape};
pub use http::MOST_STREAMS;
pub use http::{
    Assert, BodyRule, Capture, Encoding, Expression, Feed, Flow, HttpRequest, Initial, Part,
    Predicate, Query, RequestPart, Step as FlowStep, StepDone, Value, has_variables,
};
pub use mix::{MOST_WEIGHT, Mix, check_parts, greatest_common_divisor, parse_parts, parse_weight};
pub use requesters::Requesters;
pub use status::{ReplyCounts, Statuses, status_in_words};
pub use top::{BusiestProcesses, ProcessTimes, Processes};
pub use wire_protocol::{WireProtocol, explained};

/// Every protocol, in the order in which they are listed.
pub const PROTOCOLS: &[&dyn Protocol] = &[
    &echo::Echo,
    &factorial::Factorial,
    &upload::Upload,
    &top::Top,
    &http::Http,
    &http::Http2,
    &http::Grpc,
    &websocket::Websocket,
];

/// Maximum bytes that a session adds to its output before it waits for them to be sent.
///
/// A session may exceed it by one reply. Input that it has not consumed is passed again.
pub const OUTPUT_LIMIT: usize = 256 * 1024;

/// Largest `--size`.
pub const LARGEST_SIZE: usize = 64 * 1024 * 1024;

/// Default maximum size of an upload: 10 MB.
pub const MAX_UPLOAD: u64 = 10_000_000;

/// The user's settings for the client half; each protocol uses some of them.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Bytes per request, for protocols with a variable size.
    pub size: Mix<usize>,
    /// Name or address of the server, for requests that contain it; with the port unless that is the default.
    pub host: &'static str,
    /// The requests, for HTTP.
    pub requests: Mix<&'static HttpRequest>,
    /// Whether each client sends back the cookies that it received.
    pub cookies: bool,
    /// The steps that each client repeats, instead of requests.
    pub flow: Option<&'static Flow>,
    /// Variables of requests whose values come from rows or replies; that of the flow, if there is one.
    pub feed: Option<&'static Feed>,
    /// The number of clients, for requests that contain a number.
    pub clients: u64,
    /// Seed for random values in requests.
    pub seed: u64,
    /// The statuses that count as correct, if replies have one.
    pub expected: Statuses,
    /// Required length of HTTP reply bodies; `None` if any is accepted.
    pub length: Option<u64>,
    /// Required content of HTTP reply bodies; `None` if any is accepted.
    pub body: Option<&'static BodyRule>,
    /// Whether websocket messages are text.
    pub text: bool,
    /// Whether connections use TLS, which requests of HTTP/2 name.
    pub is_encrypted: bool,
}

impl Settings {
    /// Settings for requests of `size` bytes, with defaults for the rest.
    pub fn of_size(size: usize) -> Self {
        Self {
            size: Mix::One(size),
            ..Self::default()
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            size: Mix::One(1000),
            host: "localhost",
            requests: Mix::One(&http::GET),
            cookies: false,
            flow: None,
            feed: None,
            clients: 1,
            seed: 1,
            expected: Statuses::default(),
            length: None,
            body: None,
            text: false,
            is_encrypted: false,
        }
    }
}

/// The user's settings for the server half; each protocol uses some of them.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Bytes per request, for protocols that need it to count requests; for `http`, bytes per reply.
    pub size: usize,
    /// Maximum bytes per request, for servers that limit them.
    pub max_upload: u64,
    /// The processes that `top` reports.
    pub processes: &'static dyn Processes,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            size: 1000,
            max_upload: MAX_UPLOAD,
            processes: &top::NoProcesses,
        }
    }
}

/// The requests of clients, and how to check the replies.
pub trait Dialogue: Sync {
    /// A description, like "echo of 1000 bytes".
    fn describe(&self, settings: &Settings) -> String;

    /// Whether the server closes the connection after each reply.
    fn closes(&self) -> bool {
        false
    }

    /// Whether a connection begins with a handshake, before which no request is sent. If so, the server may at any
    /// time send messages that need an answer, so what is [pending](Requester::pending) depends on what was received.
    fn has_handshake(&self) -> bool {
        false
    }

    /// Whether clients send generated requests ([`Requester::generated`]).
    fn generates_requests(&self, _settings: &Settings) -> bool {
        false
    }

    /// Its protocol on the wire, if other software also speaks it.
    fn wire_protocol(&self) -> Option<WireProtocol> {
        None
    }

    /// Its name in TLS's ALPN, if it has one.
    fn alpn(&self) -> Option<&'static str> {
        None
    }

    /// Bytes of one direction of a connection in words, a line for each message; `None` if they are text as they are.
    fn in_words(&self, _is_sent: bool, _bytes: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// The client half of a connection of client `client`.
    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester>;

    /// The client halves of these clients; they are then addressed by index in this order.
    fn requesters(
        &self,
        settings: &Settings,
        clients: &mut dyn Iterator<Item = u64>,
    ) -> Box<dyn Requesters> {
        let requesters = clients.map(|client| self.requester(settings, client));
        Box::new(requesters.collect::<Vec<_>>())
    }
}

/// A dialogue with a server half.
pub trait Protocol: Dialogue {
    /// The name typed on the command line and written in records.
    fn name(&self) -> &'static str;

    /// One line, no full stop.
    fn summary(&self) -> &'static str;

    /// Whether the server half reads Linux's /proc.
    fn needs_linux(&self) -> bool {
        false
    }

    /// The actual bytes per request if `asked` is requested: the protocol may have a fixed size.
    fn size(&self, asked: usize) -> usize {
        asked
    }

    /// The server half of one connection.
    fn session(&self, offer: &Offer) -> Box<dyn Session>;
}

/// The server half of one connection.
pub trait Session: Send {
    /// Processes received bytes and appends the answer to `out`.
    ///
    /// A session consumes all input unless `out` has reached [`OUTPUT_LIMIT`]. If necessary, it keeps an incomplete
    /// message itself.
    ///
    /// # Errors
    /// [`ProtocolError`] if the peer violated the protocol. The content of `out` is still sent. Then the connection is
    /// closed as with [`Close::WhileClientSends`].
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError>;

    /// Whether part of a request has arrived.
    fn is_within_request(&self) -> bool;
}

/// What a session did with some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// Number of consumed bytes.
    pub consumed: usize,
    /// Number of completed requests.
    pub requests: u64,
    /// Number of bytes at the front of the input that are themselves the answer, to be sent after what was appended to
    /// `out`. They need not be copied if they can be sent at once.
    pub reflected: usize,
    /// Whether to close after the output is sent.
    pub close: Close,
}

/// Whether a session closes its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Close {
    /// It stays open.
    #[default]
    No,
    /// It closes; the client has nothing more to send.
    Yes,
    /// It closes although the client may still be sending, and discards input until the client closes too. Otherwise
    /// the kernel would answer that input with a reset, which can overtake the reply.
    WhileClientSends,
}

/// The client half of one connection.
///
/// Requests are pulled from it in pieces, so that a large one is never copied. Their bytes live as long as the
/// program: they are created once for all clients with the same requests, and may be lent to the kernel without a
/// reference. Only if each request differs ([`Dialogue::generates_requests`]) do the bytes belong to the client
/// ([`generated`](Self::generated)).
pub trait Requester: Send {
    /// Begins another request, even while earlier ones are [`pending`](Self::pending) or unanswered: replies come in
    /// the order of the requests, unless [`answered`](Self::answered) says otherwise.
    ///
    /// If the server [closes](Dialogue::closes) after each reply, only one request can be open at a time, and the next
    /// one needs a new connection. Returns what is now pending.
    fn begin(&mut self) -> &'static [u8];

    /// The contiguous bytes to send next. They are empty once all begun requests are sent, or an early reply makes the
    /// rest unnecessary.
    fn pending(&self) -> &'static [u8];

    /// Bytes of a generated request to send next; if there are any, nothing else is pending.
    fn generated(&self) -> &[u8] {
        &[]
    }

    /// Records that `count` of the pending or [`generated`](Self::generated) bytes were sent. Returns what is now
    /// pending.
    fn advance(&mut self, count: usize) -> &'static [u8];

    /// Drops all unanswered requests: their connection has ended, and later requests are sent over a new one.
    fn drop_requests(&mut self);

    /// Begins a request and appends all of it to `out`, after earlier pending bytes. On a new connection of a dialogue
    /// with a [handshake](Dialogue::has_handshake), only the handshake can be sent.
    fn request(&mut self, out: &mut Vec<u8>) {
        self.begin();
        self.append_pending(out);
    }

    /// Appends all pending or generated bytes to `out`.
    fn append_pending(&mut self, out: &mut Vec<u8>) {
        loop {
            let unsent = match self.generated() {
                [] => self.pending(),
                generated => generated,
            };
            if unsent.is_empty() {
                return;
            }
            out.extend_from_slice(unsent);
            let count = unsent.len();
            self.advance(count);
        }
    }

    /// Processes received bytes and checks every one of them.
    ///
    /// # Errors
    /// [`ProtocolError`] if the server should not have sent them.
    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError>;

    /// Which open request the next of the replies in the last call of [`receive`](Self::receive) answers: 0 is the
    /// oldest that no earlier reply answered. Replies come in order, unless a protocol says otherwise here.
    fn answered(&mut self) -> u16 {
        0
    }

    /// How many requests the server allows to be open.
    fn room(&self) -> u32 {
        u32::MAX
    }

    /// The client's last message on a connection, if the protocol has one and nothing else is being sent.
    fn closing_message(&mut self) -> &'static [u8] {
        &[]
    }

    /// How the last reply left the session, if requests are the steps of a [flow](Settings::flow).
    fn step_done(&self) -> StepDone {
        StepDone::default()
    }

    /// The step of a flow that was answered last, and how it was judged, a line for each part.
    fn step_in_words(&self) -> Vec<String> {
        Vec::new()
    }

    /// The kind of the last error, by its name in records; `None` for a reply that is simply wrong.
    fn fault(&self) -> Option<&'static str> {
        None
    }

    /// Whether a reply has begun that only the end of the connection completes.
    fn awaits_close(&self) -> bool {
        false
    }

    /// Called when the server sends no more. In some protocols that ends a reply.
    ///
    /// # Errors
    /// [`ProtocolError`] if a reply is incomplete.
    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        Ok(Replies::default())
    }

    /// Adds the counts of all replies so far to `counts`, over all connections.
    fn counts(&self, _counts: &mut ReplyCounts) {}

    /// If replies have bodies, passes the sizes of the bodies since the last call to `record`, each with its count.
    fn sizes(&mut self, _record: &mut dyn FnMut(u64, u64)) {}
}

/// What a requester found in some bytes; it always consumes all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replies {
    /// Completed replies that conform to the protocol.
    pub completed: u32,
    /// How many of these rejected the request or had an unexpected status.
    pub refused: u32,
    /// Whether the server closes now. Other requests on this connection get no reply and are no longer pending, but an
    /// answer to a closing handshake may be.
    pub close: bool,
}

/// A peer violated the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    /// The error and its position, like "byte 17 of the reply is 0x2a instead of 0x00".
    pub what: String,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ProtocolError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next bytes to send, wherever they are stored.
    fn unsent(requester: &dyn Requester) -> &[u8] {
        match requester.generated() {
            [] => requester.pending(),
            generated => generated,
        }
    }

    /// Takes all bytes to send, in pieces of at most `piece` bytes.
    fn drain(requester: &mut dyn Requester, piece: usize, out: &mut Vec<u8>) {
        while !unsent(requester).is_empty() {
            let rest = unsent(requester);
            let count = rest.len().min(piece);
            out.extend_from_slice(&rest[..count]);
            requester.advance(count);
        }
    }

    /// Begins a request on a new connection and sends all that can be sent before a reply. If there is a handshake, it
    /// sends that and receives the answer first.
    fn open(
        dialogue: &dyn Dialogue,
        requester: &mut dyn Requester,
        session: &mut dyn Session,
        wire: &mut Vec<u8>,
    ) {
        requester.begin();
        if dialogue.has_handshake() {
            let mut handshake = Vec::new();
            drain(requester, usize::MAX, &mut handshake);
            let received = requester.receive(&answer(session, &handshake));
            assert_eq!(received, Ok(Replies::default()));
            assert!(!unsent(requester).is_empty());
        }
        drain(requester, usize::MAX, wire);
    }

    /// The server's reply to these bytes.
    fn answer(session: &mut dyn Session, mut wire: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while !wire.is_empty() {
            let step = session.receive(wire, &mut out).unwrap();
            out.extend_from_slice(&wire[..step.reflected]);
            wire = &wire[step.consumed..];
        }
        out
    }

    #[test]
    fn requests_are_begun_while_others_are_pending() {
        let (settings, offer) = (Settings::default(), Offer::default());
        for protocol in PROTOCOLS.iter().filter(|protocol| !protocol.closes()) {
            for piece in [1, 7, 100, usize::MAX] {
                let mut patient = protocol.requester(&settings, 5);
                let (mut expected, mut wire) = (Vec::new(), Vec::new());
                let mut session = protocol.session(&offer);
                open(*protocol, &mut *patient, &mut *session, &mut expected);
                (0..150).for_each(|_| patient.request(&mut expected));
                let mut eager = protocol.requester(&settings, 5);
                let mut session = protocol.session(&offer);
                open(*protocol, &mut *eager, &mut *session, &mut wire);
                for at_once in [1, 2, 3, 64, 80] {
                    eager.begin();
                    wire.push(unsent(&*eager)[0]);
                    eager.advance(1);
                    (1..at_once).for_each(|_| {
                        eager.begin();
                    });
                    drain(&mut *eager, piece, &mut wire);
                }
                assert_eq!(wire, expected, "{}", protocol.name());
                let out = answer(&mut *session, &wire);
                assert_eq!(eager.receive(&out).unwrap().completed, 151);
                assert!(eager.receive(b"x").is_err());
            }
        }
    }

    #[test]
    fn forgotten_requests_are_neither_sent_nor_expected() {
        let (settings, offer) = (Settings::default(), Offer::default());
        for protocol in PROTOCOLS {
            let name = protocol.name();
            let mut requester = protocol.requester(&settings, 5);
            for sent in [0, 1, 3] {
                requester.begin();
                requester.advance(sent);
                if !protocol.closes() {
                    (0..3).for_each(|_| {
                        requester.begin();
                    });
                }
                requester.drop_requests();
                assert_eq!(unsent(&*requester), b"", "{name}");
                let mut wire = Vec::new();
                let mut session = protocol.session(&offer);
                open(*protocol, &mut *requester, &mut *session, &mut wire);
                let out = answer(&mut *session, &wire);
                let (head, tail) = out.split_at(out.len() / 2);
                let mut completed = requester.receive(head).unwrap().completed;
                completed += requester.receive(tail).unwrap().completed;
                assert_eq!(completed, 1, "{name} after {sent} bytes");
                // A partial reply is dropped too.
                requester.request(&mut wire);
                let _ = requester.receive(&out[..out.len() / 2]);
                requester.drop_requests();
            }
        }
    }
}
