//! One thread per client.

use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::process::setpriority_process;

use crate::close_reason::Refusal;
use crate::conn::{Conn, WorkerBuffers};
use crate::lifecycle::{BlockedSockets, WaitEnd, most_threads, wait};
use crate::listen::Mode;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// Stack size, more than enough for serving. The kernel allocates only the part that is used.
pub(super) const STACK_BYTES: usize = 128 * 1024;

/// The model `thread`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "thread",
        summary: "a thread per client",
    },
    card: Card {
        idea: "The main thread accepts and starts a thread; the thread serves that one client with \
               blocking calls and ends.",
        waits_in: "recv() in each thread; poll() and accept() in the main one",
        system_calls: "recv, send, and a context switch",
        processes: "1 process, 1 thread per client and the main one",
        good_at: "plain sequential code per client; some hundreds of clients; slow handlers",
        breaks_when: "there are thousands of threads: stacks, scheduler, limits on threads and \
                      mappings",
        source: "Stevens, UNP vol. 1, 3rd ed., sections 26.4 and 30.10 (one thread per client); \
                 pthreads(7)",
        limit: "",
        waits: false,
        page: page!("thread"),
    },
    worker_layout: WorkerLayout::AsNeeded,
    knobs: &["client-nice"],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    let blocked = Arc::new(BlockedSockets::default());
    let most = most_threads();
    let nice = server.tuning.client_nice;
    while wait(server.stop, &[server.listener.as_fd()])? != WaitEnd::Stop {
        for client in server.listener.arrivals(server.stats, Mode::Blocking) {
            if blocked.count() >= most {
                server.stats.give_up(client.id, Refusal::Threads);
                continue;
            }
            let (client, pass) = blocked.enter(client);
            let id = client.id;
            let started = std::thread::Builder::new()
                .name("client".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || {
                    if nice > 0 {
                        // A thread may always give way to others.
                        let _lowered = setpriority_process(None, nice);
                    }
                    let mut conn = Conn::open(client, &server);
                    conn.serve(&server, &mut WorkerBuffers::for_one());
                    drop(conn); // its row is written before it counts as gone
                    drop(pass);
                });
            if started.is_err() {
                server.stats.give_up(id, Refusal::Threads);
            }
        }
    }
    server.listener.close();
    blocked.shut_down(server.begin_drain());
    Ok(())
}
