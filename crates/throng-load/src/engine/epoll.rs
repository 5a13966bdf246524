//! Clients on epoll(7), edge-triggered.
//!
//! System calls per request: recv, send, and a share of epoll_wait. Sockets are registered once. A read shorter than
//! the buffer has emptied the socket, so it is not repeated.

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, sockopt};

use super::super::client::State;
use super::super::pool::{Action, ClientPool};
use super::super::route::Routes;
use super::super::socket::{self, Options};
use super::super::{Close, Plan, now};
use super::full::FullQueues;
use super::transport::Transport;
use super::{Engine, send_closing_message};
use throng_sys::wait;

/// Bytes per read, into a buffer that the worker's clients share.
const INPUT_BYTES: usize = 256 * 1024;
/// Number of full buffers read from one connection before the next one is served.
const READS_PER_EVENT: usize = 4;
/// Maximum number of events per call.
const EVENTS: usize = 1024;
/// Maximum number of events per call if requests become due in the meantime.
const EVENTS_BETWEEN_DUES: usize = 32;

/// The server closed its side, or the connection failed: there will be no further edge.
const LAST: epoll::EventFlags = epoll::EventFlags::RDHUP
    .union(epoll::EventFlags::HUP)
    .union(epoll::EventFlags::ERR);

/// There is something to read, or the stream has ended.
const READABLE: epoll::EventFlags = epoll::EventFlags::IN.union(LAST);

/// The events that a socket is registered for, once.
const EDGES: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::OUT)
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);

/// Clients on epoll.
pub(super) struct Epoll<T> {
    queue: OwnedFd,
    transport: T,
    sockets: Vec<Option<OwnedFd>>,
    routes: Routes,
    options: Options,
    full: FullQueues,
    input: Box<[MaybeUninit<u8>]>,
    events: Vec<epoll::Event>,
    /// Clients whose sockets may have more to read.
    unfinished: Vec<(u32, bool)>,
}

/// Whether a client's socket may have more to read now.
enum Received {
    More,
    Nothing,
}

impl<T: Transport> Epoll<T> {
    /// An engine for `clients` clients.
    ///
    /// # Errors
    /// Errors of epoll_create(2).
    pub(super) fn new(plan: &Plan, clients: usize) -> anyhow::Result<Self> {
        Ok(Self {
            queue: epoll::create(epoll::CreateFlags::CLOEXEC)
                .context("cannot create an epoll set")?,
            transport: T::new(plan, clients),
            sockets: std::iter::repeat_with(|| None).take(clients).collect(),
            routes: plan.routes.clone(),
            options: plan.socket,
            full: FullQueues::of(plan.routes.targets().count()),
            input: Box::new_uninit_slice(INPUT_BYTES),
            events: Vec::with_capacity(if plan.has_due_times() {
                EVENTS_BETWEEN_DUES
            } else {
                EVENTS
            }),
            unfinished: Vec::new(),
        })
    }

    fn begin(&mut self, pool: &ClientPool, slot: usize) -> Result<OwnedFd, Errno> {
        let route = self.routes.route(pool.route_number(slot));
        let socket = socket::open(&route, self.options)?;
        // Registered after connect(), because the hang-up of an unconnected socket would be the first edge.
        let data = epoll::EventData::new_u64(slot as u64);
        epoll::add(&self.queue, &socket, data, EDGES)?;
        Ok(socket)
    }

    /// Begins to connect a client. Returns whether it cannot, because the accept queue is full.
    fn try_to_connect(&mut self, pool: &mut ClientPool, slot: usize) -> bool {
        match self.begin(pool, slot) {
            Ok(socket) => self.sockets[slot] = Some(socket),
            Err(Errno::AGAIN) => return true,
            Err(error) => {
                let action = pool.not_connected(slot, error, now());
                self.apply(pool, slot, action);
            }
        }
        false
    }

    /// Lets clients that found a full accept queue try again.
    fn try_again(&mut self, pool: &mut ClientPool) {
        let mut tries = self.full.tries(now);
        while tries > 0
            && let Some(slot) = self.full.next()
        {
            // It may have failed, or even be connected again.
            let waits = pool.state(slot) == State::Connecting && self.sockets[slot].is_none();
            if waits && self.try_to_connect(pool, slot) {
                self.full.put_back(slot);
                tries -= 1;
            }
        }
    }

    fn has_connected(&mut self, pool: &mut ClientPool, slot: usize) {
        let Some(socket) = &self.sockets[slot] else {
            return;
        };
        let action = match sockopt::socket_error(socket) {
            Ok(Ok(())) => {
                pool.record_source(slot, socket.as_fd());
                self.transport.connected(pool, slot, now())
            }
            Ok(Err(error)) | Err(error) => pool.not_connected(slot, error, now()),
        };
        self.apply(pool, slot, action);
    }

