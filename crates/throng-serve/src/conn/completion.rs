//! The part of a connection for models that submit whole operations to the kernel: answers are lent to an operation
//! until it ends.

use std::os::fd::AsFd;

use super::{Conn, Interest, State};
use crate::buffer_pool::BufferPool;
use throng_protocol::OUTPUT_LIMIT;

/// Answers that the kernel owns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lent {
    bytes: usize,
    /// The number of these that were sent.
    sent: usize,
}

impl<S: AsFd> Conn<S> {
    /// Lends the pending answers to the kernel until they are
    /// [reclaimed](Self::reclaim); none when nothing is pending, or the kernel has some already.
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

    /// Submits the pending answers in a way that gives no completion if all of them are sent at once, as they mostly
    /// are: so they count as sent. None if the connection has something to do after they are sent, or if their buffer
    /// is larger than this.
    pub fn hand_over(&mut self, largest: usize) -> Option<Vec<u8>> {
        let is_all = self.state == State::Serving && self.backlog.is_none();
        if !is_all || self.out.is_empty() || self.out.capacity() > largest {
            return None;
        }
        self.stats.sent(self.out.len());
        Some(std::mem::take(&mut self.out))
    }

    /// Not all of so many bytes that were [handed over](Self::hand_over) were sent: they are lent, and none of them
    /// counts as sent.
    pub fn returned_unsent(&mut self, bytes: usize) {
        self.stats.not_sent(bytes);
        self.backlog_mut().lent = Some(Lent { bytes, sent: 0 });
    }

    /// Counts more sent bytes of those that were lent; the kernel continues with the rest. Returns where that begins.
    pub fn sent_of_lent(&mut self, count: usize) -> usize {
        self.timeout_checks.moved();
        self.stats.sent(count);
        let lent = self.backlog.as_mut().and_then(|left| left.lent.as_mut());
        lent.map_or(0, |lent| {
            lent.sent += count;
            lent.sent
        })
    }

    /// Takes back the lent buffer, of which `sent` more bytes were sent. Returns it once all were.
    pub fn reclaim(&mut self, mut lent: Vec<u8>, sent: usize) -> Option<Vec<u8>> {
        let sent = self.sent_of_lent(sent);
        self.change_backlog(|backlog| backlog.lent = None);
        if sent == lent.len() {
            lent.clear();
            return Some(lent);
        }
        // The unsent rest goes before newer answers.
        lent.drain(..sent);
        lent.append(&mut self.out);
        self.out = lent;
        None
    }

    /// Borrows an output buffer from the worker, before [`feed`](Self::feed).
    pub fn take_buffer(&mut self, room: &mut Vec<u8>) {
        if self.out.capacity() == 0 {
            std::mem::swap(&mut self.out, room);
        }
    }

    /// Returns it, if it holds no answers.
    pub fn return_buffer(&mut self, pool: &mut BufferPool) {
        if self.out.is_empty() && self.out.capacity() != 0 {
            pool.keep(std::mem::take(&mut self.out));
        }
    }

    /// Whether it is idle until the client sends or closes.
    pub fn is_idle(&self) -> bool {
        self.is_caught_up()
    }

    /// Whether more has arrived than there is room to answer: read no further until answers were sent.
    pub fn is_full(&self) -> bool {
        let backlog = self.backlog.as_ref();
        backlog.is_some_and(|backlog| !backlog.held.is_empty())
    }

    /// Whether the kernel owns answers.
    pub(super) fn is_lent(&self) -> bool {
        let backlog = self.backlog.as_ref();
        backlog.is_some_and(|backlog| backlog.lent.is_some())
    }

    /// Whether it continues, or ends, as soon as the lent bytes were sent.
    pub fn goes_on_when_sent(&self) -> bool {
        let more = !self.out.is_empty() || self.is_full() || self.state != State::Serving;
        self.is_lent() && more
    }

    /// For models that submit operations to the kernel: what to wait for next. [`Interest::Write`] means to
    /// [lend](Self::lend), or to wait for what is lent.
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

    /// Whether more may be answered: not if the lent bytes, once some of them came back, would exceed the limit
    /// together with new answers.
    pub(super) fn has_room(&self) -> bool {
        let lent = self.backlog.as_ref().and_then(|backlog| backlog.lent);
        lent.is_none_or(|lent| lent.bytes < OUTPUT_LIMIT)
    }
}
