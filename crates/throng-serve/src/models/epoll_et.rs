//! One thread that learns from epoll which sockets became ready; edge-triggered.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{end_arrivals, event_queue, wait_for_events};
use crate::close_reason::Refusal;
use crate::conn::{Conn, Interest, WorkerBuffers};
use crate::lifecycle::Lifecycle;
use crate::listen::Mode;
use crate::table::Table;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// The model `epoll-et`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "epoll-et",
        summary: "one thread waiting in epoll_wait(), edge-triggered",
    },
    card: Card {
        idea: "As epoll, but the kernel reports a socket once when it becomes ready, for reading \
               and writing, and not again until the next change. So the program must remember \
               connections with unread bytes. A read shorter than the buffer has emptied the \
               socket, which saves another read.",
        waits_in: "epoll_wait()",
        system_calls: "recv, send, and a share of epoll_wait; never epoll_ctl after the first",
        processes: "1 process, 1 thread",
        good_at: "any number of clients, and slow readers: waiting to write costs no call",
        breaks_when: "one CPU is full: it uses only one",
        source: "epoll(7), \"level-triggered and edge-triggered\"",
        limit: "",
        waits: false,
        page: page!("epoll-et"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &[],
    supported: || Ok(()),
    run,
};

/// The events that a connection is registered for, once and for all.
const EDGES: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// The client closed its side, or the connection failed: there will be no more edges.
const LAST: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);

fn run(server: Server) -> anyhow::Result<()> {
    Loop::new(server)?.run()
}

/// The event loop: one here, several in `reactors`.
pub(super) struct Loop {
    server: Server,
    queue: OwnedFd,
    conns: Table<Conn>,
    /// Connections that used up their turn before their bytes were processed.
    unfinished: Vec<(RawFd, bool)>,
    buffers: WorkerBuffers,
    lifecycle: Lifecycle,
}

impl Loop {
    pub(super) fn new(server: Server) -> anyhow::Result<Self> {
        Ok(Self {
            server,
            queue: event_queue(&server)?,
            conns: Table::default(),
            unfinished: Vec::new(),
            buffers: WorkerBuffers::for_many(),
            lifecycle: Lifecycle::new(&server),
        })
    }

    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let mut events = Vec::with_capacity(1024);
        let listener = self.server.listener.as_fd().as_raw_fd();
        while self.lifecycle.keep_running(self.conns.is_empty()) {
            let limit = if self.unfinished.is_empty() {
                self.lifecycle.wait_limit()
            } else {
                Some(Duration::ZERO)
            };
            wait_for_events(&self.queue, &mut events, limit)?;
            self.server.stats.notified(events.len());
            let unfinished = std::mem::take(&mut self.unfinished);
            for event in &events {
                let fd = event.data.u64() as RawFd;
                if fd == listener {
                    self.accept();
                } else {
                    let flags = event.flags; // copied: the structure is packed
                    self.on_ready(fd, flags.intersects(LAST));
                }
            }
            for (fd, last) in unfinished {
                self.on_ready(fd, last);
            }
            if let Some(timeouts) = self.lifecycle.due_check() {
                self.conns.retain(|conn| !conn.is_overdue(timeouts));
            }
            if self.lifecycle.should_begin_drain() {
                self.begin_drain()?;
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        for client in self
            .server
            .listener
            .arrivals(self.server.stats, Mode::NonBlocking)
        {
            let fd = client.socket.as_raw_fd();
            let data = EventData::new_u64(fd as u64);
            if epoll::add(&self.queue, &client.socket, data, EDGES).is_err() {
                self.server.stats.give_up(client.id, Refusal::Watches);
                continue;
            }
            self.conns.insert(fd, Conn::open(client, &self.server));
        }
    }

    fn on_ready(&mut self, fd: RawFd, last: bool) {
        let Some(conn) = self.conns.get_mut(fd) else {
            return;
        };
        match conn.on_ready(&mut self.buffers, last) {
            Interest::Read | Interest::Write => {}
            Interest::MoreRead => self.unfinished.push((fd, last)),
            Interest::Close => drop(self.conns.remove(fd)),
        }
    }

    fn begin_drain(&mut self) -> anyhow::Result<()> {
        end_arrivals(&self.queue, &self.server)?;
        for fd in self.conns.descriptors() {
            if let Some(conn) = self.conns.get_mut(fd) {
                conn.drain();
                self.on_ready(fd, false);
            }
        }
        Ok(())
    }
}
