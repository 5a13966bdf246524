//! One thread, told by poll() which sockets are ready.

use super::next_start;
use crate::registry::{Entry, Info};
use crate::serve::conn::{Conn, Scratch, Wants};
use crate::serve::lifecycle::Life;
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
            start: 0,
            scratch: Scratch::for_many(),
            life: Life::new(&server),
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
    /// Where in the array the last pass began.
    start: usize,
    scratch: Scratch,
    life: Life,
}

impl Loop<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        while self.life.goes_on(self.conns.is_empty()) {
            // While draining, nobody is accepted and the wish to stop is known.
            let from = if self.life.draining() { FIRST } else { 0 };
            let ready = match poll(&mut self.entries[from..], self.life.wait_limit()) {
                Ok(ready) => ready,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(anyhow::Error::from(error).context("poll failed")),
            };
            self.serve(ready);
            if !self.life.draining() && self.entries[0].is_ready() {
                self.accept();
            }
            if self.life.looks_for_idle() {
                self.drop_idle();
            }
            if self.life.begins_drain() {
                self.begin_drain();
            }
        }
        Ok(())
    }

    /// Gives each ready connection its turn, in the order of the array but not always from its front.
    fn serve(&mut self, mut ready: usize) {
        let count = self.conns.len();
        self.start = next_start(self.start, count);
        for (mut place, end) in [(self.start, count), (0, self.start)] {
            while ready > 0 && place < end.min(self.conns.len()) {
                let mut stays = true;
                if self.entries[FIRST + place].is_ready() {
                    ready -= 1;
                    stays = self.turn(place);
                }
                // Closing one moves the last one into its place.
                place += usize::from(stays);
            }
        }
    }

    /// Whether the connection stays.
    fn turn(&mut self, place: usize) -> bool {
        let wants = self.conns[place].turn(&mut self.scratch, false);
        match wants {
            Wants::Read | Wants::MoreRead => self.entries[FIRST + place].set_writing(false),
            Wants::Write => self.entries[FIRST + place].set_writing(true),
            Wants::Close => self.remove(place),
        }
        wants != Wants::Close
    }

    fn remove(&mut self, place: usize) {
        self.conns.swap_remove(place);
        self.entries.swap_remove(FIRST + place);
    }

    fn drop_idle(&mut self) {
        for place in (0..self.conns.len()).rev() {
            if self.conns[place].is_idle() {
                self.remove(place);
            }
        }
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
        self.server.listener.close();
        for place in (0..self.conns.len()).rev() {
            self.conns[place].drain();
            self.turn(place);
        }
    }
}
