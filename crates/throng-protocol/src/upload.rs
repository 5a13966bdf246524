//! `upload`: the client sends many bytes, the server replies with their count and closes.
//!
//! Request: the length as an unsigned 64-bit integer, most significant byte first, then that many bytes. Reply: one
//! status byte (0 accepted, 1 over the limit) and the number of bytes received, also 64 bits.
//!
//! The server counts the bytes and keeps none, so its memory is bounded for any length. Nor does it check them: that
//! would cost more than reading them and hide what is measured. It rejects a length over [`Offer::max_upload`]
//! immediately, and discards any further bytes from the client. The client takes every piece from one buffer that all
//! clients share.

use super::mix::following;
use super::number::Number;
use super::pattern::{Interned, noise};
use super::{
    Close, Dialogue, Mix, Offer, Protocol, ProtocolError, Replies, ReplyCounts, Requester, Session,
    Settings, Step,
};

/// The protocol `upload`.
pub(super) struct Upload;

impl Protocol for Upload {
    fn name(&self) -> &'static str {
        "upload"
    }

    fn summary(&self) -> &'static str {
        "the client sends a length and so many bytes; the server counts them and closes"
    }

    fn session(&self, offer: &Offer) -> Box<dyn Session> {
        Box::new(UploadSession {
            limit: offer.max_upload,
            length: Number::default(),
            state: State::Length,
        })
    }
}

impl Dialogue for Upload {
    fn describe(&self, settings: &Settings) -> String {
        format!("upload of {}", settings.size.sizes_in_words())
    }

    fn closes(&self) -> bool {
        true
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        static BODIES: Interned<(Mix<usize>, u64), [&Body]> = Interned::new();
        let (mix, seed) = (settings.size, settings.seed);
        let bodies = BODIES.get((mix, seed), |_| {
            mix.order(seed).into_iter().map(body).collect()
        });
        let next = mix.first(client, seed, bodies.len());
        let body = bodies[next];
        Box::new(UploadRequester {
            bodies,
            next,
            body,
            sent: body.total,
            reply: None,
            rejected: 0,
        })
    }
}

/// Length of the length field in bytes.
const LENGTH_BYTES: usize = size_of::<u64>();
/// The status of a completely received upload.
const ACCEPTED: u8 = 0;
/// The status of an upload over the limit.
const OVER_LIMIT: u8 = 1;

struct UploadSession {
    limit: u64,
    length: Number,
    state: State,
}

enum State {
    /// The length is incomplete.
    Length,
    /// The length is known; `left` bytes are still to come.
    Body { length: u64, left: u64 },
    /// The reply was written, after which the server closes.
    Over,
}

impl Session for UploadSession {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        let mut rest = input;
        if let State::Length = self.state {
            match self.length.take(&mut rest) {
                Some(length) if length > self.limit => {
                    return Ok(self.answer(input.len(), OVER_LIMIT, 0, out));
                }
                Some(length) => {
                    self.state = State::Body {
                        length,
                        left: length,
                    };
                }
                None => {}
            }
        }
        if let State::Body { length, left } = &mut self.state {
            *left = left.saturating_sub(rest.len() as u64);
            if *left == 0 {
                let length = *length;
                return Ok(self.answer(input.len(), ACCEPTED, length, out));
            }
        }
        Ok(Step {
            consumed: input.len(),
            ..Step::default()
        })
    }

    fn is_within_request(&self) -> bool {
        match self.state {
            State::Length => self.length.is_begun(),
            State::Body { .. } => true,
            State::Over => false,
        }
    }
}

impl UploadSession {
    fn answer(&mut self, consumed: usize, status: u8, taken: u64, out: &mut Vec<u8>) -> Step {
        self.state = State::Over;
        out.push(status);
        out.extend_from_slice(&taken.to_be_bytes());
        Step {
            consumed,
            requests: 1,
            close: if status == ACCEPTED {
                Close::Yes
            } else {
                Close::WhileClientSends
            },
            ..Step::default()
        }
    }
}

/// Maximum bytes of a body per send. Each call copies the bytes into the kernel. Fewer, larger calls are better up to
/// about the size of a processor's cache.
const PIECE: usize = 1024 * 1024;

/// An upload, shared by all clients.
struct Body {
    /// The length field, then content that is repeated.
    wire: Vec<u8>,
    /// Number of bytes after the length field.
    size: u64,
    /// Number of bytes including the length field.
    total: usize,
}

fn body(size: usize) -> &'static Body {
    static BODY: Interned<usize, Body> = Interned::new();
    BODY.get(size, |&size| {
        let length = (size as u64).to_be_bytes();
        let repeated = noise().take(size.min(PIECE));
        Box::new(Body {
            wire: length.into_iter().chain(repeated).collect(),
            size: size as u64,
            total: LENGTH_BYTES + size,
        })
    })
}

