//! One thread that learns from select() which sockets are ready.

use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};

use super::next_start;
use crate::close_reason::Refusal;
use crate::conn::{Conn, Interest, Timeouts, WorkerBuffers};
use crate::lifecycle::Lifecycle;
use crate::listen::{Client, Mode};
use crate::table::Table;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;
use throng_sys::select::{FdSet, select};

/// The model `select`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "select",
        summary: "one thread waiting in select(), below 1024 descriptors",
    },
    card: Card {
        idea: "All sockets are in two bit sets, one for reading and one for writing. select() \
               copies both into the kernel, walks every descriptor below the highest, and copies \
               the ready ones back.",
        waits_in: "select()",
        system_calls: "recv, send, and a share of select",
        processes: "1 process, 1 thread",
        good_at: "some hundreds of clients that are all active; available everywhere, Windows \
                  included",
        breaks_when: "a descriptor is 1024 (FD_SETSIZE) or more, or most of many clients are idle: \
                      each call costs as much as there are descriptors",
        source: "select(2); Stevens, UNP vol. 1, 3rd ed., section 6.8",
        limit: "its sets hold descriptors below 1024 (FD_SETSIZE; --fd-setsize lifts it)",
        waits: false,
        page: page!("select"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &["fd-setsize", "fd-from"],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    Loop::new(&server).run()
}

struct Loop<'a> {
    server: &'a Server,
    /// The sets to wait for. select() overwrites its arguments, so these are copied each time.
    read: FdSet,
    write: FdSet,
    highest: RawFd,
    /// The descriptor at which the last pass started.
    start: usize,
    conns: Table<Conn>,
    buffers: WorkerBuffers,
    lifecycle: Lifecycle,
}

impl<'a> Loop<'a> {
    fn new(server: &'a Server) -> Self {
        let mut read = FdSet::new(server.tuning.fd_setsize);
        let listener = server.listener.as_fd();
        let stop = server.stop.fd();
        read.insert(listener);
        read.insert(stop);
        Self {
            server,
            read,
            write: FdSet::new(server.tuning.fd_setsize),
            highest: listener.as_raw_fd().max(stop.as_raw_fd()),
            start: 0,
            conns: Table::default(),
            buffers: WorkerBuffers::for_many(),
            lifecycle: Lifecycle::new(server),
        }
    }

    fn run(mut self) -> anyhow::Result<()> {
        let mut readable = self.read.clone();
        let mut writable = self.write.clone();
        let listener = self.server.listener.as_fd().as_raw_fd();
        while self.lifecycle.keep_running(self.conns.is_empty()) {
            readable.copy_from(&self.read);
            writable.copy_from(&self.write);
            let limit = self.lifecycle.wait_limit();
            match select(self.highest, &mut readable, &mut writable, limit) {
                Ok(ready) => self.server.stats.notified(ready),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(anyhow::Error::from(error).context("select failed")),
            }
            let mut clients_wait = false;
            self.start = next_start(self.start, self.highest as usize + 1);
            for fd in readable.union(&writable, self.start as RawFd) {
                if fd == listener {
                    clients_wait = true;
                } else {
                    self.on_ready(fd);
                }
            }
            if clients_wait {
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

    fn accept(&mut self) {
        for client in self
            .server
            .listener
            .arrivals(self.server.stats, Mode::NonBlocking)
        {
            let Some(client) = self.moved(client) else {
                continue;
            };
            let fd = client.socket.as_raw_fd();
            if fd as usize >= self.server.tuning.fd_setsize {
                self.server.stats.give_up(client.id, Refusal::SetSize);
                continue;
            }
            self.read.insert(client.socket.as_fd());
            self.highest = self.highest.max(fd);
            self.conns.insert(fd, Conn::open(client, self.server));
        }
    }

    /// The client, with its descriptor moved up to at least `fd_from`.
    fn moved(&self, client: Client) -> Option<Client> {
        let least = self.server.tuning.fd_from;
        if client.socket.as_raw_fd() >= least {
            return Some(client);
        }
        let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(&client.socket, least) else {
            self.server.stats.give_up(client.id, Refusal::Descriptors);
            return None;
        };
        Some(Client { socket, ..client })
    }

    fn on_ready(&mut self, fd: RawFd) {
        let Some(conn) = self.conns.get_mut(fd) else {
            return;
        };
        match conn.on_ready(&mut self.buffers, false) {
            Interest::Read | Interest::MoreRead => {
                self.read.insert(conn.as_fd());
                self.write.remove(conn.as_fd());
            }
            Interest::Write => {
                self.write.insert(conn.as_fd());
                self.read.remove(conn.as_fd());
            }
            Interest::Close => self.remove(fd),
        }
    }

    fn remove(&mut self, fd: RawFd) {
        if let Some(conn) = self.conns.remove(fd) {
            self.read.remove(conn.as_fd());
            self.write.remove(conn.as_fd());
        }
    }

    fn drop_overdue(&mut self, timeouts: Timeouts) {
        for fd in self.conns.descriptors() {
            if self
                .conns
                .get_mut(fd)
                .is_some_and(|conn| conn.is_overdue(timeouts))
            {
                self.remove(fd);
            }
        }
    }

    fn begin_drain(&mut self) {
        self.read.remove(self.server.listener.as_fd());
        self.read.remove(self.server.stop.fd());
        self.server.listener.close();
        for fd in self.conns.descriptors() {
            if let Some(conn) = self.conns.get_mut(fd) {
                conn.drain();
                self.on_ready(fd);
            }
        }
    }
}
