//! What a connection does for models that hand whole operations to the kernel: answers that leave
//! with an operation are lent to it until it ends.

use std::os::fd::AsFd;

use super::{Conn, Interest, State};
use crate::buffer_pool::BufferPool;
use throng_protocol::OUTPUT_LIMIT;

/// Answers that the kernel has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lent {
    bytes: usize,
    /// Of these, how many have left.
    sent: usize,
}

impl<S: AsFd> Conn<S> {
    /// Hands the pending answers over to the kernel, which has them until they are
    /// [reclaimed](Self::reclaim); none when nothing is pending, or the kernel has some already.
    pub fn lend(&mut self) -> Option<Vec<u8>> {
        self.digest_held();
        if self.lent.is_some() || self.out.is_empty() {
            return None;
        }
        debug_assert_eq!(self.sent, 0, "what is lent is sent whole or comes back");
        self.lent = Some(Lent {
            bytes: self.out.len(),
            sent: 0,
        });
        Some(std::mem::take(&mut self.out))
    }

    /// Hands the pending answers over to the kernel, which mostly sends all of them at once and then says nothing: so they
    /// count as sent. None where the connection has something to do after they have left, or where their buffer is larger
    /// than this.
    pub fn hand_over(&mut self, largest: usize) -> Option<Vec<u8>> {
        let is_all = self.state == State::Serving && self.held.is_empty() && self.lent.is_none();
        if !is_all || self.out.is_empty() || self.out.capacity() > largest {
            return None;
        }
        debug_assert_eq!(
            self.sent, 0,
            "what is handed over is sent whole or comes back"
        );
        self.stats.sent(self.out.len());
        Some(std::mem::take(&mut self.out))
    }

    /// Of so many bytes that were [handed over](Self::hand_over) not all have left: they are lent, and none of them has
    /// been sent yet.
    pub fn came_back(&mut self, bytes: usize) {
        self.stats.not_sent(bytes);
        self.lent = Some(Lent { bytes, sent: 0 });
    }

    /// So many more bytes of what is lent have left, and the kernel goes on with the rest; gives
    /// where that begins.
    pub fn sent_of_lent(&mut self, count: usize) -> usize {
        self.looks.moved();
        self.stats.sent(count);
        self.lent.as_mut().map_or(0, |lent| {
            lent.sent += count;
            lent.sent
        })
    }

    /// Takes back what was lent, of which `sent` more bytes have left; gives the buffer when all
    /// have.
    pub fn reclaim(&mut self, mut lent: Vec<u8>, sent: usize) -> Option<Vec<u8>> {
        let sent = self.sent_of_lent(sent);
        self.lent = None;
        if sent == lent.len() {
            lent.clear();
            return Some(lent);
        }
        // What could not leave goes before what was answered meanwhile.
        lent.drain(..sent);
        lent.append(&mut self.out);
        self.out = lent;
        None
    }

    /// Takes room for answers from the worker, to be called before [`feed`](Self::feed).
    pub fn take_room(&mut self, room: &mut Vec<u8>) {
        if self.out.capacity() == 0 {
            std::mem::swap(&mut self.out, room);
        }
    }

    /// Gives it back, if there are no answers in it.
    pub fn give_room(&mut self, pool: &mut BufferPool) {
        if self.out.is_empty() && self.out.capacity() != 0 {
            pool.keep(std::mem::take(&mut self.out));
        }
    }

    /// Whether it has nothing to do until the client asks or leaves.
    pub fn is_at_rest(&self) -> bool {
        self.lent.is_none() && self.is_caught_up()
    }

    /// Whether more has arrived than there is room to answer: read no further until it has left.
    pub fn is_full(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether it has more to do, or ends, as soon as what is lent was sent.
    pub fn goes_on_when_sent(&self) -> bool {
        let more = !self.out.is_empty() || !self.held.is_empty() || self.state != State::Serving;
        self.lent.is_some() && more
    }

    /// For models that hand operations to the kernel: what to ask it for next. [`Interest::Write`]
    /// means to [lend](Self::lend), or to wait for what is lent.
    pub fn settle(&mut self) -> Interest {
        self.digest_held();
        if self.lent.is_some() || !self.out.is_empty() {
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

    /// Whether more may be answered: not while what is lent is so much that, once some of it came
    /// back, it would pass all bounds with what was answered meanwhile.
    pub(super) fn has_room(&self) -> bool {
        self.lent.is_none_or(|lent| lent.bytes < OUTPUT_LIMIT)
    }
}
