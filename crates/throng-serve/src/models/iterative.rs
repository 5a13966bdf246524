//! One client after another.

use std::os::fd::AsFd as _;

use crate::conn::{Conn, WorkerBuffers};
use crate::lifecycle::{WaitEnd, wait};
use crate::listen::Mode;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// The model `iterative`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "iterative",
        summary: "one client after the other, in one thread",
    },
    card: Card {
        idea: "Accept a client, serve it to its end, accept the next.",
        waits_in: "recv() on the one connection; poll() and accept() between clients",
        system_calls: "recv, send",
        processes: "1 process, 1 thread",
        good_at: "simplicity; the least work per request for one client at a time",
        breaks_when: "a second client connects: it waits in the accept queue until the first one \
                      leaves",
        source: "Stevens, UNP vol. 1, 3rd ed., section 30.3 (iterative server)",
        limit: "it serves one client at a time",
        waits: true,
        page: page!("iterative"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &[],
    supported: || Ok(()),
    run: |server| serve_one_at_a_time(&server),
};

/// The loop of a process that serves one client at a time: here and in each child of `prefork`.
///
/// It accepts no client before the previous one has left, so the accept queue is the only waiting room.
pub(super) fn serve_one_at_a_time(server: &Server) -> anyhow::Result<()> {
    let mut buffers = WorkerBuffers::for_one();
    while wait(server.stop, &[server.listener.as_fd()])? != WaitEnd::Stop {
        let client = server
            .listener
            .arrivals(server.stats, Mode::Blocking)
            .next();
        if let Some(client) = client {
            let conn = Conn::open(client, server);
            conn.serve_until_stopped(server, &mut buffers);
        }
    }
    Ok(())
}
