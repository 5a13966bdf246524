//! The one loop that drives clients, for every protocol and every way requests come due.
//!
//! A worker owns its clients, their sockets and its histogram; with the others it shares only the
//! window in which replies count and a few counters that it writes once a round.
//!
//! System calls a request: recv, send, and a share of epoll_wait. Sockets are registered once,
//! edge-triggered; a read shorter than the buffer has emptied the socket and is not repeated.

use std::collections::{BTreeMap, VecDeque};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, sockopt};

use super::client::{Client, LAST, State, begin_connection};
use super::phase::Progress;
use super::shared::Shared;
use super::tally::{ErrorKind, SLICES, WorkerTally, histogram};
use super::{Plan, now};
use crate::protocol::{Decline, Replies};

/// Bytes read at once; the buffer is the worker's.
const INPUT_BYTES: usize = 256 * 1024;
/// Full buffers read from one connection before it is another's turn.
const READS_A_TURN: usize = 4;
/// Connections begun before those already there are looked after again.
const CONNECTS_A_ROUND: usize = 64;
/// Clients that rest and are woken before replies are looked at again.
const WAKES_A_ROUND: usize = 1024;
/// Longest wait, so that the end and time-outs are noticed.
const LONGEST_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// One thread's clients.
pub(super) struct Worker {
    plan: Plan,
    number: usize,
    threads: usize,
    shared: Arc<Shared>,
    queue: OwnedFd,
    clients: Vec<Client>,
    /// The next client to connect.
    unborn: usize,
    connecting: VecDeque<(usize, u64)>,
    /// The next client to wake, if it rests.
    asleep: usize,
    unfinished: Vec<usize>,
    input: Box<[MaybeUninit<u8>]>,
    service_time: Histogram<u64>,
    from: u64,
    until: u64,
    slices: [u64; SLICES],
    slice: usize,
    slice_ends: u64,
    slice_length: u64,
    window_bytes_sent: u64,
    window_bytes_received: u64,
    declined: BTreeMap<Decline, u64>,
    progress: Progress,
}

impl Worker {
    /// The worker that has every `threads`th client, beginning with `number`.
    pub(super) fn new(
        plan: &Plan,
        number: usize,
        threads: usize,
        shared: Arc<Shared>,
    ) -> anyhow::Result<Self> {
        let count = u64::from(plan.clients);
        let clients: Vec<Client> = (number as u64..count)
            .step_by(threads)
            .map(|client| Client::new(plan, client))
            .collect();
        Ok(Self {
            plan: plan.clone(),
            number,
            threads,
            from: shared.window().from,
            until: u64::MAX,
            shared,
            queue: epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll")?,
            asleep: clients.len(),
            clients,
            unborn: 0,
            connecting: VecDeque::new(),
            unfinished: Vec::new(),
            input: Box::new_uninit_slice(INPUT_BYTES),
            service_time: histogram(),
            slices: [0; SLICES],
            slice: 0,
            slice_ends: u64::MAX,
            slice_length: 1,
            window_bytes_sent: 0,
            window_bytes_received: 0,
            declined: BTreeMap::new(),
            progress: Progress::default(),
        })
    }

    /// Drives the clients until they may be closed.
    pub(super) fn run(mut self) -> anyhow::Result<WorkerTally> {
        let mut events = Vec::with_capacity(1024);
        while !self.shared.may_close() {
            self.look_at_window();
            self.connect_some();
            self.wake_some();
            let busy = self.unborn < self.clients.len()
                || self.asleep < self.clients.len()
                || !self.unfinished.is_empty();
            let wait = if busy {
                Timespec::default()
            } else {
                LONGEST_WAIT
            };
            events.clear();
            match epoll::wait(&self.queue, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll_wait failed"),
            }
            let unfinished = std::mem::take(&mut self.unfinished);
            for event in &events {
                let flags = event.flags;
                self.turn(event.data.u64() as usize, flags.intersects(LAST));
            }
            for place in unfinished {
                self.turn(place, false);
            }
            self.give_up_connecting();
            self.shared.publish(self.number, &self.progress);
        }
        Ok(self.finish())
    }

    /// Takes over when replies count, as the leader has set it.
    fn look_at_window(&mut self) {
        let window = self.shared.window();
        let from = window.from;
        self.until = window.until;
        if from != self.from {
            self.from = from;
            self.asleep = 0;
            self.slice_length = (self.until.saturating_sub(from) / SLICES as u64).max(1);
            self.slice_ends = from.saturating_add(self.slice_length);
        }
    }

