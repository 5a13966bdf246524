//! How connections end, and with them requests and clients.

use rustix::io::Errno;

use super::super::client::{Moment, NO_DUE, Since, Stamp, State};
use super::super::client_stats::{ErrorKind, WorkerStats};
use super::super::{Close, Until};
use super::{Action, ClientPool};
use throng_protocol::{ProtocolError, Replies, ReplyCounts, explained};
use throng_tls::Fault;

/// Longest and shortest wait before a failed client reconnects. It doubles with each failure.
const BACKOFF: (u64, u64) = (1_000_000_000, 10_000_000);

/// How long a server that announced to close may take, in nanoseconds.
const PATIENCE: u64 = 100_000_000;

/// Why a reply never completes.
const NO_END: &str =
    "the reply has no end: it has no length, and the server keeps the connection open";

/// Unsent requests are divided into this many parts, to record how long they waited.
const PARTS: u64 = 1000;

/// The side that closes a connection whose end the server announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Closer {
    /// No end was announced yet.
    #[default]
    Unasked,
    /// One was announced.
    Unknown,
    /// The server closes, and so keeps the port in use (TIME_WAIT).
    Server,
    /// The server leaves that to its clients.
    Client,
}

impl ClientPool {
    /// The server closed its side.
    pub(in super::super) fn peer_closed(&mut self, slot: usize, now: u64) -> Action {
        let client = &mut self.clients[slot];
        match client.state {
            State::Closing => self.closed_as_announced(slot, now),
            // Servers close idle connections. The next request opens a new one.
            _ if client.outstanding == 0 => self.closed(slot, now),
            // They also close after they rejected a request, without announcing it.
            State::Open if client.was_refused => self.closed_after_refusal(slot, now),
            _ => match self.requesters.finish(slot) {
                Ok(replies) if replies.completed > 0 => {
                    let replies = Replies {
                        close: true,
                        ..replies
                    };
                    match self.answered(slot, replies, now) {
                        Action::Keep => self.closed(slot, now),
                        action => action,
                    }
                }
                Ok(_) if self.may_have_closed_at_rest(slot) => self.closed_at_rest(slot, now),
                Ok(_) => self.fail(slot, ErrorKind::ClosedEarly, now),
                Err(wrong) => self.fail_with_reply(slot, &[], &wrong, now),
            },
        }
    }

    /// The connection ended without TLS's close_notify. A reply without a length may be incomplete then (RFC 9112,
    /// section 9.8).
    pub(in super::super) fn peer_vanished(&mut self, slot: usize, now: u64) -> Action {
        let is_open = self.clients[slot].state == State::Open;
        if is_open && self.requesters.awaits_close(slot) {
            self.tls_failed(slot, &Fault::truncated(), now)
        } else {
            self.peer_closed(slot, now)
        }
    }

    /// The connection failed.
    pub(in super::super) fn connection_failed(
        &mut self,
        slot: usize,
        error: Errno,
        now: u64,
    ) -> Action {
        match self.clients[slot].state {
            // After a reply with which the server closes, it does not matter how it closes. It may close while we
            // still send what it rejected.
            State::Closing => self.closed_as_announced(slot, now),
            State::Open if self.clients[slot].was_refused && error != Errno::TIMEDOUT => {
                self.closed_after_refusal(slot, now)
            }
            State::Open if error == Errno::TIMEDOUT => {
                self.fail(slot, ErrorKind::RequestTimeout, now)
            }
            State::Open
                if ErrorKind::of(error) == ErrorKind::Reset
                    && self.may_have_closed_at_rest(slot) =>
            {
                self.closed_at_rest(slot, now)
            }
            _ => self.fail(slot, ErrorKind::of(error), now),
        }
    }

    /// Pending bytes could not be sent.
    pub(in super::super) fn not_sent(&mut self, slot: usize, error: Errno, now: u64) -> Action {
        // A server that closes may have sent the reason: its reply is read before the failure counts.
        if self.plan.dialogue.closes() {
            Action::Keep
        } else {
            self.connection_failed(slot, error, now)
        }
    }

