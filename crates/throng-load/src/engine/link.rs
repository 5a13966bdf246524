//! A client's connection on io_uring, and its pending operations.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net;
use throng_sys::ring::{Target, Turn};

/// A client's connection. Its descriptor stays open until the kernel receives no more for it, so that none of its
/// events is mistaken for one of the next connection.
#[derive(Default)]
pub(super) struct Link {
    pub(super) socket: Option<OwnedFd>,
    /// The target of the ring's operations: the registered socket, once it is connected.
    pub(super) target: Target,
    /// Distinguishes this connection from the client's other ones.
    pub(super) turn: Turn,
    /// The awaited completion.
    pub(super) awaited: AwaitedCompletion,
    /// The last send.
    pub(super) sending: Sending,
    /// The last send of the client's previous connection.
    pub(super) was_sending: Sending,
    /// The value of `IoUring::handed_over` when its last send was begun.
    pub(super) sent_in: u32,
    pub(super) closing: Closing,
}

const _: () = assert!(size_of::<Link>() == 24);

impl Link {
    /// Whether to close it as soon as the kernel is done with it.
    pub(super) fn is_closing(&self) -> bool {
        self.closing != Closing::No
    }

    /// Whether a connection that ended was reset. The kernel reports that only once: perhaps to the pending send,
    /// whose completion comes later.
    pub(super) fn was_reset(&self) -> bool {
        let is_gone = |socket| net::getpeername(socket) == Err(Errno::NOTCONN);
        self.sending.is_notified() && self.socket.as_ref().is_some_and(is_gone)
    }
}

/// A completion of a connection.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AwaitedCompletion {
    #[default]
    Nothing,
    /// The outcome of connecting.
    Connection,
    /// Bytes, or the end of the stream.
    Bytes,
}

/// Whether a connection closes as soon as the kernel is done with it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Closing {
    #[default]
    No,
    Yes,
    /// It closes, and then the client connects again.
    ToReconnect,
}

/// Bytes submitted to be sent: how many of them have already counted as sent, and [`NOTIFIED`].
#[derive(Default)]
pub(super) struct Sending(u32);

/// The kernel reports in any case that they were sent, so nothing else is sent before that.
const NOTIFIED: u32 = 1 << 31;

impl Sending {
    /// Bytes submitted to be sent; `counted` of them have already counted as sent.
    pub(super) fn new(is_notified: bool, counted: usize) -> Self {
        let fitting = u32::try_from(counted)
            .ok()
            .filter(|counted| counted & NOTIFIED == 0);
        let bits = fitting.expect("what is counted before it leaves is small");
        Self(bits | if is_notified { NOTIFIED } else { 0 })
    }

    pub(super) fn is_notified(&self) -> bool {
        self.0 & NOTIFIED != 0
    }

    /// From now on, the kernel reports in any case.
    pub(super) fn notify(&mut self) {
        self.0 |= NOTIFIED;
    }

    /// Resets it. Returns how many bytes had counted as sent.
    pub(super) fn take(&mut self) -> usize {
        (std::mem::take(self).0 & !NOTIFIED) as usize
    }

    /// Handles the kernel's report that `left` bytes were sent. Returns how many bytes are to be counted now, and how
    /// many were counted wrongly.
    pub(super) fn end(&mut self, left: usize) -> (usize, usize) {
        let counted = self.take();
        (left.saturating_sub(counted), counted.saturating_sub(left))
    }
}
