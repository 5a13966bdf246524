//! The server half.
//!
//! Answers are created once per process. A request costs one comparison of its head with a cached one, and a copy.
//! Request bodies are counted and discarded. After a request with an ambiguous end (a transfer coding, an
//! expectation), the server answers and then closes.

use super::super::pattern::Interned;
use super::super::{Close, OUTPUT_LIMIT, ProtocolError, Session, Step};
use super::head::{Fault, KNOWN, MOST_HEAD, Method, RequestHead, parse};
use super::head_cache::{self, Last};
use super::{SERVER, TEXT_PERIOD, text};

/// The server half of one connection.
pub(super) struct HttpSession {
    answers: &'static Answers,
    /// An incomplete head.
    part: Vec<u8>,
    /// Remaining bytes of a request's body.
    unwanted: u64,
    leaving: Option<UnsentReply>,
    last: Last,
}

/// A text that is being sent. The last byte of its request is consumed only once the whole text is sent, so that this
/// half is called again when there is room.
struct UnsentReply {
    at: usize,
    close: Close,
}

/// A server's answers, created once.
struct Answers {
    size: usize,
    text: &'static [u8],
    /// One head for each [`KeepAlive`](super::head::KeepAlive).
    granted: [Vec<u8>; 3],
    refused: [Vec<u8>; 3],
}

impl Answers {
    fn new(size: usize) -> Self {
        let heads = |status: &str, fields: &str, length: usize| {
            ["", "Connection: keep-alive\r\n", "Connection: close\r\n"].map(|connection| {
                format!(
                    "HTTP/1.1 {status}\r\nServer: {SERVER}\r\n{fields}{connection}\
                     Content-Length: {length}\r\n\r\n"
                )
                .into_bytes()
            })
        };
        Self {
            size,
            text: text(),
            granted: heads("200 OK", "Content-Type: text/plain\r\n", size),
            refused: heads("405 Method Not Allowed", "Allow: GET, HEAD\r\n", 0),
        }
    }

    /// Appends the text from offset `at` to `out`, up to the output limit. Returns the offset to continue from.
    fn add_text(&self, mut at: usize, out: &mut Vec<u8>) -> usize {
        while at < self.size && out.len() < OUTPUT_LIMIT {
            let from = at % TEXT_PERIOD;
            let count = (self.size - at).min(TEXT_PERIOD - from);
            out.extend_from_slice(&self.text[from..from + count]);
            at += count;
        }
        at
    }
}

impl HttpSession {
    pub(super) fn new(size: usize) -> Self {
        static ANSWERS: Interned<usize, Answers> = Interned::new();
        Self {
            answers: ANSWERS.get(size, |&size| Box::new(Answers::new(size))),
            part: Vec::new(),
            unwanted: 0,
            leaving: None,
            last: Last::default(),
        }
    }
}

impl Session for HttpSession {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        let mut step = Step::default();
        loop {
            if let Some(leaving) = &mut self.leaving {
                leaving.at = self.answers.add_text(leaving.at, out);
                if leaving.at < self.answers.size {
                    return Ok(step);
                }
                step.close = leaving.close;
                step.consumed += 1;
                step.requests += 1;
                self.leaving = None;
            }
            let unread = &input[step.consumed..];
            let skipped = self.unwanted.min(unread.len() as u64);
            self.unwanted -= skipped;
            step.consumed += skipped as usize;
            let rest = &unread[skipped as usize..];
            if step.close != Close::No || rest.is_empty() || out.len() >= OUTPUT_LIMIT {
                return Ok(step);
            }
            match self.head(rest) {
                Ok(Some((head, count))) => {
                    step.consumed += count - 1;
                    self.answer(head, out);
                }
                Ok(None) => {
                    step.consumed = input.len();
                    return Ok(step);
                }
                // The requests before it are counted first; the bad one will be passed again.
                Err(_) if step.requests > 0 => return Ok(step),
                Err(fault) => return Err(refuse(fault, out)),
            }
        }
    }

    fn is_within_request(&self) -> bool {
        !self.part.is_empty() || self.unwanted > 0
    }
}

