//! What clients say beside their requests, where a connection has a handshake.

use super::super::client::State;
use super::{Action, ClientPool};

impl ClientPool {
    /// What it says before it closes its connection in order.
    pub(in super::super) fn farewell(&mut self, slot: usize) -> &'static [u8] {
        if self.rules.has_handshake {
            self.requesters.farewell(slot)
        } else {
            &[]
        }
    }

    /// Whether connections end with a farewell.
    pub(in super::super) fn has_farewells(&self) -> bool {
        self.rules.has_handshake
    }

    /// Has a client send what the server's words called for.
    pub(super) fn answer(&mut self, slot: usize) -> Action {
        let client = &mut self.clients[slot];
        if !matches!(client.state, State::Open | State::Leaving) {
            return Action::Keep;
        }
        client.unsent = self.requesters.pending(slot);
        if client.unsent.is_empty() {
            Action::Keep
        } else {
            Action::Send
        }
    }
}
