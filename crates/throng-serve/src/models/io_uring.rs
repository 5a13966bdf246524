//! One thread that submits whole operations to the kernel and processes their completions.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use anyhow::Context as _;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use crate::buffer_pool::BufferPool;
use crate::conn::{self, Conn, Interest};
use crate::lifecycle::Lifecycle;
use crate::listen::{Client, Mode};
use crate::table::Table;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::{Info, Unsupported};
use throng_sys::ring::{self, Event, Notify, Ring, Send, Target, Turn, WakeOn, WhenFull};

/// The model `io-uring`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "io-uring",
        summary: "one thread waiting in io_uring_enter() for operations of the kernel",
    },
    card: Card {
        idea: "The kernel accepts, receives and sends by itself. The program requests one accept, \
               and one receive per client. These report every client and every piece that arrives, \
               in buffers that all clients share. One call submits all pending replies and waits \
               for the next events.",
        waits_in: "io_uring_enter()",
        system_calls: "a share of io_uring_enter",
        processes: "1 process, 1 thread",
        good_at: "many active clients: one call serves a batch of them, above all if the peer \
                  batches too",
        breaks_when: "one CPU is full: it uses only one; or io_uring is disabled",
        source: "io_uring(7), io_uring_multishot(7), io_uring_provided_buffers(7)",
        limit: "",
        waits: false,
        page: page!("io-uring"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &[],
    supported,
    run,
};

/// Whether this machine has an io_uring for it.
pub(super) fn supported() -> Result<(), Unsupported> {
    ring::supported().map_err(|why| Unsupported {
        reason: why.reason,
        remedy: why.remedy.to_owned(),
    })
}

fn run(server: Server) -> anyhow::Result<()> {
    Loop::new(server)?.run()
}

/// One ring and its clients, owned by the thread that creates it.
pub(super) struct Loop {
    // First, so that no operations remain when the connections are dropped.
    ring: Ring,
    server: Server,
    slots: Table<Slot>,
    /// Spare large buffers; the ring owns the rest.
    pool: BufferPool,
    /// Output buffer for the next answer.
    room: Vec<u8>,
    /// Connections with events. They are handled after all events are read, so that everything that arrived for one is
    /// answered together.
    touched: Vec<RawFd>,
    /// Connections that cannot send until their last send was submitted to the kernel.
    again: Vec<RawFd>,
    /// Number of submissions to the kernel so far.
    handed_over: u32,
    lifecycle: Lifecycle,
    /// Which event to wait for: whether a connection has something to do once something was sent.
    awaited: WakeOn,
}

/// A connection. It keeps its slot and its descriptor until the kernel has no more operations on it, so that no
/// completion can be mistaken for that of a later connection.
struct Slot {
    conn: Conn,
    target: Target,
    receive: Receive,
    /// Whether the kernel will report the result of a send.
    sending: bool,
    /// The value of `Loop::handed_over` when the last send was begun.
    sent_in: u32,
    /// Whether to drop the connection as soon as the kernel is done with it.
    ends: bool,
    /// Whether it is in `touched`.
    touched: bool,
}

/// The state of a connection's receive operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receive {
    /// Not submitted; to be submitted unless the connection is full.
    Off,
    /// Multishot: reports everything that arrives.
    On,
    /// Being cancelled.
    Stopping,
    /// Ended: no more will arrive.
    Over,
}

impl Loop {
    pub(super) fn new(server: Server) -> anyhow::Result<Self> {
        Ok(Self {
            ring: Ring::new().context("cannot set up an io_uring")?,
            slots: Table::default(),
            pool: BufferPool::default(),
            room: Vec::new(),
            touched: Vec::new(),
            again: Vec::new(),
            handed_over: 1,
            lifecycle: Lifecycle::new(&server),
            awaited: WakeOn::News,
            server,
        })
    }

    pub(super) fn run(mut self) -> anyhow::Result<()> {
        self.await_clients()?;
        self.ring.watch(
            self.server.stop.fd(),
            name(self.server.stop.fd().as_raw_fd()),
        )?;
        while self.lifecycle.keep_running(self.slots.is_empty()) {
            let limit = if self.again.is_empty() {
                self.lifecycle.wait_limit()
            } else {
                Some(Duration::ZERO)
            };
            self.ring
                .wait(self.awaited, limit)
                .context("io_uring_enter failed")?;
            self.awaited = WakeOn::News;
            if self.ring.has_handed_over() {
                self.handed_over = self.handed_over.wrapping_add(1);
            }
            while self.handle_event()? {}
            for fd in std::mem::take(&mut self.again) {
                self.proceed(fd)?;
            }
            for index in 0..self.touched.len() {
                self.proceed(self.touched[index])?;
            }
            self.touched.clear();
            if let Some(timeouts) = self.lifecycle.due_check() {
                self.end_overdue(timeouts)?;
            }
            if self.lifecycle.should_begin_drain() {
                self.begin_drain()?;
            }
        }
        Ok(())
    }

