//! The client half, which works with any server.

mod reading;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;

use super::super::super::mix::following;
use super::super::super::requesters::First;
use super::super::super::status::ReplyTotals;
use super::super::super::{ProtocolError, Replies, ReplyCounts, Requesters, Settings};
use super::super::body::BodyCheck;
use super::super::request_set::BodyState;
use super::super::template::Values;
use super::super::wrong::{Fault, WrongReply};
use super::frame::{self, Block, FIRST_WINDOW, Frames, MOST, PREFACE, PeerSettings};
use super::hpack::{self, Decoder};
use super::message::MessageHead;
use super::request_set::{RequestSet, Variable, request_set};

/// The window for replies, per connection and stream.
const WINDOW: u32 = 1 << 30;
/// Maximum bytes of request bodies that wait in memory until they are sent.
const MOST_WAITING: usize = 256 * 1024;
/// Maximum bytes of memory kept for what is sent next.
const BUFFER_LIMIT: usize = 4 * 1024;
/// Maximum number of frames without progress after the last reply.
const MOST_IDLE_FRAMES: u16 = 10_000;

/// The client halves of several clients.
pub(super) struct Http2Requesters {
    shared: Shared,
    clients: Vec<Http2Client>,
}

/// The client half of one client.
pub(super) type Http2Requester = First<Http2Requesters>;

