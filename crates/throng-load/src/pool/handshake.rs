//! Messages of clients in addition to requests, for dialogues with a handshake.

use super::super::client::State;
use super::{Action, ClientPool};

impl ClientPool {
    /// The last bytes before an orderly close.
    pub(in super::super) fn closing_message(&mut self, slot: usize) -> &'static [u8] {
        if self.rules.has_handshake {
            self.requesters.closing_message(slot)
        } else {
            &[]
        }
    }

    /// Whether connections end with a closing message.
    pub(in super::super) fn has_closing_message(&self) -> bool {
        self.rules.has_handshake
    }

    /// Sends a client's reaction to the server's message.
    pub(super) fn answer(&mut self, slot: usize) -> Action {
        let client = &mut self.clients[slot];
        if !matches!(client.state, State::Open | State::Closing) {
            return Action::Keep;
        }
        client.unsent = self.requesters.pending(slot);
        if self.pending(slot).is_empty() {
            Action::Keep
        } else {
            Action::Send
        }
    }
}
