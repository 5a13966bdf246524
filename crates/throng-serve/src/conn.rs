//! One connection: the only bridge between a model and a protocol.
//!
//! [`Conn`] moves bytes between the session and the model's kind of I/O. A model that waits for readiness calls
//! [`Conn::on_ready`], one that blocks calls [`Conn::serve`], and one that submits whole operations to the kernel uses
//! [`Conn::feed`], [`Conn::lend`] and [`Conn::reclaim`].
//!
//! An idle connection holds no buffer. Bytes are read into, and answers written from, the [`WorkerBuffers`] of the
//! worker that handles it. Only what the peer does not accept immediately stays with the connection, which then reads
//! nothing more until that is sent. So throng does not read from a peer that does not read, and
//! [`throng_protocol::OUTPUT_LIMIT`] bounds the memory.

mod completion;
mod timeouts;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use completion::Lent;
use timeouts::TimeoutChecks;
pub use timeouts::{CHECKS_PER_TIMEOUT, Timeouts, Wait};

use super::Server;
use super::close_reason::CloseReason;
use super::listen::Client;
use super::server_stats::ConnectionStats;
pub use super::worker_buffers::WorkerBuffers;
use throng_protocol::{Close, OUTPUT_LIMIT, Session, Step};

/// Maximum number of full buffers read from one connection before the next one is served.
const READS_PER_EVENT: usize = 4;
/// Capacity of the output buffer that a worker keeps between connections.
const KEPT_OUTPUT: usize = 2 * OUTPUT_LIMIT;

/// Sending to a peer that is gone returns EPIPE instead of raising a signal. macOS has no such flag, but Rust programs
/// ignore the signal.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// The event that a connection waits for next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Bytes from the client, after the socket was emptied.
    Read,
    /// Bytes from the client; more may have arrived.
    MoreRead,
    /// Room to write.
    Write,
    /// Nothing: drop it.
    Close,
}

/// The outcome of a read.
enum Received {
    /// The socket is empty.
    Everything,
    /// There may be more.
    Something,
    /// There are answers that the client does not accept immediately.
    TooMuch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Reads requests and answers them.
    Serving,
    /// No more answers: sends the pending ones, then ends for this reason.
    Ending(CloseReason),
    /// The server closes while the client may still be sending, because of the protocol or a violation of it. The
    /// connection sends pending answers, shuts down our side, and ends for this reason.
    Parting(CloseReason),
    /// The server stops: the connection sends pending answers, then shuts down our side.
    Draining,
    /// Our side is shut down. The connection discards the client's bytes until the client closes too, and then ends
    /// for this reason.
    Lingering(CloseReason),
}

/// The state of a connection that its peer or the kernel keeps waiting. It is stored separately because most requests
/// never need it: with thousands of clients, each cache line of a connection has to come from memory.
#[derive(Debug, Default)]
struct Backlog {
    /// How many bytes of `out` were sent.
    sent: usize,
    /// Input that the session has no room to answer yet.
    held: Vec<u8>,
    /// Answers that the kernel owns.
    lent: Option<Lent>,
}

impl Backlog {
    fn is_empty(&self) -> bool {
        self.sent == 0 && self.held.is_empty() && self.lent.is_none()
    }
}

/// One connection.
pub struct Conn<S: AsFd = OwnedFd> {
    session: Box<dyn Session>,
    /// Unsent answers, which come after those that the kernel owns.
    out: Vec<u8>,
    /// `None` if it would be empty.
    backlog: Option<Box<Backlog>>,
    state: State,
    /// Whether it failed because its sending side was shut down, as happens at the end of a drain.
    shut: bool,
    timeout_checks: TimeoutChecks,
    stats: ConnectionStats,
    // Last, so that it is closed after the row is written.
    socket: S,
}

// Two cache lines.
const _: () = assert!(size_of::<Conn>() <= 128);

impl<S: AsFd> AsFd for Conn<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<S: AsFd> Conn<S> {
    /// Starts serving an accepted client.
    pub fn open(client: Client<S>, server: &Server) -> Self {
        Self {
            session: server.session(),
            out: Vec::new(),
            backlog: None,
            state: State::Serving,
            shut: false,
            timeout_checks: TimeoutChecks::default(),
            stats: server.stats.open_connection(client.id, server.worker),
            socket: client.socket,
        }
    }

