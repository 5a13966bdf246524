//! A fixed number of threads, each serving one client after another.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;

use super::thread::STACK_BYTES;
use crate::conn::{Conn, WorkerBuffers};
use crate::lifecycle::{BlockedGuard, BlockedSockets, WaitEnd, wait};
use crate::listen::Mode;
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// The model `thread-pool`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "thread-pool",
        summary: "a fixed number of threads, one client each",
    },
    card: Card {
        idea: "The main thread accepts and puts the connection into a queue; each thread of the pool \
               takes one, serves it to its end with blocking calls, and takes the next.",
        waits_in: "recv() in each busy thread, the queue's condition variable in each idle one; \
                   poll() and accept() in the main one",
        system_calls: "recv, send, and a context switch",
        processes: "1 process, --workers threads and the main one",
        good_at: "short conversations; a firm bound on resources; no thread per client",
        breaks_when: "more clients stay than there are threads: the others wait in the queue",
        source: "Stevens, UNP vol. 1, 3rd ed., section 30.12 (prethreaded, main thread accepts)",
        limit: "it serves as many clients at a time as it has threads (--workers)",
        waits: true,
        page: page!("thread-pool"),
    },
    worker_layout: WorkerLayout::Pool,
    knobs: &[],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    let queue = Arc::new(Queue::default());
    let blocked = Arc::new(BlockedSockets::default());
    for number in 0..server.workers {
        let queue = Arc::clone(&queue);
        std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || work(&queue, &server))
            .with_context(|| format!("cannot start thread {} of the pool", number + 1))?;
    }
    while wait(server.stop, &[server.listener.as_fd()])? != WaitEnd::Stop {
        for client in server.listener.arrivals(server.stats, Mode::Blocking) {
            let (client, pass) = blocked.enter(client);
            queue.put((Conn::open(client, &server), pass));
        }
    }
    server.listener.close();
    queue.close();
    blocked.shut_down(server.begin_drain());
    Ok(())
}

fn work(queue: &Queue, server: &Server) {
    let mut buffers = WorkerBuffers::for_one();
    while let Some((mut conn, pass)) = queue.take() {
        conn.serve(server, &mut buffers);
        drop(conn); // its row is written before it counts as gone
        drop(pass);
    }
}

type Waiting = (Conn<Arc<OwnedFd>>, BlockedGuard);

/// Connections that no thread has taken yet. The limit of file descriptors bounds their number: a client that gets
/// none is rejected before it can queue.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    closed: bool,
}

impl Queue {
    fn put(&self, waiting: Waiting) {
        self.lock().waiting.push_back(waiting);
        self.arrived.notify_one();
    }

    /// Takes the oldest connection; `None` once the queue is closed.
    fn take(&self) -> Option<Waiting> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(waiting) = state.waiting.pop_front() {
                return Some(waiting);
            }
            state = self
                .arrived
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops the waiting connections, and wakes the waiting threads so that they end.
    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        drop(dropped);
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