    /// The server closed after it rejected a request. Its reply has the reason, and later requests are sent again.
    fn closed_after_refusal(&mut self, slot: usize, now: u64) -> Action {
        self.clients[slot].was_refused = false;
        self.requesters.drop_requests(slot);
        self.expect_close(slot);
        self.closed(slot, now)
    }

    /// Whether a server that closes a connection without a reply may have done so while the client rested. A client
    /// remembers only when one request was due, not more.
    fn may_have_closed_at_rest(&self, slot: usize) -> bool {
        let client = &self.clients[slot];
        client.since_reply == Since::Rest && (client.outstanding <= 1 || !self.rules.has_dues)
    }

    /// The server closed a connection that rested. Requests sent since then are sent again over a new connection, as
    /// HTTP clients do (RFC 9112, section 9.3.1).
    #[cold]
    fn closed_at_rest(&mut self, slot: usize, now: u64) -> Action {
        let client = &mut self.clients[slot];
        let outstanding = u64::from(std::mem::take(&mut client.outstanding));
        if outstanding == 0 {
            return self.closed(slot, now);
        }
        client.unsent = &[];
        client.budget = client.budget.saturating_add(outstanding);
        self.progress.waiting -= outstanding;
        if let Some(later) = self.later.get_mut(slot) {
            later.clear();
        }
        self.requesters.drop_requests(slot);
        // If its request had a due time, the client connects for that request.
        self.queue_connect(slot);
        Action::Close(Close::Orderly)
    }

    /// The server announced to close the connection. It usually does so; otherwise the client must (RFC 9112, section
    /// 9.6).
    pub(super) fn await_close(&mut self, slot: usize, now: u64) -> Action {
        if self.clients[slot].state == State::Closing {
            return Action::Keep;
        }
        self.expect_close(slot);
        if self.closer == Closer::Client {
            return self.close_expired(slot, now);
        }
        if self.closer == Closer::Unasked {
            self.closer = Closer::Unknown;
        }
        self.details[slot].since = now;
        Action::Keep
    }

    /// The server closed a connection as it had announced.
    fn closed_as_announced(&mut self, slot: usize, now: u64) -> Action {
        self.closer = Closer::Server;
        self.closed(slot, now)
    }

    /// The server leaves it to its client to close.
    #[cold]
    fn close_for_server(&mut self, slot: usize, now: u64) -> Action {
        // A WebSocket client first sends its answer, so it always waits.
        if self.closer == Closer::Unknown && !self.rules.has_handshake {
            self.closer = Closer::Client;
        }
        self.close_expired(slot, now)
    }

    /// The server's last reply before the connection ends.
    fn expect_close(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        client.state = State::Closing;
        client.unsent = &[];
        // Other requests on this connection get no reply.
        if self.schedule.is_some() {
            self.drop_outstanding_as_lost(slot);
            return;
        }
        // In a closed loop, they are sent again.
        let outstanding = u64::from(client.outstanding);
        client.budget = client.budget.saturating_add(outstanding);
        if client.was_answered {
            self.progress.waiting -= outstanding;
        }
        drop(self.drop_outstanding(slot));
    }

    /// Open requests on a client's connection no longer get a reply.
    fn drop_outstanding_as_lost(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        let outstanding = u64::from(client.outstanding);
        if client.was_answered {
            self.progress.waiting -= outstanding;
        }
        self.progress.lost += outstanding;
        self.stats.without_reply += outstanding;
        let pending_due = self.take_pending_due(slot);
        let requests = self.drop_outstanding(slot);
        let Some(open) = &mut self.stats.open else {
            return;
        };
        self.progress.lost += u64::from(pending_due != NO_DUE);
        open.lost += requests
            .map(|request| request.due)
            .chain([pending_due])
            .filter(|due| self.window.has(*due))
            .count() as u64;
    }

    /// The server closed the connection, as it may. The next request opens a new one.
    fn closed(&mut self, slot: usize, now: u64) -> Action {
        self.requesters.drop_requests(slot);
        self.clients[slot].state = State::Disconnected;
        self.resume_disconnected(slot, now);
        Action::Close(Close::Orderly)
    }

