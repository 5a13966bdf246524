//! The client half, for any server.

use super::super::cycle::Cycle;
use super::super::mix::following;
use super::super::status::StatusCounts;
use super::super::{ProtocolError, Replies, Requester, Settings, Tally};
use super::TEXT_PERIOD;
use super::asking::{Asking, UNKNOWN, Usual, asking};
use super::chunked::Found;
use super::known::{self, Last};
use super::reply::{Head, MOST_HEAD, Place, Reply, wrong};

/// The client half of one client.
pub(super) struct HttpRequester {
    asking: &'static Asking,
    requests: Cycle,
    /// Which request is the next to be begun.
    next: usize,
    /// The oldest one that is not answered, or the next one.
    oldest: usize,
    /// Requests begun and not yet answered whole.
    unanswered: usize,
    /// What has come of a head that is not whole.
    part: Vec<u8>,
    last: Last,
    place: Place,
    reply: Reply,
    usual: Usual,
    statuses: StatusCounts,
}

impl HttpRequester {
    pub(super) fn new(settings: &Settings, client: u64) -> Self {
        let asking = asking(settings);
        let first = asking.first(client);
        Self {
            asking,
            requests: Cycle::new(&asking.wire, asking.requests[first].start),
            next: first,
            oldest: first,
            unanswered: 0,
            part: Vec::new(),
            last: Last::default(),
            place: Place::Head,
            reply: Reply::default(),
            usual: Usual::new(settings),
            statuses: StatusCounts::default(),
        }
    }
}

impl Requester for HttpRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.requests.begin(self.asking.requests[self.next].bytes);
        self.next = following(self.next, self.asking.requests.len());
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

    fn forget(&mut self) {
        self.requests
            .start_over(self.asking.requests[self.next].start);
        self.oldest = self.next;
        self.unanswered = 0;
        self.part = Vec::new();
        self.place = Place::Head;
    }

    fn receive(&mut self, mut input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut replies = Replies::default();
        while !input.is_empty() {
            if self.unanswered == 0 {
                return wrong(format!("{} bytes came after the reply", input.len()));
            }
            let whole = match &mut self.place {
                Place::Head => self.head(&mut input)?,
                Place::Counted(left) => {
                    let count = input
                        .len()
                        .min(usize::try_from(*left).unwrap_or(usize::MAX));
                    let (content, rest) = input.split_at(count);
                    *left -= count as u64;
                    let whole = *left == 0;
                    input = rest;
                    self.check(content)?;
                    whole
                }
                Place::Chunked(chunks) => match chunks.read(&mut input)? {
                    Found::Content(content) => {
                        self.check(content)?;
                        false
                    }
                    Found::End => true,
                    Found::Nothing => false,
                },
                Place::Endless => {
                    self.check(std::mem::take(&mut input))?;
                    false
                }
            };
            if whole {
                self.complete(&mut replies)?;
            }
        }
        Ok(replies)
    }

    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        let mut replies = Replies::default();
        if let Place::Endless = self.place {
            self.complete(&mut replies)?;
        }
        Ok(replies)
    }

    fn tally(&self, tally: &mut Tally) {
        for (status, count) in self.statuses.iter() {
            *tally.statuses.entry(status).or_default() += count;
            if !self.asking.expected.contains(status) {
                *tally.unexpected.entry(status).or_default() += count;
            }
        }
    }
}

impl HttpRequester {
    /// Takes the head of a reply off the front of `input`, or what has come of it; whether the
    /// reply is whole with it.
    fn head(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        if self.part.is_empty() {
            let count = known::recall(input, self.last, |head| {
                (self.reply, self.place) = (head.reply, head.place);
                head.count
            });
            if let Some(count) = count {
                *input = &input[count..];
                return Ok(matches!(self.place, Place::Counted(0)));
            }
        }
        self.read_head(input)
    }

    /// As [`HttpRequester::head`], when it is not the one that came last.
    #[cold]
    fn read_head(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        let before = self.part.len();
        let window = &input[..input.len().min(MOST_HEAD - before)];
        let parsed = if before == 0 {
            known::read(window, &mut self.last)?
        } else {
            self.part.extend_from_slice(window);
            known::read(&self.part, &mut self.last)?
        };
        let Some(Head {
            reply,
            place,
            count,
        }) = parsed
        else {
            if before == 0 {
                self.part.extend_from_slice(window);
            }
            *input = &input[window.len()..];
            return if self.part.len() == MOST_HEAD {
                wrong(format!("a head of more than {MOST_HEAD} bytes"))
            } else {
                Ok(false)
            };
        };
        *input = &input[count - before..];
        if before > 0 {
            self.part = Vec::new(); // an idle client owns no buffer
        }
        match reply.status {
            101 => return wrong("the server changes to another protocol, unasked".to_owned()),
            ..200 => return Ok(false), // the real reply follows
            _ => {}
        }
        (self.reply, self.place) = (reply, place);
        Ok(matches!(self.place, Place::Counted(0)))
    }

