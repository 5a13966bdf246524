//! One thread that learns from epoll which sockets are ready; level-triggered.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{end_arrivals, event_queue, wait_for_events};
use crate::close_reason::Refusal;
use crate::conn::{Conn, Interest, WorkerBuffers};
use crate::lifecycle::Lifecycle;
use crate::listen::Mode;
use crate::table::Table;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// The model `epoll`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "epoll",
        summary: "one thread waiting in epoll_wait(), level-triggered",
    },
    card: Card {
        idea: "The kernel keeps the set of sockets and a list of the ready ones. epoll_wait() \
               copies out only these, and reports a socket again while anything is left to read.",
        waits_in: "epoll_wait()",
        system_calls: "recv, send, and a share of epoll_wait; epoll_ctl when a client stops reading",
        processes: "1 process, 1 thread",
        good_at: "any number of clients, above all idle ones: they cost memory but no time",
        breaks_when: "one CPU is full: it uses only one",
        source: "epoll(7), level-triggered",
        limit: "",
        waits: false,
        page: page!("epoll"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &[],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    Loop {
        server: &server,
        queue: event_queue(&server)?,
        conns: Table::default(),
        buffers: WorkerBuffers::for_many(),
        lifecycle: Lifecycle::new(&server),
    }
    .run()
}

/// A connection, and whether it waits for writing rather than reading.
struct Slot {
    conn: Conn,
    writing: bool,
}

struct Loop<'a> {
    server: &'a Server,
    queue: OwnedFd,
    conns: Table<Slot>,
    buffers: WorkerBuffers,
    lifecycle: Lifecycle,
}

impl Loop<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        let mut events = Vec::with_capacity(1024);
        let listener = self.server.listener.as_fd().as_raw_fd();
        while self.lifecycle.keep_running(self.conns.is_empty()) {
            wait_for_events(&self.queue, &mut events, self.lifecycle.wait_limit())?;
            self.server.stats.notified(events.len());
            for event in &events {
                let fd = event.data.u64() as RawFd;
                if fd == listener {
                    self.accept();
                } else {
                    self.on_ready(fd);
                }
            }
            if let Some(timeouts) = self.lifecycle.due_check() {
                self.conns.retain(|slot| !slot.conn.is_overdue(timeouts));
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
            if epoll::add(&self.queue, &client.socket, data, EventFlags::IN).is_err() {
                self.server.stats.give_up(client.id, Refusal::Watches);
                continue;
            }
            let conn = Conn::open(client, self.server);
            self.conns.insert(
                fd,
                Slot {
                    conn,
                    writing: false,
                },
            );
        }
    }

    fn on_ready(&mut self, fd: RawFd) {
        let Some(slot) = self.conns.get_mut(fd) else {
            return;
        };
        let writing = match slot.conn.on_ready(&mut self.buffers, false) {
            Interest::Read | Interest::MoreRead => false,
            Interest::Write => true,
            Interest::Close => {
                // Closing the socket removes it from the kernel's set.
                self.conns.remove(fd);
                return;
            }
        };
        if writing != slot.writing {
            slot.writing = writing;
            let flags = if writing {
                EventFlags::OUT
            } else {
                EventFlags::IN
            };
            let data = EventData::new_u64(fd as u64);
            if let Err(error) = epoll::modify(&self.queue, &slot.conn, data, flags) {
                slot.conn.broken(error);
                self.conns.remove(fd);
            }
        }
    }

    fn begin_drain(&mut self) -> anyhow::Result<()> {
        end_arrivals(&self.queue, self.server)?;
        for fd in self.conns.descriptors() {
            if let Some(slot) = self.conns.get_mut(fd) {
                slot.conn.drain();
                self.on_ready(fd);
            }
        }
        Ok(())
    }
}
