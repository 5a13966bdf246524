//! `echo`: every byte comes back.
//!
//! The server needs no framing. It counts a request for every [`Offer::size`] bytes, so that both sides' counts are
//! comparable if they were given the same size. With requests of several sizes it cannot count any: then only bytes can
//! be compared.
//!
//! The client sends slices of one pattern, shared by the whole process, at an offset that differs between clients and
//! from request to request: it detects bytes that are wrong, missing, doubled or meant for another client.

use super::mix::{following, scatter};
use super::pattern::{Interned, noise};
use super::{
    Close, Dialogue, Mix, OUTPUT_LIMIT, Offer, Protocol, ProtocolError, Replies, Requester,
    Session, Settings, Step,
};
use throng_registry::{Entry, Info};

/// The protocol `echo`.
pub(super) struct Echo;

impl Entry for Echo {
    fn info(&self) -> Info {
        Info {
            name: "echo",
            summary: "every byte comes back; the client checks each one",
        }
    }
}

impl Dialogue for Echo {
    fn describe(&self, settings: &Settings) -> String {
        format!("echo of {}", settings.size.sizes_in_words())
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        static SIZES: Interned<Mix<usize>, [usize]> = Interned::new();
        let sizes = SIZES.get(settings.size, |mix| mix.order().into());
        let start = client % PATTERN_PERIOD as u64 * CLIENT_STRIDE as u64;
        let first = Place {
            start: (start % PATTERN_PERIOD as u64) as usize,
            turn: scatter(client, sizes.len()),
        };
        let pattern = pattern(settings.size.largest());
        Box::new(EchoRequester {
            pattern,
            sizes,
            next: first,
            leaving: &[],
            waiting: 0,
            oldest: first,
            due: first.request(pattern, sizes),
            unanswered: 0,
        })
    }
}

impl Protocol for Echo {
    fn session(&self, offer: &Offer) -> Box<dyn Session> {
        Box::new(EchoSession {
            size: offer.size.max(1),
            part: 0,
        })
    }
}

struct EchoSession {
    size: usize,
    /// Bytes of the current request seen so far.
    part: usize,
}

impl Session for EchoSession {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        let room = OUTPUT_LIMIT.saturating_sub(out.len());
        let consumed = input.len().min(room);
        let total = self.part + consumed;
        let requests = if total == self.size {
            self.part = 0; // so often that it is worth avoiding the divisions
            1
        } else {
            self.part = total % self.size;
            (total / self.size) as u64
        };
        Ok(Step {
            consumed,
            requests,
            reflected: consumed,
            close: Close::No,
        })
    }

    fn is_within_request(&self) -> bool {
        self.part > 0
    }
}

/// Distinct starting places in the pattern; prime, so that strides visit all of them.
const PATTERN_PERIOD: usize = 65_521;
/// Distance between the first requests of neighbouring clients.
const CLIENT_STRIDE: usize = 7_919;
/// Distance between one client's requests.
const REQUEST_STRIDE: usize = 389;

/// Pseudo-random bytes from which every request of up to `size` bytes can be cut at any start.
fn pattern(size: usize) -> &'static [u8] {
    static PATTERN: Interned<usize, [u8]> = Interned::new();
    PATTERN.get(size.next_power_of_two(), |longest| {
        noise().take(PATTERN_PERIOD + longest).collect()
    })
}

/// Where a request is.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Its first byte in the pattern.
    start: usize,
    /// Its size among the sizes.
    turn: usize,
}

impl Place {
    fn request(self, pattern: &'static [u8], sizes: &[usize]) -> &'static [u8] {
        &pattern[self.start..self.start + sizes[self.turn]]
    }

    /// The request after this one.
    fn following(self, sizes: &[usize]) -> Self {
        let start = self.start + REQUEST_STRIDE;
        Self {
            start: if start < PATTERN_PERIOD {
                start
            } else {
                start - PATTERN_PERIOD
            },
            turn: following(self.turn, sizes.len()),
        }
    }
}

struct EchoRequester {
    pattern: &'static [u8],
    /// Sizes of requests, round and round.
    sizes: &'static [usize],
    /// The next request to leave.
    next: Place,
    /// What has not left of the one before.
    leaving: &'static [u8],
    /// Requests begun but not sent at all.
    waiting: usize,
    /// The oldest unanswered request, or the next one.
    oldest: Place,
    /// What has not come back of it.
    due: &'static [u8],
    /// Requests begun and not yet answered whole.
    unanswered: usize,
}

impl EchoRequester {
    fn begin_to_send(&mut self) {
        self.leaving = self.next.request(self.pattern, self.sizes);
        self.next = self.next.following(self.sizes);
    }

    fn expect(&mut self, place: Place) {
        self.oldest = place;
        self.due = place.request(self.pattern, self.sizes);
    }
}

impl Requester for EchoRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.unanswered += 1;
        if self.leaving.is_empty() {
            self.begin_to_send();
        } else {
            self.waiting += 1;
        }
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        self.leaving
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.leaving = &self.leaving[count..];
        if self.leaving.is_empty() && self.waiting > 0 {
            self.waiting -= 1;
            self.begin_to_send();
        }
        self.pending()
    }

    fn forget(&mut self) {
        (self.leaving, self.waiting, self.unanswered) = (&[], 0, 0);
        self.expect(self.next);
    }

    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError> {
        // One whole reply, the usual case: a separate branch, so that it is short.
        if self.unanswered > 0 && input == self.due {
            self.complete();
            return Ok(Replies {
                completed: 1,
                ..Replies::default()
            });
        }
        self.receive_pieces(input)
    }
}

impl EchoRequester {
    fn complete(&mut self) {
        self.expect(self.oldest.following(self.sizes));
        self.unanswered -= 1;
    }