    /// A connection has reached its limit. The next request opens a new one.
    pub(super) fn close_expired(&mut self, slot: usize, now: u64) -> Action {
        self.clients[slot].state = State::Disconnected;
        self.resume_disconnected(slot, now);
        Action::Close(self.plan.close)
    }

    /// A client without a connection continues.
    fn resume_disconnected(&mut self, slot: usize, now: u64) {
        if !self.begun {
            return;
        }
        if now >= self.sends_until {
            if self.plan.in_slices && self.schedule.is_some() {
                self.wait_for_due(slot, now);
            }
            return;
        }
        if self.is_in_session(slot) {
            self.go_on_later(slot, now);
        } else if self.clients[slot].budget == 0 || self.has_lived(slot, now) {
            let _closed = self.finish_job(slot, now);
        } else if self.plan.has_due_times() {
            self.wait_for_due(slot, now);
        } else {
            self.queue_connect(slot);
        }
    }

    /// An error ends a connection, and with it the client unless it reconnects.
    pub(super) fn fail(&mut self, slot: usize, kind: ErrorKind, now: u64) -> Action {
        self.fail_because(slot, kind, None, now)
    }

    /// A reply was wrong.
    #[cold]
    pub(super) fn fail_with_reply(
        &mut self,
        slot: usize,
        bytes: &[u8],
        wrong: &ProtocolError,
        now: u64,
    ) -> Action {
        let own = self.plan.dialogue.wire_protocol();
        let detail = explained(wrong, bytes, own);
        let kind = self
            .requesters
            .fault(slot)
            .map_or(ErrorKind::WrongReply, ErrorKind::Named);
        self.fail_because(slot, kind, Some(&detail), now)
    }

    /// The handshake failed, or received bytes cannot be decrypted.
    #[cold]
    pub(in super::super) fn tls_failed(&mut self, slot: usize, fault: &Fault, now: u64) -> Action {
        if self.clients[slot].state == State::Closing {
            return self.closed(slot, now);
        }
        self.fail_because(slot, ErrorKind::Tls(fault.kind), Some(&fault.detail), now)
    }

    fn fail_because(
        &mut self,
        slot: usize,
        kind: ErrorKind,
        detail: Option<&str>,
        now: u64,
    ) -> Action {
        self.stats.error(&kind.name(), now as i64, detail);
        self.record_error(slot, kind);
        if self.clients[slot].state == State::Connecting {
            self.connecting -= 1;
            // A reset means that the client was connected: before that, the kernel reports a refusal.
            if let Some(jobs) = &mut self.stats.jobs
                && kind != ErrorKind::Reset
            {
                *jobs.connect_failures.entry(kind.name()).or_default() += 1;
            }
        }
        let (client, details) = (&mut self.clients[slot], &mut self.details[slot]);
        if self.plan.reconnect && self.stats.jobs.is_some() {
            // The budget is a number of replies. Without a limit, there is nothing to return.
            client.budget = client.budget.saturating_add(client.outstanding.into());
            details.regained += u32::from(client.outstanding);
        }
        if matches!(kind, ErrorKind::RequestTimeout | ErrorKind::ConnectTimeout) {
            self.record_timed_out(slot, now);
        }
        self.drop_outstanding_as_lost(slot);
        let has_lived = self.has_lived(slot, now);
        let (failed, history) = (&mut self.clients[slot], &mut self.details[slot]);
        let has_more = failed.budget > 0 && !has_lived;
        if self.plan.reconnect && now < self.window.until && has_more {
            failed.state = State::Failed;
            self.requesters.drop_requests(slot);
            failed.unsent = &[];
            failed.since_reply = Since::Failure;
            let wait = (BACKOFF.1 << history.failures.min(16)).min(BACKOFF.0);
            history.failures = history.failures.saturating_add(1);
            history.since = now + wait;
            self.set_alarm(slot, now + wait);
            return Action::Close(Close::Orderly);
        }
        self.progress.failed += 1;
        if failed.budget < u64::MAX / 2 {
            self.progress.lost += failed.budget;
        }
        self.end(slot, State::Lost, now)
    }

