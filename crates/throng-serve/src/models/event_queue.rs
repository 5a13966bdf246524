//! Code shared by models that call epoll_wait().

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::Duration;

use anyhow::Context as _;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll as epoll_call};
use rustix::io::Errno;

use crate::Server;
use crate::tuning::Accept;

/// Creates the epoll set of a model, and adds the listener and the stop to it. Both are level-triggered: after a full
/// batch of clients, the rest is reported again.
pub(super) fn event_queue(server: &Server) -> anyhow::Result<OwnedFd> {
    let queue = epoll_call::create(epoll_call::CreateFlags::CLOEXEC)
        .context("cannot create an epoll set")?;
    let arrivals = match server.tuning.accept {
        Accept::ReusePort => epoll_call::EventFlags::IN,
        // One loop wakes up for a client, not all of them.
        Accept::Shared => epoll_call::EventFlags::IN | epoll_call::EventFlags::EXCLUSIVE,
    };
    for (fd, flags) in [
        (server.listener.as_fd(), arrivals),
        (server.stop.fd(), epoll_call::EventFlags::IN),
    ] {
        let data = epoll_call::EventData::new_u64(fd.as_raw_fd() as u64);
        epoll_call::add(&queue, fd, data, flags).context("cannot wait for clients")?;
    }
    Ok(queue)
}

/// Removes both from the set, and stops listening.
pub(super) fn end_arrivals(queue: &OwnedFd, server: &Server) -> anyhow::Result<()> {
    for fd in [server.listener.as_fd(), server.stop.fd()] {
        epoll_call::delete(queue, fd).context("cannot stop waiting for clients")?;
    }
    server.listener.close();
    Ok(())
}

/// Calls epoll_wait() and fills `events`, which stays empty after a signal.
pub(super) fn wait_for_events(
    queue: &OwnedFd,
    events: &mut Vec<epoll_call::Event>,
    limit: Option<Duration>,
) -> anyhow::Result<()> {
    events.clear();
    let timeout = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    match epoll_call::wait(queue, spare_capacity(events), timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("epoll_wait failed"),
    }
}
