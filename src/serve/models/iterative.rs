//! One client after the other.

use std::os::fd::AsFd as _;

use crate::registry::{Entry, Info};
use crate::serve::conn::{Conn, Scratch};
use crate::serve::lifecycle::{Waited, wait};
use crate::serve::listen::Mode;
use crate::serve::{Card, Model, Server};

/// The model `iterative`.
pub(super) struct Iterative;

const CARD: Card = Card {
    idea: "Accept a client, serve it to its end, accept the next.",
    waits_in: "recv() on the one connection; poll() and accept() between clients",
    system_calls: "recv, send",
    processes: "1 process, 1 thread",
    good_at: "simplicity; least work per request when requests come one client at a time",
    breaks_when: "a second client comes: it waits in the accept queue until the first one leaves",
    source: "Stevens, UNP vol. 1, 3rd ed., section 30.3 (iterative server)",
    limit: "it serves one client at a time",
};

impl Entry for Iterative {
    fn info(&self) -> Info {
        Info {
            name: "iterative",
            summary: "one client after the other, in one thread",
        }
    }
}

impl Model for Iterative {
    fn card(&self) -> Card {
        CARD
    }

    fn run(&self, server: Server) -> anyhow::Result<()> {
        serve_one_at_a_time(&server)
    }
}

/// What a process does that serves one client at a time: here, and in each child of `prefork`.
///
/// It takes no client before the last one left, so the accept queue is the only waiting room.
pub(super) fn serve_one_at_a_time(server: &Server) -> anyhow::Result<()> {
    let mut scratch = Scratch::for_one();
    while wait(server.stop, &[server.listener.as_fd()])? != Waited::Stop {
        let client = server.listener.arrivals(server.book, Mode::Blocking).next();
        if let Some(client) = client {
            let conn = Conn::open(client, server);
            conn.serve_until_stopped(server, &mut scratch);
        }
    }
    Ok(())
}
