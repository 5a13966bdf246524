//! A world for clients: it simulates the worker, the engine and the server, with its own clock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::super::super::client::{NO_DUE, State};
use super::super::super::client_stats::{ClientStats, WorkerStats};
use super::super::super::fixture::{self, NOWHERE, protocol};
use super::super::super::{Close, Plan, Until};
use super::super::{Action, ClientPool};
use throng_protocol::{self as protocol, Offer, Protocol, Session};

pub(super) const MICROSECOND: u64 = 1_000;
pub(super) const MILLISECOND: u64 = 1_000 * MICROSECOND;
pub(super) const SECOND: u64 = 1_000 * MILLISECOND;
/// The start time of loads.
pub(super) const BEGAN: u64 = 5 * SECOND;
/// Minimum duration of a worker's round.
const ROUND: u64 = MICROSECOND;

/// A load whose clients use the protocol `name`, without limits except a long timeout for first replies.
pub(super) fn plan(name: &str, clients: u32, until: Until) -> Plan {
    fixture::plan(NOWHERE, name, 100, clients, until)
}

pub(super) fn seconds(count: u64) -> Until {
    Until::Duration(Duration::from_secs(count))
}

/// The outcome of an attempt to connect.
pub(super) enum Connect {
    In(u64),
    Fails(u64, Errno),
    Never,
}

/// The outcome of a request.
pub(super) enum Answer {
    In(u64),
    Wrong(u64),
    Ends(u64),
    Breaks(u64, Errno),
    /// Only its first bytes arrive, and then the end of the stream.
    Stops(u64),
    Never,
}

enum Event {
    Connected,
    Failed(Errno),
    Bytes(Vec<u8>),
    Room,
    End,
    Broken(Errno),
}

/// The server's side of a client's connection.
#[derive(Default)]
struct Link {
    session: Option<Box<dyn Session>>,
    /// Distinguishes this connection from the client's other ones.
    number: u64,
    /// Whether it sends no more.
    silent: bool,
    said_at: u64,
}

pub(super) struct World {
    pub(super) pool: ClientPool,
    pub(super) plan: Arc<Plan>,
    pub(super) now: u64,
    /// The window, as the leader set it.
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) connects: Box<dyn FnMut(u64, usize) -> Connect>,
    pub(super) answers: Box<dyn FnMut(u64, usize) -> Answer>,
    /// Whether the server leaves a close that it announces to its clients.
    pub(super) leaves_closing: bool,
    /// Maximum bytes that sockets accept per call.
    pub(super) room: usize,
    /// Times at which clients connected, sent, and got a reply, with the client.
    pub(super) attempts: Vec<(u64, usize)>,
    pub(super) asked: Vec<(u64, usize)>,
    pub(super) replies: Vec<(u64, usize)>,
    pub(super) closes: Vec<(usize, Close)>,
    /// Number of requests that were due and lost before they were sent.
    pub(super) lost_dues: u64,
    protocol: &'static dyn Protocol,
    links: Vec<Link>,
    events: BTreeMap<(u64, u64), (usize, u64, Event)>,
    happenings: u64,
    seen: Vec<ClientStats>,
}

impl World {
    /// A world that connects in 10 us and replies in 100 us.
    pub(super) fn new(name: &str, plan: Plan) -> Self {
        let plan = Arc::new(Plan {
            dialogue: protocol(name),
            ..plan
        });
        let pool = ClientPool::new(&plan, 0, 1, BEGAN, &Arc::default());
        Self {
            now: BEGAN,
            from: match plan.until {
                Until::Duration(_) => u64::MAX,
                Until::Requests(_) | Until::Bytes(_) | Until::Each { .. } => BEGAN,
            },
            until: u64::MAX,
            connects: Box::new(|_, _| Connect::In(10 * MICROSECOND)),
            answers: Box::new(|_, _| Answer::In(100 * MICROSECOND)),
            leaves_closing: false,
            room: usize::MAX,
            attempts: Vec::new(),
            asked: Vec::new(),
            replies: Vec::new(),
            closes: Vec::new(),
            lost_dues: 0,
            protocol: protocol(name),
            links: (0..pool.len()).map(|_| Link::default()).collect(),
            events: BTreeMap::new(),
            happenings: 0,
            seen: vec![ClientStats::default(); pool.len()],
            plan,
            pool,
        }
    }

    /// The same world, from the moment when all clients have had their first reply and replies count, for a second.
    pub(super) fn steady(name: &str, plan: Plan) -> Self {
        let mut world = Self::new(name, plan);
        world.pass(10 * MILLISECOND);
        world.count(SECOND);
        world
    }

    /// Lets replies count from now on, for `time`.
    pub(super) fn count(&mut self, time: u64) {
        (self.from, self.until) = (self.now, self.now + time);
    }

