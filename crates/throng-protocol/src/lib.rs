//! What is said on one connection: bytes in, bytes out, no descriptor and no clock.
//!
//! A protocol is one file with both halves side by side: the [`Session`] answers, the
//! [`Requester`] asks and checks every byte of the answer. Both are driven the same way by every
//! model and by the load generator, and in tests without any socket. The client half alone is a
//! [`Dialogue`].
//!
//! To add one: a new file, its `mod` line and its line in [`PROTOCOLS`].

mod custom;
mod cycle;
mod echo;
mod factorial;
mod http;
mod mix;
mod number;
mod pattern;
mod spoken;
mod status;
mod top;
mod upload;
mod websocket;

use std::fmt;

pub use custom::{Custom, Expectation, Pattern, unescape};
pub use http::{BodyRule, HttpRequest, RequestPart, has_variables};
pub use mix::{MOST_WEIGHT, Mix, check_parts, parse_parts, parse_weight};
pub use spoken::Spoken;
pub use status::{ReplyCounts, Statuses};
use throng_registry::Entry;
pub use top::{Busiest, Processes, Used};

/// Every protocol there is, in the order in which they are listed.
pub const PROTOCOLS: &[&dyn Protocol] = &[
    &echo::Echo,
    &factorial::Factorial,
    &upload::Upload,
    &top::Top,
    &http::Http,
    &websocket::Websocket,
];

/// Most bytes a session adds to its output before it waits for them to leave.
///
/// A session may pass it by one reply. What it has not consumed then is handed to it again.
pub const OUTPUT_LIMIT: usize = 256 * 1024;

/// Largest request that `--size` may ask for.
pub const LARGEST_SIZE: usize = 64 * 1024 * 1024;

/// Largest upload that servers take when not told otherwise: 10 MB.
pub const MAX_UPLOAD: u64 = 10_000_000;

/// What a user can set about the client half; each protocol takes what concerns it.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Bytes in one request, for protocols that let the user choose.
    pub size: Mix<usize>,
    /// Name or address of the server, with its port unless that is usual, where requests name it.
    pub host: &'static str,
    /// What is asked for, where requests are those of HTTP.
    pub requests: Mix<&'static HttpRequest>,
    /// Whether each client sends back the cookies that it was given.
    pub cookies: bool,
    /// How many clients there are, where requests are numbered.
    pub clients: u64,
    /// Where everything random in requests begins.
    pub seed: u64,
    /// The statuses that are right, where replies have one.
    pub expected: Statuses,
    /// How many bytes the body of a right reply of HTTP has; none: any number.
    pub length: Option<u64>,
    /// Which body a right reply of HTTP has; none: any.
    pub body: Option<&'static BodyRule>,
    /// Whether messages of websocket are text.
    pub text: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            size: Mix::One(1000),
            host: "localhost",
            requests: Mix::One(&http::GET),
            cookies: false,
            clients: 1,
            seed: 1,
            expected: Statuses::default(),
            length: None,
            body: None,
            text: false,
        }
    }
}

/// What a user can set about the server half; each protocol takes what concerns it.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Bytes in one request, for protocols that have to know it in order to count; of `http`, in
    /// one reply.
    pub size: usize,
    /// Bytes in one request above which a server that bounds them declines.
    pub max_upload: u64,
    /// The processes that a server is asked about.
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

/// Something clients can say to a server, and how they know a right answer.
pub trait Dialogue: Sync {
    /// What is said, in words: "echo of 1000 bytes".
    fn describe(&self, settings: &Settings) -> String;

    /// Whether the server closes the connection after each reply.
    fn closes(&self) -> bool {
        false
    }

    /// Whether a connection begins with an exchange of its own, before which no request leaves, and what the server
    /// says may call for an answer at any time: then what is [pending](Requester::pending) depends on what was heard.
    fn has_handshake(&self) -> bool {
        false
    }

