//! What clients have to send, and what of it has left.

use super::super::client::State;
use super::ClientPool;

impl ClientPool {
    /// What a client has to send next.
    pub(in super::super) fn pending(&self, slot: usize) -> &[u8] {
        if self.rules.makes {
            self.requesters.made(slot)
        } else {
            self.clients[slot].unsent
        }
    }

    /// The same, where it lives as long as the program.
    pub(in super::super) fn shared(&self, slot: usize) -> &'static [u8] {
        self.clients[slot].unsent
    }

    /// Whether it does not: each request is put together for one client.
    pub(in super::super) fn makes(&self) -> bool {
        self.rules.makes
    }

    /// So much of it has left. Whether nothing is pending now.
    #[inline]
    pub(in super::super) fn sent(&mut self, slot: usize, count: usize) -> bool {
        let client = &mut self.clients[slot];
        if client.is_ahead && client.unsent.len() == count {
            client.unsent = &[];
            self.sent_before(slot, count);
            return true;
        }
        self.sent_in_part(slot, count);
        self.pending(slot).is_empty()
    }

    #[inline(never)]
    fn sent_in_part(&mut self, slot: usize, count: usize) {
        self.tell_requester(slot);
        let client = &mut self.clients[slot];
        // A reply that came early has taken back what was pending. A handshake may end after the last reply.
        if client.state == State::Open
            || (client.state == State::Leaving && self.rules.has_handshake)
        {
            client.unsent = self.requesters.advance(slot, count);
        }
        self.sent_before(slot, count);
    }

    /// Has a client's requester know what has not left.
    pub(super) fn tell_requester(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        if std::mem::take(&mut client.is_ahead) {
            self.requesters.take_back(slot, client.unsent.len());
        }
    }

    /// So much has left over a connection that has ended since, or been taken off what is pending.
    #[inline]
    pub(in super::super) fn sent_before(&mut self, slot: usize, count: usize) {
        let client = &mut self.clients[slot];
        let count = count as u64;
        client.bytes_sent += count;
        self.progress.bytes += count;
        // It left between the last clock reading and the next one.
        if self.window.has(client.sent) {
            self.stats.window_bytes_sent += count;
        }
    }

    /// So much that was taken to have left has not: the connection broke, or the server had heard enough.
    pub(in super::super) fn has_not_left(&mut self, slot: usize, count: usize) {
        let client = &mut self.clients[slot];
        let count = count as u64;
        client.bytes_sent = client.bytes_sent.saturating_sub(count);
        self.progress.bytes = self.progress.bytes.saturating_sub(count);
        if self.window.has(client.sent) {
            let sent = &mut self.stats.window_bytes_sent;
            *sent = sent.saturating_sub(count);
        }
    }
}