struct UploadRequester {
    /// The uploads that each client cycles through.
    bodies: &'static [&'static Body],
    /// The index of the next upload.
    next: usize,
    /// The last upload begun.
    body: &'static Body,
    /// How many of its bytes were sent or are no longer needed.
    sent: usize,
    /// The reply received so far, while one is expected.
    reply: Option<Reply>,
    /// Number of uploads over the limit.
    rejected: u64,
}

/// A partially received reply.
#[derive(Default)]
struct Reply {
    status: Option<u8>,
    taken: Number,
}

impl Requester for UploadRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.body = self.bodies[self.next];
        self.next = following(self.next, self.bodies.len());
        self.sent = 0;
        self.reply = Some(Reply::default());
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        let left = self.body.total - self.sent;
        let start = match self.sent.checked_sub(LENGTH_BYTES) {
            Some(body) => LENGTH_BYTES + body % PIECE,
            None => self.sent,
        };
        let wire = &self.body.wire;
        let end = wire.len().min(start + left);
        &wire[start.min(end)..end]
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.sent += count;
        self.pending()
    }

    fn drop_requests(&mut self) {
        self.sent = self.body.total;
        self.reply = None;
    }

    fn receive(&mut self, mut input: &[u8]) -> Result<Replies, ProtocolError> {
        let Some(reply) = &mut self.reply else {
            return wrong(format!("{} bytes came after the reply", input.len()));
        };
        if reply.status.is_none()
            && let Some((&status, rest)) = input.split_first()
        {
            reply.status = Some(status);
            input = rest;
        }
        let (Some(status), Some(taken)) = (reply.status, reply.taken.take(&mut input)) else {
            return Ok(Replies::default());
        };
        self.reply = None;
        let refused = match (status, taken) {
            (ACCEPTED, taken) if taken == self.body.size && self.sent == self.body.total => 0,
            (OVER_LIMIT, 0) => 1,
            _ => {
                let (sent, total) = (self.sent, self.body.total);
                return wrong(format!(
                    "status {status} with {taken} bytes taken, after {sent} of {total} bytes"
                ));
            }
        };
        if !input.is_empty() {
            return wrong(format!("{} bytes came after the reply", input.len()));
        }
        self.sent = self.body.total;
        self.rejected += u64::from(refused);
        Ok(Replies {
            completed: 1,
            refused,
            close: true,
        })
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        if self.rejected > 0 {
            *counts.rejected.entry("over-limit").or_default() += self.rejected;
        }
    }
}