    #[inline(never)]
    fn receive_pieces(&mut self, mut input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut completed = 0;
        while !input.is_empty() {
            if self.unanswered == 0 {
                return Err(ProtocolError {
                    what: format!("{} bytes more than were sent came back", input.len()),
                });
            }
            let length = self.due.len().min(input.len());
            let (head, rest) = input.split_at(length);
            let (expected, due) = self.due.split_at(length);
            if head != expected {
                return Err(self.mismatch(head, expected));
            }
            input = rest;
            if due.is_empty() {
                self.complete();
                completed += 1;
            } else {
                self.due = due;
            }
        }
        Ok(Replies {
            completed,
            ..Replies::default()
        })
    }

    #[cold]
    fn mismatch(&self, got: &[u8], expected: &[u8]) -> ProtocolError {
        let at = got.iter().zip(expected).position(|(a, b)| a != b);
        let at = at.expect("the slices differ");
        ProtocolError {
            what: format!(
                "byte {} of the reply is {:#04x} instead of {:#04x}",
                self.sizes[self.oldest.turn] - self.due.len() + at,
                got[at],
                expected[at]
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings(size: usize) -> Settings {
        Settings {
            size: Mix::One(size),
            ..Settings::default()
        }
    }

    fn offer(size: usize) -> Offer {
        Offer {
            size,
            ..Offer::default()
        }
    }

    /// Lets both halves talk, handing over the bytes in pieces that end at `cuts`.
    fn talk(size: usize, requests: u32, cuts: &[usize]) -> (u32, u64) {
        let mut requester = Echo.requester(&settings(size), 3);
        let mut session = Echo.session(&offer(size));
        let mut wire = Vec::new();
        for _ in 0..requests {
            requester.request(&mut wire);
        }
        let (mut completed, mut counted, mut from) = (0, 0, 0);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
        ends.push(wire.len());
        ends.sort_unstable();
        for end in ends {
            let mut out = Vec::new();
            let step = session.receive(&wire[from..end], &mut out).unwrap();
            out.extend_from_slice(&wire[from..from + step.reflected]);
            assert_eq!(step.consumed, end - from);
            counted += step.requests;
            completed += requester.receive(&out).unwrap().completed;
            from = end;
        }
        (completed, counted)
    }

    #[test]
    fn cut_at_every_byte() {
        for cut in 0..=60 {
            assert_eq!(talk(20, 3, &[cut]), (3, 3));
        }
    }

    proptest! {
        #[test]
        fn any_cuts_give_the_same_replies(
            size in 1_usize..3000,
            requests in 1_u32..9,
            cuts in prop::collection::vec(0_usize..30_000, 0..20),
        ) {
            prop_assert_eq!(talk(size, requests, &cuts), (requests, u64::from(requests)));
        }
    }

    #[test]
    fn sizes_come_by_weight_and_every_byte_is_checked() {
        let settings = Settings {
            size: Mix::Several(&[(10, 3), (700, 1)]),
            ..Settings::default()
        };
        assert_eq!(Echo.describe(&settings), "echo of 10 B (3), 700 B (1)");
        let mut requester = Echo.requester(&settings, 3);
        let mut long = 0;
        for round in 0..512 {
            let mut wire = Vec::new();
            requester.request(&mut wire);
            requester.request(&mut wire);
            long += wire.len() / 700;
            for (piece, completed) in [(&wire[..5], 0), (&wire[5..], 2)] {
                let received = requester.receive(piece).unwrap();
                assert_eq!(received.completed, completed, "in round {round}");
            }
        }
        assert_eq!(long, 256);
        let mut wire = Vec::new();
        requester.request(&mut wire);
        *wire.last_mut().unwrap() ^= 1;
        assert!(requester.receive(&wire).is_err());
    }

    #[test]
    fn a_flipped_bit_is_named() {
        let mut requester = Echo.requester(&settings(100), 0);
        let mut wire = Vec::new();
        requester.request(&mut wire);
        wire[42] ^= 1;
        let error = requester.receive(&wire).unwrap_err();
        assert!(
            error.what.starts_with("byte 42 of the reply is 0x"),
            "{error}"
        );
    }

    #[test]
    fn another_clients_reply_is_refused() {
        let mut mine = Echo.requester(&settings(100), 0);
        let mut theirs = Echo.requester(&settings(100), 1);
        let mut wire = Vec::new();
        theirs.request(&mut wire);
        mine.request(&mut Vec::new());
        assert!(mine.receive(&wire).is_err());
    }

    #[test]
    fn a_repeated_reply_is_refused() {
        let mut requester = Echo.requester(&settings(10), 0);
        let mut wire = Vec::new();
        requester.request(&mut wire);
        assert_eq!(requester.receive(&wire).unwrap().completed, 1);
        assert!(requester.receive(&wire).is_err());
    }

    #[test]
    fn output_is_bounded_and_the_rest_is_taken_later() {
        let mut session = Echo.session(&offer(1000));
        let input = vec![7; OUTPUT_LIMIT + 5000];
        let mut out = Vec::new();
        let step = session.receive(&input, &mut out).unwrap();
        assert_eq!(
            (step.consumed, step.reflected),
            (OUTPUT_LIMIT, OUTPUT_LIMIT)
        );
        let rest = &input[step.consumed..];
        let step = session.receive(rest, &mut out).unwrap();
        assert_eq!((step.consumed, step.reflected), (5000, 5000));
        out.resize(OUTPUT_LIMIT - 100, 7);
        let step = session.receive(rest, &mut out).unwrap();
        assert_eq!((step.consumed, step.reflected), (100, 100));
    }
}
