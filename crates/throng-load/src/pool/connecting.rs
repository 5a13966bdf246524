//! How clients connect.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use rustix::net;
use throng_record::load_stats::TENTHS;
use throng_tls::Negotiated;

use super::super::client::{Moment, NO_DUE, Since, State};
use super::super::client_stats::ErrorKind;
use super::{Action, ClientPool};

impl ClientPool {
    /// The next client whose turn to connect has come. The engine connects it immediately.
    pub(in super::super) fn next_to_connect(&mut self, now: u64) -> Option<usize> {
        let is_over = now >= self.window.until;
        if is_over && self.schedule.is_none() {
            return None;
        }
        let may_start = !is_over && self.may_start_next();
        let slot = if may_start && self.start_time(self.next_to_start) <= now {
            self.present += 1;
            self.next_to_start += 1;
            self.next_to_start - 1
        } else {
            loop {
                let slot = self.connect_queue.pop_front()? as usize;
                let is_wanted = !is_over || self.pending_due(slot) != NO_DUE;
                if self.clients[slot].state == State::Queued && is_wanted {
                    break slot;
                }
            }
        };
        self.clients[slot].state = State::Connecting;
        let details = &mut self.details[slot];
        details.since = now;
        details.started_at.set_first(now - self.began);
        if let Some(since) = self.handshakes.get_mut(slot) {
            *since = Moment::NEVER;
        }
        self.connecting += 1;
        Some(slot)
    }

    /// Whether there is a client that has not had its turn to connect, and room for it.
    pub(super) fn may_start_next(&self) -> bool {
        self.next_to_start < self.clients.len() && self.present < self.at_once
    }

    /// When it is a client's first turn to connect.
    pub(super) fn start_time(&self, slot: usize) -> u64 {
        match self.plan.connects_per_s {
            Some(rate) => self.began + (self.client_number(slot) as f64 * 1e9 / rate) as u64,
            None => self.began,
        }
    }

    /// Records the local address of a client, the first time.
    pub(in super::super) fn record_source(&mut self, slot: usize, socket: BorrowedFd<'_>) {
        let source = &mut self.details[slot].source;
        if *source == (0, 0)
            && let Ok(address) = net::getsockname(socket)
            && let Ok(address) = address.try_into()
        {
            *source = self.sources.number(address);
        }
    }

    /// A connection is established.
    pub(in super::super) fn connected(&mut self, slot: usize, now: u64) -> Action {
        self.connecting -= 1;
        let (client, details) = (&mut self.clients[slot], &mut self.details[slot]);
        let took = now.saturating_sub(details.since);
        self.stats.connect_time.record(took);
        client.state = State::Open;
        if client.since_reply == Since::Rest {
            client.since_reply = Since::Reply;
        }
        if self.rules.has_handshake {
            self.requesters.drop_requests(slot); // of the last connection
        }
        details.since = now;
        details.first_budget = client.budget as u32;
        details.connections += 1;
        if details.connected_at.set_first(now - self.began) {
            self.progress.connected += 1;
            let rank = self.connected.fetch_add(1, Relaxed);
            let tenth = rank * TENTHS as u64 / u64::from(self.plan.own_clients().max(1));
            client.tenth = tenth.min(TENTHS as u64 - 1) as u8;
        }
        let was_answered = client.was_answered;
        let is_over = now >= self.window.until;
        if is_over && self.schedule.is_none() {
            return Action::Keep;
        }
        let pending_due = self.take_pending_due(slot);
        if pending_due != NO_DUE {
            self.begin_overdue_request(slot, pending_due, now);
            return Action::Send;
        }
        if is_over {
            return Action::Keep;
        }
        // With a schedule, nothing is sent before it is due.
        let is_scheduled = self.schedule.is_some() && self.window.from < u64::MAX;
        if !was_answered && !is_scheduled && !self.rules.thinks_first {
            self.begin_request(slot, now, now);
            return Action::Send;
        }
        self.after_reply(slot, now)
    }

    /// A connection is established, and the handshake begins.
    pub(in super::super) fn begin_handshake(&mut self, slot: usize, now: u64) {
        if let Some(since) = self.handshakes.get_mut(slot) {
            *since = Moment::at(now);
        }
    }

    /// The handshake is complete.
    pub(in super::super) fn handshake_completed(
        &mut self,
        slot: usize,
        agreed: &Negotiated<'_>,
        now: u64,
    ) -> Action {
        let since = self.handshakes.get(slot).and_then(|since| since.get());
        let took = now.saturating_sub(since.unwrap_or(now));
        let in_window = self.window.has(now);
        if let Some(tls) = &mut self.stats.tls {
            tls.add(agreed.is_resumed(), agreed.text(), took, in_window);
        }
        self.connected(slot, now)
    }

    /// A connection failed to be established.
    pub(in super::super) fn not_connected(
        &mut self,
        slot: usize,
        error: Errno,
        now: u64,
    ) -> Action {
        self.fail(slot, ErrorKind::of(error), now)
    }
}