    /// Whether clients send what was put together for one of them alone ([`Requester::made`]).
    fn makes(&self, _settings: &Settings) -> bool {
        false
    }

    /// What it is on the wire, where others speak it too.
    fn spoken(&self) -> Option<Spoken> {
        None
    }

    /// The client half of the connection of client number `client`.
    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester>;
}

/// A dialogue of which throng speaks the server half too.
pub trait Protocol: Entry + Dialogue {
    /// Bytes in one request when a user asked for so many: the protocol may let nobody choose.
    fn size(&self, asked: usize) -> usize {
        asked
    }

    /// The server half of one connection.
    fn session(&self, offer: &Offer) -> Box<dyn Session>;
}

/// The server half of one connection.
pub trait Session: Send {
    /// Takes bytes that arrived and appends what they call for to `out`.
    ///
    /// A session consumes everything, keeping part of a message itself if it must, unless `out`
    /// has reached [`OUTPUT_LIMIT`].
    ///
    /// # Errors
    /// [`ProtocolError`] when the peer broke the protocol. What `out` holds is still sent, then
    /// the connection is closed, as with [`Close::WhileClientSends`].
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError>;

    /// Whether some of a request has come, and not all of it.
    fn is_within_request(&self) -> bool;
}

/// What a session made of the bytes it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// How many of them it took.
    pub consumed: usize,
    /// Requests they completed.
    pub requests: u64,
    /// How many bytes at the front of the input are an answer themselves, to be sent after what was
    /// appended to `out`; so they need not be copied where they can leave at once.
    pub reflected: usize,
    /// Whether to close once the output has left.
    pub close: Close,
}

/// Whether a session closes its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Close {
    /// It stays open.
    #[default]
    No,
    /// It closes; the client has nothing more to say.
    Yes,
    /// It closes though the client may still be sending: what comes is thrown away until the client
    /// closes too, or the kernel would answer it with a reset that can overtake the reply.
    WhileClientSends,
}

/// The client half of one connection.
///
/// Requests are pulled from it piece by piece, so that no copy of a large one is ever made. What it
/// sends lives as long as the program: it is made once for all clients that ask the same, and may
/// be lent to the kernel without keeping anybody alive. Only where each request differs
/// ([`Dialogue::makes`]) is it in memory of the client ([`made`](Self::made)).
pub trait Requester: Send {
    /// Begins one more request, also while earlier ones are [`pending`](Self::pending) or not
    /// answered: they are answered in the order in which they were begun.
    ///
    /// Only one at a time where the server [closes](Dialogue::closes) after each reply. After such
    /// a reply, the next request leaves over a new connection. Gives what is pending then.
    fn begin(&mut self) -> &'static [u8];

    /// Bytes to send next, as many as lie together; empty once all requests that were begun have
    /// left whole, or a reply came early and says that the rest is not wanted.
    fn pending(&self) -> &'static [u8];

    /// Bytes to send next, where they were put together for this client; then nothing else is pending.
    fn made(&self) -> &[u8] {
        &[]
    }

    /// So many of the pending bytes have left, or of those that were [`made`](Self::made). Gives what is pending then.
    fn advance(&mut self, count: usize) -> &'static [u8];

    /// Forgets all that was begun and not answered: its connection has ended, and what is begun
    /// from now on leaves over a new one.
    fn forget(&mut self);

    /// Begins a request and appends all of it to `out`, after what was pending before. Where there is a
    /// [handshake](Dialogue::has_handshake), only that can leave over a new connection.
    fn request(&mut self, out: &mut Vec<u8>) {
        self.begin();
        out.extend_from_slice(self.made());
        self.advance(self.made().len());
        self.leave(out);
    }

    /// Appends all that is pending to `out`.
    fn leave(&mut self, out: &mut Vec<u8>) {
        while !self.pending().is_empty() {
            out.extend_from_slice(self.pending());
            self.advance(self.pending().len());
        }
    }

