//! The window in which replies count, and the slices in which clients send.

use std::time::Duration;

use super::super::Until;
use super::super::arrival::{Think, time_to_think};
use super::super::client::{Since, State};
use super::super::client_stats;
use super::{Action, ClientPool};
use throng_record::load_stats::{PARTS, PARTS_AN_INTERVAL, Times};

/// The window, in [`PARTS`] equal consecutive parts.
///
/// Two consecutive replies are nearly always in the same part, so a request costs one comparison.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) until: u64,
    /// The part at the last time, `None` before or after the window, and until when that holds.
    part: Option<Part>,
    part_until: u64,
    /// Number and end of the latest part, and the length of each part.
    number: usize,
    ends: u64,
    length: u64,
}

/// One of the equal parts of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) number: usize,
    /// The interval that contains it.
    pub(super) interval: usize,
}

impl Default for Window {
    /// Before the window is known.
    fn default() -> Self {
        Self {
            from: u64::MAX,
            until: u64::MAX,
            part: None,
            part_until: u64::MAX,
            number: 0,
            ends: u64::MAX,
            length: 1,
        }
    }
}

impl Window {
    /// Whether `time` is in the window.
    #[inline]
    pub(super) fn has(&self, time: u64) -> bool {
        time >= self.from && time < self.until
    }

    /// The part at `now`, which never decreases; `None` outside the window.
    #[inline]
    pub(super) fn part_at(&mut self, now: u64) -> Option<Part> {
        if now >= self.part_until {
            self.turn_to(now);
        }
        self.part
    }

    #[cold]
    fn turn_to(&mut self, now: u64) {
        (self.part, self.part_until) = if now < self.from {
            (None, self.from)
        } else if now >= self.until {
            (None, u64::MAX)
        } else {
            while now >= self.ends {
                self.number = (self.number + 1).min(PARTS - 1);
                self.ends += self.length;
            }
            let part = Part {
                number: self.number,
                interval: self.number / PARTS_AN_INTERVAL,
            };
            (Some(part), self.ends.min(self.until))
        };
    }

    /// Sets both ends of the window. Returns whether the start changed.
    fn set(&mut self, from: u64, until: u64) -> bool {
        if (from, until) == (self.from, self.until) {
            return false;
        }
        let is_new = from != self.from;
        if is_new {
            self.number = 0;
            self.length = (until.saturating_sub(from) / PARTS as u64).max(1);
            self.ends = from.saturating_add(self.length);
        }
        (self.from, self.until) = (from, until);
        self.part_until = 0; // found again later
        is_new
    }
}

impl ClientPool {
    /// Applies the window that the leader of the load set.
    pub(in super::super) fn set_window(&mut self, from: u64, until: u64, now: u64) {
        if !self.plan.in_slices {
            self.sends_until = until;
        }
        let is_new = self.window.set(from, until);
        self.progress.at_end = self.is_at_end(now);
        if !is_new {
            self.find_exchanges();
            return;
        }
        self.origin = match self.plan.until {
            // Each slice continues where the previous one ended.
            _ if self.plan.in_slices => self.origin,
            // The end of the warm-up was not known when it began.
            Until::Duration(_) if self.plan.longest_warm_up > self.plan.warm_up => from,
            Until::Duration(_) => from.saturating_sub(self.plan.warm_up.as_nanos() as u64),
            Until::Requests(_) | Until::Bytes(_) | Until::Each { .. } => from,
        };
        self.begin_requests(now);
        self.find_exchanges();
    }

    /// Updates the time until which a usual reply is followed by the next request.
    fn find_exchanges(&mut self) {
        self.exchanges_until = if self.rules.exchanges && self.begun {
            self.sends_until
        } else {
            0
        };
    }

    /// The longest wait, short enough to notice the end of the load. Thousands of threads that woke up this often
    /// would be a load themselves. While they send, replies wake them.
    pub(super) fn longest_wait(&self) -> Duration {
        let sleeps = self.plan.one_each && self.begun;
        Duration::from_millis(if sleeps { 200 } else { 10 })
    }

    /// Applies the end of the current slice, or the request to rest. Returns whether all clients rest.
    pub(in super::super) fn update_slice(&mut self, until: u64, now: u64) -> bool {
        self.sends_until = until.min(self.window.until);
        self.find_exchanges();
        let is_over = self.begun && now >= until && now < self.window.until;
        is_over
            && self.progress.waiting == 0
            && self.connecting == 0
            && self.connect_queue.is_empty()
    }