    /// Checks the next bytes of a body.
    fn check(&mut self, mut content: &[u8]) -> Result<(), ProtocolError> {
        let bytes = self.reply.bytes;
        self.reply.bytes += content.len() as u64;
        if !self.reply.own || !self.reply.is_granted() {
            return Ok(());
        }
        let mut at = (bytes % TEXT_PERIOD as u64) as usize;
        while !content.is_empty() {
            let count = content.len().min(TEXT_PERIOD - at);
            let (piece, rest) = content.split_at(count);
            if piece != &self.asking.text[at..at + count] {
                return wrong(format!("a byte of the text is wrong, from byte {bytes} on"));
            }
            content = rest;
            at = 0;
        }
        Ok(())
    }

    /// A reply is whole.
    fn complete(&mut self, replies: &mut Replies) -> Result<(), ProtocolError> {
        let granted = self.reply.is_granted();
        let Reply {
            status,
            close,
            bytes,
            ..
        } = self.reply;
        self.place = Place::Head;
        self.unanswered -= 1;
        replies.completed += 1;
        replies.refused += u32::from(!self.asking.expected.contains(status));
        self.statuses.add(status);
        if granted {
            let usual = self.usual.of(self.asking.requests[self.oldest].path);
            if *usual == UNKNOWN {
                *usual = bytes;
            } else if *usual != bytes {
                return wrong(format!("{bytes} bytes instead of {usual} as before"));
            }
        }
        self.oldest = following(self.oldest, self.asking.requests.len());
        if close {
            // What else was asked over this connection is not answered.
            replies.close = true;
            self.forget();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::Mix;
    use super::super::reply::MOST_FIELDS;
    use super::super::text;
    use super::*;

    fn settings() -> Settings {
        Settings {
            host: "localhost:1",
            paths: Mix::One("/a?b"),
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

    /// What becomes of these replies to as many requests, cut at `cut`.
    fn hear(requests: usize, wire: &[u8], cut: usize) -> Result<Replies, ProtocolError> {
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
                let heard = hear(1, wire.as_bytes(), cut);
                assert_eq!(heard, Ok(expected), "{wire} cut at {cut}");
            }
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
                let heard = requester.receive(piece.as_bytes());
                assert_eq!(heard, Ok(Replies::default()));
            }
            let closing = Replies {
                close: true,
                ..DONE
            };
            assert_eq!(requester.finish(), Ok(closing));
            // The next one has another length.
            requester.request(&mut Vec::new());
            requester.receive(head.as_bytes()).unwrap();
            assert!(requester.finish().is_err());
        }
    }

    #[test]
    fn a_reply_broken_off_is_no_reply() {
        let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        for cut in 0..wire.len() {
            let mut requester = asked(1);
            requester.receive(&wire[..cut]).unwrap();
            assert_eq!(requester.finish(), Ok(Replies::default()), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_granted_has_always_the_same_length() {
        let reply = |length: usize| {
            let body = "x".repeat(length);
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
        };
        let not_found = b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx";
        let good = [&reply(5)[..], not_found, &reply(5)].concat();
        assert_eq!(hear(3, &good, 50).unwrap().completed, 3);
        let bad = [reply(5), reply(6)].concat();
        let error = hear(2, &bad, 50).unwrap_err();
        assert_eq!(error.what, "6 bytes instead of 5 as before");
    }

    #[test]
    fn a_client_is_small() {
        assert!(size_of::<HttpRequester>() < 256);
    }

    #[test]
    fn throngs_own_text_is_checked() {
        for length in [1, TEXT_PERIOD - 1, 2 * TEXT_PERIOD + 3] {
            let head =
                format!("HTTP/1.1 200 OK\r\nServer: throng\r\nContent-Length: {length}\r\n\r\n");
            let text = text();
            let body = text.iter().cycle().take(length);
            let mut wire: Vec<u8> = head.bytes().chain(body.copied()).collect();
            assert_eq!(hear(1, &wire, head.len() + length / 2), Ok(DONE));
            let flipped = wire.len() - 1 - length / 3;
            wire[flipped] ^= 1;
            assert!(hear(1, &wire, head.len()).is_err());
        }
    }

    #[test]
    fn wrong_replies_are_refused() {
        let fields = "a: b\r\n".repeat(MOST_FIELDS + 1);
        for (wire, why) in [
            ("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP/1.1"),
            ("HTTP/2 200\r\n\r\n", "not HTTP/1.1"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                "a content length that is none: `x`",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                "two content lengths",
            ),
            (
                "HTTP/1.1 101 Switching Protocols\r\n\r\n",
                "another protocol",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx",
                "1 bytes came after the reply",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx",
                "a chunk has no size",
            ),
            (&format!("HTTP/1.1 200 OK\r\n{fields}"), "too many headers"),
            (
                &format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MOST_HEAD)),
                "a head of more than",
            ),
        ] {
            for cut in [0, 1, wire.len() / 2, wire.len()] {
                let error = hear(1, wire.as_bytes(), cut).unwrap_err();
                assert!(error.what.contains(why), "{error} for {wire}");
            }
        }
        let closed = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        assert!(hear(2, closed.repeat(2).as_bytes(), 0).is_err());
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
            prop_assert!(requester.part.capacity() <= 2 * MOST_HEAD);
        }
    }
}
