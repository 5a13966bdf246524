//! When replies count, and the slices in which clients ask.

use std::time::Duration;

use super::super::Until;
use super::super::arrival::{Think, time_to_think};
use super::super::client::State;
use super::super::client_stats;
use super::{Action, ClientPool};
use throng_record::load_stats::{PARTS, PARTS_AN_INTERVAL, Times};

/// When replies count: in [`PARTS`] equal parts, one after the other.
///
/// Nearly always, two replies come in the same part. So a request costs one comparison.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) until: u64,
    /// The part that it was at last, and until when it is that; none: before or after the window.
    part: Option<Part>,
    part_until: u64,
    /// Where the present part ends, or the first one before the window.
    number: usize,
    ends: u64,
    length: u64,
}

/// One of the equal parts of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) number: usize,
    /// The interval that it is a part of.
    pub(super) interval: usize,
}

impl Default for Window {
    /// Before anybody knows when replies count.
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
    /// Whether a time lies in it.
    #[inline]
    pub(super) fn has(&self, time: u64) -> bool {
        time >= self.from && time < self.until
    }

    /// Its part at a time, which never goes back; none outside of it.
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

    /// Sets its ends; whether its beginning is another one than before.
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
        self.part_until = 0; // to be found anew
        is_new
    }
}

impl ClientPool {
    /// Takes over when replies count, as the leader of the load has set it.
    pub(in super::super) fn look_at_window(&mut self, from: u64, until: u64, now: u64) {
        if !self.plan.in_slices {
            self.asks_until = until;
        }
        self.progress.at_end = now >= until;
        if !self.window.set(from, until) {
            self.find_exchanges();
            return;
        }
        self.origin = match self.plan.until {
            // Each slice goes on where the one before ended.
            _ if self.plan.in_slices => self.origin,
            // When that would have been was not known then.
            Until::Duration(_) if self.plan.longest_warm_up > self.plan.warm_up => from,
            Until::Duration(_) => from.saturating_sub(self.plan.warm_up.as_nanos() as u64),
            Until::Requests(_) | Until::Bytes(_) | Until::Each { .. } => from,
        };
        self.settle(now);
        self.find_exchanges();
    }

    /// Finds until when a usual reply is answered by the next request.
    fn find_exchanges(&mut self) {
        self.exchanges_until = if self.rules.exchanges && self.settled {
            self.asks_until
        } else {
            0
        };
    }

    /// Longest wait, so that the end of the load is noticed. Thousands of threads that looked up so often would be a load by
    /// themselves: while they ask, their replies wake them.
    pub(super) fn longest_wait(&self) -> Duration {
        let sleeps = self.plan.one_each && self.settled;
        Duration::from_millis(if sleeps { 200 } else { 10 })
    }

    /// Takes over the end of the slice that lasts, or that clients are to rest; whether all of them do.
    pub(in super::super) fn takes_slice(&mut self, until: u64, now: u64) -> bool {
        self.asks_until = until.min(self.window.until);
        self.find_exchanges();
        let is_over = self.settled && now >= until && now < self.window.until;
        is_over && self.progress.waiting == 0 && self.connecting == 0 && self.in_line.is_empty()
    }

    /// A slice begins, which is from then until then: all who rest go on. A schedule goes on where it was when the
    /// last slice ended; who takes its requests lies in wait already.
    pub(in super::super) fn begin_slice(&mut self, (from, until): (u64, u64), now: u64) {
        self.asks_until = until.min(self.window.until);
        self.find_exchanges();
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
        for (client, life) in self.clients.iter_mut().zip(&mut self.lives) {
            life.uncounted += std::mem::take(&mut client.counted);
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
                && self.lives[slot].queued == 0
                && client.was_answered;
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
        // It ends later after all, and then earlier.
        assert!(!window.set(from, until + 1000));
        let last = window.part_at(until + 600).map(|part| part.number);
        assert_eq!(last, Some(PARTS - 1));
        assert!(!window.set(from, until + 601));
        assert_eq!(window.part_at(until + 601), None);
    }
}
