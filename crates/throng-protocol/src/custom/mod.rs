//! User-defined requests, and a pattern for the reply: `throng load --send TEXT --expect SPEC`.
//!
//! This is only a [`Dialogue`]: throng has no server half for it. Each client sends the same bytes repeatedly. An
//! [`Expectation`] determines where a reply ends, and whether it is correct.

mod escapes;
mod expectation;
mod pattern;
mod search;

use super::cycle::{self, Cycle};
use super::{Dialogue, ProtocolError, Replies, Requester, Settings};
pub use escapes::unescape;
pub use expectation::Expectation;
use expectation::Progress;
pub use pattern::Pattern;
pub(super) use search::Needle;

/// The bytes to send and the expected reply.
#[derive(Debug)]
pub struct Custom {
    /// The request, repeated.
    wire: &'static [u8],
    request_bytes: usize,
    expectation: &'static Expectation,
}

impl Custom {
    /// A dialogue that sends these bytes, which stay allocated until the program ends.
    ///
    /// # Errors
    /// If they are empty: without a request there is no reply.
    pub fn new(request: &[u8], expectation: &'static Expectation) -> Result<Self, String> {
        if request.is_empty() {
            return Err("nothing to send".to_owned());
        }
        Ok(Self {
            wire: cycle::repeat(request).leak(),
            request_bytes: request.len(),
            expectation,
        })
    }
}

/// Maximum bytes of a request to show.
const SHOWN: usize = 32;
/// Maximum bytes of a wrong reply to show. Servers that reject clients give the reason at its beginning.
const SHOWN_REPLY: usize = 80;

impl Dialogue for Custom {
    fn describe(&self, _: &Settings) -> String {
        let request = &self.wire[..self.request_bytes];
        let shown = request[..request.len().min(SHOWN)].escape_ascii();
        let more = if request.len() > SHOWN { "..." } else { "" };
        format!("\"{shown}{more}\" answered by {}", self.expectation)
    }

    fn closes(&self) -> bool {
        self.expectation.is_close()
    }

    fn requester(&self, _: &Settings, _: u64) -> Box<dyn Requester> {
        Box::new(CustomRequester {
            requests: Cycle::new(self.wire, 0),
            request_bytes: self.request_bytes,
            expectation: self.expectation,
            unanswered: 0,
            progress: self.expectation.begin(),
            start: PartialReply::default(),
            was_cut: false,
        })
    }
}

struct CustomRequester {
    requests: Cycle,
    request_bytes: usize,
    expectation: &'static Expectation,
    /// Requests begun whose reply is not complete yet.
    unanswered: usize,
    /// The part received of the reply to the oldest of these.
    progress: Progress,
    start: PartialReply,
    /// Whether the connection ended within a reply.
    was_cut: bool,
}

/// The first bytes of an incomplete reply.
struct PartialReply {
    bytes: [u8; SHOWN_REPLY],
    count: u8,
}

impl Default for PartialReply {
    fn default() -> Self {
        Self {
            bytes: [0; SHOWN_REPLY],
            count: 0,
        }
    }
}

impl PartialReply {
    fn keep(&mut self, input: &[u8]) {
        let from = usize::from(self.count);
        let count = input.len().min(SHOWN_REPLY - from);
        self.bytes[from..from + count].copy_from_slice(&input[..count]);
        self.count += count as u8;
    }

    /// An error in a reply, with the reply's first bytes.
    #[cold]
    fn error(&self, what: &str) -> ProtocolError {
        let shown = self.bytes[..usize::from(self.count)].escape_ascii();
        let more = if usize::from(self.count) == SHOWN_REPLY {
            "..."
        } else {
            ""
        };
        ProtocolError {
            what: format!("{what}; it began with `{shown}{more}`"),
        }
    }
}