    /// Handles the next event; returns whether there was one.
    fn handle_event(&mut self) -> anyhow::Result<bool> {
        if self.room.capacity() == 0 {
            let large = self.pool.take();
            self.room = large.unwrap_or_else(|| self.ring.buffer());
        }
        let Some(event) = self.ring.take_event() else {
            return Ok(false);
        };
        match event {
            Event::Accepted { socket, goes_on } => self.accepted(socket, goes_on)?,
            Event::Readable(fd) => {
                if fd == name(self.server.listener.as_fd().as_raw_fd())
                    && !self.lifecycle.draining()
                {
                    self.take_arrivals()?;
                    self.await_clients()?;
                }
            }
            Event::Received {
                name,
                bytes,
                goes_on,
            } => {
                let fd = name as RawFd;
                let Some(slot) = self.slots.get_mut(fd) else {
                    return Ok(true);
                };
                slot.conn.take_buffer(&mut self.room);
                slot.received(bytes.map(|bytes| &*bytes), goes_on);
                slot.touch(fd, &mut self.touched);
            }
            Event::Writable(_) | Event::Left { .. } => {} // never requested
            Event::Sent {
                name,
                turn,
                buffer,
                sent,
                ..
            } => {
                let fd = name as RawFd;
                let Some(slot) = self.slots.get_mut(fd) else {
                    return Ok(true);
                };
                if turn == HANDED_OVER {
                    slot.conn.returned_unsent(buffer.len());
                    slot.sending = true;
                }
                let (count, error) = match sent {
                    Ok(count) => (count, None),
                    Err(Errno::AGAIN) => (0, None),
                    Err(error) => (0, Some(error)),
                };
                let from = slot.conn.sent_of_lent(count);
                if from < buffer.len() && error.is_none() {
                    // There was no room for all of it: let the kernel wait and send the rest.
                    let send = send(name, WhenFull::Wait, LENT);
                    self.ring.send(slot.target, send, buffer, from)?;
                    return Ok(true);
                }
                slot.sending = false;
                if let Some(emptied) = slot.conn.reclaim(buffer, 0) {
                    self.pool.keep(emptied);
                }
                if let Some(error) = error {
                    slot.conn.broken(error);
                }
                if slot.receive != Receive::On || slot.ends || !slot.conn.is_idle() {
                    slot.touch(fd, &mut self.touched);
                }
            }
        }
        Ok(true)
    }

    fn accepted(&mut self, socket: Result<OwnedFd, Errno>, goes_on: bool) -> anyhow::Result<()> {
        if self.lifecycle.draining() {
            return Ok(());
        }
        if let Ok(socket) = socket {
            let client = self.server.listener.admit(self.server.stats, socket);
            if let Some(client) = client {
                self.open(client)?;
            }
            if !goes_on {
                self.await_clients()?;
            }
        } else {
            // Most likely there is no free descriptor, and another accept would only report that again. So reject the
            // waiting clients, and accept again at the next event.
            self.take_arrivals()?;
            self.watch_listener()?;
        }
        Ok(())
    }

    /// Submits an accept, unless several loops share a descriptor table: then it could take a descriptor that another
    /// loop closed briefly to reject a client.
    fn await_clients(&mut self) -> anyhow::Result<()> {
        if self.server.listeners.len() == 1 || self.server.tuning.own_descriptors {
            Ok(self.ring.accept(self.server.listener)?)
        } else {
            self.watch_listener()
        }
    }

    fn watch_listener(&mut self) -> anyhow::Result<()> {
        let listener = self.server.listener;
        let number = listener.as_fd().as_raw_fd();
        Ok(self.ring.watch(listener, name(number))?)
    }

    fn take_arrivals(&mut self) -> anyhow::Result<()> {
        let arrivals = self
            .server
            .listener
            .arrivals(self.server.stats, Mode::Blocking);
        for client in arrivals {
            self.open(client)?;
        }
        Ok(())
    }

    fn open(&mut self, client: Client) -> anyhow::Result<()> {
        let fd = client.socket.as_raw_fd();
        let slot = Slot {
            target: self.ring.adopt(&client.socket)?,
            conn: Conn::open(client, &self.server),
            receive: Receive::Off,
            sending: false,
            sent_in: 0,
            ends: false,
            touched: false,
        };
        self.slots.insert(fd, slot);
        self.proceed(fd)
    }

