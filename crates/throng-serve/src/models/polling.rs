//! One thread that never waits: it tries every socket, over and over.

use std::os::fd::AsFd as _;

use crate::conn::{Conn, Interest, WorkerBuffers};
use crate::lifecycle::{Lifecycle, WaitEnd, wait};
use crate::listen::Mode;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// The model `polling`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "polling",
        summary: "one thread polling every non-blocking socket in a busy loop",
    },
    card: Card {
        idea: "All sockets are non-blocking. The loop tries to accept, then to read from each \
               connection in turn, and starts again; EAGAIN means that nothing was there.",
        waits_in: "nothing while a client is connected; poll() when there is none",
        system_calls: "recv, send, and a wasted recv (EAGAIN) per idle client in every round",
        processes: "1 process, 1 thread",
        good_at: "the fastest reply to a few clients that always have a request",
        breaks_when: "clients are idle: it fills one CPU whatever they do, and each idle client \
                      costs a system call per round",
        source: "Stevens, UNP vol. 1, 3rd ed., section 6.2 (non-blocking I/O model); fcntl(2), O_NONBLOCK",
        limit: "",
        waits: false,
        page: page!("polling"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &[],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    let mut conns: Vec<Conn> = Vec::new();
    let mut buffers = WorkerBuffers::for_many();
    let mut lifecycle = Lifecycle::new(&server);
    while lifecycle.keep_running(conns.is_empty()) {
        if !lifecycle.draining() {
            if conns.is_empty() && wait(server.stop, &[server.listener.as_fd()])? == WaitEnd::Stop {
                break;
            }
            let arrivals = server.listener.arrivals(server.stats, Mode::NonBlocking);
            conns.extend(arrivals.map(|client| Conn::open(client, &server)));
        }
        // In order of arrival, which closing a connection preserves: the oldest client comes first.
        conns.retain_mut(|conn| conn.on_ready(&mut buffers, false) != Interest::Close);
        if let Some(timeouts) = lifecycle.due_check() {
            conns.retain_mut(|conn| !conn.is_overdue(timeouts));
        }
        if lifecycle.should_begin_drain() {
            server.listener.close();
            conns.iter_mut().for_each(Conn::drain);
        }
    }
    Ok(())
}