    /// Ends a rest between two slices. Until its next reply, a connection may be one that the server has closed.
    pub(in super::super) fn end_rest(&mut self) {
        for session in &mut self.sessions {
            session.has_rested = true;
        }
        for client in &mut self.clients {
            if client.state == State::Open && client.was_answered && client.outstanding == 0 {
                client.since_reply = Since::Rest;
            }
        }
    }

    /// Begins a slice between these times: all resting clients continue. A schedule continues where it was at the end
    /// of the last slice; its clients are queued already.
    pub(in super::super) fn begin_slice(&mut self, (from, until): (u64, u64), now: u64) {
        self.sends_until = until.min(self.window.until);
        self.find_exchanges();
        self.origin = from.saturating_sub(self.asked_ns);
        self.asked_ns += until.saturating_sub(from);
        if self.schedule.is_none() {
            self.resume_all(now);
        }
    }

    /// A client got its reply after the end of a slice. A connection that has reached its limit is closed now.
    /// Otherwise, a server that serves one client at a time would keep all others from connecting.
    #[cold]
    pub(super) fn rest(&mut self, slot: usize, now: u64) -> Action {
        if !self.plan.in_slices || !self.begun || self.clients[slot].outstanding > 0 {
            return Action::Keep;
        }
        if self.is_expired(slot, now) {
            return self.close_expired(slot, now);
        }
        if self.schedule.is_some() {
            self.wait_for_due(slot, now);
        }
        Action::Keep
    }

    /// Discards all stats so far, except errors, connections and each client's total of requests.
    pub(in super::super) fn discard_stats(&mut self) {
        let empty = client_stats::empty_stats(&self.plan);
        self.stats.service_time = empty.service_time;
        self.stats.times_by_part = empty.times_by_part;
        self.stats.replies_by_tenth = empty.replies_by_tenth;
        self.stats.lateness = empty.lateness;
        self.stats.open = empty.open;
        self.stats.sessions = empty.sessions;
        self.stats.window_bytes_sent = 0;
        self.stats.window_bytes_received = 0;
        self.seen = Times::default();
        for (client, details) in self.clients.iter_mut().zip(&mut self.details) {
            details.uncounted += std::mem::take(&mut client.counted);
        }
    }

    /// Adds the service times since the last call, and returns the number of replies since then.
    pub(in super::super) fn add_times_since_rest(&mut self, times: &mut Times) -> u64 {
        self.stats.service_time.add_news(&mut self.seen, times);
        let verified = self.progress.verified;
        verified - std::mem::replace(&mut self.seen_replies, verified)
    }

    /// All clients have had a first reply, so all resting clients continue.
    fn begin_requests(&mut self, now: u64) {
        let was_settled = std::mem::replace(&mut self.begun, true);
        if was_settled && self.schedule.is_none() {
            return;
        }
        self.resume_all(now);
        self.last_starved = 0; // they were free when the schedule began
    }

    /// Lets all resting clients continue, each at its own time.
    fn resume_all(&mut self, now: u64) {
        for slot in 0..self.clients.len() {
            let client = &self.clients[slot];
            let rests = matches!(client.state, State::Open | State::Disconnected)
                && client.outstanding == 0
                && self.details[slot].queued == 0
                && client.was_answered;
            if !rests {
                continue;
            }
            match self.plan.think {
                // Spread out; otherwise, clients with equal think times would stay in step forever.
                Think::Fixed(_) if self.schedule.is_none() => {
                    let longest = time_to_think(self.plan.think, &mut self.random);
                    let at = now + self.random.u64(0..=longest);
                    self.set_alarm(slot, at);
                }
                _ if self.plan.has_due_times() => self.wait_for_due(slot, now),
                _ => self.set_alarm(slot, now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_end_with_the_window() {
        let mut window = Window::default();
        assert_eq!(window.part_at(7), None);
        let (from, until) = (1000, 1000 + 10 * PARTS as u64);
        assert!(window.set(from, until));
        assert!(!window.set(from, until));
        for (time, part) in [
            (999, None),
            (1000, Some(0)),
            (1009, Some(0)),
            (1010, Some(1)),
            (1055, Some(5)),
            (until - 1, Some(PARTS - 1)),
            (until, None),
            (until + 500, None),
        ] {
            let found = window.part_at(time);
            assert_eq!(found.map(|part| part.number), part, "at {time}");
            assert_eq!(
                found.map(|part| part.interval),
                part.map(|number| number / PARTS_AN_INTERVAL)
            );
            assert_eq!(window.has(time), part.is_some());
        }
        // It ends later than planned, and then earlier.
        assert!(!window.set(from, until + 1000));
        let last = window.part_at(until + 600).map(|part| part.number);
        assert_eq!(last, Some(PARTS - 1));
        assert!(!window.set(from, until + 601));
        assert_eq!(window.part_at(until + 601), None);
    }
}
