//! A world for a crowd: it plays the worker, the engine and the server, on a clock of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::super::super::client::{NOTHING_OWED, State};
use super::super::super::route::Routes;
use super::super::super::tally::{ClientTally, WorkerTally};
use super::super::super::{Close, Plan, Until};
use super::super::{Crowd, Then};
use crate::protocol::{self, Mix, Offer, PROTOCOLS, Protocol, Session, Settings};

pub(super) const MICROSECOND: u64 = 1_000;
pub(super) const MILLISECOND: u64 = 1_000 * MICROSECOND;
pub(super) const SECOND: u64 = 1_000 * MILLISECOND;
/// When loads begin.
pub(super) const BEGAN: u64 = 5 * SECOND;
/// What a round of the worker takes at least.
const ROUND: u64 = MICROSECOND;

/// A load of clients that all speak this protocol, without limits but a long patience.
pub(super) fn plan(name: &str, clients: u32, until: Until) -> Plan {
    let target = [([127, 0, 0, 1], 1).into()];
    let routes = Routes::new(&target, &[], clients, None).unwrap();
    let settings = Settings {
        size: Mix::One(100),
        ..Settings::default()
    };
    Plan {
        warm_up: Duration::ZERO,
        ..Plan::new(routes, protocol(name), settings, clients, until)
    }
}

pub(super) fn seconds(count: u64) -> Until {
    Until::Duration(Duration::from_secs(count))
}

fn protocol(name: &str) -> &'static dyn Protocol {
    let mut found = PROTOCOLS.iter().filter(|one| one.info().name == name);
    *found.next().unwrap()
}

/// What becomes of an attempt to connect.
pub(super) enum Connect {
    In(u64),
    Fails(u64, Errno),
    Never,
}

/// What becomes of a request.
pub(super) enum Answer {
    In(u64),
    Wrong(u64),
    Ends(u64),
    Breaks(u64, Errno),
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
    /// Tells it from the client's other ones.
    number: u64,
    /// It says no more.
    silent: bool,
    said_at: u64,
}

pub(super) struct World {
    pub(super) crowd: Crowd,
    pub(super) plan: Arc<Plan>,
    pub(super) now: u64,
    /// The window, as the leader has set it.
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) connects: Box<dyn FnMut(u64, usize) -> Connect>,
    pub(super) answers: Box<dyn FnMut(u64, usize) -> Answer>,
    /// Bytes that sockets take at once.
    pub(super) room: usize,
    /// When which client connected, asked, and had a reply.
    pub(super) attempts: Vec<(u64, usize)>,
    pub(super) asked: Vec<(u64, usize)>,
    pub(super) heard: Vec<(u64, usize)>,
    pub(super) closes: Vec<(usize, Close)>,
    /// Requests that came due and were lost before they left.
    pub(super) owed_lost: u64,
    protocol: &'static dyn Protocol,
    links: Vec<Link>,
    events: BTreeMap<(u64, u64), (usize, u64, Event)>,
    happenings: u64,
    seen: Vec<ClientTally>,
}

impl World {
    /// A world that connects in 10 us and answers in 100 us.
    pub(super) fn new(name: &str, plan: Plan) -> Self {
        let plan = Arc::new(Plan {
            dialogue: protocol(name),
            ..plan
        });
        let crowd = Crowd::new(&plan, 0, 1, BEGAN);
        Self {
            now: BEGAN,
            from: match plan.until {
                Until::Duration(_) => u64::MAX,
                Until::Requests(_) | Until::Bytes(_) | Until::Each { .. } => BEGAN,
            },
            until: u64::MAX,
            connects: Box::new(|_, _| Connect::In(10 * MICROSECOND)),
            answers: Box::new(|_, _| Answer::In(100 * MICROSECOND)),
            room: usize::MAX,
            attempts: Vec::new(),
            asked: Vec::new(),
            heard: Vec::new(),
            closes: Vec::new(),
            owed_lost: 0,
            protocol: protocol(name),
            links: (0..crowd.len()).map(|_| Link::default()).collect(),
            events: BTreeMap::new(),
            happenings: 0,
            seen: vec![ClientTally::default(); crowd.len()],
            plan,
            crowd,
        }
    }

