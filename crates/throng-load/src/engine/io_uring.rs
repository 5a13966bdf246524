//! Clients on io_uring(7).
//!
//! A client has a single multishot receive, with buffers that all clients of a worker share. Requests live as long as
//! the program, so they are sent without copying. A request that is built for one client, or encrypted, is in a buffer
//! that the kernel owns until it is sent. Successful sends give no completion. A single call submits everything and
//! waits for completions.
//!
//! All completions of one call have the same time, and what is sent in response leaves with the next call. So times
//! include a request's wait in our own queue.

mod lending;

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::io::Errno;
use rustix::net::{self, SendFlags, Shutdown, shutdown, sockopt};

use super::super::client::State;
use super::super::pool::{Action, ClientPool};
use super::super::route::Routes;
use super::super::socket::{self, Options};
use super::super::{Close, Plan, now};
use super::full::FullQueues;
use super::link::{AwaitedCompletion, Closing, Link, Sending};
use super::transport::Transport;
use super::{Engine, send_closing_message};
use throng_sys::prefetch::prefetch;
use throng_sys::ring::{Event, Notify, Ring, Target, Turn, WakeOn};

/// Longest request that is expected to leave immediately. For longer requests, the completion is awaited.
const SMALL: usize = 64 * 1024;
/// Time limit for pending operations when the load ends.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Clients on io_uring.
pub(super) struct IoUring<T> {
    // Dropped first, so that no operation is left when the sockets are closed.
    ring: Ring,
    transport: T,
    links: Vec<Link>,
    routes: Routes,
    options: Options,
    full: FullQueues,
    /// Whether clients may send while an earlier request is open.
    pipelined: bool,
    /// The time of the last completions.
    time: u64,
    /// Number of submissions to the kernel.
    handed_over: u32,
    /// Clients that have more to send after what was submitted, once that has been handed over.
    again: Vec<u32>,
    /// Sockets with operations that have not been submitted yet. Their descriptors must not be reused.
    closed: Vec<OwnedFd>,
}

impl<T: Transport> IoUring<T> {
    /// An engine for `clients` clients.
    ///
    /// # Errors
    /// If no ring can be created.
    pub(super) fn new(plan: &Plan, clients: usize) -> anyhow::Result<Self> {
        Ok(Self {
            ring: Ring::new().context("cannot set up an io_uring")?,
            transport: T::new(plan, clients),
            links: std::iter::repeat_with(Link::default)
                .take(clients)
                .collect(),
            routes: plan.routes.clone(),
            options: plan.socket,
            full: FullQueues::of(plan.routes.targets().count()),
            pipelined: plan.pipeline > 1 || plan.dialogue.has_handshake(),
            time: now(),
            handed_over: 1,
            again: Vec::new(),
            closed: Vec::new(),
        })
    }

    fn begin(&mut self, pool: &ClientPool, slot: usize) -> Result<(), Errno> {
        let route = self.routes.route(pool.route_number(slot));
        let socket = socket::open(&route, self.options)?;
        let watched = self.ring.watch_writable(&socket, slot as u32);
        watched.map_err(|error| errno(&error))?;
        let link = &mut self.links[slot];
        *link = Link {
            target: Target::from(&socket),
            socket: Some(socket),
            turn: link.turn.wrapping_add(1),
            awaited: AwaitedCompletion::Connection,
            was_sending: std::mem::take(&mut link.sending),
            ..Link::default()
        };
        Ok(())
    }

    /// Begins to connect a client. Returns whether it cannot, because the accept queue is full.
    fn try_to_connect(&mut self, pool: &mut ClientPool, slot: usize) -> bool {
        match self.begin(pool, slot) {
            Ok(()) => {}
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
            let waits = pool.state(slot) == State::Connecting && self.links[slot].socket.is_none();
            if waits && self.try_to_connect(pool, slot) {
                self.full.put_back(slot);
                tries -= 1;
            }
        }
    }

    fn has_connected(&mut self, pool: &mut ClientPool, slot: usize) -> anyhow::Result<()> {
        let link = &mut self.links[slot];
        link.awaited = AwaitedCompletion::Nothing;
        let Some(socket) = &link.socket else {
            return Ok(());
        };
        if link.is_closing() {
            self.end_if_done(pool, slot);
            return Ok(());
        }
        let action = match sockopt::socket_error(socket) {
            Ok(Ok(())) => {
                pool.record_source(slot, socket.as_fd());
                link.awaited = AwaitedCompletion::Bytes;
                link.target = self.ring.adopt(socket)?;
                self.ring.receive(link.target, slot as u32)?;
                self.transport.connected(pool, slot, self.time)
            }
            Ok(Err(error)) | Err(error) => pool.not_connected(slot, error, self.time),
        };
        self.apply(pool, slot, action);
        Ok(())
    }

