//! One client of the model `aio`, with its pending operation.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use crate::Server;
use crate::close_reason::Refusal;
use crate::conn::{Conn, Interest};
use crate::listen::Client;
use crate::tuning::Completion;
use throng_sys::aio::{AioResult, Notice, Operation};

/// Buffer size of a pending read: with its hidden thread, this is the cost of an idle client.
const LEAST_ROOM: usize = 4 * 1024;
/// Buffer size of a read after full ones, as in the other models.
const MOST_ROOM: usize = 256 * 1024;
/// After this many consecutive checks without a thread for an operation, and without room for one, its client is
/// rejected: glibc silently queues the operation if it can start no thread.
const CHECKS_WITHOUT_THREAD: u32 = 10;

/// The result of checking a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its operation is pending.
    Running,
    /// Its operation ended and the next is pending.
    Next,
    /// It has no more operations: drop it.
    Over,
}

/// A connected client.
pub(super) struct AioClient {
    pub(super) conn: Conn<Arc<OwnedFd>>,
    operation: Operation,
    /// Whether the pending operation is a read rather than a write.
    reading: bool,
    /// The buffer for the next read, kept during a write.
    room: Vec<u8>,
    /// Whether to drop the client as soon as its operation ends.
    leaving: bool,
    /// Consecutive checks in which no thread had begun its operation and none could be started.
    checks_without_thread: u32,
}

impl AioClient {
    /// Begins the first read; `None` if the system accepts no more operations.
    pub(super) fn begin(client: Client, server: &Server) -> Option<Self> {
        let notice = match server.tuning.aio_completion {
            Completion::Poll | Completion::Busy => Notice::None,
            Completion::Signal => Notice::Signal,
            Completion::Thread => Notice::Thread,
        };
        let socket = Arc::new(client.socket);
        let token = socket.as_raw_fd() as u32;
        let mut operation = Operation::new(Arc::clone(&socket), notice, token);
        if operation.read(Vec::with_capacity(LEAST_ROOM)).is_err() {
            server.stats.give_up(client.id, Refusal::Pool);
            return None;
        }
        let client = Client {
            socket,
            id: client.id,
        };
        Some(Self {
            conn: Conn::open(client, server),
            operation,
            reading: true,
            room: Vec::new(),
            leaving: false,
            checks_without_thread: 0,
        })
    }

    /// If the operation ended, processes its result and begins the next one.
    pub(super) fn on_ready(&mut self) -> Progress {
        let Some(ended) = self.operation.ended() else {
            return Progress::Running;
        };
        if self.leaving {
            return Progress::Over;
        }
        self.checks_without_thread = 0;
        if self.reading {
            self.complete_read(ended);
        } else {
            self.written(ended);
        }
        self.begin_next()
    }

    /// If no thread has begun the operation, submits it again, so that the C library tries once more to start one.
    /// Gives up after some checks in which the system had no thread left (`none_left`).
    pub(super) fn try_again(&mut self, none_left: bool) -> Progress {
        if !self.operation.cancel() {
            return Progress::Running;
        }
        let Some((_, buffer)) = self.operation.ended() else {
            return Progress::Running;
        };
        self.checks_without_thread += u32::from(none_left);
        if self.leaving || self.checks_without_thread > CHECKS_WITHOUT_THREAD {
            return Progress::Over;
        }
        let begun = if self.reading {
            self.operation.read(buffer)
        } else {
            self.operation.write(buffer)
        };
        begun.map_or(Progress::Over, |()| Progress::Next)
    }

    fn complete_read(&mut self, (reason, buffer): AioResult) {
        match reason {
            Ok(0) => self.conn.finish(),
            Ok(_) => self.conn.feed(&buffer),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => self.conn.broken(error),
        }
        // Bulk transfers need few large reads, and idle clients should cost little.
        self.room = match (buffer.len(), buffer.capacity()) {
            (count, room) if count == room && room < MOST_ROOM => Vec::with_capacity(2 * room),
            (count, room) if count < room / 4 && room > LEAST_ROOM => Vec::with_capacity(room / 2),
            _ => buffer,
        };
    }

    fn written(&mut self, (reason, buffer): AioResult) {
        self.conn.reclaim(buffer, reason.unwrap_or(0));
        match reason {
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => self.conn.broken(error),
        }
    }

    fn begin_next(&mut self) -> Progress {
        let begun = match self.conn.next_interest() {
            Interest::Close => return Progress::Over,
            Interest::Read | Interest::MoreRead => {
                self.reading = true;
                self.operation.read(std::mem::take(&mut self.room))
            }
            Interest::Write => {
                self.reading = false;
                let answers = self.conn.lend();
                self.operation.write(answers.unwrap_or_default())
            }
        };
        match begun {
            Ok(()) => Progress::Next,
            // The system accepts no more operations: this client can no longer be served.
            Err(_) => Progress::Over,
        }
    }

    /// Cancels the operation. The client is dropped when it ends.
    pub(super) fn cancel(&mut self) {
        self.leaving = true;
        let _ = shutdown(&self.conn, Shutdown::Both);
    }
}