    /// Submits the next operations of a connection.
    fn proceed(&mut self, fd: RawFd) -> anyhow::Result<()> {
        let Some(slot) = self.slots.get_mut(fd) else {
            return Ok(());
        };
        slot.touched = false;
        let conn = &mut slot.conn;
        if !slot.ends {
            slot.ends = conn.next_interest() == Interest::Close;
        }
        if !slot.ends {
            if slot.sent_in == self.handed_over {
                self.again.push(fd);
            } else if slot.receive == Receive::On
                && let Some(answers) = conn.hand_over(ring::LARGEST_KEPT)
            {
                let send = send(name(fd), WhenFull::Fail, HANDED_OVER);
                self.ring.send(slot.target, send, answers, 0)?;
                slot.sent_in = self.handed_over;
            } else if let Some(answers) = conn.lend() {
                let send = send(name(fd), WhenFull::Fail, LENT);
                self.ring.send(slot.target, send, answers, 0)?;
                slot.sending = true;
            }
            match slot.receive {
                Receive::Off if !conn.is_full() => {
                    self.ring.receive(slot.target, name(fd))?;
                    slot.receive = Receive::On;
                }
                Receive::On if conn.is_full() => {
                    self.ring.stop_receiving(name(fd))?;
                    slot.receive = Receive::Stopping;
                }
                _ => {}
            }
        }
        if conn.goes_on_when_sent() {
            self.awaited = WakeOn::Event;
        }
        conn.return_buffer(&mut self.pool);
        if slot.ends {
            self.end(fd)?;
        }
        Ok(())
    }

    /// Drops a connection, but first cancels its operations if there are any.
    fn end(&mut self, fd: RawFd) -> anyhow::Result<()> {
        let Some(slot) = self.slots.get_mut(fd) else {
            return Ok(());
        };
        let receiving = matches!(slot.receive, Receive::On | Receive::Stopping);
        if !receiving && !slot.sending {
            if slot.sent_in == self.handed_over {
                self.again.push(fd);
            } else {
                self.ring.release(slot.target)?;
                self.slots.remove(fd);
            }
            return Ok(());
        }
        // This ends both: the receive with 0 bytes, the send with EPIPE.
        let _ = shutdown(&slot.conn, Shutdown::Both);
        Ok(())
    }

    fn end_overdue(&mut self, timeouts: conn::Timeouts) -> anyhow::Result<()> {
        for fd in self.slots.descriptors() {
            if let Some(slot) = self.slots.get_mut(fd)
                && !slot.ends
                && slot.conn.is_overdue(timeouts)
            {
                slot.ends = true;
                self.end(fd)?;
            }
        }
        Ok(())
    }

    fn begin_drain(&mut self) -> anyhow::Result<()> {
        self.server.listener.close();
        for fd in self.slots.descriptors() {
            if let Some(slot) = self.slots.get_mut(fd) {
                slot.conn.drain();
                // The receive reports what has arrived, and then the end of the stream.
                let _ = shutdown(&slot.conn, Shutdown::Read);
                self.proceed(fd)?;
            }
        }
        Ok(())
    }
}

impl Slot {
    fn touch(&mut self, fd: RawFd, touched: &mut Vec<RawFd>) {
        if !self.touched {
            self.touched = true;
            touched.push(fd);
        }
    }

    fn received(&mut self, bytes: Result<&[u8], Errno>, goes_on: bool) {
        if !goes_on {
            self.receive = Receive::Off;
        }
        match bytes {
            Ok([]) => {
                self.conn.finish();
                self.receive = Receive::Over;
            }
            Ok(bytes) => self.conn.feed(bytes),
            // It was cancelled, or all buffers were briefly in use.
            Err(Errno::CANCELED | Errno::NOBUFS | Errno::INTR) => {}
            Err(error) => {
                self.conn.broken(error);
                self.receive = Receive::Over;
            }
        }
    }
}

fn name(fd: RawFd) -> ring::Name {
    fd as ring::Name
}

/// A send whose buffer always comes back.
const LENT: Turn = 0;
/// A send whose buffer comes back only if it was not sent completely.
const HANDED_OVER: Turn = 1;

fn send(name: ring::Name, when_full: WhenFull, turn: Turn) -> Send {
    Send {
        name,
        turn,
        when_full,
        notify: if turn == HANDED_OVER {
            Notify::Trouble
        } else {
            Notify::Always
        },
    }
}