    /// The same from the moment when all have their first answers and replies count, for a second.
    pub(super) fn steady(name: &str, plan: Plan) -> Self {
        let mut world = Self::new(name, plan);
        world.pass(10 * MILLISECOND);
        world.count(SECOND);
        world
    }

    /// Replies count from now on, for so long.
    pub(super) fn count(&mut self, time: u64) {
        (self.from, self.until) = (self.now, self.now + time);
    }

    /// So much time passes.
    pub(super) fn pass(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.round(end);
        }
    }

    /// The end of the load.
    pub(super) fn finish(self) -> WorkerTally {
        self.crowd.finish(self.now)
    }

    /// One round of the worker, and what happens until the next one.
    fn round(&mut self, end: u64) {
        let now = self.now;
        self.crowd.look_at_window(self.from, self.until, now);
        for _ in 0..64 {
            let Some(place) = self.crowd.next_to_connect(now) else {
                break;
            };
            self.connect(place);
        }
        for _ in 0..64 {
            let Some(place) = self.crowd.next_due(now) else {
                break;
            };
            self.apply(place, Then::Send);
        }
        self.crowd.begin_sweep(now);
        loop {
            let owed: Vec<u64> = self.owed();
            let Some((place, then)) = self.crowd.next_overdue(now) else {
                break;
            };
            self.note_lost(place, owed[place]);
            self.apply(place, then);
        }
        self.check();
        let patience = self.crowd.patience(now).as_nanos() as u64;
        let event = self.events.first_key_value().map(|(&(at, _), _)| at);
        let next = event.unwrap_or(u64::MAX).min(now + patience).min(end);
        self.now = next.max(now + ROUND);
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= self.now
        {
            let (place, number, event) = entry.remove();
            if self.links[place].number == number {
                self.happens(place, event);
            }
        }
        self.check();
    }

    fn connect(&mut self, place: usize) {
        self.attempts.push((self.now, place));
        assert!(self.links[place].session.is_none(), "one at a time");
        let event = match (self.connects)(self.now, place) {
            Connect::In(time) => (time, Event::Connected),
            Connect::Fails(time, error) => (time, Event::Failed(error)),
            Connect::Never => return,
        };
        self.later(place, self.now + event.0, event.1);
    }

    fn happens(&mut self, place: usize, event: Event) {
        let now = self.now;
        let owed = self.crowd.clients[place].owed;
        let then = match event {
            Event::Connected => {
                let link = &mut self.links[place];
                link.session = Some(self.protocol.session(&Offer::default()));
                (link.silent, link.said_at) = (false, now);
                self.crowd.connected(place, now)
            }
            Event::Failed(error) => self.crowd.not_connected(place, error, now),
            Event::Bytes(bytes) => self.crowd.received(place, &bytes, now),
            Event::Room if !self.crowd.pending(place).is_empty() => Then::Send,
            Event::Room => Then::Keep,
            Event::End => self.crowd.ended(place, now),
            Event::Broken(error) => self.crowd.broken(place, error, now),
        };
        self.note_lost(place, owed);
        self.apply(place, then);
    }

    fn apply(&mut self, place: usize, then: Then) {
        self.note(place);
        match then {
            Then::Keep => {}
            Then::Send => self.send(place),
            Then::Close(how) => {
                self.closes.push((place, how));
                self.links[place].number += 1;
                self.links[place].session = None;
            }
        }
    }

    fn send(&mut self, place: usize) {
        let pending = self.crowd.pending(place);
        let piece = &pending[..pending.len().min(self.room)];
        self.crowd.sent(place, piece.len());
        self.hear(place, piece);
        let left = !self.crowd.pending(place).is_empty();
        if left {
            self.later(place, self.now + 10 * MICROSECOND, Event::Room);
        }
    }

    /// The server hears a piece of a request.
    fn hear(&mut self, place: usize, mut piece: &[u8]) {
        let link = &mut self.links[place];
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
        let (delay, event) = match (self.answers)(self.now, place) {
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
            Answer::Never => {
                link.silent = true;
                return;
            }
        };
        link.said_at = link.said_at.max(self.now + delay);
        let at = link.said_at;
        self.later(place, at, event);
        if closes {
            self.later(place, at, Event::End);
        }
    }

    /// The server ends or breaks a connection by itself.
    pub(super) fn interfere(&mut self, place: usize, error: Option<Errno>) {
        if self.links[place].session.is_some() {
            self.happens(place, error.map_or(Event::End, Event::Broken));
            self.check();
        }
    }

    fn later(&mut self, place: usize, at: u64, event: Event) {
        // What happens at the same time happens in order.
        self.happenings += 1;
        let key = (at, self.happenings);
        let number = self.links[place].number;
        self.events.insert(key, (place, number, event));
    }

    /// Notes what a client has done since the last look.
    fn note(&mut self, place: usize) {
        let tally = &self.crowd.clients[place].tally;
        let seen = &mut self.seen[place];
        for _ in seen.replies..tally.replies {
            self.heard.push((self.now, place));
        }
        for _ in seen.requests..tally.requests {
            self.asked.push((self.now, place));
        }
        *seen = tally.clone();
    }

    fn owed(&self) -> Vec<u64> {
        self.crowd
            .clients
            .iter()
            .map(|client| client.owed)
            .collect()
    }

    fn note_lost(&mut self, place: usize, owed: u64) {
        let client = &self.crowd.clients[place];
        let failed = matches!(client.state, State::Failed | State::Over);
        // In a closed loop nothing is lost with a connection that was to be used.
        let is_lost = self.plan.rate.is_some() && failed && owed != client.owed;
        self.owed_lost += u64::from(is_lost);
    }

    pub(super) fn requests(&self) -> u64 {
        self.sum(|tally| tally.requests)
    }

    fn sum(&self, count: impl Fn(&ClientTally) -> u64) -> u64 {
        let clients = self.crowd.clients.iter();
        clients.map(|client| count(&client.tally)).sum()
    }

    /// What always holds.
    pub(super) fn check(&self) {
        let crowd = &self.crowd;
        let progress = crowd.progress();
        let (mut out, mut waiting, mut connecting, mut unspent) = (0, 0, 0, 0);
        let limit = self.plan.requests_per_connection.unwrap_or(u32::MAX);
        for client in &crowd.clients {
            assert!(client.outstanding <= self.plan.pipeline, "too deep");
            assert!(client.made <= limit, "too many over one connection");
            assert!(client.queued <= self.plan.pipeline + 1, "too long a line");
            assert!(client.state == State::Open || client.outstanding == 0);
            assert_eq!(
                client.later.len(),
                usize::from(client.outstanding.saturating_sub(1))
            );
            out += u64::from(client.outstanding);
            if client.was_answered() {
                waiting += u64::from(client.outstanding);
            }
            connecting += usize::from(client.state == State::Connecting);
            if client.state == State::Over && client.budget < u64::MAX / 2 {
                unspent += client.budget;
            }
        }
        assert_eq!(progress.waiting, waiting);
        assert_eq!(crowd.connecting, connecting);
        assert_eq!(progress.verified, self.sum(|tally| tally.replies));
        assert_eq!(
            progress.answered,
            self.sum(|tally| u64::from(tally.first_answer_at.is_some()))
        );
        assert_eq!(
            progress.bytes,
            self.sum(|tally| tally.bytes_sent + tally.bytes_received)
        );
        assert_eq!(
            self.requests() + unspent + self.owed_lost,
            progress.verified + out + progress.lost
        );
        self.check_budget();
    }

    fn check_budget(&self) {
        let total = match self.plan.until {
            Until::Requests(total) => total,
            Until::Each { requests, .. } if !self.plan.reconnect => {
                u64::from(requests * self.plan.clients)
            }
            _ => return,
        };
        let clients = &self.crowd.clients;
        if self.plan.rate.is_some() {
            let owed = clients.iter().filter(|client| client.owed != NOTHING_OWED);
            let owed = owed.count() as u64 + self.owed_lost;
            assert_eq!(self.requests() + owed + self.crowd.allowance, total);
        } else {
            let budget: u64 = clients.iter().map(|client| client.budget).sum();
            assert_eq!(self.requests() + budget, total);
        }
    }
}
