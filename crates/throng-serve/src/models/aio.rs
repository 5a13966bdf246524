//! One thread that submits each read and write to POSIX aio, and is notified of their completion.

mod client;

use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::net::{Shutdown, shutdown};

use crate::close_reason::Refusal;
use crate::lifecycle::{Drain, Lifecycle};
use crate::listen::{Mode, ceiling};
use crate::table::Table;
use crate::tuning::Completion;
use crate::{Card, Model, Server, WorkerLayout};
use client::{AioClient, Progress};
use throng_spec::registry::{Info, Unsupported};
use throng_sys::aio;
use throng_sys::completion_pipe::CompletionPipe;
use throng_sys::poll::{PollEntry, poll};
use throng_sys::process;

/// The model `aio`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "aio",
        summary: "POSIX asynchronous reads and writes, one per client",
    },
    card: Card {
        idea: "Each connection has one pending read or write, started with aio_read() or \
               aio_write(). A thread of the C library carries it out with a blocking call. The \
               main thread learns of its end from a signal, from a callback in another thread, or \
               by asking aio_error() (--aio-completion), and starts the next one.",
        waits_in: "poll() for clients, and for the pipe into which the signal handler or the \
                   callback writes; with aio_error(), poll() for at most 1 ms if nothing has \
                   ended, or nothing (busy); read() in each hidden thread",
        system_calls: "pread and pwrite that fail (a socket has no offset), read and write, a \
                       signal or a new thread, its message through the pipe, futex calls and two \
                       context switches",
        processes: "1 process, 1 thread and a hidden one per pending read or write",
        good_at: "files; on sockets only if the kernel itself carries out operations",
        breaks_when: "there are thousands of threads, or earlier: a new operation walks the list \
                      of all under one lock",
        source: "aio(7); Stevens, UNP vol. 1, 3rd ed., section 6.2 (asynchronous I/O model); POSIX.1, \
                 aio_read, sigevent",
        limit: "it serves as many clients as the C library may have threads (--aio-threads; glibc's \
                own default is 20)",
        waits: false,
        page: page!("aio"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &["aio-completion", "aio-threads", "aio-queue"],
    supported,
    run,
};

/// Pause between two rounds of polling if no operation had ended.
const POLL_PAUSE: Duration = Duration::from_millis(1);
/// Interval at which all operations are checked in addition to notifications: a signal is lost if the signal queue is
/// full, and a callback is lost if no thread can be started.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

fn supported() -> Result<(), Unsupported> {
    if aio::WORKS_ON_SOCKETS {
        return Ok(());
    }
    Err(Unsupported {
        reason: "aio_read() is not known to work on sockets here".to_owned(),
        remedy: "use Linux, FreeBSD or illumos, or the model poll".to_owned(),
    })
}

fn run(server: Server) -> anyhow::Result<()> {
    aio::set_pool_size(server.tuning.aio_threads);
    let completions = CompletionPipe::open().context("cannot create the completion pipe")?;
    Loop {
        server: &server,
        entries: [
            PollEntry::reading(&completions),
            PollEntry::reading(server.listener),
            PollEntry::reading(server.stop.fd()),
        ],
        completions,
        clients: Table::default(),
        open: 0,
        checked_at: Instant::now(),
        too_few_threads: 0,
        lifecycle: Lifecycle::new(&server),
    }
    .run()
}

/// After this many checks in a row that find too few threads, all operations are submitted again, even if threads can
/// be started. On busy CPUs the C library takes this long to start a thread for an operation that it has queued.
const CHECKS_WITH_FEW_THREADS: u32 = 10;
/// Stack size of the thread that shows whether one can be started; that thread does nothing.
const LEAST_STACK: usize = 16 * 1024;

/// The index of the listening socket in the array of poll().
const LISTENER: usize = 1;

struct Loop<'a> {
    server: &'a Server,
    entries: [PollEntry; 3],
    completions: CompletionPipe,
    clients: Table<AioClient>,
    /// Number of clients in the table.
    open: usize,
    /// When all operations were last checked.
    checked_at: Instant,
    /// Number of checks in a row that found fewer threads than clients.
    too_few_threads: u32,
    lifecycle: Lifecycle,
}

/// Whether the system has room for another thread.
fn can_start_thread() -> bool {
    let thread = std::thread::Builder::new().stack_size(LEAST_STACK);
    thread.spawn(|| ()).is_ok()
}