impl HttpSession {
    /// The next request, and the length of its head in `input`; `None` if it is incomplete.
    fn head(&mut self, input: &[u8]) -> Result<Option<(RequestHead, usize)>, Fault> {
        if self.part.is_empty() {
            // Nearly always, the head is the same as the last one.
            if let Some(head) = head_cache::cached(&KNOWN, input, self.last, |head| *head) {
                return Ok(Some((head, head.bytes)));
            }
            let window = &input[..input.len().min(MOST_HEAD)];
            let parsed = head_cache::read(&KNOWN, window, &mut self.last, parse)?;
            if parsed.is_none() {
                if window.len() == MOST_HEAD {
                    return Err(Fault::TooLarge);
                }
                self.part.extend_from_slice(window);
            }
            return Ok(parsed.map(|head| (head, head.bytes)));
        }
        let before = self.part.len();
        let count = input.len().min(MOST_HEAD - before);
        self.part.extend_from_slice(&input[..count]);
        match parse(&self.part)? {
            Some(head) => {
                self.part = Vec::new(); // an idle connection holds no buffer
                Ok(Some((head, head.bytes - before)))
            }
            None if self.part.len() == MOST_HEAD => Err(Fault::TooLarge),
            None => Ok(None),
        }
    }

    /// Appends the head of the answer, and prepares to send the rest.
    fn answer(&mut self, head: RequestHead, out: &mut Vec<u8>) {
        let heads = match head.method {
            Method::Get | Method::Head => &self.answers.granted,
            Method::Other => &self.answers.refused,
        };
        out.extend_from_slice(&heads[head.keep_alive as usize]);
        self.unwanted = head.body;
        self.leaving = Some(UnsentReply {
            at: match head.method {
                Method::Get => 0,
                Method::Head | Method::Other => self.answers.size,
            },
            close: head.close,
        });
    }
}