/// State shared by all clients.
struct Shared {
    request_set: &'static RequestSet,
    totals: ReplyTotals,
    /// What a server allowed last.
    limits: Option<[(&'static str, u32); 4]>,
    /// Which of a client's open requests the replies of the last call answered, each counted without the ones before.
    answered: VecDeque<u16>,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was sent yet.
    New,
    /// The preface was sent, and the server's settings are awaited.
    Opening,
    Open,
    /// The server takes no further requests.
    Leaving,
    /// The connection is closing.
    Closing,
}

struct Http2Client {
    /// What an idle client does without.
    busy: Option<Box<Busy>>,
    /// The next request to send, in the order.
    next: u32,
    next_stream: u32,
    /// Requests begun that have no stream yet.
    queued: u16,
    idle_frames: u16,
    phase: Phase,
    fault: Fault,
    decoder: Decoder,
    peer: PeerSettings,
    /// How much the server lets this half send.
    window: u32,
    /// Bytes received for which no window was given back.
    received: u32,
    frames: Frames,
    rare: Option<Box<RareState>>,
}

/// What a client needs while it sends, or waits for replies.
#[derive(Default)]
struct Busy {
    /// Bytes to send, and how many of them were sent.
    wire: Vec<u8>,
    sent: u32,
    /// Open streams, oldest first.
    streams: VecDeque<Stream>,
}

impl Busy {
    fn unsent(&self) -> &[u8] {
        &self.wire[self.sent as usize..]
    }
}

/// Maximum number of unused states to keep for clients that are busy next.
const MOST_SPARE: usize = 64;

thread_local! {
    #[expect(clippy::vec_box, reason = "the boxes themselves are used again")]
    static SPARE: RefCell<Vec<Box<Busy>>> = const { RefCell::new(Vec::new()) };
}

/// The state of a busy client.
#[inline]
fn busy(state: &mut Option<Box<Busy>>) -> &mut Busy {
    state.get_or_insert_with(|| SPARE.with_borrow_mut(Vec::pop).unwrap_or_default())
}

/// State for the few clients that need it.
#[derive(Default)]
struct RareState {
    block: Option<Block>,
    variable: Variable,
    checked: Option<BodyState>,
}

/// An open stream.
struct Stream {
    number: u32,
    /// The index of its request's kind.
    kind: u32,
    /// Bytes of the reply's body so far, and their number if its head has it.
    bytes: u64,
    length: Option<u64>,
    unacknowledged: u32,
    /// The status of the reply; 0 before its head.
    status: u16,
    /// Whether the reply is from a built-in server, whose text is known.
    own: bool,
    interim: u8,
    more: Option<Box<MoreState>>,
}

/// State of a stream with a long request, or with a check of its reply.
#[derive(Default)]
struct MoreState {
    /// The request's body, and how much of it was sent.
    body: Cow<'static, [u8]>,
    at: usize,
    window: i64,
    check: BodyCheck,
    /// What came before a message of gRPC.
    head: MessageHead,
}

impl Stream {
    /// Whether part of its request is unsent.
    fn has_unsent(&self) -> bool {
        self.more
            .as_ref()
            .is_some_and(|more| more.at < more.body.len())
    }
}

impl Http2Requesters {
    pub(super) fn new(
        settings: &Settings,
        clients: impl IntoIterator<Item = u64>,
        is_grpc: bool,
    ) -> Self {
        let request_set = request_set(settings, is_grpc);
        let made = clients.into_iter().map(|client| {
            let variable = Variable {
                values: request_set
                    .has_variables
                    .then(|| Values::new(settings, client)),
                jar: request_set.keeps_cookies.then(Default::default),
            };
            let checked = BodyState::new(settings);
            let is_rare =
                request_set.has_variables || request_set.keeps_cookies || checked.is_some();
            let rare = RareState {
                variable,
                checked,
                block: None,
            };
            Http2Client {
                busy: None,
                next: request_set.first(client) as u32,
                next_stream: 1,
                queued: 0,
                idle_frames: 0,
                phase: Phase::New,
                fault: Fault::default(),
                decoder: Decoder::default(),
                peer: PeerSettings::default(),
                window: FIRST_WINDOW,
                received: 0,
                frames: Frames::default(),
                rare: is_rare.then(|| Box::new(rare)),
            }
        });
        Self {
            shared: Shared {
                request_set,
                totals: ReplyTotals::default(),
                limits: None,
                answered: VecDeque::new(),
            },
            clients: made.collect(),
        }
    }
}

impl Http2Requester {
    pub(super) fn new(settings: &Settings, client: u64, is_grpc: bool) -> Self {
        Self(Http2Requesters::new(settings, [client], is_grpc))
    }
}

impl Http2Client {
    /// Sends the preface, with room for long replies.
    fn open(&mut self) {
        self.phase = Phase::Opening;
        let wire = &mut busy(&mut self.busy).wire;
        wire.extend_from_slice(PREFACE);
        let settings = [
            (frame::ENABLE_PUSH, 0),
            (frame::INITIAL_WINDOW_SIZE, WINDOW),
        ];
        frame::write_settings(wire, &settings);
        frame::write_number(wire, frame::WINDOW_UPDATE, 0, WINDOW - FIRST_WINDOW);
    }

    /// Number of open streams.
    fn open_streams(&self) -> u32 {
        let streams = self.busy.as_ref().map(|busy| busy.streams.len());
        streams.unwrap_or(0) as u32
    }

    /// Gives back what an idle client does without.
    fn settle(&mut self) {
        let is_idle = |busy: &mut Box<Busy>| busy.wire.is_empty() && busy.streams.is_empty();
        if let Some(spare) = self.busy.take_if(is_idle) {
            SPARE.with_borrow_mut(|spares| {
                if spares.len() < MOST_SPARE {
                    spares.push(spare);
                }
            });
        }
    }

    /// Number of requests that may be open.
    fn most_open(&self) -> u32 {
        match self.phase {
            Phase::New | Phase::Opening | Phase::Open => self.peer.most_streams,
            Phase::Leaving | Phase::Closing => 0,
        }
    }

    /// Begins to send queued requests, as far as the server allows.
    fn send_queued(&mut self, request_set: &'static RequestSet) {
        while self.queued > 0
            && self.phase == Phase::Open
            && self.open_streams() < self.peer.most_streams
        {
            if self.next_stream > MOST {
                self.phase = Phase::Leaving; // a new connection has new numbers
                return;
            }
            self.send_request(request_set);
        }
    }

    fn send_request(&mut self, request_set: &'static RequestSet) {
        let number = self.next_stream;
        let kind = request_set.order[self.next as usize];
        self.next = following(self.next as usize, request_set.order.len()) as u32;
        self.next_stream += 2;
        self.queued -= 1;
        let shrinks = std::mem::take(&mut self.peer.shrinks_table);
        let mut none = Variable::default();
        let variable = self
            .rare
            .as_mut()
            .map_or(&mut none, |rare| &mut rare.variable);
        let Busy { wire, streams, .. } = busy(&mut self.busy);
        let start = wire.len();
        wire.extend_from_slice(&[0; frame::HEAD]);
        wire.extend(shrinks.then_some(hpack::NO_TABLE));
        let body = request_set.kinds[kind as usize].write(variable, wire);
        let flags = if body.is_empty() {
            frame::END_STREAM
        } else {
            0
        };
        let length = wire.len() - start - frame::HEAD;
        if length <= frame::MOST_PAYLOAD as usize {
            let head = frame::FrameHead {
                length: length as u32,
                kind: frame::HEADERS,
                flags: flags | frame::END_HEADERS,
                stream: number,
            };
            wire[start..start + frame::HEAD].copy_from_slice(&head.bytes());
        } else {
            let block = wire.split_off(start + frame::HEAD);
            wire.truncate(start);
            frame::write_block(wire, flags, number, &block);
        }
        let is_checked = self
            .rare
            .as_ref()
            .is_some_and(|rare| rare.checked.is_some());
        let more = (is_checked || !body.is_empty()).then(|| {
            Box::new(MoreState {
                body,
                at: 0,
                window: self.peer.window.into(),
                check: BodyCheck::default(),
                head: MessageHead::default(),
            })
        });
        streams.push_back(Stream {
            number,
            kind,
            bytes: 0,
            length: None,
            unacknowledged: 0,
            status: 0,
            own: false,
            interim: 0,
            more,
        });
        if flags == 0 {
            self.send_bodies();
        }
    }

    /// Sends request bodies as far as the windows permit.
    fn send_bodies(&mut self) {
        let most = self.peer.most_payload.min(frame::MOST_PAYLOAD);
        let Some(busy) = &mut self.busy else {
            return;
        };
        let Busy {
            wire,
            sent,
            streams,
        } = &mut **busy;
        for stream in streams {
            let Some(more) = &mut stream.more else {
                continue;
            };
            while more.at < more.body.len() && wire.len() - (*sent as usize) < MOST_WAITING {
                let window = more.window.min(self.window.into()).min(most.into());
                let count = usize::try_from(window)
                    .unwrap_or(0)
                    .min(more.body.len() - more.at);
                if count == 0 {
                    break;
                }
                let is_end = more.at + count == more.body.len();
                let flags = if is_end { frame::END_STREAM } else { 0 };
                let content = &more.body[more.at..more.at + count];
                frame::write(wire, frame::DATA, flags, stream.number, content);
                more.at += count;
                more.window -= count as i64;
                self.window -= count as u32;
                self.idle_frames = 0;
            }
        }
    }

    /// The connection has ended: later requests are sent over a new one.
    fn reset(&mut self) {
        self.phase = Phase::New;
        self.busy = None;
        (self.queued, self.idle_frames) = (0, 0);
        self.next_stream = 1;
        self.decoder = Decoder::default();
        self.peer = PeerSettings::default();
        (self.window, self.received) = (FIRST_WINDOW, 0);
        self.frames = Frames::default();
        self.fault = Fault::default();
        if let Some(rare) = &mut self.rare {
            rare.block = None;
        }
    }

    fn error(&mut self, wrong: WrongReply) -> ProtocolError {
        self.fault = wrong.kind;
        ProtocolError { what: wrong.what }
    }
}

impl Requesters for Http2Requesters {
    fn begin(&mut self, client: usize) -> &'static [u8] {
        let state = &mut self.clients[client];
        state.queued += 1;
        if state.phase == Phase::New {
            state.open();
        } else {
            state.send_queued(self.shared.request_set);
        }
        &[]
    }

    fn pending(&self, _: usize) -> &'static [u8] {
        &[]
    }

