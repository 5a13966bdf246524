//! State of one client: its open requests, and its stats.

use super::super::client::{NOTHING_OWED, Stamp, State, first_budget};
use super::super::client_stats::{ClientStats, ErrorKind};
use super::ClientPool;

impl ClientPool {
    /// The oldest open request got its reply.
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
        if let Some(due) = self.dues.get_mut(slot) {
            *due = next.map_or(NOTHING_OWED, |next| next.due);
        }
        Stamp { due, sent }
    }

    /// Drops a client's open requests, and returns when each was due.
    pub(super) fn drop_outstanding(&mut self, slot: usize) -> impl Iterator<Item = u64> + use<> {
        let client = &mut self.clients[slot];
        let mut oldest = (client.outstanding > 0).then_some(client.sent);
        if let (Some(oldest), Some(due)) = (&mut oldest, self.dues.get_mut(slot)) {
            *oldest = std::mem::replace(due, NOTHING_OWED);
        }
        client.outstanding = 0;
        let later = self.later.get_mut(slot).map(std::mem::take);
        let later = later.unwrap_or_default();
        oldest
            .into_iter()
            .chain(later.into_iter().map(|stamp| stamp.due))
    }

    /// When the request was due for which a client connects; [`NOTHING_OWED`] if there is none.
    pub(super) fn owed(&self, slot: usize) -> u64 {
        match self.dues.get(slot) {
            Some(due) if self.clients[slot].outstanding == 0 => *due,
            _ => NOTHING_OWED,
        }
    }

    /// The same, and resets it.
    pub(super) fn take_owed(&mut self, slot: usize) -> u64 {
        match self.dues.get_mut(slot) {
            Some(due) if self.clients[slot].outstanding == 0 => {
                std::mem::replace(due, NOTHING_OWED)
            }
            _ => NOTHING_OWED,
        }
    }

    /// Whether a client made requests on its current connection before the open ones.
    pub(super) fn has_asked_before(&self, slot: usize) -> bool {
        let client = &self.clients[slot];
        self.lives[slot].made(client.budget) > u32::from(client.outstanding)
    }

    /// Counts an error of a client.
    pub(super) fn note_error(&mut self, slot: usize, kind: ErrorKind) {
        let life = &mut self.lives[slot];
        life.errors += 1;
        if life.error == 0 {
            life.error = self.errors.number(kind);
        }
    }

    /// Records the sizes of replies' bodies since the last call.
    #[cold]
    pub(super) fn note_sizes(&mut self, slot: usize) {
        let sizes = &mut self.stats.reply_bytes;
        self.requesters
            .sizes(slot, &mut |bytes, count| sizes.record(bytes, count));
    }

    /// The stats of a client.
    pub(super) fn client_stats(&self, slot: usize) -> ClientStats {
        let (client, life) = (&self.clients[slot], &self.lives[slot]);
        let ended_at = |state| {
            let ended = client.state == state;
            ended.then(|| life.since.saturating_sub(self.began))
        };
        let granted = first_budget(&self.plan, self.client_number(slot));
        ClientStats {
            source: self.sources.address(life.source),
            started_at: life.started_at.get(),
            connected_at: life.connected_at.get(),
            first_reply_at: life.first_reply_at.get(),
            connections: life.connections,
            done_at: ended_at(State::Done),
            failed_at: ended_at(State::Lost),
            errors: life.errors,
            requests: granted
                .wrapping_add(life.regained.into())
                .wrapping_sub(client.budget),
            replies: client.counted + life.uncounted,
            window_replies: client.counted,
            bytes_sent: client.bytes_sent,
            bytes_received: client.bytes_received,
            error: self.errors.kind(life.error),
        }
    }
}
