//! A network of its own for a thread and what it starts: network_namespaces(7).

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd as _;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// While it exists, the thread that created it, and the threads and processes that it starts, are in a new network
/// namespace, which has only a loopback device. The kernel removes it with its last process.
#[derive(Debug)]
#[must_use]
pub struct OwnNetwork {
    /// The namespace of the thread before.
    before: File,
    /// Only this thread can leave it.
    _of_this_thread: PhantomData<*const ()>,
}

impl OwnNetwork {
    /// Moves the calling thread.
    ///
    /// # Errors
    /// If the user may not (`CAP_SYS_ADMIN`), or the kernel has no network namespaces.
    pub fn enter() -> io::Result<Self> {
        let before = File::open("/proc/thread-self/ns/net")?;
        // SAFETY: only the namespace changes; descriptors stay shared.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        Ok(Self {
            before,
            _of_this_thread: PhantomData,
        })
    }
}

impl Drop for OwnNetwork {
    fn drop(&mut self) {
        let back = move_into_link_name_space(self.before.as_fd(), Some(LinkNameSpaceType::Network));
        back.expect("a thread may return to where it came from");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_returns_to_its_network() {
        let own = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let before = own();
        let Ok(network) = OwnNetwork::enter() else {
            return println!("skipped: this user may not");
        };
        assert_ne!(own(), before);
        let started = std::thread::spawn(own).join().unwrap();
        assert_eq!(started, own(), "what it starts is there too");
        drop(network);
        assert_eq!(own(), before);
    }
}