    /// A client has made all its requests, or has lived its time.
    pub(super) fn finish_job(&mut self, slot: usize, now: u64) -> Action {
        let at = now - self.began;
        self.progress.done += 1;
        if let Some(jobs) = &mut self.stats.jobs {
            let started_at = self.details[slot].started_at.get();
            jobs.time.record(at - started_at.unwrap_or(at));
        }
        self.end(slot, State::Done, now)
    }

    /// A client ends, and makes room for another one.
    fn end(&mut self, slot: usize, state: State, now: u64) -> Action {
        self.clients[slot].state = state;
        let details = &mut self.details[slot];
        details.since = now;
        self.present -= 1;
        self.progress.gone += u64::from(details.connected_at != Moment::NEVER);
        Action::Close(Close::Orderly)
    }

    // Timeouts.

    /// Begins to check timeouts. The number of clients checked is in proportion to the time since the last check.
    pub(in super::super) fn begin_sweep(&mut self, now: u64) {
        let since = now.saturating_sub(self.sweep.looked_at);
        self.sweep.looked_at = now;
        self.sweep.left = if self.needs_sweep() {
            let count = self.clients.len() as u64;
            (count * since / self.sweep.period + 1).min(count) as usize
        } else {
            0
        };
    }

    pub(super) fn needs_sweep(&self) -> bool {
        self.connecting > 0
            || self.plan.request_timeout.is_some()
            || self.plan.lifetime.is_some()
            || self.plan.life().is_some()
            || matches!(self.closer, Closer::Unknown | Closer::Server)
    }

    /// The next client that has timed out, and the action for it.
    pub(in super::super) fn next_overdue(&mut self, now: u64) -> Option<(usize, Action)> {
        while self.sweep.left > 0 {
            self.sweep.left -= 1;
            let slot = self.sweep.next;
            self.sweep.next = (slot + 1) % self.clients.len();
            let (client, details) = (&self.clients[slot], &self.details[slot]);
            let longer = |since: u64, limit: Option<std::time::Duration>| {
                limit.is_some_and(|limit| now.saturating_sub(since) >= limit.as_nanos() as u64)
            };
            let action = match client.state {
                State::Connecting if longer(details.since, Some(self.plan.connect_timeout)) => {
                    let handshake = self.handshakes.get(slot).and_then(|since| since.get());
                    if handshake.is_none() {
                        self.fail(slot, ErrorKind::ConnectTimeout, now)
                    } else {
                        let limit = self.plan.connect_timeout.as_secs_f64();
                        self.tls_failed(slot, &Fault::timeout(limit), now)
                    }
                }
                State::Open
                    if client.outstanding > 0 && longer(client.sent, self.plan.request_timeout) =>
                {
                    let detail = self.requesters.awaits_close(slot).then_some(NO_END);
                    self.fail_because(slot, ErrorKind::RequestTimeout, detail, now)
                }
                State::Open
                    if client.outstanding == 0
                        && self.begun
                        && now < self.window.until
                        && (longer(details.since, self.plan.lifetime)
                            || self.has_lived(slot, now)) =>
                {
                    self.close_expired(slot, now)
                }
                State::Closing if now.saturating_sub(details.since) >= PATIENCE => {
                    self.close_for_server(slot, now)
                }
                _ => continue,
            };
            return Some((slot, action));
        }
        None
    }

    // The end.

