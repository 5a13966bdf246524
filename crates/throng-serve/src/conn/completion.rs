//! The part of a connection for models that submit whole operations to the kernel: answers are lent to an operation
//! until it completes.

use std::os::fd::AsFd;

use super::{Conn, Interest, State};
use crate::buffer_pool::BufferPool;
use throng_protocol::OUTPUT_LIMIT;

/// Answers that the kernel owns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lent {
    bytes: usize,
    /// How many of these bytes were sent.
    sent: usize,
}

impl<S: AsFd> Conn<S> {
    /// Lends the pending answers to the kernel until they are [reclaimed](Self::reclaim); `None` if nothing is
    /// pending, or the kernel already has some.
    pub fn lend(&mut self) -> Option<Vec<u8>> {
        self.process_held();
        if self.is_lent() || self.out.is_empty() {
            return None;
        }
        debug_assert_eq!(self.sent(), 0, "what is lent is sent whole or comes back");
        let bytes = self.out.len();
        self.backlog_mut().lent = Some(Lent { bytes, sent: 0 });
        Some(std::mem::take(&mut self.out))
    }

    /// Hands over the pending answers for a send that gives no completion if all of them are sent at once, as is
    /// usual: so they already count as sent. `None` if the connection has something to do after they are sent, or if
    /// their buffer is larger than `largest`.
    pub fn hand_over(&mut self, largest: usize) -> Option<Vec<u8>> {
        let is_all = self.state == State::Serving && self.backlog.is_none();
        if !is_all || self.out.is_empty() || self.out.capacity() > largest {
            return None;
        }
        self.stats.sent(self.out.len());
        Some(std::mem::take(&mut self.out))
    }

    /// Called if not all of the `bytes` bytes that were [handed over](Self::hand_over) were sent: they now count as
    /// lent, and none of them as sent.
    pub fn returned_unsent(&mut self, bytes: usize) {
        self.stats.not_sent(bytes);
        self.backlog_mut().lent = Some(Lent { bytes, sent: 0 });
    }

    /// Records that `count` more of the lent bytes were sent; the kernel continues with the rest. Returns where the
    /// rest begins.
    pub fn sent_of_lent(&mut self, count: usize) -> usize {
        self.timeout_checks.moved();
        self.stats.sent(count);
        let lent = self.backlog.as_mut().and_then(|left| left.lent.as_mut());
        lent.map_or(0, |lent| {
            lent.sent += count;
            lent.sent
        })
    }

    /// Takes back the lent buffer, of which `sent` more bytes were sent. Returns it emptied if all of it was sent.
    pub fn reclaim(&mut self, mut lent: Vec<u8>, sent: usize) -> Option<Vec<u8>> {
        let sent = self.sent_of_lent(sent);
        self.change_backlog(|backlog| backlog.lent = None);
        if sent == lent.len() {
            lent.clear();
            return Some(lent);
        }
        // The unsent rest comes before newer answers.
        lent.drain(..sent);
        lent.append(&mut self.out);
        self.out = lent;
        None
    }

    /// Borrows an output buffer from the worker, to be called before [`feed`](Self::feed).
    pub fn take_buffer(&mut self, room: &mut Vec<u8>) {
        if self.out.capacity() == 0 {
            std::mem::swap(&mut self.out, room);
        }
    }

    /// Returns that buffer, if it holds no answers.
    pub fn return_buffer(&mut self, pool: &mut BufferPool) {
        if self.out.is_empty() && self.out.capacity() != 0 {
            pool.keep(std::mem::take(&mut self.out));
        }
    }

    /// Whether the connection is idle until the client sends or closes.
    pub fn is_idle(&self) -> bool {
        self.is_caught_up()
    }

    /// Whether more has arrived than there is room to answer: if so, read no further until answers were sent.
    pub fn is_full(&self) -> bool {
        let backlog = self.backlog.as_ref();
        backlog.is_some_and(|backlog| !backlog.held.is_empty())
    }

    /// Whether the kernel owns answers.
    pub(super) fn is_lent(&self) -> bool {
        let backlog = self.backlog.as_ref();
        backlog.is_some_and(|backlog| backlog.lent.is_some())
    }

    /// Whether the connection has something to do once the lent bytes are sent.
    pub fn goes_on_when_sent(&self) -> bool {
        let more = !self.out.is_empty() || self.is_full() || self.state != State::Serving;
        self.is_lent() && more
    }

    /// For models that submit operations to the kernel: what to wait for next. [`Interest::Write`] means to
    /// [lend](Self::lend) answers, or to wait for those that are lent.
    pub fn next_interest(&mut self) -> Interest {
        self.process_held();
        if self.is_lent() || !self.out.is_empty() {
            return Interest::Write;
        }
        if let State::Parting(reason) = self.state {
            self.shut_our_side(reason);
        }
        if let State::Ending(reason) = self.state {
            self.stats.ends(reason);
            return Interest::Close;
        }
        Interest::Read
    }

    /// Whether more may be answered. It may not if the lent bytes, should some of them come back, would exceed the
    /// limit together with new answers.
    pub(super) fn has_room(&self) -> bool {
        let lent = self.backlog.as_ref().and_then(|backlog| backlog.lent);
        lent.is_none_or(|lent| lent.bytes < OUTPUT_LIMIT)
    }
}