#[cold]
fn wrong(what: String) -> Result<Replies, ProtocolError> {
    Err(ProtocolError { what })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACCEPT: Replies = Replies {
        completed: 1,
        refused: 0,
        close: true,
    };
    const DECLINE: Replies = Replies {
        refused: 1,
        ..ACCEPT
    };

    /// The server's reply to `input`, cut at `cut`, and how the connection closes.
    fn answer(input: &[u8], cut: usize, limit: u64) -> (Vec<u8>, u64, Close) {
        let mut session = Upload.session(&Offer {
            max_upload: limit,
            ..Offer::default()
        });
        let (mut out, mut requests, mut close) = (Vec::new(), 0, Close::No);
        for piece in [&input[..cut], &input[cut..]] {
            if close == Close::No {
                let step = session.receive(piece, &mut out).unwrap();
                assert_eq!(step.consumed, piece.len());
                requests += step.requests;
                close = step.close;
            }
        }
        (out, requests, close)
    }

    fn request(size: usize) -> Vec<u8> {
        let mut wire = Vec::new();
        Upload
            .requester(&Settings::of_size(size), 0)
            .request(&mut wire);
        wire
    }

    #[test]
    fn the_accepted_size_is_reported_at_the_last_byte() {
        let wire = request(20);
        assert_eq!(wire[..8], [0, 0, 0, 0, 0, 0, 0, 20]);
        assert_eq!(wire.len(), 28);
        for cut in 0..=wire.len() {
            let (out, requests, close) = answer(&wire, cut, 20);
            assert_eq!(out, [0, 0, 0, 0, 0, 0, 0, 0, 20], "cut at {cut}");
            assert_eq!((requests, close), (1, Close::Yes));
            assert_eq!(answer(&wire[..cut.min(27)], 0, 20).0, [0; 0]);
        }
    }

    #[test]
    fn nothing_can_be_uploaded() {
        assert_eq!(answer(&[0; 8], 3, 20), (vec![0; 9], 1, Close::Yes));
    }

    #[test]
    fn a_length_over_the_limit_is_rejected_before_the_body() {
        for length in [21, u64::from(u32::MAX), u64::MAX] {
            let wire = length.to_be_bytes();
            for cut in 0..=8 {
                let (out, requests, close) = answer(&wire, cut, 20);
                assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 0, 0], "{length}");
                assert_eq!((requests, close), (1, Close::WhileClientSends));
            }
        }
    }

    #[test]
    fn more_than_was_announced_is_no_part_of_it() {
        let wire = [&request(20)[..], b"more"].concat();
        let (out, requests, _) = answer(&wire, 10, 20);
        assert_eq!((out[8], requests), (20, 1));
    }

    #[test]
    fn a_body_leaves_in_pieces_of_one_buffer() {
        let size = 2 * PIECE + 5;
        let mut requester = Upload.requester(&Settings::of_size(size), 0);
        requester.begin();
        let mut lengths = Vec::new();
        let mut wire = Vec::new();
        while !requester.pending().is_empty() {
            lengths.push(requester.pending().len());
            wire.extend_from_slice(requester.pending());
            requester.advance(requester.pending().len());
        }
        assert_eq!(lengths, [8 + PIECE, PIECE, 5]);
        let noise: Vec<u8> = noise().take(PIECE).collect();
        assert_eq!(wire[8..8 + PIECE], noise);
        assert_eq!(wire[8 + PIECE..8 + 2 * PIECE], noise);
        assert_eq!(wire[8 + 2 * PIECE..], noise[..5]);
    }

    #[test]
    fn sizes_come_by_weight() {
        let settings = Settings {
            size: Mix::Several(&[(100_000, 3), (1_000_000, 1)]),
            ..Settings::default()
        };
        let words = "upload of 100 kB (3), 1 MB (1)";
        assert_eq!(Upload.describe(&settings), words);
        let mut requester = Upload.requester(&settings, 7);
        let mut sum = 0;
        for _ in 0..1024 {
            requester.begin();
            let length = requester.pending()[..8].try_into().unwrap();
            let length = u64::from_be_bytes(length);
            sum += length;
            while !requester.pending().is_empty() {
                requester.advance(requester.pending().len());
            }
            let reply = [&[ACCEPTED][..], &length.to_be_bytes()].concat();
            assert_eq!(requester.receive(&reply), Ok(ACCEPT));
        }
        assert_eq!(sum, 768 * 100_000 + 256 * 1_000_000);
    }

    #[test]
    fn replies_are_checked_cut_at_every_byte() {
        let accepted = [0, 0, 0, 0, 0, 0, 0, 0, 20];
        let declined = [1, 0, 0, 0, 0, 0, 0, 0, 0];
        for (reply, expected) in [(accepted, ACCEPT), (declined, DECLINE)] {
            for cut in 0..=8 {
                let mut requester = Upload.requester(&Settings::of_size(20), 0);
                requester.request(&mut Vec::new());
                assert_eq!(requester.receive(&reply[..cut]), Ok(Replies::default()));
                assert_eq!(requester.receive(&reply[cut..]), Ok(expected));
                assert!(requester.receive(&[0]).is_err());
            }
        }
    }

    #[test]
    fn a_declined_client_stops_sending_and_can_ask_anew() {
        let mut requester = Upload.requester(&Settings::of_size(5 * PIECE), 0);
        for _ in 0..2 {
            requester.begin();
            requester.advance(100);
            let declined = [1, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(requester.receive(&declined), Ok(DECLINE));
            assert!(requester.pending().is_empty());
        }
    }

    #[test]
    fn wrong_replies_are_refused() {
        for reply in [
            [0, 0, 0, 0, 0, 0, 0, 0, 19],
            [0, 0, 0, 0, 0, 0, 0, 0, 21],
            [1, 0, 0, 0, 0, 0, 0, 0, 20],
            [2, 0, 0, 0, 0, 0, 0, 0, 20],
        ] {
            let mut requester = Upload.requester(&Settings::of_size(20), 0);
            requester.request(&mut Vec::new());
            assert!(requester.receive(&reply).is_err(), "{reply:?}");
        }
        // Accepted before the whole upload could have arrived.
        let mut requester = Upload.requester(&Settings::of_size(20), 0);
        requester.begin();
        requester.advance(27);
        let early = requester.receive(&[0, 0, 0, 0, 0, 0, 0, 0, 20]);
        assert!(early.unwrap_err().what.contains("after 27 of 28 bytes"));
        // One byte too many.
        requester.request(&mut Vec::new());
        assert!(requester.receive(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn no_garbage_troubles_either_half(
            garbage in prop::collection::vec(any::<u8>(), 0..300),
            cut in 0_usize..300,
        ) {
            let (out, requests, _) = answer(&garbage, cut.min(garbage.len()), 100);
            prop_assert_eq!(out.len() as u64, 9 * requests);
            prop_assert!(requests <= 1);
            let mut requester = Upload.requester(&Settings::of_size(20), 0);
            requester.request(&mut Vec::new());
            let _ = requester.receive(&garbage);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn any_size_arrives_whole(size in 0_usize..2_200_000, cut in any::<prop::sample::Index>()) {
            let wire = request(size);
            prop_assert_eq!(wire.len(), size + 8);
            let (out, ..) = answer(&wire, cut.index(wire.len()), u64::MAX);
            let mut requester = Upload.requester(&Settings::of_size(size), 0);
            requester.request(&mut Vec::new());
            prop_assert_eq!(requester.receive(&out), Ok(ACCEPT));
        }
    }
}