    /// Submits a client's pending bytes, unless some are still being sent.
    fn send(&mut self, pool: &mut ClientPool, slot: usize) {
        if T::SEALS || pool.generates_requests() {
            self.lend(pool, slot);
            return;
        }
        let link = &mut self.links[slot];
        if link.socket.is_none() || link.sending.is_notified() {
            return;
        }
        let bytes = pool.shared(slot);
        if bytes.is_empty() || link.is_closing() {
            return;
        }
        let counted = if self.pipelined || bytes.len() > SMALL {
            0
        } else {
            // The request is nearly always sent before the reply arrives, and nothing else is sent before that.
            pool.sent(slot, bytes.len());
            bytes.len()
        };
        let is_notified = counted == 0 || !pool.shared(slot).is_empty();
        link.sending = Sending::new(is_notified, counted);
        let notify = if is_notified {
            Notify::Always
        } else {
            Notify::Trouble
        };
        link.sent_in = self.handed_over;
        let turn = link.turn;
        let sent = self
            .ring
            .send_static(link.target, slot as u32, turn, bytes, notify);
        if let Err(error) = sent {
            let action = pool.not_sent(slot, errno(&error), self.time);
            self.apply(pool, slot, action);
        }
    }

    /// Bytes of a connection were sent, or not.
    fn send_completed(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        turn: Turn,
        sent: Result<usize, Errno>,
    ) {
        let link = &mut self.links[slot];
        let sending = if link.turn == turn {
            &mut link.sending
        } else {
            &mut link.was_sending
        };
        let was_notified = sending.is_notified();
        let (more, fewer) = sending.end(sent.unwrap_or(0));
        pool.uncount_sent(slot, fewer);
        if link.turn != turn || link.is_closing() || link.socket.is_none() {
            pool.count_sent(slot, more);
            return;
        }
        let action = match sent {
            Ok(_) if was_notified => {
                pool.sent(slot, more);
                Action::Send
            }
            // The operation was submitted to send everything.
            Ok(_) => pool.not_sent(slot, Errno::PIPE, self.time),
            Err(error) => pool.not_sent(slot, error, self.time),
        };
        self.apply(pool, slot, action);
    }

    /// Bytes arrived, or the end of the stream, or an error.
    fn on_receive(
        transport: &mut T,
        pool: &mut ClientPool,
        slot: usize,
        bytes: Result<&mut [u8], Errno>,
        time: u64,
    ) -> Action {
        match bytes {
            Ok([]) => transport.peer_closed(pool, slot, time),
            Ok(bytes) => transport.received(pool, slot, bytes, time),
            // No buffer was free, or the receive was interrupted: it is submitted again.
            Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN) => Action::Keep,
            Err(error) => pool.connection_failed(slot, error, time),
        }
    }

    /// Closes a connection once the kernel has no more operations on it.
    fn end_if_done(&mut self, pool: &mut ClientPool, slot: usize) {
        let link = &mut self.links[slot];
        if link.is_closing() && link.awaited == AwaitedCompletion::Nothing {
            let socket = link.socket.take();
            // An error of the ring shows up in the next wait.
            let _ = self.ring.release(std::mem::take(&mut link.target));
            if link.sent_in == self.handed_over {
                self.closed.extend(socket);
            }
            if std::mem::take(&mut link.closing) == Closing::ToReconnect {
                self.connect(pool, slot);
            }
        }
    }

    fn handle_event(&mut self, pool: &mut ClientPool) -> anyhow::Result<bool> {
        if let Some(coming) = self.ring.coming_receiver() {
            pool.prefetch(coming as usize);
            prefetch(&raw const self.links[coming as usize]);
        }
        let Some(event) = self.ring.take_event() else {
            return Ok(false);
        };
        match event {
            Event::Received {
                name,
                bytes,
                goes_on,
            } => {
                let slot = name as usize;
                let link = &mut self.links[slot];
                let is_end = matches!(bytes, Ok([]));
                link.awaited = if goes_on {
                    AwaitedCompletion::Bytes
                } else {
                    AwaitedCompletion::Nothing
                };
                if !link.is_closing() {
                    let bytes = if is_end && link.was_reset() {
                        Err(Errno::CONNRESET)
                    } else {
                        bytes
                    };
                    let action =
                        Self::on_receive(&mut self.transport, pool, slot, bytes, self.time);
                    self.apply(pool, slot, action);
                }
                let receiving = &mut self.links[slot];
                if goes_on {
                    return Ok(true);
                }
                match &receiving.socket {
                    Some(_) if !receiving.is_closing() && !is_end => {
                        receiving.awaited = AwaitedCompletion::Bytes;
                        self.ring.receive(receiving.target, name)?;
                    }
                    _ => self.end_if_done(pool, slot),
                }
            }
            Event::Left { name, turn, sent } => {
                self.send_completed(pool, name as usize, turn, sent);
            }
            Event::Writable(name) => self.has_connected(pool, name as usize)?,
            Event::Sent {
                name,
                turn,
                buffer,
                from,
                sent,
            } => {
                let end = from + sent.unwrap_or(0);
                self.buffer_returned(pool, (name as usize, turn), buffer, end, sent.err());
            }
            Event::Accepted { .. } | Event::Readable(_) => {}
        }
        Ok(true)
    }
}

