//! One thread per CPU, each with its own listening socket and epoll loop.

use std::sync::{RwLock, mpsc};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::epoll_et;
use crate::lifecycle::wait;
use crate::worker::Worker;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;
use throng_sys::descriptors;
use throng_sys::process::usable_cpus;

/// The model `reactors`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "reactors",
        summary: "an epoll loop per CPU, clients distributed by SO_REUSEPORT",
    },
    card: Card {
        idea: "As many epoll-et loops as CPUs, each bound to one. All listen on the same port with \
               SO_REUSEPORT: the kernel distributes clients by a hash of their addresses, and a \
               client stays with its loop. The loops share nothing. With --accept shared, all accept \
               from one queue instead.",
        waits_in: "epoll_wait() in each thread",
        system_calls: "recv, send, and a share of epoll_wait, as epoll-et",
        processes: "1 process, 1 thread per CPU (--workers) and the main one",
        good_at: "more requests than one CPU can serve; no lock, no hand-over between threads",
        breaks_when: "the hash distributes busy clients unevenly: an overloaded loop gets no help",
        source: "socket(7), SO_REUSEPORT; epoll(7); unshare(2), CLONE_FILES (--own-descriptors)",
        limit: "",
        waits: false,
        page: page!("reactors"),
    },
    worker_layout: WorkerLayout::Reactors,
    knobs: &["own-descriptors", "accept"],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    run_on_each_cpu(server, epoll_et::Loop::new, epoll_et::Loop::run)
}

/// Runs one loop per listening socket, each in its own thread on one CPU. The main thread only waits. No loop runs
/// before all are created, so that none uses up descriptors that another one still needs. If one fails, all stop.
pub(super) fn run_on_each_cpu<L>(
    server: Server,
    make: fn(Server) -> anyhow::Result<L>,
    run: fn(L) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let cpus = usable_cpus();
    let start = RwLock::new(());
    let before_start = start.write();
    let (ready, all_ready) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, listener) in server.listeners.iter().enumerate() {
            let cpu = cpus[number % cpus.len()] as usize;
            let own = Server {
                listener,
                ..server.for_worker(Worker::number(number))
            };
            let (ready, start) = (ready.clone(), &start);
            let thread = std::thread::Builder::new()
                .name(format!("reactor-{number}"))
                .spawn_scoped(scope, move || {
                    let own_loop = prepare_thread(&own, cpu).and_then(|()| make(own));
                    drop(ready);
                    drop(start.read());
                    let reason = own_loop.and_then(run);
                    if reason.is_err() {
                        own.stop.request();
                    }
                    reason
                });
            threads.push(thread.with_context(|| format!("cannot start reactor {number}")));
        }
        drop(ready);
        let _: Result<(), _> = all_ready.recv(); // ends when every thread has dropped its sender
        if threads.iter().any(Result::is_err) {
            server.stop.request();
        }
        drop(before_start);
        let waited = wait(server.stop, &[]).context("cannot wait for a stop");
        if waited.is_err() {
            server.stop.request();
        }
        threads
            .into_iter()
            .map(|thread| {
                let panicked = |_| Err(anyhow::anyhow!("a reactor panicked"));
                thread.and_then(|thread| thread.join().unwrap_or_else(panicked))
            })
            .fold(waited.map(|_| ()), anyhow::Result::and)
    })
}

/// Binds the thread to the CPU, and creates its own descriptor table if it should have one.
fn prepare_thread(server: &Server, cpu: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("cannot bind to CPU {cpu}"))?;
    if server.tuning.own_descriptors {
        descriptors::own_table().context("cannot create a separate descriptor table")?;
    }
    Ok(())
}