    /// Sends a client's pending bytes, as many as the socket accepts.
    #[inline]
    fn send(&mut self, pool: &mut ClientPool, slot: usize) {
        let Some(socket) = &self.sockets[slot] else {
            return;
        };
        let put = |bytes: &[u8]| net::send(socket, bytes, SendFlags::NOSIGNAL);
        if let Err(error) = self.transport.send(pool, slot, put) {
            let action = self.transport.not_sent(pool, slot, error, now());
            self.apply(pool, slot, action);
        }
    }

    /// Handles the readiness of a client's socket.
    fn ready(&mut self, pool: &mut ClientPool, slot: usize, flags: epoll::EventFlags) {
        if pool.state(slot) == State::Connecting && !self.transport.is_handshaking(slot) {
            self.has_connected(pool, slot);
            // The edge for "connected" may be the only one for bytes that have already arrived.
        } else if T::SEALS || !pool.pending(slot).is_empty() {
            self.send(pool, slot);
        }
        // A unix socket becomes writable again whenever its peer has read.
        if flags.intersects(READABLE) {
            self.read(pool, slot, flags.intersects(LAST));
        }
    }

    /// Reads what has arrived, up to the limit per event.
    fn read(&mut self, pool: &mut ClientPool, slot: usize, last: bool) {
        for _ in 0..READS_PER_EVENT {
            match self.read_once(pool, slot, last) {
                Received::More => {}
                Received::Nothing => return,
            }
        }
        // Otherwise it would count as readiness of the client's next connection.
        if self.sockets[slot].is_some() {
            self.unfinished.push((slot as u32, last));
        }
    }

    fn read_once(&mut self, pool: &mut ClientPool, slot: usize, last: bool) -> Received {
        let Some(socket) = &self.sockets[slot] else {
            return Received::Nothing;
        };
        let (action, received) = match net::recv(socket, &mut *self.input, RecvFlags::empty()) {
            Ok((([], _), _)) => (
                self.transport.peer_closed(pool, slot, now()),
                Received::Nothing,
            ),
            Ok(((bytes, room), _)) => {
                let emptied = !room.is_empty() && !last;
                let received = if emptied {
                    Received::Nothing
                } else {
                    Received::More
                };
                let action = self.transport.received(pool, slot, bytes, now());
                (action, received)
            }
            Err(Errno::AGAIN) => return Received::Nothing,
            Err(Errno::INTR) => return Received::More,
            Err(error) => (
                pool.connection_failed(slot, error, now()),
                Received::Nothing,
            ),
        };
        if action == Action::Send {
            self.send(pool, slot);
        } else {
            self.apply(pool, slot, action);
        }
        received
    }
}

impl<T: Transport> Engine for Epoll<T> {
    fn connect(&mut self, pool: &mut ClientPool, slot: usize) {
        if self.try_to_connect(pool, slot) {
            self.full.join(slot);
        }
    }

    fn apply(&mut self, pool: &mut ClientPool, slot: usize, action: Action) {
        match action {
            Action::Keep => {}
            Action::Send => self.send(pool, slot),
            Action::Close(how) => {
                let last = self.transport.close(slot, how);
                let Some(socket) = self.sockets[slot].take() else {
                    return;
                };
                if how == Close::Reset {
                    // With no time to linger, close() resets. If that option cannot be set, close() still closes.
                    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
                } else if !last.is_empty() {
                    // For clients that are still there.
                    let _ = net::send(&socket, &last, SendFlags::NOSIGNAL);
                } else if !T::SEALS {
                    send_closing_message(pool, slot, &socket);
                }
            }
        }
    }

    fn run_once(&mut self, pool: &mut ClientPool, longest_wait: Duration) -> anyhow::Result<()> {
        let wait = if self.unfinished.is_empty() {
            self.full.longest_wait(longest_wait)
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
        let slot = |event: &epoll::Event| event.data.u64() as usize;
        if let Some(first) = events.first() {
            pool.prefetch(slot(first));
        }
        for (number, event) in events.iter().enumerate() {
            if let Some(next) = events.get(number + 1) {
                pool.prefetch(slot(next));
            }
            self.ready(pool, slot(event), event.flags);
        }
        for (waiting, last) in unfinished {
            self.read(pool, waiting as usize, last);
        }
        self.events = events;
        self.try_again(pool);
        Ok(())
    }

    fn end(&mut self, pool: &mut ClientPool) {
        if T::SEALS {
            (0..self.sockets.len())
                .for_each(|slot| self.apply(pool, slot, Action::Close(Close::Orderly)));
        }
    }
}
