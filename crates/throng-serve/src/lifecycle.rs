//! The end of a server: no new clients, last answers out, then gone, within a stated time.

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
use super::conn::Patience;
use super::listen::Client;
use throng_sys::signal::Stop;

/// The time that clients have to take their last answers.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    until: Instant,
}

impl Drain {
    /// Starts it.
    pub fn new(grace: Duration) -> Self {
        Self {
            until: Instant::now() + grace,
        }
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether nothing is left.
    pub fn over(&self) -> bool {
        self.left().is_zero()
    }
}

/// What a loop over many connections has to look at beside their sockets: the wish to stop, the
/// end of the drain, and clients that take too long.
#[derive(Debug)]
pub struct Lifecycle {
    stop: Stop,
    grace: Duration,
    drain: Option<Drain>,
    looks: Option<Looks>,
}

/// When to look for connections that take too long.
#[derive(Debug)]
struct Looks {
    patience: Patience,
    every: Duration,
    next: Instant,
}

impl Lifecycle {
    /// Begins.
    pub fn new(server: &Server) -> Self {
        let looks = Patience::of(server).map(|(patience, every)| Looks {
            patience,
            every,
            next: Instant::now() + every,
        });
        Self {
            stop: server.stop,
            grace: server.drain,
            drain: None,
            looks,
        }
    }

    /// Whether the loop goes on: until it drains and has no connection left, or no time.
    pub fn keep_running(&self, no_connection: bool) -> bool {
        self.drain
            .is_none_or(|drain| !no_connection && !drain.over())
    }

    /// Whether it has been asked to stop: nobody is accepted any more.
    pub fn draining(&self) -> bool {
        self.drain.is_some()
    }

    /// How long the loop may wait: until something happens, or something is to be looked at.
    ///
    /// Rounded up to whole milliseconds, the unit of poll(2) and epoll(7), or the loop would spin
    /// through the last one.
    pub fn wait_limit(&self) -> Option<Duration> {
        let drain = self.drain.map(|drain| drain.left());
        let look = self
            .looks
            .as_ref()
            .map(|looks| looks.next.saturating_duration_since(Instant::now()));
        let nearest = match (drain, look) {
            (Some(drain), Some(look)) => Some(drain.min(look)),
            (drain, look) => drain.or(look),
        };
        nearest.map(|limit| Duration::from_millis(limit.as_millis() as u64 + 1))
    }

    /// Whether it is time to begin the drain; true once.
    pub fn should_begin_drain(&mut self) -> bool {
        let begins = self.drain.is_none() && self.stop.requested();
        if begins {
            self.drain = Some(Drain::new(self.grace));
        }
        begins
    }

    /// When it is time to ask each connection if it [is overdue](super::conn::Conn::is_overdue): how many
    /// looks each is given.
    pub fn look_due(&mut self) -> Option<Patience> {
        let looks = self.looks.as_mut()?;
        let time = Instant::now();
        let due = time >= looks.next;
        if due {
            looks.next = time + looks.every;
        }
        due.then_some(looks.patience)
    }
}

/// Why [`wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// It is time to stop.
    Stop,
    /// The descriptor at this place can be read.
    Ready(usize),
}

/// Waits until it is time to stop or one of `fds` can be read; the first of several is named.
///
/// For the threads and processes that accept and do nothing else.
///
/// # Errors
/// As poll(2) gives them, EINTR apart.
pub fn wait(stop: Stop, fds: &[BorrowedFd<'_>]) -> io::Result<Waited> {
    let stop_fd = stop.fd();
    let mut set: Vec<PollFd<'_>> = fds
        .iter()
        .chain(std::iter::once(&stop_fd))
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    loop {
        match poll(&mut set, None) {
            Ok(_) | Err(Errno::INTR) if stop.requested() => return Ok(Waited::Stop),
            Ok(_) => {
                if let Some(index) = set.iter().position(|fd| !fd.revents().is_empty()) {
                    return Ok(Waited::Ready(index));
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The most threads that may serve clients at a time. A new thread has its stack and a stack for signals, each
/// with a guard page: four memory mappings. Where the system bounds these, it is the second stack that
/// finds none left, in a thread that runs already, and then the runtime aborts the whole process. So no
/// thread is started close to that bound; what is left below it is for the program itself, its heap
/// and the stacks of threads that have just ended.
pub fn most_threads() -> usize {
    const MAPPINGS_A_THREAD: usize = 4;
    let fit = |most: usize| (most - most / 64) / MAPPINGS_A_THREAD;
    most_mappings().map_or(usize::MAX, fit)
}

/// Memory mappings that a process may have, where that is bounded.
fn most_mappings() -> Option<usize> {
    if cfg!(target_os = "linux") {
        let text = fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
        text.trim().parse().ok()
    } else {
        None
    }
}

/// The sockets on which threads of this process are blocked, so that they can be woken to stop.
#[derive(Debug, Default)]
pub struct Blocked {
    sockets: Mutex<Sockets>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Sockets {
    next: u64,
    open: HashMap<u64, Arc<OwnedFd>>,
}

impl Blocked {
    /// Registers a client; the pass is to be dropped after its connection, or the server may end
    /// before the connection's line is written.
    pub fn enter(self: &Arc<Self>, client: Client) -> (Client<Arc<OwnedFd>>, Pass) {
        let socket = Arc::new(client.socket);
        let mut sockets = self.lock();
        let number = sockets.next;
        sockets.next += 1;
        sockets.open.insert(number, Arc::clone(&socket));
        let client = Client {
            socket,
            id: client.id,
        };
        let pass = Pass {
            blocked: Arc::clone(self),
            number,
        };
        (client, pass)
    }

    /// Ends reading on every socket, so that each thread answers what arrived and ends; when the
    /// drain is over, ends writing too; returns when all have left, or a second after that.
    pub fn shut_down(&self, drain: Drain) {
        self.shut(Shutdown::Read);
        self.wait_empty(drain.left());
        self.shut(Shutdown::Both);
        self.wait_empty(Duration::from_secs(1));
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().open.len()
    }

    fn shut(&self, how: Shutdown) {
        for socket in self.lock().open.values() {
            let _ = shutdown(socket, how);
        }
    }

    fn wait_empty(&self, limit: Duration) {
        let sockets = self.lock();
        let some_left = |sockets: &mut Sockets| !sockets.open.is_empty();
        let _ = self.left.wait_timeout_while(sockets, limit, some_left);
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Blocked::enter`].
#[derive(Debug)]
pub struct Pass {
    blocked: Arc<Blocked>,
    number: u64,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let socket = self.blocked.lock().open.remove(&self.number);
        drop(socket); // closed here, outside the lock
        self.blocked.left.notify_all();
    }
}