    /// Advances the clock.
    pub(super) fn pass(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.round(end);
        }
    }

    /// Ends the load.
    pub(super) fn finish(self) -> WorkerStats {
        self.pool.finish(self.now)
    }

    /// One round of the worker, and the events until the next one.
    fn round(&mut self, end: u64) {
        let now = self.now;
        self.pool.set_window(self.from, self.until, now);
        for _ in 0..64 {
            let Some(slot) = self.pool.next_to_connect(now) else {
                break;
            };
            self.connect(slot);
        }
        for _ in 0..64 {
            let Some(slot) = self.pool.next_due(now) else {
                break;
            };
            self.apply(slot, Action::Send);
        }
        self.pool.begin_sweep(now);
        loop {
            let pending_due: Vec<u64> = self.pending_due();
            let Some((slot, action)) = self.pool.next_overdue(now) else {
                break;
            };
            self.note_lost(slot, pending_due[slot]);
            self.apply(slot, action);
        }
        self.check();
        let longest_wait = self.pool.time_to_wait(now).as_nanos() as u64;
        let event = self.events.first_key_value().map(|(&(at, _), _)| at);
        let next = event.unwrap_or(u64::MAX).min(now + longest_wait).min(end);
        self.now = next.max(now + ROUND);
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= self.now
        {
            let (slot, number, event) = entry.remove();
            if self.links[slot].number == number {
                self.happens(slot, event);
            }
        }
        self.check();
    }

    fn connect(&mut self, slot: usize) {
        self.attempts.push((self.now, slot));
        assert!(self.links[slot].session.is_none(), "one at a time");
        let event = match (self.connects)(self.now, slot) {
            Connect::In(time) => (time, Event::Connected),
            Connect::Fails(time, error) => (time, Event::Failed(error)),
            Connect::Never => return,
        };
        self.later(slot, self.now + event.0, event.1);
    }

    fn happens(&mut self, slot: usize, event: Event) {
        let now = self.now;
        let pending_due = self.pool.pending_due(slot);
        let action = match event {
            Event::Connected => {
                let link = &mut self.links[slot];
                link.session = Some(self.protocol.session(&Offer::default()));
                (link.silent, link.said_at) = (false, now);
                self.pool.connected(slot, now)
            }
            Event::Failed(error) => self.pool.not_connected(slot, error, now),
            Event::Bytes(bytes) => self.pool.received(slot, &bytes, now),
            Event::Room if !self.pool.pending(slot).is_empty() => Action::Send,
            Event::Room => Action::Keep,
            Event::End => self.pool.peer_closed(slot, now),
            Event::Broken(error) => self.pool.connection_failed(slot, error, now),
        };
        self.note_lost(slot, pending_due);
        self.apply(slot, action);
    }

    fn apply(&mut self, slot: usize, action: Action) {
        self.note(slot);
        match action {
            Action::Keep => {}
            Action::Send => self.send(slot),
            Action::Close(how) => {
                self.closes.push((slot, how));
                self.links[slot].number += 1;
                self.links[slot].session = None;
            }
        }
    }

    fn send(&mut self, slot: usize) {
        let pending = self.pool.shared(slot);
        let piece = &pending[..pending.len().min(self.room)];
        self.pool.sent(slot, piece.len());
        self.read_once(slot, piece);
        let left = !self.pool.pending(slot).is_empty();
        if left {
            self.later(slot, self.now + 10 * MICROSECOND, Event::Room);
        }
    }

    /// The server receives a part of a request.
    fn read_once(&mut self, slot: usize, mut piece: &[u8]) {
        let link = &mut self.links[slot];
        let session = link.session.as_mut().expect("there is a connection");
        let (mut out, mut closes) = (Vec::new(), false);
        while !piece.is_empty() {
            let step = session.receive(piece, &mut out).unwrap();
            out.extend_from_slice(&piece[..step.reflected]);
            piece = &piece[step.consumed..];
            closes |= step.close != protocol::Close::No;
        }
        if out.is_empty() || link.silent {
            return;
        }
        let (delay, event) = match (self.answers)(self.now, slot) {
            Answer::In(delay) => (delay, Event::Bytes(out)),
            Answer::Wrong(delay) => {
                link.silent = true;
                out[0] ^= 0xff;
                (delay, Event::Bytes(out))
            }
            Answer::Ends(delay) => {
                link.silent = true;
                (delay, Event::End)
            }
            Answer::Breaks(delay, error) => {
                link.silent = true;
                (delay, Event::Broken(error))
            }
            Answer::Stops(delay) => {
                closes = true;
                link.silent = true;
                out.truncate(3);
                (delay, Event::Bytes(out))
            }
            Answer::Never => {
                link.silent = true;
                return;
            }
        };
        link.said_at = link.said_at.max(self.now + delay);
        let at = link.said_at;
        self.later(slot, at, event);
        if closes && !self.leaves_closing {
            self.later(slot, at, Event::End);
        }
    }

    /// Lets the server close or reset a connection of its own accord.
    pub(super) fn interfere(&mut self, slot: usize, error: Option<Errno>) {
        if self.links[slot].session.is_some() {
            self.happens(slot, error.map_or(Event::End, Event::Broken));
            self.check();
        }
    }

    /// Lets the server send bytes of its own accord.
    pub(super) fn say(&mut self, slot: usize, bytes: &[u8]) {
        self.happens(slot, Event::Bytes(bytes.to_vec()));
        self.check();
    }

    fn later(&mut self, slot: usize, at: u64, event: Event) {
        // Simultaneous events happen in order.
        self.happenings += 1;
        let key = (at, self.happenings);
        let number = self.links[slot].number;
        self.events.insert(key, (slot, number, event));
    }

    /// Records the clients' progress since the last call.
    fn note(&mut self, slot: usize) {
        let stats = self.pool.client_stats(slot);
        let seen = &mut self.seen[slot];
        for _ in seen.replies..stats.replies {
            self.replies.push((self.now, slot));
        }
        for _ in seen.requests..stats.requests {
            self.asked.push((self.now, slot));
        }
        *seen = stats;
    }

    fn pending_due(&self) -> Vec<u64> {
        (0..self.pool.len())
            .map(|slot| self.pool.pending_due(slot))
            .collect()
    }

    fn note_lost(&mut self, slot: usize, pending_due: u64) {
        let state = self.pool.state(slot);
        let failed = state == State::Failed || state.is_over();
        // In a closed loop, no request is lost with a connection.
        let is_lost =
            self.plan.rate.is_some() && failed && pending_due != self.pool.pending_due(slot);
        self.lost_dues += u64::from(is_lost);
    }

    pub(super) fn requests(&self) -> u64 {
        self.sum(|stats| stats.requests)
    }

    fn sum(&self, count: impl Fn(&ClientStats) -> u64) -> u64 {
        (0..self.pool.len())
            .map(|slot| count(&self.pool.client_stats(slot)))
            .sum()
    }

    /// Checks the invariants.
    pub(super) fn check(&self) {
        let pool = &self.pool;
        let progress = pool.progress();
        let (mut out, mut waiting, mut connecting, mut unspent) = (0, 0, 0, 0);
        let limit = self.plan.requests_per_connection.unwrap_or(u32::MAX);
        for (slot, (client, details)) in pool.clients.iter().zip(&pool.details).enumerate() {
            assert!(client.outstanding <= self.plan.pipeline, "too deep");
            let made = details.requests_begun(client.budget);
            assert!(
                client.state != State::Open || made <= limit,
                "too many over one connection"
            );
            assert!(details.queued <= self.plan.pipeline + 1, "too long a line");
            assert!(client.state == State::Open || client.outstanding == 0);
            assert_eq!(
                pool.later.get(slot).map_or(0, VecDeque::len),
                usize::from(client.outstanding.saturating_sub(1))
            );
            out += u64::from(client.outstanding);
            if client.was_answered {
                waiting += u64::from(client.outstanding);
            }
            connecting += usize::from(client.state == State::Connecting);
            if client.state.is_over() && client.budget < u64::MAX / 2 {
                unspent += client.budget;
            }
        }
        assert_eq!(progress.waiting, waiting);
        assert_eq!(pool.connecting, connecting);
        assert_eq!(progress.verified, self.sum(|stats| stats.replies));
        assert_eq!(
            progress.answered,
            self.sum(|stats| u64::from(stats.first_reply_at.is_some()))
        );
        assert_eq!(
            progress.bytes,
            self.sum(|stats| stats.bytes_sent + stats.bytes_received)
        );
        assert_eq!(
            self.requests() + unspent + self.lost_dues,
            progress.verified + out + progress.lost
        );
        assert_eq!(
            self.requests(),
            progress.verified + out + pool.stats.without_reply
        );
        self.check_budget();
    }

    fn check_budget(&self) {
        let total = match self.plan.until {
            Until::Requests(total) => total,
            Until::Each {
                requests: Some(requests),
                ..
            } if !self.plan.reconnect => u64::from(requests * self.plan.clients),
            _ => return,
        };
        let clients = &self.pool.clients;
        if self.plan.rate.is_some() {
            let pending_due = self
                .pending_due()
                .into_iter()
                .filter(|pending_due| *pending_due != NO_DUE)
                .count() as u64
                + self.lost_dues;
            assert_eq!(self.requests() + pending_due + self.pool.allowance, total);
        } else {
            let budget: u64 = clients.iter().map(|client| client.budget).sum();
            assert_eq!(self.requests() + budget, total);
        }
    }
}
