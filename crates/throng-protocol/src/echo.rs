//! `echo`: every byte comes back.
//!
//! The server needs no framing. It counts a request per [`Offer::size`] bytes, so the counts of both sides are
//! comparable if they use the same size. It cannot count requests of several sizes: then only bytes are comparable.
//!
//! The client sends slices of one pattern, shared by the whole process, at an offset that differs between clients and
//! requests. So it detects bytes that are wrong, missing, duplicated or meant for another client.

use super::mix::following;
use super::pattern::{Interned, noise};
use super::requesters::First;
use super::{
    Close, Dialogue, Mix, OUTPUT_LIMIT, Offer, Protocol, ProtocolError, Replies, Requester,
    Requesters, Session, Settings, Step,
};

/// The protocol `echo`.
pub(super) struct Echo;

impl Dialogue for Echo {
    fn describe(&self, settings: &Settings) -> String {
        format!("echo of {}", settings.size.sizes_in_words())
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        Box::new(First(EchoRequesters::new(settings, [client])))
    }

    fn requesters(
        &self,
        settings: &Settings,
        clients: &mut dyn Iterator<Item = u64>,
    ) -> Box<dyn Requesters> {
        Box::new(EchoRequesters::new(settings, clients))
    }
}

impl Protocol for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn summary(&self) -> &'static str {
        "every byte comes back; the client checks each one"
    }

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
            self.part = 0; // common enough that avoiding the divisions pays off
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

/// Distinct offsets in the pattern; prime, so that strides visit all of them.
const PATTERN_PERIOD: usize = 65_521;
/// Distance between the first requests of adjacent clients.
const CLIENT_STRIDE: usize = 7_919;
/// Distance between one client's requests.
const REQUEST_STRIDE: u32 = 389;

/// Pseudo-random bytes that contain every request of up to `size` bytes at any offset.
fn pattern(size: usize) -> &'static [u8] {
    static PATTERN: Interned<usize, [u8]> = Interned::new();
    PATTERN.get(size.next_power_of_two(), |longest| {
        noise().take(PATTERN_PERIOD + longest).collect()
    })
}

/// Identifies a request.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Its offset in the pattern.
    start: u32,
    /// The index of its size.
    turn: u32,
}

impl Place {
    /// The whole request.
    fn whole(self, sizes: &[usize]) -> Piece {
        Piece {
            start: self.start,
            bytes: sizes[self.turn as usize] as u32,
        }
    }

    /// The next request.
    fn following(self, sizes: &[usize]) -> Self {
        let start = self.start + REQUEST_STRIDE;
        Self {
            start: if start < PATTERN_PERIOD as u32 {
                start
            } else {
                start - PATTERN_PERIOD as u32
            },
            turn: following(self.turn as usize, sizes.len()) as u32,
        }
    }
}

/// The part of a request that is not sent or not echoed yet, as an offset in the pattern and a length.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    start: u32,
    bytes: u32,
}

impl Piece {
    fn of(self, pattern: &'static [u8]) -> &'static [u8] {
        let start = self.start as usize;
        &pattern[start..start + self.bytes as usize]
    }

    /// The rest after the first `count` bytes.
    fn after(self, count: usize) -> Self {
        let count = count as u32;
        Self {
            start: self.start + count,
            bytes: self.bytes - count,
        }
    }
}

/// The client halves of several clients.
struct EchoRequesters {
    pattern: &'static [u8],
    /// Sizes of the requests, in the order in which each client repeats them.
    sizes: &'static [usize],
    clients: Vec<EchoClient>,
}

/// One client, in a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct EchoClient {
    /// The next request to send.
    next: Place,
    /// The unsent part of the previous one.
    leaving: Piece,
    /// The oldest request without a reply, or the next one.
    oldest: Place,
    /// The part of it that was not echoed yet.
    due: Piece,
    /// Requests begun without any byte sent.
    waiting: u32,
    /// Requests begun without a complete reply.
    unanswered: u32,
}

impl EchoRequesters {
    fn new(settings: &Settings, clients: impl IntoIterator<Item = u64>) -> Self {
        static SIZES: Interned<(Mix<usize>, u64), [usize]> = Interned::new();
        let (mix, seed) = (settings.size, settings.seed);
        let sizes = SIZES.get((mix, seed), |_| mix.order(seed).into());
        let made = clients
            .into_iter()
            .map(|client| EchoClient::new(client, mix.first(client, seed, sizes.len()), sizes));
        Self {
            pattern: pattern(settings.size.largest()),
            sizes,
            clients: made.collect(),
        }
    }
}

impl EchoClient {
    fn new(number: u64, turn: usize, sizes: &[usize]) -> Self {
        let start = number % PATTERN_PERIOD as u64 * CLIENT_STRIDE as u64;
        let first = Place {
            start: (start % PATTERN_PERIOD as u64) as u32,
            turn: turn as u32,
        };
        Self {
            next: first,
            leaving: Piece::default(),
            oldest: first,
            due: first.whole(sizes),
            waiting: 0,
            unanswered: 0,
        }
    }

