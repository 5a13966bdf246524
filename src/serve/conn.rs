//! One connection: the only bridge between a model and a protocol.
//!
//! [`Conn`] moves bytes between the session and whoever moves them over the wire: a model that
//! waits for readiness calls [`Conn::turn`], one that blocks calls [`Conn::serve`].
//!
//! An idle connection owns no buffer. Bytes are read into, and answers written from, a
//! [`Scratch`] of the worker that handles it; only what the peer does not take at once stays with
//! the connection, and then nothing more is read from it until it left: a peer that does not
//! read is not read from, and memory stays bounded by [`crate::protocol::OUTPUT_LIMIT`].

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::Server;
use super::counters::{Line, Outcome};
use super::listen::Client;
use crate::protocol::{OUTPUT_LIMIT, Session};
use crate::sys::signal::Stop;

/// Bytes read at once by a worker that serves many clients.
const INPUT_BYTES: usize = 256 * 1024;
/// Bytes read at once by a worker that serves one; small enough for the heap of thousands.
const SINGLE_INPUT_BYTES: usize = 64 * 1024;
/// Full buffers read from one connection before it is another's turn.
const READS_A_TURN: usize = 4;
/// Output room a worker keeps between connections.
const KEPT_OUTPUT: usize = 2 * OUTPUT_LIMIT;

/// The buffers of one worker, lent to the connection it is handling.
///
/// The room to read into is never cleared, so that only what is really used takes memory.
#[derive(Debug)]
pub struct Scratch {
    input: Box<[MaybeUninit<u8>]>,
    out: Vec<u8>,
}

impl Scratch {
    /// For a worker that serves many clients in turn.
    pub fn for_many() -> Self {
        Self::with(INPUT_BYTES)
    }

    /// For a worker that serves one client at a time and may itself be one of thousands.
    pub fn for_one() -> Self {
        Self::with(SINGLE_INPUT_BYTES)
    }

    fn with(input_bytes: usize) -> Self {
        Self {
            input: Box::new_uninit_slice(input_bytes),
            out: Vec::new(),
        }
    }
}

/// What a connection waits for after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Bytes from the client; there were none left a moment ago.
    Read,
    /// Bytes from the client; there may be more already.
    MoreRead,
    /// Room to write.
    Write,
    /// Nothing: drop it.
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Reading requests and answering.
    Serving,
    /// Nothing more is answered; what is pending leaves, then the connection ends like this.
    Ending(Outcome),
    /// The server stops: what is pending leaves, then our side is shut.
    Draining,
    /// Our side is shut; what the client still sends is thrown away until it closes too.
    Lingering,
}

/// One connection.
pub struct Conn<S: AsFd = OwnedFd> {
    session: Box<dyn Session>,
    /// Answers, of which `sent` bytes have left.
    out: Vec<u8>,
    sent: usize,
    /// Input the session had no room to answer yet.
    held: Vec<u8>,
    state: State,
    line: Line,
    // Last, so that it is closed when the line has been written.
    socket: S,
}

impl<S: AsFd> AsFd for Conn<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<S: AsFd> Conn<S> {
    /// Begins to serve an accepted client.
    pub fn open(client: Client<S>, server: &Server) -> Self {
        Self {
            session: server.session(),
            out: Vec::new(),
            sent: 0,
            held: Vec::new(),
            state: State::Serving,
            line: server.book.enter(client.peer),
            socket: client.socket,
        }
    }

