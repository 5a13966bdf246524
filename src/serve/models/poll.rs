//! One thread, told by poll() which sockets are ready.

use crate::registry::{Entry, Info};
use crate::serve::conn::{Conn, Scratch, Wants};
use crate::serve::lifecycle::Drain;
use crate::serve::listen::Mode;
use crate::serve::{Card, Model, Server};
use crate::sys::poll::{PollEntry, poll};

/// The model `poll`.
pub(super) struct Poll;

const CARD: Card = Card {
    idea: "All sockets stand in one array, each with what is waited for. poll() copies the array \
           into the kernel, asks every socket, and marks the ready ones.",
    waits_in: "poll()",
    system_calls: "recv, send, and a share of poll",
    processes: "1 process, 1 thread",
    good_at: "clients that are mostly active; any number of descriptors; every POSIX system",
    breaks_when: "most of many clients are idle: each call costs as much as there are clients",
    source: "poll(2); Stevens, UNP vol. 1, 3rd ed., section 6.11",
    limit: "",
};

impl Entry for Poll {
    fn info(&self) -> Info {
        Info {
            name: "poll",
            summary: "one thread waiting in poll()",
        }
    }
}

impl Model for Poll {
    fn card(&self) -> Card {
        CARD
    }

    fn run(&self, server: Server) -> anyhow::Result<()> {
        Loop {
            server: &server,
            entries: vec![
                PollEntry::reading(server.listener),
                PollEntry::reading(server.stop.fd()),
            ],
            conns: Vec::new(),
            scratch: Scratch::for_many(),
            drain: None,
        }
        .run()
    }
}

/// Entries before those of the connections: the listening socket and the wish to stop.
const FIRST: usize = 2;

struct Loop<'a> {
    server: &'a Server,
    /// Entry `FIRST + n` belongs to connection `n`.
    entries: Vec<PollEntry>,
    conns: Vec<Conn>,
    scratch: Scratch,
    drain: Option<Drain>,
}

impl Loop<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        while self
            .drain
            .is_none_or(|drain| !drain.over() && !self.conns.is_empty())
        {
            // While draining, nobody is accepted and the wish to stop is known.
            let from = if self.drain.is_some() { FIRST } else { 0 };
            let limit = Drain::wait_limit(self.drain);
            let ready = match poll(&mut self.entries[from..], limit) {
                Ok(ready) => ready,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(anyhow::Error::from(error).context("poll failed")),
            };
            self.serve(ready);
            if self.drain.is_none() {
                if self.entries[0].is_ready() {
                    self.accept();
                }
                if self.server.stop.requested() {
                    self.begin_drain();
                }
            }
        }
        Ok(())
    }

    /// Gives each ready connection its turn, in the order of the array.
    fn serve(&mut self, mut ready: usize) {
        let mut place = 0;
        while ready > 0 && place < self.conns.len() {
            let mut stays = true;
            if self.entries[FIRST + place].is_ready() {
                ready -= 1;
                stays = self.turn(place);
            }
            // Closing one moves the last one, which has not had its turn, into its place.
            place += usize::from(stays);
        }
    }

    /// Whether the connection stays.
    fn turn(&mut self, place: usize) -> bool {
        let wants = self.conns[place].turn(&mut self.scratch, false);
        match wants {
            Wants::Read | Wants::MoreRead => self.entries[FIRST + place].set_writing(false),
            Wants::Write => self.entries[FIRST + place].set_writing(true),
            Wants::Close => {
                self.conns.swap_remove(place);
                self.entries.swap_remove(FIRST + place);
            }
        }
        wants != Wants::Close
    }

    fn accept(&mut self) {
        for client in self
            .server
            .listener
            .arrivals(self.server.book, Mode::NonBlocking)
        {
            self.entries.push(PollEntry::reading(&client.socket));
            self.conns.push(Conn::open(client, self.server));
        }
    }

    fn begin_drain(&mut self) {
        self.drain = Some(self.server.begin_drain());
        self.server.listener.close();
        for place in (0..self.conns.len()).rev() {
            self.conns[place].drain();
            self.turn(place);
        }
    }
}
