//! A client's connection on io_uring, and what the kernel has of it.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net;
use throng_sys::ring::Turn;

/// A client's connection. Its descriptor stays open until the kernel receives no more for it, so that
/// no event of it is taken for one of the next.
#[derive(Default)]
pub(super) struct Link {
    pub(super) socket: Option<OwnedFd>,
    /// Tells it from the client's other ones.
    pub(super) turn: Turn,
    /// What the kernel will tell of.
    pub(super) awaited: Awaits,
    /// What was handed over last.
    pub(super) sending: Sending,
    /// The same of the client's last connection.
    pub(super) was_sending: Sending,
    /// When its last send was begun, as `IoUring::handed_over` was then.
    pub(super) sent_in: u32,
    /// Whether it is to be dropped as soon as the kernel is done with it.
    pub(super) ends: bool,
    /// Whether the client is to connect anew then.
    pub(super) again: bool,
}

impl Link {
    /// Whether a connection that ended was reset, of which the kernel tells only once: perhaps
    /// the send that was under way, and that is heard of later.
    pub(super) fn was_reset(&self) -> bool {
        let is_gone = |socket| net::getpeername(socket) == Err(Errno::NOTCONN);
        self.sending.is_notified && self.socket.as_ref().is_some_and(is_gone)
    }
}

/// What the kernel will tell of a connection.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Awaits {
    #[default]
    Nothing,
    /// That it stands, or cannot.
    Connection,
    /// Bytes, or the end.
    Bytes,
}

/// Bytes handed over to be sent.
#[derive(Default)]
pub(super) struct Sending {
    /// Whether the kernel will tell in any case that they have left, so that nothing is sent before.
    pub(super) is_notified: bool,
    /// How many were counted as sent already; what the kernel says did not leave was not.
    pub(super) counted: u32,
}

impl Sending {
    /// Bytes of which so many were counted as sent already.
    pub(super) fn new(is_notified: bool, counted: usize) -> Self {
        Self {
            is_notified,
            counted: u32::try_from(counted).expect("what is counted before it leaves is small"),
        }
    }

    /// The kernel says how many have left: those that are to be counted yet, and those that were wrongly.
    pub(super) fn end(&mut self, left: usize) -> (usize, usize) {
        let counted = std::mem::take(self).counted as usize;
        (left.saturating_sub(counted), counted.saturating_sub(left))
    }
}