impl Requester for CustomRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.requests.begin(self.request_bytes);
        self.unanswered += 1;
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        self.requests.pending()
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.requests.advance(count);
        self.pending()
    }

    fn drop_requests(&mut self) {
        self.requests.start_over(0);
        self.unanswered = 0;
        self.progress = self.expectation.begin();
        self.start.count = 0;
        self.was_cut = false;
    }

    fn receive(&mut self, mut input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut completed = 0;
        while !input.is_empty() {
            if self.unanswered == 0 {
                let what = format!("{} bytes came after the reply", input.len());
                return Err(ProtocolError { what });
            }
            let used = match self.expectation.take(&mut self.progress, input) {
                Ok(Some(used)) => used,
                Ok(None) => {
                    self.start.keep(input);
                    break;
                }
                Err(wrong) => {
                    self.start.keep(input);
                    return Err(self.start.error(&wrong.what));
                }
            };
            input = &input[used..];
            self.unanswered -= 1;
            self.progress = self.expectation.begin();
            self.start.count = 0;
            completed += 1;
        }
        Ok(Replies {
            completed,
            ..Replies::default()
        })
    }

    fn fault(&self) -> Option<&'static str> {
        self.was_cut.then_some("closed-early")
    }

    fn awaits_close(&self) -> bool {
        self.expectation.is_close() && self.unanswered > 0 && self.progress.has_begun()
    }

    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        if !self.awaits_close() {
            if self.progress.has_begun() {
                self.was_cut = true;
                let what =
                    "the server closed the connection before the expected reply was complete";
                return Err(self.start.error(what));
            }
            return Ok(Replies::default());
        }
        self.drop_requests();
        Ok(Replies {
            completed: 1,
            close: true,
            ..Replies::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn custom(spec: &str) -> Custom {
        let expectation = Box::leak(Box::new(Expectation::parse(spec).unwrap()));
        Custom::new(b"PING\r\n", expectation).unwrap()
    }

    /// The outcome of receiving `wire` after `requests` requests, in pieces that end at `cuts`.
    fn receive_all(
        spec: &str,
        requests: usize,
        wire: &[u8],
        cuts: &[usize],
    ) -> Result<u32, String> {
        let mut requester = custom(spec).requester(&Settings::default(), 0);
        let mut sent = Vec::new();
        (0..requests).for_each(|_| requester.request(&mut sent));
        assert_eq!(sent, b"PING\r\n".repeat(requests));
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
        ends.push(wire.len());
        ends.sort_unstable();
        let (mut completed, mut from) = (0, 0);
        for end in ends {
            let received = requester.receive(&wire[from..end]);
            completed += received.map_err(|error| error.what)?.completed;
            from = end;
        }
        Ok(completed)
    }

    /// Expectations, each with a correct reply.
    const RIGHT: [(&str, &[u8]); 8] = [
        ("bytes:5", b"12345"),
        ("text:+PONG\\r\\n", b"+PONG\r\n"),
        ("until:\\r\\n", b"+PO\rNG\r\n"),
        ("until:aab", b"aaaaab"),
        ("until:abab", b"abaabab"),
        ("regex:^\\+(OK|PONG)\\r\\n", b"+PONG\r\n"),
        ("regex:END\\r?\\n", b"VALUE x\r\nEND\n"),
        ("regex:(?s-u)^.\\xff.", b"a\xffb"),
    ];

    #[test]
    fn replies_come_back_to_back_and_cut_at_every_byte() {
        for (spec, reply) in RIGHT {
            let wire = reply.repeat(3);
            for cut in 0..=wire.len() {
                assert_eq!(
                    receive_all(spec, 3, &wire, &[cut]),
                    Ok(3),
                    "{spec} cut at {cut}"
                );
                let begun = &wire[..cut];
                let whole = (cut / reply.len()) as u32;
                assert_eq!(receive_all(spec, 3, begun, &[cut / 2]), Ok(whole), "{spec}");
            }
            assert!(
                receive_all(spec, 2, &wire, &[]).is_err(),
                "{spec}: one too many"
            );
        }
    }

    #[test]
    fn wrong_replies_are_refused() {
        for (spec, reply, why) in [
            (
                "text:+PONG\\r\\n",
                "+PING\r\n",
                "byte 2 of the reply is 0x49 instead of 0x4f",
            ),
            ("regex:^\\+OK\\n", "-ERR\n", "can no longer match"),
            (
                "until:\\n",
                &"x".repeat(2 << 20),
                "no end within 1048576 bytes",
            ),
            (
                "regex:\\n",
                &"x".repeat(2 << 20),
                "no end within 1048576 bytes",
            ),
        ] {
            for cut in [0, 1, reply.len() / 2] {
                let error = receive_all(spec, 1, reply.as_bytes(), &[cut]).unwrap_err();
                assert!(error.contains(why), "{spec}: {error}");
            }
        }
    }

    #[test]
    fn a_reply_may_end_with_the_connection() {
        let dialogue = custom("close");
        assert!(dialogue.closes());
        let mut requester = dialogue.requester(&Settings::default(), 0);
        for _ in 0..2 {
            requester.request(&mut Vec::new());
            assert_eq!(requester.finish(), Ok(Replies::default()), "nothing came");
            assert_eq!(requester.receive(b"any"), Ok(Replies::default()));
            let closing = Replies {
                completed: 1,
                close: true,
                ..Replies::default()
            };
            assert_eq!(requester.finish(), Ok(closing));
            assert!(requester.receive(b"more").is_err());
        }
        let mut other = custom("bytes:5").requester(&Settings::default(), 0);
        other.request(&mut Vec::new());
        assert_eq!(other.finish(), Ok(Replies::default()), "nothing came");
        other.receive(b"1234").unwrap();
        assert_eq!(other.fault(), None);
        let error = other.finish().unwrap_err();
        assert!(error.what.ends_with("it began with `1234`"), "{error}");
        assert_eq!(other.fault(), Some("closed-early"));
    }

    /// PostgreSQL's reply beyond max_connections.
    #[test]
    fn an_unexpected_reply_is_shown() {
        let refusal = b"E\0\0\0\x50SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0Fproc.c\0L360\0RInitProcess\0\0";
        for cut in [3, 30, 60, refusal.len()] {
            let mut requester =
                custom("regex:Z\\x00\\x00\\x00\\x05I").requester(&Settings::default(), 0);
            requester.request(&mut Vec::new());
            requester.receive(&refusal[..cut]).unwrap();
            requester.receive(&refusal[cut..]).unwrap();
            let error = requester.finish().unwrap_err();
            assert!(
                error.what.contains("sorry, too many clients already\\x00"),
                "{error}"
            );
            requester.drop_requests();
            requester.request(&mut Vec::new());
            requester.receive(b"1").unwrap();
            assert!(requester.finish().unwrap_err().what.ends_with("`1`"));
        }
    }

    #[test]
    fn forgotten_requests_are_neither_sent_nor_expected() {
        for (spec, reply) in RIGHT {
            let mut requester = custom(spec).requester(&Settings::default(), 0);
            requester.begin();
            requester.begin();
            requester.advance(3);
            requester.receive(&reply[..reply.len() - 1]).unwrap();
            requester.drop_requests();
            assert!(requester.pending().is_empty());
            let mut wire = Vec::new();
            requester.request(&mut wire);
            assert_eq!(wire, b"PING\r\n");
            assert_eq!(requester.receive(reply).unwrap().completed, 1, "{spec}");
        }
    }

    #[test]
    fn it_is_described() {
        let words = |request: &[u8]| {
            let expectation = Box::leak(Box::new(Expectation::parse("until:\\n").unwrap()));
            Custom::new(request, expectation).map(|custom| custom.describe(&Settings::default()))
        };
        assert_eq!(
            words(b"PING\r\n").unwrap(),
            "\"PING\\r\\n\" answered by until:\\n"
        );
        let long = words(&[b'a'; 33]).unwrap();
        assert_eq!(
            long,
            format!("\"{}...\" answered by until:\\n", "a".repeat(32))
        );
        assert_eq!(words(b"").unwrap_err(), "nothing to send");
    }

    proptest! {
        #[test]
        fn any_cuts_give_the_same_replies(
            which in 0..RIGHT.len(),
            requests in 1_usize..9,
            cuts in prop::collection::vec(0_usize..200, 0..20),
        ) {
            let (spec, reply) = RIGHT[which];
            let received = receive_all(spec, requests, &reply.repeat(requests), &cuts);
            prop_assert_eq!(received, Ok(requests as u32));
        }

        #[test]
        fn garbage_means_the_same_however_it_is_cut(
            which in 0..RIGHT.len(),
            garbage in prop::collection::vec(prop::sample::select(b"ab+OK\r\nEND\xff".to_vec()), 0..60),
            cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let (spec, _) = RIGHT[which];
            let whole = receive_all(spec, 60, &garbage, &[]);
            let cut = receive_all(spec, 60, &garbage, &cuts);
            prop_assert_eq!(whole.is_err(), cut.is_err());
            if let (Ok(whole), Ok(cut)) = (whole, cut) {
                prop_assert_eq!(whole, cut);
            }
        }
    }
}