    /// Everybody has had a first answer: who rests since then goes on asking. With a large crowd not
    /// all at once, or the first replies would wait until the last request has left.
    fn wake_some(&mut self) {
        for _ in 0..WAKES_A_ROUND {
            if self.asleep == self.clients.len() {
                return;
            }
            if now() >= self.until {
                self.asleep = self.clients.len();
                return;
            }
            let place = self.asleep;
            self.asleep += 1;
            if self.clients[place].state == State::Resting {
                self.go_on(place);
            }
        }
    }

    // Connecting.

    fn connect_some(&mut self) {
        for _ in 0..CONNECTS_A_ROUND {
            if self.unborn == self.clients.len() || now() >= self.until {
                return;
            }
            let place = self.unborn;
            self.unborn += 1;
            self.connect(place);
        }
    }

    fn connect(&mut self, place: usize) {
        let started_at = now();
        let client = &mut self.clients[place];
        let since_began = started_at - self.shared.began;
        client.tally.started_at.get_or_insert(since_began);
        let number = (place * self.threads + self.number) as u64;
        match begin_connection(&self.plan, number, &self.queue, place) {
            Ok(socket) => {
                client.socket = Some(socket);
                client.state = State::Connecting;
                client.connect_by = started_at + self.plan.connect_timeout.as_nanos() as u64;
                self.connecting.push_back((place, client.connect_by));
            }
            Err(error) => self.fail(place, ErrorKind::of(error)),
        }
    }

    /// All have the same time, so the first in the queue is the first to run out of it.
    fn give_up_connecting(&mut self) {
        while let Some(&(place, deadline)) = self.connecting.front() {
            let client = &self.clients[place];
            // A client that connects anew has a later place in the queue too.
            let connecting = client.state == State::Connecting && client.connect_by == deadline;
            if connecting && now() < deadline {
                return;
            }
            self.connecting.pop_front();
            if connecting {
                self.fail(place, ErrorKind::ConnectTimeout);
            }
        }
    }