    /// The load is over; returns the clients' stats.
    pub(in super::super) fn finish(mut self, now: u64) -> WorkerStats {
        for slot in 0..self.clients.len() {
            let client = &self.clients[slot];
            let was_answered = client.was_answered;
            if client.budget < u64::MAX / 2 {
                self.stats.left += client.budget;
            }
            self.stats.without_reply += u64::from(client.outstanding);
            let why = if client.outstanding > 0 && self.requesters.awaits_close(slot) {
                Some((ErrorKind::EndlessReply, Some(NO_END)))
            } else {
                let is_missing = client.outstanding > 0 && client.was_answered;
                is_missing.then_some((ErrorKind::Unanswered, None))
            };
            if let Some((kind, detail)) = why {
                self.record_error(slot, kind);
                self.stats.error(&kind.name(), now as i64, detail);
            }
            self.record_pending_due(slot, now);
            for request in self.drop_outstanding(slot) {
                if was_answered || self.schedule.is_some() {
                    self.record_unanswered(request, now);
                }
            }
            self.record_sizes(slot);
        }
        if matches!(self.plan.until, Until::Requests(_)) && self.schedule.is_some() {
            self.stats.left += self.allowance;
        }
        self.record_rest_of_schedule(now);
        let mut counts = ReplyCounts::default();
        self.requesters.counts(&mut counts);
        self.stats.add_counts(counts);
        let clients = (0..self.clients.len())
            .map(|slot| self.client_stats(slot))
            .collect();
        (self.stats, clients)
    }

    /// A client gives up its oldest open request, or the request for which it connects. It waited for a whole timeout.
    /// Without that time, slow replies would leave the percentiles.
    fn record_timed_out(&mut self, slot: usize, now: u64) {
        let client = &self.clients[slot];
        if client.outstanding > 0 {
            self.progress.waiting -= u64::from(client.was_answered);
            self.progress.lost += 1;
            self.stats.without_reply += 1;
            let request = self.take_oldest(slot);
            self.record_unanswered(request, now);
        } else if self.schedule.is_some() && self.record_pending_due(slot, now) {
            self.progress.lost += 1;
        }
    }

    /// Records the request for which a client connects. Returns whether there was one.
    fn record_pending_due(&mut self, slot: usize, now: u64) -> bool {
        let due = self.take_pending_due(slot);
        if self.window.has(due) {
            self.record_never_sent(now.saturating_sub(due), 1);
        }
        due != NO_DUE
    }

    /// Records a request without a reply, with the time that it waited: a lower bound. In a closed loop, a request
    /// counts if it waited in the window.
    fn record_unanswered(&mut self, request: Stamp, now: u64) {
        let (waited, since_due) = (
            now.saturating_sub(request.sent),
            now.saturating_sub(request.due),
        );
        let counts = match &mut self.stats.open {
            Some(open) if self.window.has(request.due) => {
                open.unanswered += 1;
                open.response_time.record(since_due);
                true
            }
            Some(_) => false,
            None => now >= self.window.from && request.sent < self.window.until,
        };
        if !counts {
            return;
        }
        self.stats.service_time.record(waited);
        if let Some(part) = self.window.part_at(now) {
            // In a closed loop, a request is due when it is sent.
            let time = if self.schedule.is_some() {
                since_due
            } else {
                waited
            };
            self.stats.times_by_part.record(part.number, time);
        }
    }

    fn record_never_sent(&mut self, waited: u64, count: u64) {
        if count > 0
            && let Some(open) = &mut self.stats.open
        {
            open.never_sent += count;
            open.response_time.record_n(waited, count);
        }
    }

    /// Records requests that were due in the window and found no idle client until the end.
    fn record_rest_of_schedule(&mut self, now: u64) {
        if self.window.from == u64::MAX || matches!(self.plan.until, Until::Requests(_)) {
            return;
        }
        let Some(mut schedule) = self.schedule.take() else {
            return;
        };
        let from = self.window.from.saturating_sub(self.origin);
        let until = self
            .window
            .until
            .min(now)
            .min(self.sends_until)
            .saturating_sub(self.origin);
        schedule.skip_until(from);
        let first = schedule.peek().max(from);
        let part = (until.saturating_sub(first) / PARTS).max(1);
        let mut at = first;
        while at < until {
            let end = (at + part).min(until);
            let count = schedule.skip_until(end);
            let middle = self.origin + at + (end - at) / 2;
            self.record_never_sent(now.saturating_sub(middle), count);
            if let Some(open) = &mut self.stats.open {
                open.waited += count;
            }
            at = end;
        }
    }
}
