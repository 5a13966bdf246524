//! The client half, which works with any server: its requests and its state.

mod reading;

use super::super::mix::following;
use super::super::requesters::First;
use super::super::status::ReplyTotals;
use super::super::{ProtocolError, Replies, ReplyCounts, Requesters, Settings};
use super::chunked::Chunks;
use super::feed::Known;
use super::flow::{FlowSession, StepDone};
use super::generated::Generated;
use super::head_cache::Last;
use super::request_set::{BodyState, RequestSet, request_set};
use super::template::Values;
use super::wrong::Fault;
use reading::ClientHalf;

/// The client halves of several clients.
pub(super) struct HttpRequesters {
    shared: Shared,
    clients: Vec<HttpClient>,
}

/// The client half of one client.
pub(super) type HttpRequester = First<HttpRequesters>;

/// State shared by all clients.
struct Shared {
    request_set: &'static RequestSet,
    /// Whether only the status of a reply matters and, from a built-in server, its text.
    is_plain: bool,
    tally: ReplyTotals,
}

/// The state that each request touches: half a cache line per client.
#[repr(align(32))]
struct HttpClient {
    rare: Option<Box<RareState>>,
    /// Position of the next byte to send among the requests.
    at: u32,
    /// The next request to begin.
    next: u32,
    /// Requests begun whose reply is not complete.
    unanswered: u16,
    /// Requests begun but not completely sent.
    unsent: u16,
    stage: Stage,
    last: Last,
    /// Number of heads received before the final reply's head (1xx).
    interim: u8,
    /// The kind of the last error.
    fault: Fault,
}

const _: () = assert!(size_of::<HttpClient>() == 32);

/// State for the few clients that need it, and for replies that arrive in several parts.
#[derive(Default)]
struct RareState {
    /// The received part of an incomplete head.
    part: Vec<u8>,
    /// A reply whose body is incomplete.
    reply: ReplyState,
    chunks: Chunks,
    /// This client's generated requests, if it does not send shared ones.
    made: Option<Box<Generated>>,
    checked: Option<Box<BodyState>>,
}

/// The reply that is being read.
#[derive(Debug, Clone, Copy, Default)]
struct ReplyState {
    /// Number of body bytes received, and number remaining if the body has a length.
    bytes: u64,
    rest: u64,
    status: u16,
    /// Whether it is from a built-in server, whose text is known.
    own: bool,
    /// Whether the server closes the connection after it.
    close: bool,
}

impl ReplyState {
    fn is_granted(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The part of a reply that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    /// The head of a final reply, after interim ones. Any such head resets their count.
    AfterInterim,
    /// The rest of a head.
    Part,
    Counted,
    Chunked,
    /// A body that ends when the server closes.
    Endless,
    /// Nothing of interest: the server closes an idle connection.
    Over,
}

impl HttpRequesters {
    pub(super) fn new(settings: &Settings, clients: impl IntoIterator<Item = u64>) -> Self {
        let request_set = request_set(settings);
        let made = clients
            .into_iter()
            .map(|client| HttpClient::new(settings, request_set, client));
        Self {
            shared: Shared {
                request_set,
                is_plain: !request_set.is_made()
                    && !request_set.replies_differ
                    && request_set.length.is_none()
                    && settings.body.is_none(),
                tally: ReplyTotals::default(),
            },
            clients: made.collect(),
        }
    }

    fn half(&mut self, client: usize) -> ClientHalf<'_> {
        ClientHalf {
            shared: &mut self.shared,
            client: &mut self.clients[client],
            reply: ReplyState::default(),
        }
    }
}

impl HttpRequester {
    pub(super) fn new(settings: &Settings, client: u64) -> Self {
        Self(HttpRequesters::new(settings, [client]))
    }
}

impl HttpClient {
    fn new(settings: &Settings, request_set: &RequestSet, number: u64) -> Self {
        let first = request_set.first(number) as u32;
        let made = request_set.is_made().then(|| {
            let values = Values::new(settings, number);
            Box::new(Generated::new(
                values,
                request_set.keeps_cookies,
                request_set.flow,
            ))
        });
        let checked = BodyState::new(settings).map(Box::new);
        let is_rare = made.is_some() || checked.is_some();
        let rare = RareState {
            made,
            checked,
            ..RareState::default()
        };
        Self {
            rare: is_rare.then(|| Box::new(rare)),
            at: request_set.requests[first as usize].start as u32,
            next: first,
            unanswered: 0,
            unsent: 0,
            stage: Stage::Head,
            last: Last::default(),
            interim: 0,
            fault: Fault::default(),
        }
    }

    fn generated(&self) -> Option<&Generated> {
        self.rare.as_ref()?.made.as_deref()
    }

    fn generated_mut(&mut self) -> Option<&mut Generated> {
        self.rare.as_mut()?.made.as_deref_mut()
    }

    fn session_mut(&mut self) -> Option<(&mut FlowSession, &mut [Known])> {
        self.generated_mut()?.session_mut()
    }

    fn checked(&mut self) -> Option<&mut BodyState> {
        self.rare.as_mut()?.checked.as_deref_mut()
    }