impl<T: Transport> Engine for IoUring<T> {
    fn connect(&mut self, pool: &mut ClientPool, slot: usize) {
        if self.links[slot].is_closing() {
            self.links[slot].closing = Closing::ToReconnect;
            return;
        }
        if pool.state(slot) != State::Connecting {
            return; // it gave up meanwhile
        }
        if self.try_to_connect(pool, slot) {
            self.full.join(slot);
        }
    }

    fn apply(&mut self, pool: &mut ClientPool, slot: usize, action: Action) {
        match action {
            Action::Keep => {}
            Action::Send => self.send(pool, slot),
            Action::Close(how) => {
                let link = &mut self.links[slot];
                let last = self.transport.close(slot, how);
                let Some(socket) = &link.socket else {
                    return;
                };
                link.closing = Closing::Yes;
                let is_sending = link.sending.is_notified() || link.sent_in == self.handed_over;
                if !last.is_empty() && !is_sending {
                    // For clients that are still there, after all pending bytes.
                    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                    let _ = net::send(socket, &last, flags);
                }
                if how == Close::Reset {
                    // With no time to linger, close() resets. If that option cannot be set, close() still closes.
                    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
                    if link.awaited == AwaitedCompletion::Bytes
                        && self.ring.stop_receiving(slot as u32).is_ok()
                    {
                        return;
                    }
                } else if !T::SEALS {
                    // TLS ends with close_notify instead.
                    send_closing_message(pool, slot, socket);
                }
                // Cancels the kernel's pending operations, which gives completions.
                let _ = shutdown(socket, Shutdown::Both);
                self.end_if_done(pool, slot);
            }
        }
    }

    fn run_once(&mut self, pool: &mut ClientPool, longest_wait: Duration) -> anyhow::Result<()> {
        self.ring
            .wait(WakeOn::News, Some(self.full.longest_wait(longest_wait)))
            .context("io_uring_enter failed")?;
        self.time = now();
        let has_handed_over = self.ring.has_handed_over();
        if has_handed_over {
            self.handed_over = self.handed_over.wrapping_add(1);
            self.closed.clear();
        }
        while self.handle_event(pool)? {}
        if has_handed_over && !self.again.is_empty() {
            for slot in std::mem::take(&mut self.again) {
                self.send(pool, slot as usize);
            }
        }
        self.try_again(pool);
        Ok(())
    }

    fn end(&mut self, pool: &mut ClientPool) {
        if T::SEALS {
            for slot in 0..self.links.len() {
                self.apply(pool, slot, Action::Close(Close::Orderly));
            }
        }
        for link in &mut self.links {
            link.closing = Closing::Yes;
        }
        let until = Instant::now() + END_LIMIT;
        let mut news = self.ring.cancel().is_ok();
        while news && Instant::now() < until {
            let notify = |sending: &Sending| sending.is_notified();
            let waits = |link: &Link| notify(&link.sending) || notify(&link.was_sending);
            let awaited = self.links.iter().any(waits);
            let longest_wait = if awaited { END_LIMIT } else { Duration::ZERO };
            news = self.ring.wait(WakeOn::Event, Some(longest_wait)).is_ok();
            news &= self.handle_event(pool).unwrap_or(false);
            while self.handle_event(pool).unwrap_or(false) {}
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