    /// Takes bytes that arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        if !matches!(self.state, State::Serving | State::Draining) {
            return;
        }
        if !self.held.is_empty() {
            self.held.extend_from_slice(bytes);
            self.line.received(bytes.len(), 0);
            return;
        }
        let (consumed, requests) = self.digest(bytes);
        self.line.received(bytes.len(), requests);
        if consumed < bytes.len() {
            self.held = bytes[consumed..].to_vec();
        }
    }

    fn digest(&mut self, bytes: &[u8]) -> (usize, u64) {
        match self.session.receive(bytes, &mut self.out) {
            Ok(step) if step.close => {
                self.state = State::Ending(Outcome::ServerClosed);
                (bytes.len(), step.requests)
            }
            Ok(step) => (step.consumed, step.requests),
            Err(_) => {
                self.state = State::Ending(Outcome::ProtocolError);
                (bytes.len(), 0)
            }
        }
    }

    /// The client will send no more.
    pub fn finish(&mut self) {
        match self.state {
            State::Serving => self.state = State::Ending(Outcome::ClientClosed),
            State::Draining | State::Lingering => self.state = State::Ending(Outcome::Drained),
            State::Ending(_) => {}
        }
    }

    /// Answers that have not left yet.
    pub fn pending(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// So many of the pending bytes have left.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        self.line.sent(count);
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }

    /// The peer is gone, or the connection broke.
    pub fn broken(&mut self) {
        self.out.clear();
        self.sent = 0;
        self.held.clear();
        self.state = State::Ending(Outcome::Reset);
    }

    /// The server stops: answer what has arrived, nothing that comes later.
    pub fn drain(&mut self) {
        if self.state == State::Serving {
            self.state = State::Draining;
        }
    }

    /// Reads, answers and writes without waiting, for a bounded while.
    ///
    /// `to_the_end`: the client is known to have closed its side, so read on after a short read.
    pub fn turn(&mut self, scratch: &mut Scratch, to_the_end: bool) -> Wants {
        if self.out.capacity() == 0 {
            std::mem::swap(&mut self.out, &mut scratch.out);
        }
        let wants = self.exchange(&mut scratch.input, to_the_end);
        if self.out.is_empty() {
            let emptied = std::mem::take(&mut self.out);
            if scratch.out.capacity() == 0 && emptied.capacity() <= KEPT_OUTPUT {
                scratch.out = emptied;
            }
        }
        if let (Wants::Close, State::Ending(outcome)) = (wants, self.state) {
            self.line.ends(outcome);
        }
        wants
    }

    /// Reads, answers and writes on a blocking socket until the connection ends. Whoever wants to
    /// stop earlier shuts the socket for reading, and in the end for writing.
    pub fn serve(&mut self, stop: Stop, scratch: &mut Scratch) {
        while self.turn(scratch, true) != Wants::Close {}
        if stop.requested() {
            match self.state {
                State::Ending(Outcome::ClientClosed) => self.line.ends(Outcome::Drained),
                State::Ending(Outcome::Reset) => self.line.ends(Outcome::Cut),
                _ => {}
            }
        }
    }

    /// As [`Conn::serve`]; a wish to stop ends it as if the client had closed its side, and if the
    /// client does not take its last answers within `grace`, as if it had gone.
    ///
    /// For processes that serve one client at a time: there is one such socket in a process.
    pub fn serve_until_stopped(mut self, stop: Stop, grace: Duration, scratch: &mut Scratch) {
        let interrupts = stop.interrupts(self.socket.as_fd(), grace);
        self.serve(stop, scratch);
        drop(interrupts); // before the socket, whose number may be used again
    }

    fn exchange(&mut self, input: &mut [MaybeUninit<u8>], to_the_end: bool) -> Wants {
        let mut reads = 0;
        let mut emptied = false;
        loop {
            match self.write_out() {
                Ok(()) => {}
                Err(Errno::AGAIN) => return Wants::Write,
                Err(_) => self.broken(),
            }
            if let State::Ending(_) = self.state {
                return Wants::Close;
            }
            if emptied {
                if self.state == State::Draining {
                    // All that arrived is answered: say so, and wait for the client's goodbye.
                    let _ = shutdown(&self.socket, Shutdown::Write);
                    self.state = State::Lingering;
                }
                return Wants::Read;
            }
            if reads == READS_A_TURN {
                return Wants::MoreRead;
            }
            reads += 1;
            match recv(&self.socket, &mut *input, RecvFlags::empty()) {
                Ok((([], _), _)) => self.finish(),
                Ok(((bytes, room), _)) => {
                    // A short read emptied the socket: asking again would only give EAGAIN.
                    emptied = !room.is_empty() && !to_the_end;
                    self.feed(bytes);
                }
                Err(Errno::AGAIN) => emptied = true,
                Err(Errno::INTR) => {}
                Err(_) => self.broken(),
            }
        }
    }

    /// Writes until nothing is pending, held input included.
    fn write_out(&mut self) -> Result<(), Errno> {
        loop {
            while self.sent < self.out.len() {
                match send(&self.socket, self.pending(), SendFlags::NOSIGNAL) {
                    Ok(count) => self.advance(count),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            if self.held.is_empty() {
                return Ok(());
            }
            let held = std::mem::take(&mut self.held);
            let (consumed, requests) = self.digest(&held);
            self.line.received(0, requests);
            if consumed < held.len() {
                self.held = held[consumed..].to_vec();
            }
        }
    }
}
