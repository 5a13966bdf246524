//! The models: one file each, listed here.
//!
//! Files are meant to be read side by side. Each opens with a [`Card`](super::Card) of the same
//! fields; what follows is only how the model waits and how it divides the work.
//!
//! To add one: a new file, its `mod` line and its line in [`MODELS`].

mod epoll;
mod epoll_et;
mod fork;
mod iterative;
mod poll;
mod polling;
mod prefork;
mod reactors;
mod select;
mod thread;
mod thread_pool;
mod tokio;

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::Duration;

use anyhow::Context as _;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll as epoll_call};
use rustix::io::Errno;

use super::{Model, Server};

/// Every model there is, in the order in which they are listed.
pub const MODELS: &[&dyn Model] = &[
    &iterative::Iterative,
    &fork::Fork,
    &prefork::Prefork,
    &thread::Thread,
    &thread_pool::ThreadPool,
    &polling::Polling,
    &select::Select,
    &poll::Poll,
    &epoll::Epoll,
    &epoll_et::EpollEt,
    &reactors::Reactors,
    &tokio::Tokio,
];

/// Makes the kernel's set for a model that waits in epoll_wait(), with the arrival of clients and
/// the wish to stop in it. Both are level-triggered: after a full batch of clients the rest is
/// named again.
fn event_queue(server: &Server) -> anyhow::Result<OwnedFd> {
    let queue = epoll_call::create(epoll_call::CreateFlags::CLOEXEC);
    let queue = queue.context("cannot make an epoll")?;
    for fd in [server.listener.as_fd(), server.stop.fd()] {
        let data = epoll_call::EventData::new_u64(fd.as_raw_fd() as u64);
        epoll_call::add(&queue, fd, data, epoll_call::EventFlags::IN)
            .context("cannot wait for clients")?;
    }
    Ok(queue)
}

/// Takes both out again, and stops listening.
fn end_arrivals(queue: &OwnedFd, server: &Server) -> anyhow::Result<()> {
    for fd in [server.listener.as_fd(), server.stop.fd()] {
        epoll_call::delete(queue, fd).context("cannot stop waiting for clients")?;
    }
    server.listener.close();
    Ok(())
}

/// Waits in epoll_wait() for the models that do; fills `events`, leaving none after a signal.
fn wait_for_events(
    queue: &OwnedFd,
    events: &mut Vec<epoll_call::Event>,
    limit: Option<Duration>,
) -> anyhow::Result<()> {
    events.clear();
    let limit = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    match epoll_call::wait(queue, spare_capacity(events), limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("epoll_wait failed"),
    }
}
