//! Shutdown: accept no new clients, send the last answers, then end, all within a time limit.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::Server;
use super::conn::Timeouts;
use super::listen::Client;
use throng_sys::signal::Stop;

/// The time limit for clients to receive their last answers.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    until: Instant,
}

impl Drain {
    /// Starts the time limit.
    pub fn new(grace: Duration) -> Self {
        Self {
            until: Instant::now() + grace,
        }
    }

    /// The remaining time.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether the time is up.
    pub fn over(&self) -> bool {
        self.left().is_zero()
    }
}

/// What a loop over many connections checks apart from their sockets: the request to stop, the end of the drain, and
/// timeouts.
#[derive(Debug)]
pub struct Lifecycle {
    stop: Stop,
    grace: Duration,
    drain: Option<Drain>,
    timer: Option<CheckTimer>,
}

/// When to check timeouts.
#[derive(Debug)]
struct CheckTimer {
    timeouts: Timeouts,
    every: Duration,
    next: Instant,
}

impl Lifecycle {
    /// Starts without a drain.
    pub fn new(server: &Server) -> Self {
        let looks = Timeouts::of(server).map(|(timeouts, every)| CheckTimer {
            timeouts,
            every,
            next: Instant::now() + every,
        });
        Self {
            stop: server.stop,
            grace: server.drain,
            drain: None,
            timer: looks,
        }
    }

    /// Whether the loop continues. It ends when it drains and has no connections or no time left.
    pub fn keep_running(&self, no_connection: bool) -> bool {
        self.drain
            .is_none_or(|drain| !no_connection && !drain.over())
    }

    /// Whether the server is stopping: no more clients are accepted.
    pub fn draining(&self) -> bool {
        self.drain.is_some()
    }

    /// Maximum time that the loop may wait for events before the next check.
    ///
    /// Rounded up to whole milliseconds, the unit of poll(2) and epoll(7). Otherwise the loop would spin through the
    /// last millisecond.
    pub fn wait_limit(&self) -> Option<Duration> {
        let drain = self.drain.map(|drain| drain.left());
        let look = self
            .timer
            .as_ref()
            .map(|looks| looks.next.saturating_duration_since(Instant::now()));
        let nearest = match (drain, look) {
            (Some(drain), Some(look)) => Some(drain.min(look)),
            (drain, look) => drain.or(look),
        };
        nearest.map(|limit| Duration::from_millis(limit.as_millis() as u64 + 1))
    }

    /// Whether it is time to begin the drain. Returns true only once.
    pub fn should_begin_drain(&mut self) -> bool {
        let begins = self.drain.is_none() && self.stop.requested();
        if begins {
            self.drain = Some(Drain::new(self.grace));
        }
        begins
    }

    /// If a check is due, returns the timeouts with which to ask each connection whether it is overdue: see
    /// [`Conn::is_overdue`](super::conn::Conn::is_overdue).
    pub fn due_check(&mut self) -> Option<Timeouts> {
        let looks = self.timer.as_mut()?;
        let time = Instant::now();
        let due = time >= looks.next;
        if due {
            looks.next = time + looks.every;
        }
        due.then_some(looks.timeouts)
    }
}

/// Why [`wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// A stop was requested.
    Stop,
    /// The file descriptor at this index is readable.
    Ready(usize),
}

/// Waits for a stop, or until one of `fds` is readable. If several are, returns the first.
///
/// This is for threads and processes that only accept.
///
/// # Errors
/// Those of poll(2), except EINTR.
pub fn wait(stop: Stop, fds: &[BorrowedFd<'_>]) -> io::Result<WaitEnd> {
    let stop_fd = stop.fd();
    let mut set: Vec<PollFd<'_>> = fds
        .iter()
        .chain(std::iter::once(&stop_fd))
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    loop {
        match poll(&mut set, None) {
            Ok(_) | Err(Errno::INTR) if stop.requested() => return Ok(WaitEnd::Stop),
            Ok(_) => {
                if let Some(index) = set.iter().position(|fd| !fd.revents().is_empty()) {
                    return Ok(WaitEnd::Ready(index));
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Maximum number of threads that serve clients. A new thread has a stack and a signal stack, each with a guard page:
/// four memory mappings. At the system's limit of mappings, allocating the signal stack fails in the new thread, which
/// then aborts the whole process. So no thread is started close to that limit. The rest is reserved for the program
/// itself, its heap and the stacks of threads that have just ended.
pub fn most_threads() -> usize {
    const MAPPINGS_PER_THREAD: usize = 4;
    let fit = |most: usize| (most - most / 64) / MAPPINGS_PER_THREAD;
    most_mappings().map_or(usize::MAX, fit)
}

/// Maximum number of memory mappings per process, if there is a limit.
fn most_mappings() -> Option<usize> {
    if cfg!(target_os = "linux") {
        let text = fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
        text.trim().parse().ok()
    } else {
        None
    }
}

/// The sockets on which threads of this process block, to wake them at a stop.
#[derive(Debug, Default)]
pub struct BlockedSockets {
    sockets: Mutex<Sockets>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Sockets {
    next: u64,
    open: HashMap<u64, Arc<OwnedFd>>,
}

impl BlockedSockets {
    /// Registers a client. Drop the guard after the connection, or the server may exit before the connection's row is
    /// written.
    pub fn enter(self: &Arc<Self>, client: Client) -> (Client<Arc<OwnedFd>>, BlockedGuard) {
        let socket = Arc::new(client.socket);
        let mut sockets = self.lock();
        let number = sockets.next;
        sockets.next += 1;
        sockets.open.insert(number, Arc::clone(&socket));
        let client = Client {
            socket,
            id: client.id,
        };
        let pass = BlockedGuard {
            blocked: Arc::clone(self),
            number,
        };
        (client, pass)
    }

    /// Shuts down all sockets for reading, so that each thread answers what has arrived and ends. After the drain,
    /// shuts them down for writing too. Returns when all threads have ended, at most one second later.
    pub fn shut_down(&self, drain: Drain) {
        self.shut_down_all(Shutdown::Read);
        self.wait_empty(drain.left());
        self.shut_down_all(Shutdown::Both);
        self.wait_empty(Duration::from_secs(1));
    }

    /// Number of registered sockets.
    pub fn count(&self) -> usize {
        self.lock().open.len()
    }

    fn shut_down_all(&self, how: Shutdown) {
        for socket in self.lock().open.values() {
            let _ = shutdown(socket, how);
        }
    }

    fn wait_empty(&self, limit: Duration) {
        let sockets = self.lock();
        let some_left = |left: &mut Sockets| !left.open.is_empty();
        let _ = self.left.wait_timeout_while(sockets, limit, some_left);
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of a socket; see [`BlockedSockets::enter`].
#[derive(Debug)]
pub struct BlockedGuard {
    blocked: Arc<BlockedSockets>,
    number: u64,
}

impl Drop for BlockedGuard {
    fn drop(&mut self) {
        let socket = self.blocked.lock().open.remove(&self.number);
        drop(socket); // closed here, outside the lock
        self.blocked.left.notify_all();
    }
}