/// Replies with an error, after which the connection closes.
#[cold]
fn refuse(fault: Fault, out: &mut Vec<u8>) -> ProtocolError {
    let status = fault.status();
    let reply = format!(
        "HTTP/1.1 {status}\r\nServer: {SERVER}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    out.extend_from_slice(reply.as_bytes());
    ProtocolError {
        what: format!("a request that is answered with {status}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::head::MOST_FIELDS;
    use super::*;

    const SIZE: usize = 20;
    const GET: &[u8] = b"GET /any HTTP/1.1\r\nHost: x\r\n\r\n";

    fn granted(connection: &str) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: throng\r\nContent-Type: text/plain\r\n{connection}\
             Content-Length: 20\r\n\r\n"
        );
        [head.as_bytes(), &text()[..SIZE]].concat()
    }

    /// The outcome of an exchange.
    #[derive(Debug, Default, PartialEq)]
    struct Outcome {
        out: Vec<u8>,
        requests: u64,
        close: Close,
        error: bool,
    }

    /// Passes `pieces`, each after what is left of the earlier ones, as a connection does.
    fn exchange<'a>(size: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let mut session = HttpSession::new(size);
        let mut outcome = Outcome::default();
        for mut piece in pieces {
            while !piece.is_empty() && outcome.close == Close::No && !outcome.error {
                let mut out = Vec::new();
                match session.receive(piece, &mut out) {
                    Ok(step) => {
                        assert!(step.consumed > 0 || out.len() >= OUTPUT_LIMIT);
                        assert!(out.len() < 2 * OUTPUT_LIMIT);
                        piece = &piece[step.consumed..];
                        outcome.requests += step.requests;
                        outcome.close = step.close;
                    }
                    Err(_) => outcome.error = true,
                }
                outcome.out.append(&mut out);
            }
        }
        outcome
    }

    fn cut_everywhere(wire: &[u8], expected: &Outcome) {
        for cut in 0..=wire.len() {
            let outcome = exchange(SIZE, [&wire[..cut], &wire[cut..]]);
            assert_eq!(outcome, *expected, "cut at {cut}");
        }
        assert_eq!(exchange(SIZE, wire.chunks(1)), *expected, "byte by byte");
    }

    #[test]
    fn get_and_head_pipelined_and_cut_at_every_byte() {
        let head = b"HEAD / HTTP/1.1\r\nhOST: x\r\n\r\n";
        let wire = [GET, head, b"\r\n", GET].concat();
        let body = granted("");
        let expected = Outcome {
            out: [&body[..], &body[..body.len() - SIZE], &body].concat(),
            requests: 3,
            ..Outcome::default()
        };
        cut_everywhere(&wire, &expected);
    }

    #[test]
    fn old_and_asked_connections_close_or_stay() {
        for (wire, connection, close) in [
            ("GET / HTTP/1.0\r\n\r\n", "close", Close::Yes),
            (
                "GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n",
                "keep-alive",
                Close::No,
            ),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n",
                "close",
                Close::Yes,
            ),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
                "close",
                Close::WhileClientSends,
            ),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                "close",
                Close::WhileClientSends,
            ),
        ] {
            let expected = Outcome {
                out: granted(&format!("Connection: {connection}\r\n")),
                requests: 1,
                close,
                error: false,
            };
            cut_everywhere(wire.as_bytes(), &expected);
        }
    }

    #[test]
    fn other_methods_are_refused_and_their_bodies_thrown_away() {
        let post = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 35\r\n\r\n\
                     GET / HTTP/1.1\r\nHost: not-a-request";
        let refused = b"HTTP/1.1 405 Method Not Allowed\r\nServer: throng\r\nAllow: GET, HEAD\r\n\
                        Content-Length: 0\r\n\r\n";
        let expected = Outcome {
            out: [&refused[..], &granted("")].concat(),
            requests: 2,
            ..Outcome::default()
        };
        cut_everywhere(&[&post[..], GET].concat(), &expected);
        let endless = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n";
        let outcome = exchange(SIZE, [&endless[..], &vec![0; 100_000]]);
        assert_eq!((outcome.out, outcome.requests), (refused.to_vec(), 1));
    }

    #[test]
    fn faults_are_named_and_close() {
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(MOST_HEAD));
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(MOST_FIELDS + 1)
        );
        for (wire, status) in [
            ("\0\u{1}\u{2} garbage", "400 Bad Request"),
            ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
                "400 Bad Request",
            ),
            ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", "400 Bad Request"),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                "400 Bad Request",
            ),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                "400 Bad Request",
            ),
            ("GET / FTP/1.1\r\n\r\n", "400 Bad Request"),
            ("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
            ("GET / HTTP/2.0\r\n\r\n", "505 HTTP Version Not Supported"),
            ("GET / HTTP/1.2\r\n\r\n", "505 HTTP Version Not Supported"),
            (&many, "431 Request Header Fields Too Large"),
        ] {
            let expected = Outcome {
                out: [granted(""), fault(status)].concat(),
                requests: 1,
                close: Close::No,
                error: true,
            };
            cut_everywhere(&[GET, wire.as_bytes()].concat(), &expected);
        }
        for pieces in [long.len(), MOST_HEAD, MOST_HEAD - 1, 1000] {
            let outcome = exchange(SIZE, long.as_bytes().chunks(pieces));
            assert_eq!(outcome.out, fault("431 Request Header Fields Too Large"));
        }
    }

    fn fault(status: &str) -> Vec<u8> {
        format!(
            "HTTP/1.1 {status}\r\nServer: throng\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        .into_bytes()
    }

    #[test]
    fn the_longest_head_is_taken() {
        let empty = "GET / HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n".len();
        let field = "x".repeat(MOST_HEAD - empty);
        let longest = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {field}\r\n\r\n");
        assert_eq!(longest.len(), MOST_HEAD);
        assert_eq!(exchange(SIZE, longest.as_bytes().chunks(777)).requests, 1);
        assert_eq!(exchange(SIZE, [longest.as_bytes()]).requests, 1);
    }

    #[test]
    fn a_large_text_leaves_in_bounded_parts() {
        let size = 3 * OUTPUT_LIMIT + 7;
        let outcome = exchange(size, [&GET.repeat(3)[..]]);
        assert_eq!(outcome.requests, 3);
        let reply = outcome.out.len() / 3;
        let body = &outcome.out[reply - size..reply];
        let text = text();
        assert!(body.iter().zip(text.iter().cycle()).all(|(a, b)| a == b));
        assert!(outcome.out[2 * reply..].ends_with(body));
    }

    proptest! {
        #[test]
        fn garbage_is_answered_within_bounds(
            garbage in prop::collection::vec(any::<u8>(), 0..3000),
            request in any::<bool>(),
            pieces in 1_usize..3000,
        ) {
            let wire = if request { [GET, &garbage].concat() } else { garbage };
            let outcome = exchange(SIZE, wire.chunks(pieces));
            prop_assert!(outcome.requests >= u64::from(request));
            prop_assert!(outcome.out.len() < 200 * (1 + outcome.requests as usize));
        }
    }
}