    /// Takes bytes that arrived and checks every one of them.
    ///
    /// # Errors
    /// [`ProtocolError`] when they are not what the server should have said.
    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError>;

    /// What a client says before it closes a connection in order, where there is a word for that and nothing else is
    /// leaving.
    fn farewell(&mut self) -> &'static [u8] {
        &[]
    }

    /// What kind of error the last one was, by the name that records have for it; none: a wrong reply.
    fn fault(&self) -> Option<&'static str> {
        None
    }

    /// The server sends no more. In some protocols that is how a reply ends.
    ///
    /// # Errors
    /// [`ProtocolError`] when it breaks off what should have been whole.
    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        Ok(Replies::default())
    }

    /// Adds to `counts` what was said in all replies so far, over all connections.
    fn counts(&self, _counts: &mut ReplyCounts) {}

    /// Gives away the sizes of the bodies of replies since it was last asked for them, where replies have bodies: each
    /// size with how many had it.
    fn sizes(&mut self, _record: &mut dyn FnMut(u64, u64)) {}
}

/// What a requester made of the bytes it was given; it always takes all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replies {
    /// Replies completed that keep to the protocol.
    pub completed: u32,
    /// Of these, the ones in which the server refused what it was asked, or whose status was not expected.
    pub refused: u32,
    /// Whether the server is to close now. What else was asked over this connection is not
    /// answered, and nothing of it is pending any more; the answer to a closing handshake may be.
    pub close: bool,
}

/// A peer said what the protocol does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    /// What is wrong, naming the place: "byte 17 of the reply is 0x2a instead of 0x00".
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

    /// Takes everything that is pending, in pieces of at most so many bytes.
    fn drain(requester: &mut dyn Requester, piece: usize, out: &mut Vec<u8>) {
        while !requester.pending().is_empty() {
            let piece = &requester.pending()[..requester.pending().len().min(piece)];
            out.extend_from_slice(piece);
            requester.advance(piece.len());
        }
    }

    /// Begins a request over a new connection and lets all of it leave that can before a reply comes, which is the
    /// handshake where there is one; its answer is heard.
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
            let heard = requester.receive(&answer(session, &handshake));
            assert_eq!(heard, Ok(Replies::default()));
            assert!(!requester.pending().is_empty());
        }
        drain(requester, usize::MAX, wire);
    }

    /// What a server says to these bytes.
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
                    wire.push(eager.pending()[0]);
                    eager.advance(1);
                    (1..at_once).for_each(|_| {
                        eager.begin();
                    });
                    drain(&mut *eager, piece, &mut wire);
                }
                assert_eq!(wire, expected, "{}", protocol.info().name);
                let out = answer(&mut *session, &wire);
                assert_eq!(eager.receive(&out).unwrap().completed, 151);
                assert!(eager.receive(b"x").is_err());
            }
        }
    }

    #[test]
    fn what_is_forgotten_is_neither_sent_nor_received() {
        let (settings, offer) = (Settings::default(), Offer::default());
        for protocol in PROTOCOLS {
            let name = protocol.info().name;
            let mut requester = protocol.requester(&settings, 5);
            for sent in [0, 1, 3] {
                requester.begin();
                requester.advance(sent);
                if !protocol.closes() {
                    (0..3).for_each(|_| {
                        requester.begin();
                    });
                }
                requester.forget();
                assert_eq!(requester.pending(), b"", "{name}");
                let mut wire = Vec::new();
                let mut session = protocol.session(&offer);
                open(*protocol, &mut *requester, &mut *session, &mut wire);
                let out = answer(&mut *session, &wire);
                let (head, tail) = out.split_at(out.len() / 2);
                let mut completed = requester.receive(head).unwrap().completed;
                completed += requester.receive(tail).unwrap().completed;
                assert_eq!(completed, 1, "{name} after {sent} bytes");
                // Half a reply is forgotten too.
                requester.request(&mut wire);
                let _ = requester.receive(&out[..out.len() / 2]);
                requester.forget();
            }
        }
    }
}