impl Loop<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        let mut ended = 0;
        while self.lifecycle.keep_running(self.open == 0) {
            self.wait(ended)?;
            ended = self.serve();
            self.check_all();
            if !self.lifecycle.draining() && self.entries[LISTENER].is_ready() {
                self.accept();
            }
            if let Some(timeouts) = self.lifecycle.due_check() {
                self.leave_overdue(timeouts);
            }
            if self.lifecycle.should_begin_drain() {
                self.begin_drain();
            }
        }
        self.end()
    }

    /// Waits for clients, for operations to end, and for a stop. `ended` is the number of operations that had ended in
    /// the last round.
    fn wait(&mut self, ended: usize) -> anyhow::Result<()> {
        let rest = match self.server.tuning.aio_completion {
            _ if self.open == 0 => None,
            Completion::Signal | Completion::Thread => Some(CHECK_INTERVAL),
            // An attempt to yield the CPU first cost a third of the throughput per CPU with 100 clients or more, since
            // fewer operations end between two rounds.
            Completion::Poll if ended == 0 => Some(POLL_PAUSE),
            Completion::Poll => Some(Duration::ZERO),
            Completion::Busy => {
                // The threads that perform the operations may need this CPU.
                std::thread::yield_now();
                Some(Duration::ZERO)
            }
        };
        let limit = match (self.lifecycle.wait_limit(), rest) {
            (Some(limit), Some(rest)) => Some(limit.min(rest)),
            (limit, rest) => limit.or(rest),
        };
        // While draining, no clients are accepted and the stop is already known.
        let until = if self.lifecycle.draining() {
            LISTENER
        } else {
            self.entries.len()
        };
        match poll(&mut self.entries[..until], limit) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                Err(anyhow::Error::from(error).context("poll failed"))
            }
            Err(_) => {
                self.entries.iter_mut().for_each(PollEntry::clear);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Continues with every client whose operation ended. Returns how many there were.
    fn serve(&mut self) -> usize {
        let asks = matches!(
            self.server.tuning.aio_completion,
            Completion::Poll | Completion::Busy
        );
        if asks {
            return self.poll_all();
        }
        let mut ended = 0;
        let (clients, open) = (&mut self.clients, &mut self.open);
        // This also runs if poll() was interrupted: usually by the signal that wrote to the pipe.
        let missed = self.completions.drain(|fd| {
            let Some(client) = clients.get_mut(fd as i32) else {
                return;
            };
            let progress = client.on_ready();
            ended += usize::from(progress != Progress::Running);
            if progress == Progress::Over {
                clients.remove(fd as i32);
                *open -= 1;
            }
        });
        if missed {
            ended += self.poll_all();
        }
        ended
    }

    /// Finds operations that ended without a notification, and clients that wait for a thread that cannot be started.
    fn check_all(&mut self) {
        if self.open == 0 || self.checked_at.elapsed() < CHECK_INTERVAL {
            return;
        }
        self.checked_at = Instant::now();
        self.poll_all();
        // One thread is the main thread, which performs no operation.
        let enough = process::threads().is_none_or(|threads| threads > self.open);
        if enough || !aio::HAS_POOL || self.server.tuning.aio_queue {
            self.too_few_threads = 0;
            return;
        }
        self.too_few_threads += 1;
        // The thread that shows whether there is room briefly takes that room itself, so the two are done at different
        // times.
        let tries_again = self.too_few_threads.is_multiple_of(CHECKS_WITH_FEW_THREADS);
        let none_left = !tries_again && !can_start_thread();
        if !tries_again && !none_left {
            return;
        }
        let (counters, open) = (self.server.stats, &mut self.open);
        self.clients.retain(|client| {
            let stays = client.try_again(none_left) != Progress::Over;
            if !stays {
                *open -= 1;
                client.conn.give_up();
                counters.refused(Refusal::Threads);
            }
            stays
        });
    }

    fn poll_all(&mut self) -> usize {
        let mut ended = 0;
        let open = &mut self.open;
        self.clients.retain(|client| {
            let progress = client.on_ready();
            ended += usize::from(progress != Progress::Running);
            *open -= usize::from(progress == Progress::Over);
            progress != Progress::Over
        });
        ended
    }

    fn accept(&mut self) {
        let server = self.server;
        let queues = server.tuning.aio_queue;
        if !queues && self.open > server.tuning.aio_threads.min(ceiling() as usize) / 2 {
            // The hidden threads need time to find out which clients are gone.
            std::thread::sleep(POLL_PAUSE);
            self.serve();
        }
        for client in server.listener.arrivals(server.stats, Mode::Blocking) {
            if !queues && self.open >= server.tuning.aio_threads {
                server.stats.give_up(client.id, Refusal::Pool);
                continue;
            }
            let fd = client.socket.as_raw_fd();
            if let Some(client) = AioClient::begin(client, server) {
                self.clients.insert(fd, client);
                self.open += 1;
            }
        }
    }

    fn leave_overdue(&mut self, timeouts: crate::conn::Timeouts) {
        for fd in self.clients.descriptors() {
            if let Some(client) = self.clients.get_mut(fd)
                && client.conn.is_overdue(timeouts)
            {
                client.cancel();
            }
        }
    }

    /// Ends all pending reads, after they report what has arrived.
    fn begin_drain(&mut self) {
        self.server.listener.close();
        for fd in self.clients.descriptors() {
            if let Some(client) = self.clients.get_mut(fd) {
                client.conn.drain();
                let _ = shutdown(&client.conn, Shutdown::Read);
            }
        }
    }

    /// Cancels pending operations, so that they can be freed. Any left after one second end with the process.
    fn end(mut self) -> anyhow::Result<()> {
        for fd in self.clients.descriptors() {
            if let Some(client) = self.clients.get_mut(fd) {
                client.cancel();
            }
        }
        let limit = Drain::new(Duration::from_secs(1));
        while self.open > 0 && !limit.over() {
            self.wait(0)?;
            self.serve();
        }
        Ok(())
    }
}
