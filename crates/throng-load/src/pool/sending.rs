//! Clients' pending bytes, and how many of them were sent.

use super::super::client::State;
use super::ClientPool;

impl ClientPool {
    /// The next bytes that a client sends.
    pub(in super::super) fn pending(&self, slot: usize) -> &[u8] {
        if self.rules.makes {
            self.requesters.generated(slot)
        } else {
            self.clients[slot].unsent
        }
    }

    /// The same bytes, if they live as long as the program.
    pub(in super::super) fn shared(&self, slot: usize) -> &'static [u8] {
        self.clients[slot].unsent
    }

    /// Whether they do not, because each request is built for one client.
    pub(in super::super) fn generates_requests(&self) -> bool {
        self.rules.makes
    }

    /// Records that `count` bytes were sent. Returns whether none are pending now.
    #[inline]
    pub(in super::super) fn sent(&mut self, slot: usize, count: usize) -> bool {
        let client = &mut self.clients[slot];
        if client.is_ahead && client.unsent.len() == count {
            client.unsent = &[];
            self.count_sent(slot, count);
            return true;
        }
        self.sent_in_part(slot, count);
        self.pending(slot).is_empty()
    }

    #[inline(never)]
    fn sent_in_part(&mut self, slot: usize, count: usize) {
        self.sync_requester(slot);
        let client = &mut self.clients[slot];
        // An early reply has withdrawn pending bytes. A handshake may end after the last reply.
        if client.state == State::Open
            || (client.state == State::Closing && self.rules.has_handshake)
        {
            client.unsent = self.requesters.advance(slot, count);
        }
        self.count_sent(slot, count);
    }

    /// Reports unsent bytes to a client's requester.
    pub(super) fn sync_requester(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        if std::mem::take(&mut client.is_ahead) {
            self.requesters.take_back(slot, client.unsent.len());
        }
    }

    /// Counts bytes that were sent over a connection that has ended since, or that are no longer pending.
    #[inline]
    pub(in super::super) fn count_sent(&mut self, slot: usize, count: usize) {
        let client = &mut self.clients[slot];
        let bytes = count as u64;
        client.bytes_sent += bytes;
        self.progress.bytes += bytes;
        // They were sent between the last clock reading and the next one.
        if self.window.has(client.sent) {
            self.stats.window_bytes_sent += bytes;
        }
    }

    /// Takes back bytes that counted as sent but were not: the connection failed, or the server had read enough.
    pub(in super::super) fn uncount_sent(&mut self, slot: usize, count: usize) {
        let client = &mut self.clients[slot];
        let bytes = count as u64;
        client.bytes_sent = client.bytes_sent.saturating_sub(bytes);
        self.progress.bytes = self.progress.bytes.saturating_sub(bytes);
        if self.window.has(client.sent) {
            let sent = &mut self.stats.window_bytes_sent;
            *sent = sent.saturating_sub(bytes);
        }
    }
}