    /// Processes received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.timeout_checks.moved();
        if !matches!(self.state, State::Serving | State::Draining) {
            self.stats.received(bytes.len(), 0); // and discarded
            return;
        }
        if self.is_full() || !self.has_room() {
            self.backlog_mut().held.extend_from_slice(bytes);
            self.stats.received(bytes.len(), 0);
            return;
        }
        let requests = self.process_into_output(bytes);
        self.stats.received(bytes.len(), requests);
    }

    /// Processes input into our own output, and holds what there is no room to answer. Returns the number of requests.
    fn process_into_output(&mut self, bytes: &[u8]) -> u64 {
        let mut out = std::mem::take(&mut self.out);
        let step = self.process(bytes, &mut out);
        out.extend_from_slice(&bytes[..step.reflected]);
        self.out = out;
        step.requests
    }

    /// Lets the session answer, and applies the effect on the connection. Holds the input that the session did not
    /// consume.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call costs one in ten of a turn's instructions"
    )]
    fn process(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Step {
        match self.session.receive(bytes, out) {
            Ok(step) if step.close != Close::No => {
                let more_comes = step.close == Close::WhileClientSends;
                self.state = if more_comes || step.consumed < bytes.len() {
                    State::Parting(CloseReason::ServerClosed)
                } else {
                    State::Ending(CloseReason::ServerClosed)
                };
                step
            }
            Ok(step) => {
                if step.consumed < bytes.len() {
                    self.backlog_mut().held = bytes[step.consumed..].to_vec();
                }
                step
            }
            Err(_) => {
                // If the connection closed immediately, a reply with the reason could be lost to a reset.
                self.state = if out.is_empty() {
                    State::Ending(CloseReason::ProtocolError)
                } else {
                    State::Parting(CloseReason::ProtocolError)
                };
                Step::default()
            }
        }
    }

    /// Called when the client will send no more.
    pub fn finish(&mut self) {
        match self.state {
            State::Serving => self.state = State::Ending(CloseReason::ClientClosed),
            State::Draining => self.state = State::Ending(CloseReason::Drained),
            State::Parting(reason) | State::Lingering(reason) => {
                self.state = State::Ending(reason);
            }
            State::Ending(_) => {}
        }
    }

    /// The answers that were not sent yet.
    pub fn pending(&self) -> &[u8] {
        &self.out[self.sent()..]
    }

    /// The socket, and the answers that were not sent yet.
    pub fn parts(&mut self) -> (&mut S, &[u8]) {
        let sent = self.sent();
        (&mut self.socket, &self.out[sent..])
    }

    /// Records that `count` of the pending bytes were sent.
    pub fn advance(&mut self, count: usize) {
        self.timeout_checks.moved();
        self.stats.sent(count);
        let sent = self.sent() + count;
        if sent == self.out.len() {
            self.out.clear();
            self.change_backlog(|backlog| backlog.sent = 0);
        } else {
            self.backlog_mut().sent = sent;
        }
    }

    /// Called when the peer is gone, or the connection failed.
    pub fn broken(&mut self, error: Errno) {
        self.shut = error == Errno::PIPE;
        self.out.clear();
        self.change_backlog(|backlog| {
            backlog.sent = 0;
            backlog.held.clear();
        });
        self.state = State::Ending(match self.state {
            // The client violated the protocol earlier. If a client still sends while the server stops, our own kernel
            // even resets the connection.
            State::Parting(reason @ CloseReason::ProtocolError)
            | State::Lingering(reason @ CloseReason::ProtocolError)
            | State::Ending(reason @ CloseReason::ProtocolError) => reason,
            _ => CloseReason::Reset,
        });
    }

    /// The connection can no longer be served: counts it as rejected. The caller then drops it.
    pub fn give_up(&mut self) {
        self.stats.ends(CloseReason::GivenUp);
    }

    /// The server stops: answers what has arrived, but nothing later.
    pub fn drain(&mut self) {
        if self.state == State::Serving {
            self.state = State::Draining;
        }
    }

    /// Reads, answers and writes without blocking, up to the limit per event.
    ///
    /// `to_the_end`: the client is known to have closed its side, so reading continues after a short read.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call costs one in ten of a turn's instructions"
    )]
    pub fn on_ready(&mut self, buffers: &mut WorkerBuffers, to_the_end: bool) -> Interest {
        if !self.is_caught_up() {
            return self.resume(buffers, to_the_end, 0);
        }
        // Nearly always, a request arrives in one piece and its answer leaves in one piece.
        match self.read_once(buffers, to_the_end, true) {
            Received::Everything if self.is_caught_up() => Interest::Read,
            Received::Everything => self.resume(buffers, to_the_end, READS_PER_EVENT),
            Received::Something => self.resume(buffers, to_the_end, 1),
            Received::TooMuch => Interest::Write,
        }
    }

    /// Like [`Conn::serve`], but a stop ends the connection as if the client had closed its side. If the client does
    /// not receive its last answers during the drain, it ends as if the client had disappeared.
    ///
    /// This is for processes that serve one client at a time, and so have only one such socket.
    pub fn serve_until_stopped(mut self, server: &Server, buffers: &mut WorkerBuffers) {
        let interrupts = server.stop.interrupts(self.socket.as_fd(), server.drain);
        self.serve(server, buffers);
        drop(interrupts); // before the socket, whose number may be reused
    }

    /// Whether it is open, with nothing pending and nothing to answer.
    #[inline]
    fn is_caught_up(&self) -> bool {
        self.state == State::Serving && self.out.is_empty() && self.backlog.is_none()
    }

    fn backlog_mut(&mut self) -> &mut Backlog {
        self.backlog.get_or_insert_default()
    }

    /// Changes the backlog, if there is one.
    fn change_backlog<T: Default>(&mut self, change: impl FnOnce(&mut Backlog) -> T) -> T {
        let changed = self.backlog.as_deref_mut().map(change);
        if self.backlog.as_ref().is_some_and(|left| left.is_empty()) {
            self.backlog = None;
        }
        changed.unwrap_or_default()
    }

    /// How many bytes of `out` were sent.
    fn sent(&self) -> usize {
        self.backlog.as_ref().map_or(0, |backlog| backlog.sent)
    }

    /// Continues after `reads` reads.
    fn resume(
        &mut self,
        buffers: &mut WorkerBuffers,
        to_the_end: bool,
        mut reads: usize,
    ) -> Interest {
        let mut emptied = reads == READS_PER_EVENT;
        loop {
            match self.write_out() {
                Ok(()) => {}
                Err(Errno::AGAIN) => return Interest::Write,
                Err(error) => self.broken(error),
            }
            match self.state {
                State::Ending(reason) => {
                    self.stats.ends(reason);
                    return Interest::Close;
                }
                State::Parting(reason) => self.shut_our_side(reason),
                // Everything that arrived is answered: shut down our side and wait for the client to close.
                State::Draining if emptied => self.shut_our_side(CloseReason::Drained),
                State::Serving | State::Draining | State::Lingering(_) => {}
            }
            if emptied {
                return Interest::Read;
            }
            if reads == READS_PER_EVENT {
                return Interest::MoreRead;
            }
            reads += 1;
            let answers = matches!(self.state, State::Serving | State::Draining);
            match self.read_once(buffers, to_the_end, answers) {
                Received::Everything => emptied = true,
                Received::Something => {}
                Received::TooMuch => return Interest::Write,
            }
        }
    }

    /// Reads once, and answers or discards the bytes.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call costs one in ten of a turn's instructions"
    )]
    fn read_once(
        &mut self,
        buffers: &mut WorkerBuffers,
        to_the_end: bool,
        answers: bool,
    ) -> Received {
        match recv(&self.socket, &mut *buffers.input, RecvFlags::empty()) {
            Ok((([], _), _)) => {
                self.finish();
                Received::Something
            }
            Ok(((bytes, room), _)) => {
                if !answers {
                    self.timeout_checks.moved();
                    self.stats.received(bytes.len(), 0); // and discarded
                }
                if answers && self.answer(bytes, &mut buffers.out) == Some(Errno::AGAIN) {
                    Received::TooMuch
                } else if !room.is_empty() && !to_the_end {
                    // A short read emptied the socket: another read would only return EAGAIN.
                    Received::Everything
                } else {
                    Received::Something
                }
            }
            Err(Errno::AGAIN) => Received::Everything,
            Err(Errno::INTR) => Received::Something,
            Err(error) => {
                self.broken(error);
                Received::Something
            }
        }
    }

    /// Like [`Conn::feed`], for when nothing is pending or held. Sends answers in place, from the worker's output or
    /// even its input, and copies only the bytes that the peer does not accept. Returns the error if not everything
    /// was sent.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call costs one in ten of a turn's instructions"
    )]
    fn answer(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<Errno> {
        self.timeout_checks.moved();
        let step = self.process(bytes, out);
        let mut answers = &bytes[..step.reflected];
        if !out.is_empty() {
            out.extend_from_slice(answers);
            answers = out;
        }
        let mut sent = 0;
        let mut why_not = None;
        while sent < answers.len() && why_not.is_none() {
            match send(&self.socket, &answers[sent..], SEND_FLAGS) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(error) => why_not = Some(error),
            }
        }
        self.stats.exchanged(bytes.len(), step.requests, sent);
        match why_not {
            None => {}
            Some(Errno::AGAIN) => self.out = answers[sent..].to_vec(),
            Some(error) => self.broken(error),
        }
        if !out.is_empty() {
            out.clear();
            out.shrink_to(KEPT_OUTPUT);
        }
        why_not
    }

    /// Writes until nothing is pending, including the answers to held input.
    fn write_out(&mut self) -> Result<(), Errno> {
        loop {
            while self.sent() < self.out.len() {
                match send(&self.socket, self.pending(), SEND_FLAGS) {
                    Ok(count) => self.advance(count),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            self.out = Vec::new(); // an idle connection holds no buffer
            if !self.is_full() {
                return Ok(());
            }
            self.process_held();
        }
    }

    /// Answers held input, if there is room for answers again.
    #[inline]
    fn process_held(&mut self) {
        if self.is_full() && self.out.is_empty() && self.has_room() {
            let held = self.change_backlog(|backlog| std::mem::take(&mut backlog.held));
            let requests = self.process_into_output(&held);
            self.stats.received(0, requests);
        }
    }

    /// Shuts down our side, and discards further input.
    fn shut_our_side(&mut self, reason: CloseReason) {
        let _ = shutdown(&self.socket, Shutdown::Write);
        self.state = State::Lingering(reason);
    }
}
