//! A fixed number of processes, each serving one client after another.

use anyhow::Context as _;

use super::fork::Family;
use super::iterative::serve_one_at_a_time;
use crate::lifecycle::{WaitEnd, wait};
use crate::worker::Worker;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;
use throng_sys::fork::SingleThreaded;
use throng_sys::signal::Children;

/// The model `prefork`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "prefork",
        summary: "a fixed number of child processes, one client each",
    },
    card: Card {
        idea: "The server forks all children before the first client connects. Each child accepts \
               from the shared socket and serves one client after the other. The server replaces a \
               child that dies.",
        waits_in: "recv() in each busy child; poll() and accept() in each idle one",
        system_calls: "recv, send, and a context switch",
        processes: "1 parent and --workers children",
        good_at: "fork's isolation without a fork per client; a firm bound on resources",
        breaks_when: "more clients stay than there are children: the others wait in the accept \
                      queue",
        source: "Stevens, UNP vol. 1, 3rd ed., section 30.6 (preforked, no locking around accept)",
        limit: "it serves as many clients at a time as it has children (--workers)",
        waits: true,
        page: page!("prefork"),
    },
    worker_layout: WorkerLayout::Pool,
    knobs: &[],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    let single = SingleThreaded::check()?;
    let news = Children::watch().context("cannot watch for children that end")?;
    let mut family = Family::default();
    for number in 0..server.workers {
        let child = start_child(single, &server);
        family.add(child.with_context(|| format!("cannot start child {}", number + 1))?);
    }
    // The parent accepts no clients: it waits for a child to end, or for the stop.
    while wait(server.stop, &[news.fd()])? != WaitEnd::Stop {
        news.clear();
        for _ in 0..family.reap(&server) {
            // If the process limit is reached, there is one child fewer from now on.
            if let Ok(child) = start_child(single, &server) {
                family.add(child);
            }
        }
    }
    family.shut_down(&server);
    Ok(())
}

fn start_child(single: SingleThreaded, server: &Server) -> std::io::Result<rustix::process::Pid> {
    single.fork(|| {
        let server = server.for_worker(Worker::this_process());
        server.stats.belongs_to(server.worker);
        let renewed = server.stop.renew_in_child().map_err(anyhow::Error::from);
        let reason = renewed.and_then(|()| serve_one_at_a_time(&server));
        i32::from(reason.is_err())
    })
}
