//! When replies count, and the slices in which clients ask.

use std::time::Duration;

use super::super::Until;
use super::super::arrival::{Think, time_to_think};
use super::super::client::State;
use super::super::client_stats;
use super::part::Part;
use super::{Action, ClientPool};
use throng_record::load_stats::Times;

impl ClientPool {
    /// Takes over when replies count, as the leader of the load has set it.
    pub(in super::super) fn look_at_window(&mut self, from: u64, until: u64, now: u64) {
        self.until = until;
        if !self.plan.in_slices {
            self.asks_until = until;
        }
        self.progress.at_end = now >= until;
        if from == self.from {
            return;
        }
        self.from = from;
        self.part = Part::first(from, until);
        self.origin = match self.plan.until {
            // Each slice goes on where the one before ended.
            _ if self.plan.in_slices => self.origin,
            // When that would have been was not known then.
            Until::Duration(_) if self.plan.longest_warm_up > self.plan.warm_up => from,
            Until::Duration(_) => from.saturating_sub(self.plan.warm_up.as_nanos() as u64),
            Until::Requests(_) | Until::Bytes(_) | Until::Each { .. } => from,
        };
        self.settle(now);
    }

    /// Longest wait, so that the end of the load is noticed. Thousands of threads that looked up so often would be a load by
    /// themselves: while they ask, their replies wake them.
    pub(super) fn longest_wait(&self) -> Duration {
        let sleeps = self.plan.one_each && self.settled;
        Duration::from_millis(if sleeps { 200 } else { 10 })
    }

    /// Takes over the end of the slice that lasts, or that clients are to rest; whether all of them do.
    pub(in super::super) fn takes_slice(&mut self, until: u64, now: u64) -> bool {
        self.asks_until = until.min(self.until);
        let is_over = self.settled && now >= until && now < self.until;
        is_over && self.progress.waiting == 0 && self.connecting == 0 && self.in_line.is_empty()
    }

    /// A slice begins, which is from then until then: all who rest go on. A schedule goes on where it was when the
    /// last slice ended; who takes its requests lies in wait already.
    pub(in super::super) fn begin_slice(&mut self, (from, until): (u64, u64), now: u64) {
        self.asks_until = until.min(self.until);
        self.origin = from.saturating_sub(self.asked_ns);
        self.asked_ns += until.saturating_sub(from);
        if self.schedule.is_none() {
            self.wake_all(now);
        }
    }

    /// A client has its reply when nobody is to ask any more. At the end of a slice a connection that has served its
    /// time is closed, for a server with one client at a time would be kept from all others by it.
    #[cold]
    pub(super) fn rest(&mut self, slot: usize, now: u64) -> Action {
        if !self.plan.in_slices || !self.settled || self.clients[slot].outstanding > 0 {
            return Action::Keep;
        }
        if self.is_worn_out(slot, now) {
            return self.part(slot, now);
        }
        if self.schedule.is_some() {
            self.wait_for_due(slot, now);
        }
        Action::Keep
    }

    /// Nothing that was seen until now counts, but for errors, connections and what each client asked in all.
    pub(in super::super) fn forget(&mut self) {
        let empty = client_stats::empty_stats(&self.plan);
        self.stats.service_time = empty.service_time;
        self.stats.times_by_part = empty.times_by_part;
        self.stats.replies_by_tenth = empty.replies_by_tenth;
        self.stats.lateness = empty.lateness;
        self.stats.open = empty.open;
        self.stats.window_bytes_sent = 0;
        self.stats.window_bytes_received = 0;
        self.seen = Times::default();
        for client in &mut self.clients {
            client.stats.window_replies = 0;
        }
    }

    /// Adds the service times of the replies that clients had since this was asked last.
    pub(in super::super) fn add_seen_since_rest(&mut self, times: &mut Times) {
        self.stats.service_time.add_news(&mut self.seen, times);
    }

    /// Everybody has had a first answer: all who rest since then go on.
    fn settle(&mut self, now: u64) {
        let was_settled = std::mem::replace(&mut self.settled, true);
        if was_settled && self.schedule.is_none() {
            return;
        }
        self.wake_all(now);
        self.last_starved = 0; // they were free when the schedule began
    }

    /// All who rest go on, each at its time.
    fn wake_all(&mut self, now: u64) {
        for slot in 0..self.clients.len() {
            let client = &self.clients[slot];
            let rests = matches!(client.state, State::Open | State::Apart)
                && client.outstanding == 0
                && client.queued == 0
                && client.was_answered();
            if !rests {
                continue;
            }
            match self.plan.think {
                // Else all that think for the same time would go on in step for ever.
                Think::Fixed(_) if self.schedule.is_none() => {
                    let longest = time_to_think(self.plan.think, &mut self.random);
                    let at = now + self.random.u64(0..=longest);
                    self.set_alarm(slot, at);
                }
                _ if self.plan.has_dues() => self.wait_for_due(slot, now),
                _ => self.set_alarm(slot, now),
            }
        }
    }
}
