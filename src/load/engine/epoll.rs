//! Clients on epoll(7), edge-triggered.
//!
//! System calls a request: recv, send, and a share of epoll_wait. Sockets are registered once; a
//! read shorter than the buffer has emptied the socket and is not repeated.

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, sockopt};

use super::super::client::State;
use super::super::crowd::{Crowd, Then};
use super::super::route::Routes;
use super::super::socket::{self, Options};
use super::super::{Close, Plan, now};
use super::Engine;
use crate::sys::wait;

/// Bytes read at once; the buffer is the worker's.
const INPUT_BYTES: usize = 256 * 1024;
/// Full buffers read from one connection before it is another's turn.
const READS_A_TURN: usize = 4;
/// Events taken at once.
const EVENTS: usize = 1024;
/// Events taken at once where requests come due meanwhile.
const EVENTS_BETWEEN_DUES: usize = 32;

/// The server closed its side, or the connection broke: no further edge will come.
const LAST: epoll::EventFlags = epoll::EventFlags::RDHUP
    .union(epoll::EventFlags::HUP)
    .union(epoll::EventFlags::ERR);

/// What a socket is registered for, once and for good.
const EDGES: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::OUT)
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);

/// Clients on epoll.
pub(super) struct Epoll {
    queue: OwnedFd,
    sockets: Vec<Option<OwnedFd>>,
    routes: Routes,
    options: Options,
    input: Box<[MaybeUninit<u8>]>,
    events: Vec<epoll::Event>,
    /// Clients of whom more may be read at once.
    unfinished: Vec<(u32, bool)>,
}

/// Whether more may be read from a client now.
enum Heard {
    More,
    Nothing,
}

impl Epoll {
    /// For so many clients.
    ///
    /// # Errors
    /// As epoll_create(2) gives them.
    pub(super) fn new(plan: &Plan, clients: usize) -> anyhow::Result<Self> {
        Ok(Self {
            queue: epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll")?,
            sockets: std::iter::repeat_with(|| None).take(clients).collect(),
            routes: plan.routes.clone(),
            options: plan.socket,
            input: Box::new_uninit_slice(INPUT_BYTES),
            events: Vec::with_capacity(if plan.has_dues() {
                EVENTS_BETWEEN_DUES
            } else {
                EVENTS
            }),
            unfinished: Vec::new(),
        })
    }

    fn begin(&mut self, crowd: &Crowd, place: usize) -> Result<OwnedFd, Errno> {
        let route = self.routes.route(crowd.route_number(place));
        let socket = socket::open(&route, self.options)?;
        // Registered after connect(), or the hang-up of an unconnected socket would be the first edge.
        let data = epoll::EventData::new_u64(place as u64);
        epoll::add(&self.queue, &socket, data, EDGES)?;
        Ok(socket)
    }

    fn has_connected(&mut self, crowd: &mut Crowd, place: usize) {
        let Some(socket) = &self.sockets[place] else {
            return;
        };
        let then = match sockopt::socket_error(socket) {
            Ok(Ok(())) => {
                crowd.learn_source(place, socket.as_fd());
                crowd.connected(place, now())
            }
            Ok(Err(error)) | Err(error) => crowd.not_connected(place, error, now()),
        };
        self.apply(crowd, place, then);
    }

    /// Sends what a client has to send, as much of it as the socket takes.
    fn send(&mut self, crowd: &mut Crowd, place: usize) {
        let Some(socket) = &self.sockets[place] else {
            return;
        };
        let error = loop {
            let pending = crowd.pending(place);
            if pending.is_empty() {
                return;
            }
            match net::send(socket, pending, SendFlags::NOSIGNAL) {
                Ok(count) => crowd.sent(place, count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => break error,
            }
        };
        let then = crowd.not_sent(place, error, now());
        self.apply(crowd, place, then);
    }

    /// Does what the readiness of a client's socket allows.
    fn ready(&mut self, crowd: &mut Crowd, place: usize, last: bool) {
        if crowd.state(place) == State::Connecting {
            self.has_connected(crowd, place);
            // The edge that says "connected" may be the only one for bytes already here.
        } else if !crowd.pending(place).is_empty() {
            self.send(crowd, place);
        }
        for _ in 0..READS_A_TURN {
            match self.hear(crowd, place, last) {
                Heard::More => {}
                Heard::Nothing => return,
            }
        }
        // Else it would be taken for readiness of the client's next connection.
        if self.sockets[place].is_some() {
            self.unfinished.push((place as u32, last));
        }
    }

    fn hear(&mut self, crowd: &mut Crowd, place: usize, last: bool) -> Heard {
        let Some(socket) = &self.sockets[place] else {
            return Heard::Nothing;
        };
        let (then, heard) = match net::recv(socket, &mut *self.input, RecvFlags::empty()) {
            Ok((([], _), _)) => (crowd.ended(place, now()), Heard::Nothing),
            Ok(((bytes, room), _)) => {
                let emptied = !room.is_empty() && !last;
                let heard = if emptied { Heard::Nothing } else { Heard::More };
                (crowd.received(place, bytes, now()), heard)
            }
            Err(Errno::AGAIN) => return Heard::Nothing,
            Err(Errno::INTR) => return Heard::More,
            Err(error) => (crowd.broken(place, error, now()), Heard::Nothing),
        };
        self.apply(crowd, place, then);
        heard
    }
}

impl Engine for Epoll {
    fn connect(&mut self, crowd: &mut Crowd, place: usize) {
        match self.begin(crowd, place) {
            Ok(socket) => self.sockets[place] = Some(socket),
            Err(error) => {
                let then = crowd.not_connected(place, error, now());
                self.apply(crowd, place, then);
            }
        }
    }

    #[inline]
    fn apply(&mut self, crowd: &mut Crowd, place: usize, then: Then) {
        match then {
            Then::Keep => {}
            Then::Send => self.send(crowd, place),
            Then::Close(how) => {
                if let Some(socket) = self.sockets[place].take()
                    && how == Close::Reset
                {
                    // With no time to linger, close() resets. If it cannot be set, it closes all the same.
                    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
                }
            }
        }
    }

    fn turn(&mut self, crowd: &mut Crowd, patience: Duration) -> anyhow::Result<()> {
        let wait = if self.unfinished.is_empty() {
            patience
        } else {
            Duration::ZERO
        };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match wait::wait(&self.queue, &mut events, wait) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                return Err(error).context("epoll_wait failed");
            }
            _ => {}
        }
        let unfinished = std::mem::take(&mut self.unfinished);
        for event in &events {
            let flags = event.flags;
            self.ready(crowd, event.data.u64() as usize, flags.intersects(LAST));
        }
        for (place, last) in unfinished {
            self.ready(crowd, place as usize, last);
        }
        self.events = events;
        Ok(())
    }
}
