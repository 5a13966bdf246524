//! What moves the bytes of a crowd.

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

/// Starts the engine of a worker with so many clients.
///
/// # Errors
/// When the kernel has no queue for it.
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

/// Moves the bytes of one worker's clients: does what the [`ClientPool`] says, and tells it what happened.
pub(super) trait Engine {
    /// Begins to connect a client whose turn has come.
    fn connect(&mut self, pool: &mut ClientPool, slot: usize);

    /// Does what the crowd wants done about a client's connection.
    fn apply(&mut self, pool: &mut ClientPool, slot: usize, action: Action);

    /// Waits for what happens, at most for `patience`, and tells the crowd.
    ///
    /// # Errors
    /// When the kernel's queue fails.
    fn run_once(&mut self, pool: &mut ClientPool, patience: Duration) -> anyhow::Result<()>;

    /// The load is over: ends what is under way, and tells the crowd what of it has left all the same.
    fn end(&mut self, _crowd: &mut ClientPool) {}
}

/// Sends what a client says before it closes its connection. What the socket does not take at once is not said.
fn say_farewell(pool: &mut ClientPool, slot: usize, socket: &OwnedFd) {
    let words = pool.farewell(slot);
    if words.is_empty() {
        return;
    }
    if let Ok(count) = send(socket, words, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        pool.sent_before(slot, count);
    }
}
