//! One thread per CPU, each with its own listening socket and io_uring.

use super::io_uring;
use super::reactors::run_on_each_cpu;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// The model `io-uring-reactors`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "io-uring-reactors",
        summary: "an io_uring per CPU, clients distributed by SO_REUSEPORT",
    },
    card: Card {
        idea: "As many io-uring loops as CPUs, each bound to one, with its own ring and buffers. \
               All listen on the same port with SO_REUSEPORT: the kernel distributes clients by a \
               hash of their addresses, and a client stays with its loop. The loops share nothing.",
        waits_in: "io_uring_enter() in each thread",
        system_calls: "a share of io_uring_enter, as io-uring",
        processes: "1 process, 1 thread per CPU (--workers) and the main one",
        good_at: "more requests than one CPU can serve, with one call per batch",
        breaks_when: "the hash distributes busy clients unevenly: an overloaded loop gets no help; \
                      or io_uring is disabled",
        source: "io_uring_setup(2), IORING_SETUP_SINGLE_ISSUER; socket(7), SO_REUSEPORT",
        limit: "",
        waits: false,
        page: page!("io-uring-reactors"),
    },
    worker_layout: WorkerLayout::Reactors,
    knobs: &["own-descriptors"],
    supported: io_uring::supported,
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    run_on_each_cpu(server, io_uring::Loop::new, io_uring::Loop::run)
}
