//! Buffers that the kernel owns until they are sent.

use rustix::io::Errno;
use throng_sys::ring::{Notify, Send, Turn, WhenFull};

use super::super::super::pool::ClientPool;
use super::super::Engine as _;
use super::super::link::Sending;
use super::super::transport::Transport;
use super::{IoUring, errno};

impl<T: Transport> IoUring<T> {
    /// Submits a client's pending bytes in a buffer, unless some are still being sent. Nearly always, all of it is
    /// sent immediately. The rest comes back if the socket has no room.
    pub(super) fn lend(&mut self, pool: &mut ClientPool, slot: usize) {
        let link = &mut self.links[slot];
        if link.socket.is_none() || link.sending.is_notified() || link.is_closing() {
            return;
        }
        if link.sent_in == self.handed_over {
            // It is not known yet whether all of that is sent.
            self.again.push(slot as u32);
            return;
        }
        let mut buffer = self.ring.buffer();
        let counted = match self.transport.lend(pool, slot, &mut buffer) {
            Ok(counted) => counted,
            Err(error) => {
                let action = self.transport.not_sent(pool, slot, error, self.time);
                self.apply(pool, slot, action);
                return;
            }
        };
        if buffer.is_empty() {
            self.ring.keep(buffer);
            return;
        }
        let is_notified = self.pipelined || !pool.pending(slot).is_empty();
        link.sending = Sending::new(is_notified, counted);
        let notify = if is_notified {
            Notify::Always
        } else {
            Notify::Trouble
        };
        link.sent_in = self.handed_over;
        let send = Send {
            name: slot as u32,
            turn: link.turn,
            when_full: WhenFull::Fail,
            notify,
        };
        if let Err(error) = self.ring.send(link.target, send, buffer, 0) {
            let action = pool.connection_failed(slot, errno(&error), self.time);
            self.apply(pool, slot, action);
        }
    }

    /// A buffer is back, and its bytes before `end` were sent.
    pub(super) fn buffer_returned(
        &mut self,
        pool: &mut ClientPool,
        (slot, turn): (usize, Turn),
        buffer: Vec<u8>,
        end: usize,
        error: Option<Errno>,
    ) {
        let link = &mut self.links[slot];
        let is_now = link.turn == turn && !link.is_closing() && link.socket.is_some();
        let has_rest = end < buffer.len();
        let may_wait = matches!(error, None | Some(Errno::AGAIN | Errno::INTR));
        if is_now && has_rest && may_wait {
            link.sending.notify();
            let send = Send {
                name: slot as u32,
                turn,
                when_full: WhenFull::Wait,
                notify: Notify::Always,
            };
            if let Err(refused) = self.ring.send(link.target, send, buffer, end) {
                let action = pool.connection_failed(slot, errno(&refused), self.time);
                self.apply(pool, slot, action);
            }
            return;
        }
        let sending = if link.turn == turn {
            &mut link.sending
        } else {
            &mut link.was_sending
        };
        let counted = sending.take();
        if has_rest {
            // A part of a TLS record is useless, so all of it is needed.
            let left = if T::SEALS { 0 } else { end };
            pool.uncount_sent(slot, counted.saturating_sub(left));
        }
        self.ring.keep(buffer);
        if !is_now {
            return;
        }
        match error {
            Some(error) => {
                let action = self.transport.not_sent(pool, slot, error, self.time);
                self.apply(pool, slot, action);
            }
            None => self.send(pool, slot),
        }
    }
}
