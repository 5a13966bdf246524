//! Engines, which move the bytes of clients.

mod epoll;
mod full;
mod io_uring;
mod link;
#[cfg(test)]
mod tests;
mod tls;
mod transport;

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{SendFlags, send};

use super::Plan;
use super::pool::{Action, ClientPool};

/// Starts the engine of a worker with `clients` clients.
///
/// # Errors
/// If the kernel cannot create its queue.
pub(super) fn start(plan: &Plan, clients: usize) -> anyhow::Result<Box<dyn Engine>> {
    if plan.tls.is_some() {
        of_kind::<tls::Tls>(plan, clients)
    } else {
        of_kind::<transport::Plain>(plan, clients)
    }
}

fn of_kind<T: transport::Transport + 'static>(
    plan: &Plan,
    clients: usize,
) -> anyhow::Result<Box<dyn Engine>> {
    Ok(match plan.engine {
        super::Engine::Epoll => Box::new(epoll::Epoll::<T>::new(plan, clients)?),
        super::Engine::IoUring => Box::new(io_uring::IoUring::<T>::new(plan, clients)?),
    })
}

/// Moves the bytes of one worker's clients: performs the actions of the [`ClientPool`], and reports events to it.
pub(super) trait Engine {
    /// Begins to connect a client whose turn has come.
    fn connect(&mut self, pool: &mut ClientPool, slot: usize);

    /// Performs an action on a client's connection.
    fn apply(&mut self, pool: &mut ClientPool, slot: usize, action: Action);

    /// Waits for events, for at most `longest_wait`, and reports them to the pool.
    ///
    /// # Errors
    /// If the kernel's queue fails.
    fn run_once(&mut self, pool: &mut ClientPool, longest_wait: Duration) -> anyhow::Result<()>;

    /// The load is over: ends pending operations, and reports what was sent in the meantime.
    fn end(&mut self, _pool: &mut ClientPool) {}
}

/// Sends a client's last bytes before it closes its connection. Bytes that the socket does not accept immediately are
/// dropped.
fn send_closing_message(pool: &mut ClientPool, slot: usize, socket: &OwnedFd) {
    let words = pool.closing_message(slot);
    if words.is_empty() {
        return;
    }
    if let Ok(count) = send(socket, words, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        pool.count_sent(slot, count);
    }
}