    fn begin_to_send(&mut self, sizes: &[usize]) {
        self.leaving = self.next.whole(sizes);
        self.next = self.next.following(sizes);
    }

    fn expect(&mut self, place: Place, sizes: &[usize]) {
        self.oldest = place;
        self.due = place.whole(sizes);
    }

    fn complete(&mut self, sizes: &[usize]) {
        self.expect(self.oldest.following(sizes), sizes);
        self.unanswered -= 1;
    }
}

impl Requesters for EchoRequesters {
    fn begin(&mut self, client: usize) -> &'static [u8] {
        let state = &mut self.clients[client];
        state.unanswered += 1;
        if state.leaving.bytes == 0 {
            state.begin_to_send(self.sizes);
        } else {
            state.waiting += 1;
        }
        state.leaving.of(self.pattern)
    }

    fn pending(&self, client: usize) -> &'static [u8] {
        self.clients[client].leaving.of(self.pattern)
    }

    fn advance(&mut self, client: usize, count: usize) -> &'static [u8] {
        let state = &mut self.clients[client];
        state.leaving = state.leaving.after(count);
        if state.leaving.bytes == 0 && state.waiting > 0 {
            state.waiting -= 1;
            state.begin_to_send(self.sizes);
        }
        state.leaving.of(self.pattern)
    }

    fn state_address(&self, client: usize) -> *const u8 {
        (&raw const self.clients[client]).cast()
    }

    fn drop_requests(&mut self, client: usize) {
        let state = &mut self.clients[client];
        (state.leaving, state.waiting, state.unanswered) = (Piece::default(), 0, 0);
        state.expect(state.next, self.sizes);
    }

    fn receive(&mut self, client: usize, input: &[u8]) -> Result<Replies, ProtocolError> {
        let state = &mut self.clients[client];
        // One complete reply is the usual case. The other cases are in a separate function to keep this one short.
        if state.unanswered > 0 && input == state.due.of(self.pattern) {
            state.complete(self.sizes);
            return Ok(Replies {
                completed: 1,
                ..Replies::default()
            });
        }
        state.receive_pieces(input, self.pattern, self.sizes)
    }

    fn exchange(&mut self, client: usize, input: &[u8]) -> Option<&'static [u8]> {
        let state = &mut self.clients[client];
        let is_only = state.unanswered == 1 && state.leaving.bytes == 0;
        if !is_only || input != state.due.of(self.pattern) {
            return None;
        }
        state.expect(state.next, self.sizes);
        state.next = state.next.following(self.sizes);
        Some(state.due.of(self.pattern))
    }

    fn take_back(&mut self, client: usize, bytes: usize) {
        let state = &mut self.clients[client];
        let sent = state.due.bytes as usize - bytes;
        state.leaving = state.due.after(sent);
    }
}

impl EchoClient {
    #[inline(never)]
    fn receive_pieces(
        &mut self,
        mut input: &[u8],
        pattern: &'static [u8],
        sizes: &[usize],
    ) -> Result<Replies, ProtocolError> {
        let mut completed = 0;
        while !input.is_empty() {
            if self.unanswered == 0 {
                return Err(ProtocolError {
                    what: format!("{} more bytes came back than were sent", input.len()),
                });
            }
            let due = self.due.of(pattern);
            let length = due.len().min(input.len());
            let (head, rest) = input.split_at(length);
            let expected = &due[..length];
            if head != expected {
                return Err(self.mismatch(head, expected, sizes));
            }
            input = rest;
            if length == due.len() {
                self.complete(sizes);
                completed += 1;
            } else {
                self.due = self.due.after(length);
            }
        }
        Ok(Replies {
            completed,
            ..Replies::default()
        })
    }

    #[cold]
    fn mismatch(&self, got: &[u8], expected: &[u8], sizes: &[usize]) -> ProtocolError {
        let at = got
            .iter()
            .zip(expected)
            .position(|(a, b)| a != b)
            .expect("the slices differ");
        ProtocolError {
            what: format!(
                "byte {} of the reply is {:#04x} instead of {:#04x}",
                sizes[self.oldest.turn as usize] - self.due.bytes as usize + at,
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

    fn offer(size: usize) -> Offer {
        Offer {
            size,
            ..Offer::default()
        }
    }

    /// Connects both halves, passing bytes in pieces that end at `cuts`.
    fn talk(size: usize, requests: u32, cuts: &[usize]) -> (u32, u64) {
        let mut requester = Echo.requester(&Settings::of_size(size), 3);
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
        let mut requester = Echo.requester(&Settings::of_size(100), 0);
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
        let mut mine = Echo.requester(&Settings::of_size(100), 0);
        let mut theirs = Echo.requester(&Settings::of_size(100), 1);
        let mut wire = Vec::new();
        theirs.request(&mut wire);
        mine.request(&mut Vec::new());
        assert!(mine.receive(&wire).is_err());
    }

    #[test]
    fn a_repeated_reply_is_refused() {
        let mut requester = Echo.requester(&Settings::of_size(10), 0);
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