    fn connected(&mut self, place: usize) {
        let client = &mut self.clients[place];
        let socket = client
            .socket
            .as_ref()
            .expect("a connecting client has a socket");
        match sockopt::socket_error(socket) {
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) => return self.fail(place, ErrorKind::of(error)),
        }
        let time = now();
        if client.tally.connected_at.is_none() {
            let source = net::getsockname(socket).ok();
            client.tally.source = source.and_then(|source| source.try_into().ok());
            client.tally.connected_at = Some(time - self.shared.began);
            self.progress.connected += 1;
        } else if time >= self.until {
            client.state = State::Resting;
            return;
        }
        self.ask(place);
    }

    // Asking and hearing.

    /// Does what the readiness of a client's socket allows.
    fn turn(&mut self, place: usize, last: bool) {
        match self.clients[place].state {
            State::Connecting => {
                // The edge that says "connected" may be the only one for bytes already here.
                self.connected(place);
                if self.clients[place].state != State::Asking {
                    return;
                }
            }
            State::Asking | State::Resting | State::Leaving => {}
            State::Unborn | State::Over => return,
        }
        self.send(place);
        for _ in 0..READS_A_TURN {
            match self.hear(place, last) {
                Heard::More => {}
                Heard::Nothing => return,
            }
        }
        self.unfinished.push(place);
    }

    fn hear(&mut self, place: usize, last: bool) -> Heard {
        let client = &mut self.clients[place];
        let Some(socket) = &client.socket else {
            return Heard::Nothing;
        };
        let (bytes, emptied) = match net::recv(socket, &mut *self.input, RecvFlags::empty()) {
            Ok((([], _), _)) => {
                self.closed_by_server(place);
                return Heard::Nothing;
            }
            Ok(((bytes, room), _)) => (bytes, !room.is_empty() && !last),
            Err(Errno::AGAIN) => return Heard::Nothing,
            Err(Errno::INTR) => return Heard::More,
            Err(error) => {
                self.broken(place, error);
                return Heard::Nothing;
            }
        };
        let count = bytes.len() as u64;
        client.tally.bytes_received += count;
        match client.requester.receive(bytes) {
            Ok(replies) if replies.completed > 0 => self.answered(place, replies, count),
            Ok(_) => self.window_bytes_received += self.counts(now(), count),
            Err(_) => {
                self.fail(place, ErrorKind::WrongReply);
                return Heard::Nothing;
            }
        }
        if emptied { Heard::Nothing } else { Heard::More }
    }

    /// `amount` if the time lies in the window, else 0.
    fn counts(&self, time: u64, amount: u64) -> u64 {
        if time >= self.from && time < self.until {
            amount
        } else {
            0
        }
    }

    fn answered(&mut self, place: usize, heard: Replies, bytes: u64) {
        let time = now();
        let replies = u64::from(heard.completed);
        let client = &mut self.clients[place];
        client.tally.replies += replies;
        if let Some(why) = heard.declined {
            *self.declined.entry(why).or_insert(0) += 1;
        }
        self.progress.verified += replies;
        if client.tally.first_answer_at.is_none() {
            client.tally.first_answer_at = Some(time - self.shared.began);
            self.progress.answered += 1;
        } else {
            self.progress.waiting -= 1;
        }
        if time >= self.from && time < self.until {
            client.tally.window_replies += replies;
            self.service_time.saturating_record(time - client.sent_at);
            self.window_bytes_received += bytes;
            while time >= self.slice_ends {
                self.slice = (self.slice + 1).min(SLICES - 1);
                self.slice_ends += self.slice_length;
            }
            self.slices[self.slice] += replies;
        }
        if heard.close {
            client.state = State::Leaving;
        } else {
            client.state = State::Resting;
            self.go_on_if_settled(place, time);
        }
    }

    fn go_on_if_settled(&mut self, place: usize, time: u64) {
        let settled = self.from != u64::MAX || self.plan.eager;
        if settled && time < self.until {
            self.go_on(place);
        }
    }

    /// Asks again, over a new connection if the last one has ended.
    fn go_on(&mut self, place: usize) {
        if self.clients[place].socket.is_some() || self.clients[place].budget == 0 {
            self.ask(place);
        } else {
            self.connect(place);
        }
    }

    fn ask(&mut self, place: usize) {
        let client = &mut self.clients[place];
        if client.budget == 0 {
            self.progress.finished += 1;
            self.end(place);
            return;
        }
        client.budget -= 1;
        client.state = State::Asking;
        client.sent_at = now();
        if client.tally.first_answer_at.is_some() {
            self.progress.waiting += 1;
        }
        client.requester.begin();
        client.tally.requests += 1;
        self.send(place);
    }

    /// Sends as much of the request as the socket takes. Bytes count as sent when their request
    /// was begun.
    fn send(&mut self, place: usize) {
        let client = &mut self.clients[place];
        let Some(socket) = &client.socket else {
            return;
        };
        let mut sent = 0;
        let failure = loop {
            let pending = client.requester.pending();
            if pending.is_empty() {
                break None;
            }
            match net::send(socket, pending, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    client.requester.advance(count);
                    sent += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break None,
                Err(error) => break Some(error),
            }
        };
        if sent > 0 {
            client.tally.bytes_sent += sent;
            let begun = client.sent_at;
            self.window_bytes_sent += self.counts(begun, sent);
        }
        // A server that closes may have said why: its reply is read before the failure counts.
        if let Some(error) = failure
            && !self.plan.protocol.closes()
        {
            self.fail(place, ErrorKind::of(error));
        }
    }

    // Ending.

    fn closed_by_server(&mut self, place: usize) {
        let client = &mut self.clients[place];
        match client.state {
            State::Leaving => self.left(place),
            State::Resting => self.end(place),
            _ => match client.requester.finish() {
                Ok(replies) if replies.completed > 0 => {
                    let replies = Replies {
                        close: true,
                        ..replies
                    };
                    self.answered(place, replies, 0);
                    self.left(place);
                }
                Ok(_) => self.fail(place, ErrorKind::ClosedEarly),
                Err(_) => self.fail(place, ErrorKind::WrongReply),
            },
        }
    }

    /// After a reply with which the server closes, it does not matter how: it may do so while we
    /// still send what it declined.
    fn broken(&mut self, place: usize, error: Errno) {
        if self.clients[place].state == State::Leaving {
            self.left(place);
        } else {
            self.fail(place, ErrorKind::of(error));
        }
    }

    /// The server closed after its reply, as it should: the next request has a new connection.
    fn left(&mut self, place: usize) {
        let client = &mut self.clients[place];
        client.socket = None;
        client.state = State::Resting;
        self.go_on_if_settled(place, now());
    }

    fn fail(&mut self, place: usize, kind: ErrorKind) {
        let client = &mut self.clients[place];
        if client.state == State::Asking && client.tally.first_answer_at.is_some() {
            self.progress.waiting -= 1;
        }
        client.tally.error = Some(kind);
        self.progress.failed += 1;
        self.end(place);
    }

    fn end(&mut self, place: usize) {
        let client = &mut self.clients[place];
        client.state = State::Over;
        client.socket = None;
    }

    fn finish(mut self) -> WorkerTally {
        for client in &mut self.clients {
            if client.state == State::Asking && client.tally.first_answer_at.is_some() {
                client.tally.error = Some(ErrorKind::Unanswered);
            }
        }
        WorkerTally {
            service_time: self.service_time,
            slices: self.slices,
            window_bytes_sent: self.window_bytes_sent,
            window_bytes_received: self.window_bytes_received,
            declined: self.declined,
            clients: self
                .clients
                .into_iter()
                .map(|client| client.tally)
                .collect(),
        }
    }
}

/// Whether more may be heard from a client now.
enum Heard {
    More,
    Nothing,
}
