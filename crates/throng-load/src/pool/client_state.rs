//! State of one client: its open requests, and its stats.

use super::super::client::{NO_DUE, Stamp, State, first_budget};
use super::super::client_stats::{ClientStats, ErrorKind};
use super::ClientPool;

impl ClientPool {
    /// Removes the open request that the next reply answers.
    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    pub(super) fn take_answered(&mut self, slot: usize) -> Stamp {
        if self.rules.has_handshake
            && let Some(place) = usize::from(self.requesters.answered(slot)).checked_sub(1)
            && let Some(stamp) = self
                .later
                .get_mut(slot)
                .and_then(|later| later.remove(place))
        {
            self.clients[slot].outstanding -= 1;
            return stamp;
        }
        self.take_oldest(slot)
    }

    /// Removes a client's oldest open request.
    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    pub(super) fn take_oldest(&mut self, slot: usize) -> Stamp {
        let client = &mut self.clients[slot];
        let sent = client.sent;
        let due = self.dues.get(slot).map_or(sent, |due| *due);
        client.outstanding = client.outstanding.saturating_sub(1);
        let next = if client.outstanding > 0 {
            self.later[slot].pop_front()
        } else {
            None
        };
        if let Some(next) = next {
            client.sent = next.sent;
        }
        if let Some(kept) = self.dues.get_mut(slot) {
            *kept = next.map_or(NO_DUE, |next| next.due);
        }
        Stamp { due, sent }
    }

    /// Drops a client's open requests, and returns them.
    pub(super) fn drop_outstanding(&mut self, slot: usize) -> impl Iterator<Item = Stamp> + use<> {
        if self.clients[slot].outstanding > 0 {
            self.drop_session(slot);
        }
        let client = &mut self.clients[slot];
        let sent = client.sent;
        let mut oldest = (client.outstanding > 0).then_some(Stamp { due: sent, sent });
        if let (Some(oldest), Some(due)) = (&mut oldest, self.dues.get_mut(slot)) {
            oldest.due = std::mem::replace(due, NO_DUE);
        }
        client.outstanding = 0;
        let later = self.later.get_mut(slot).map(std::mem::take);
        oldest.into_iter().chain(later.unwrap_or_default())
    }

    /// When the request for which a client connects was due; [`NO_DUE`] if there is none.
    pub(super) fn pending_due(&self, slot: usize) -> u64 {
        match self.dues.get(slot) {
            Some(due) if self.clients[slot].outstanding == 0 => *due,
            _ => NO_DUE,
        }
    }

    /// Like [`pending_due`](Self::pending_due), but also resets it.
    pub(super) fn take_pending_due(&mut self, slot: usize) -> u64 {
        match self.dues.get_mut(slot) {
            Some(due) if self.clients[slot].outstanding == 0 => std::mem::replace(due, NO_DUE),
            _ => NO_DUE,
        }
    }

    /// Whether a client's connection may end without a failure: it is idle, or had requests before the open ones.
    pub(super) fn may_end(&self, slot: usize) -> bool {
        let client = &self.clients[slot];
        client.outstanding == 0
            || self.details[slot].requests_begun(client.budget) > u32::from(client.outstanding)
    }

    /// Counts an error of a client.
    pub(super) fn record_error(&mut self, slot: usize, kind: ErrorKind) {
        let details = &mut self.details[slot];
        details.errors += 1;
        if details.error == 0 {
            details.error = self.errors.number(kind);
        }
    }

    /// Records the sizes of replies' bodies since the last call.
    #[cold]
    pub(super) fn record_sizes(&mut self, slot: usize) {
        let sizes = &mut self.stats.reply_bytes;
        self.requesters
            .sizes(slot, &mut |bytes, count| sizes.record(bytes, count));
    }

    /// The stats of a client.
    pub(super) fn client_stats(&self, slot: usize) -> ClientStats {
        let (client, details) = (&self.clients[slot], &self.details[slot]);
        let ended_at = |state| {
            let ended = client.state == state;
            ended.then(|| details.since.saturating_sub(self.began))
        };
        let session = self.sessions.get(slot);
        let later = session.map_or(0, |session| session.later_requests);
        let granted = first_budget(&self.plan, self.client_number(slot));
        ClientStats {
            source: self.sources.address(details.source),
            started_at: details.started_at.get(),
            connected_at: details.connected_at.get(),
            first_reply_at: details.first_reply_at.get(),
            connections: details.connections,
            done_at: ended_at(State::Done),
            failed_at: ended_at(State::Lost),
            errors: details.errors,
            requests: granted
                .wrapping_add(details.regained.into())
                .wrapping_add(later)
                .wrapping_sub(client.budget),
            replies: client.counted + details.uncounted,
            window_replies: client.counted,
            bytes_sent: client.bytes_sent,
            bytes_received: client.bytes_received,
            error: self.errors.kind(details.error),
        }
    }
}