    /// The unsent part of the shared requests that were begun, up to where it stops being contiguous.
    fn pending(&self, request_set: &'static RequestSet) -> &'static [u8] {
        let next = self.next as usize;
        let end = if usize::from(self.unsent) > next {
            request_set.wire.len() // the requests continue at the front
        } else {
            request_set.requests[next].start
        };
        let at = self.at as usize;
        request_set.wire.get(at..end).unwrap_or_default()
    }

    /// Records that the next `count` bytes of the shared requests were sent.
    fn advance(&mut self, request_set: &RequestSet, count: usize) {
        let at = self.at as usize + count;
        while self.unsent > 0 {
            let first = self.before_next(request_set, self.unsent);
            let request = &request_set.requests[first];
            if request.start + request.bytes > at {
                break;
            }
            self.unsent -= 1;
            if first + 1 == request_set.requests.len() {
                break; // the rest of the requests are at the front
            }
        }
        self.at = following_byte(at, request_set.wire.len());
    }

    /// Whether a body is incomplete.
    fn has_begun_body(&self) -> bool {
        matches!(self.stage, Stage::Counted | Stage::Chunked | Stage::Endless)
    }

    /// The oldest request without a reply, or the next one.
    fn oldest(&self, request_set: &RequestSet) -> usize {
        self.before_next(request_set, self.unanswered)
    }

    /// The index of the request `places` before the next one.
    fn before_next(&self, request_set: &RequestSet, places: u16) -> usize {
        let (next, places) = (self.next as usize, usize::from(places));
        let all = request_set.requests.len();
        next.checked_sub(places)
            .unwrap_or_else(|| (next + all - places % all) % all)
    }
}

/// Wraps a position in the cycle: its end is its start.
fn following_byte(at: usize, length: usize) -> u32 {
    if at == length { 0 } else { at as u32 }
}

impl Requesters for HttpRequesters {
    fn begin(&mut self, client: usize) -> &'static [u8] {
        let state = &mut self.clients[client];
        let request_set = self.shared.request_set;
        let next = state.next as usize;
        match state.generated_mut() {
            None => state.unsent += 1,
            Some(made) => made.begin(next, &request_set.kind(next).pieces),
        }
        state.next = following(next, request_set.requests.len()) as u32;
        state.unanswered += 1;
        state.pending(request_set)
    }

    fn pending(&self, client: usize) -> &'static [u8] {
        self.clients[client].pending(self.shared.request_set)
    }

    fn generated(&self, client: usize) -> &[u8] {
        self.clients[client]
            .generated()
            .map_or(&[], Generated::pending)
    }

    fn advance(&mut self, client: usize, count: usize) -> &'static [u8] {
        let state = &mut self.clients[client];
        let request_set = self.shared.request_set;
        match state.generated_mut() {
            None => state.advance(request_set, count),
            Some(made) => made.advance(count),
        }
        state.pending(request_set)
    }

    fn drop_requests(&mut self, client: usize) {
        self.half(client).drop_requests();
    }

    fn receive(&mut self, client: usize, input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut half = self.half(client);
        if half.take_usual(input) {
            return Ok(Replies {
                completed: 1,
                ..Replies::default()
            });
        }
        half.read(input).map_err(|wrong| half.error(wrong))
    }

    fn exchange(&mut self, client: usize, input: &[u8]) -> Option<&'static [u8]> {
        let mut half = self.half(client);
        if half.client.unsent > 0 || half.client.unanswered != 1 || !half.take_usual(input) {
            return None;
        }
        let request_set = self.shared.request_set;
        let state = &mut self.clients[client];
        let bytes = request_set.requests[state.next as usize].bytes;
        let at = state.at as usize;
        let request = request_set.wire.get(at..at + bytes)?;
        state.at = following_byte(at + bytes, request_set.wire.len());
        state.next = following(state.next as usize, request_set.requests.len()) as u32;
        state.unanswered = 1;
        Some(request)
    }

    fn take_back(&mut self, client: usize, bytes: usize) {
        if bytes == 0 {
            return; // the position of the next request is already right, even at the very beginning
        }
        let state = &mut self.clients[client];
        if state.at == 0 {
            state.at = self.shared.request_set.wire.len() as u32;
        }
        state.at -= bytes as u32;
        state.unsent += 1;
    }

    fn step_done(&self, client: usize) -> StepDone {
        let session = self.clients[client]
            .generated()
            .and_then(Generated::session);
        session.map_or_else(StepDone::default, FlowSession::done)
    }

    fn step_in_words(&self, client: usize) -> Vec<String> {
        let made = self.clients[client].generated();
        made.map(Generated::step_in_words).unwrap_or_default()
    }

    fn fault(&self, client: usize) -> Option<&'static str> {
        self.clients[client].fault.name()
    }

    fn awaits_close(&self, client: usize) -> bool {
        self.clients[client].stage == Stage::Endless
    }

    fn finish(&mut self, client: usize) -> Result<Replies, ProtocolError> {
        let mut half = self.half(client);
        half.end().map_err(|wrong| half.error(wrong))
    }

    fn state_address(&self, client: usize) -> *const u8 {
        (&raw const self.clients[client]).cast()
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        self.shared.tally.add_to(counts);
    }

    fn sizes(&mut self, _: usize, record: &mut dyn FnMut(u64, u64)) {
        self.shared.tally.take_sizes(record);
    }
}

#[cfg(test)]
mod tests;
