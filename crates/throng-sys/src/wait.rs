//! epoll_pwait2(2): epoll with a time limit in nanoseconds.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

/// The kernel's `timespec`, the same on all machines.
#[repr(C)]
struct KernelTimespec {
    _seconds: i64,
    _nanoseconds: i64,
}

// The kernel's `epoll_event` has the layout of `Event`.
const _: () = assert!(size_of::<epoll::Event>() == size_of::<libc::epoll_event>());

/// Fills the spare capacity of `events` with events, after at most `limit`.
///
/// Before Linux 5.11, the limit is rounded up to milliseconds for epoll_wait(2).
///
/// # Errors
/// As epoll_wait(2), EINTR included.
pub fn wait(queue: impl AsFd, events: &mut Vec<epoll::Event>, limit: Duration) -> io::Result<()> {
    static MISSING: AtomicBool = AtomicBool::new(false);
    if !MISSING.load(Relaxed) {
        match wait_exactly(&queue, events, limit) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                MISSING.store(true, Relaxed);
            }
            waited => return waited,
        }
    }
    let time = Timespec::try_from(limit).map_err(io::Error::other)?;
    epoll::wait(queue, spare_capacity(events), Some(&time))?;
    Ok(())
}

fn wait_exactly(
    queue: impl AsFd,
    events: &mut Vec<epoll::Event>,
    limit: Duration,
) -> io::Result<()> {
    let room = events.spare_capacity_mut();
    let most = libc::c_int::try_from(room.len()).unwrap_or(libc::c_int::MAX);
    let limit = KernelTimespec {
        _seconds: limit.as_secs() as i64,
        _nanoseconds: limit.subsec_nanos().into(),
    };
    // SAFETY: `room` has space for `most` events, which have the layout that the kernel writes
    // (asserted above, and by the documentation of `epoll::Event`); `limit` lives through the call;
    // no signal mask is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            queue.as_fd().as_raw_fd(),
            room.as_mut_ptr(),
            most,
            &raw const limit,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    let count = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in `count` events, at most as many as there was room for.
    unsafe { events.set_len(events.len() + count) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn waits_for_an_event_or_the_time_limit() {
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let data = epoll::EventData::new_u64(7);
        epoll::add(&queue, &reader, data, epoll::EventFlags::IN).unwrap();
        let mut events = Vec::with_capacity(4);
        let limit = Duration::from_micros(300);
        let began = Instant::now();
        wait(&queue, &mut events, limit).unwrap();
        assert!(began.elapsed() >= limit && events.is_empty());
        rustix::io::write(&writer, b"x").unwrap();
        wait(&queue, &mut events, Duration::from_mins(1)).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].data.u64(), 7);
    }
}
