//! One thread that learns from poll() which sockets are ready.

use super::next_start;
use crate::conn::{Conn, Interest, Timeouts, WorkerBuffers};
use crate::lifecycle::Lifecycle;
use crate::listen::Mode;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;
use throng_sys::poll::{PollEntry, poll};

/// The model `poll`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "poll",
        summary: "one thread waiting in poll()",
    },
    card: Card {
        idea: "All sockets are in one array, each with the events of interest. poll() copies the \
               array into the kernel, checks every socket, and marks the ready ones.",
        waits_in: "poll()",
        system_calls: "recv, send, and a share of poll",
        processes: "1 process, 1 thread",
        good_at: "clients that are mostly active; any number of descriptors; every POSIX system",
        breaks_when: "most of many clients are idle: each call costs as much as there are clients",
        source: "poll(2); Stevens, UNP vol. 1, 3rd ed., section 6.11",
        limit: "",
        waits: false,
        page: page!("poll"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &[],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    Loop {
        server: &server,
        entries: vec![
            PollEntry::reading(server.listener),
            PollEntry::reading(server.stop.fd()),
        ],
        conns: Vec::new(),
        start: 0,
        buffers: WorkerBuffers::for_many(),
        lifecycle: Lifecycle::new(&server),
    }
    .run()
}

/// Number of entries before those of the connections: the listening socket and the stop.
const FIRST: usize = 2;

struct Loop<'a> {
    server: &'a Server,
    /// Entry `FIRST + n` belongs to connection `n`.
    entries: Vec<PollEntry>,
    conns: Vec<Conn>,
    /// The index at which the last pass started.
    start: usize,
    buffers: WorkerBuffers,
    lifecycle: Lifecycle,
}

impl Loop<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        while self.lifecycle.keep_running(self.conns.is_empty()) {
            // While draining, no clients are accepted and the stop is already known.
            let from = if self.lifecycle.draining() { FIRST } else { 0 };
            let ready = match poll(&mut self.entries[from..], self.lifecycle.wait_limit()) {
                Ok(ready) => ready,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(anyhow::Error::from(error).context("poll failed")),
            };
            self.server.stats.notified(ready);
            self.serve(ready);
            if !self.lifecycle.draining() && self.entries[0].is_ready() {
                self.accept();
            }
            if let Some(timeouts) = self.lifecycle.due_check() {
                self.drop_overdue(timeouts);
            }
            if self.lifecycle.should_begin_drain() {
                self.begin_drain();
            }
        }
        Ok(())
    }

    /// Serves each ready connection in the order of the array, from a varying start.
    fn serve(&mut self, mut ready: usize) {
        let count = self.conns.len();
        self.start = next_start(self.start, count);
        for (mut index, end) in [(self.start, count), (0, self.start)] {
            while ready > 0 && index < end.min(self.conns.len()) {
                let mut stays = true;
                if self.entries[FIRST + index].is_ready() {
                    ready -= 1;
                    stays = self.on_ready(index);
                }
                // Closing a connection moves the last one to its index.
                index += usize::from(stays);
            }
        }
    }

    /// Serves a connection; returns whether it stays.
    fn on_ready(&mut self, index: usize) -> bool {
        let interest = self.conns[index].on_ready(&mut self.buffers, false);
        match interest {
            Interest::Read | Interest::MoreRead => self.entries[FIRST + index].set_writing(false),
            Interest::Write => self.entries[FIRST + index].set_writing(true),
            Interest::Close => self.remove(index),
        }
        interest != Interest::Close
    }

    fn remove(&mut self, index: usize) {
        self.conns.swap_remove(index);
        self.entries.swap_remove(FIRST + index);
    }

    fn drop_overdue(&mut self, timeouts: Timeouts) {
        for index in (0..self.conns.len()).rev() {
            if self.conns[index].is_overdue(timeouts) {
                self.remove(index);
            }
        }
    }

    fn accept(&mut self) {
        for client in self
            .server
            .listener
            .arrivals(self.server.stats, Mode::NonBlocking)
        {
            self.entries.push(PollEntry::reading(&client.socket));
            self.conns.push(Conn::open(client, self.server));
        }
    }

    fn begin_drain(&mut self) {
        self.server.listener.close();
        for index in (0..self.conns.len()).rev() {
            self.conns[index].drain();
            self.on_ready(index);
        }
    }
}