    fn generated(&self, client: usize) -> &[u8] {
        let busy = self.clients[client].busy.as_ref();
        busy.map_or(&[], |busy| busy.unsent())
    }

    fn advance(&mut self, client: usize, count: usize) -> &'static [u8] {
        let state = &mut self.clients[client];
        let busy = busy(&mut state.busy);
        busy.sent += count as u32;
        if busy.sent as usize >= busy.wire.len() {
            busy.wire.clear();
            busy.wire.shrink_to(BUFFER_LIMIT);
            busy.sent = 0;
            state.send_bodies();
            state.settle();
        }
        &[]
    }

    fn drop_requests(&mut self, client: usize) {
        self.clients[client].reset();
    }

    fn receive(&mut self, client: usize, input: &[u8]) -> Result<Replies, ProtocolError> {
        self.shared.answered.clear();
        let state = &mut self.clients[client];
        let read = state.read(&mut self.shared, input);
        state.settle();
        read.map_err(|wrong| state.error(wrong))
    }

    fn answered(&mut self, _: usize) -> u16 {
        self.shared.answered.pop_front().unwrap_or(0)
    }

    fn room(&self, client: usize) -> u32 {
        self.clients[client].most_open()
    }

    fn closing_message(&mut self, client: usize) -> &'static [u8] {
        // GOAWAY without an error: no stream of the server was processed.
        const GOODBYE: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let state = &mut self.clients[client];
        let is_sending = state
            .busy
            .as_ref()
            .is_some_and(|busy| !busy.wire.is_empty());
        if state.phase != Phase::Open || is_sending {
            return &[];
        }
        state.phase = Phase::Closing;
        GOODBYE
    }

    fn fault(&self, client: usize) -> Option<&'static str> {
        self.clients[client].fault.name()
    }

    fn finish(&mut self, client: usize) -> Result<Replies, ProtocolError> {
        let state = &mut self.clients[client];
        let end = state.end();
        end.map_err(|wrong| state.error(wrong))
    }

    fn state_address(&self, client: usize) -> *const u8 {
        (&raw const self.clients[client]).cast()
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        self.shared.totals.add_to(counts);
        let limits = self.shared.limits.into_iter().flatten();
        for (setting, value) in limits.filter(|(_, value)| *value < MOST) {
            let least = counts.limits.entry(setting).or_insert(value);
            *least = value.min(*least);
        }
    }

    fn sizes(&mut self, _: usize, record: &mut dyn FnMut(u64, u64)) {
        self.shared.totals.take_sizes(record);
    }
}

#[cfg(test)]
mod tests;
