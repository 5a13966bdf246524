//! Requests that are due at a given time: after think time, or by a schedule.

use std::cmp::Reverse;
use std::time::Duration;

use super::super::arrival::time_to_think;
use super::super::client::State;
use super::ClientPool;

impl ClientPool {
    /// Whether any client has something to do on its own schedule by now.
    #[inline]
    pub(in super::super) fn has_due(&self, now: u64) -> bool {
        self.alarms
            .peek()
            .is_some_and(|&Reverse((at, _))| at <= now)
            || (self.schedule.is_some() && self.next_scheduled() <= now)
    }

    /// A client whose time to send has come.
    pub(in super::super) fn next_due(&mut self, now: u64) -> Option<usize> {
        while now < self.sends_until
            && let Some(&Reverse((at, slot))) = self.alarms.peek()
            && at <= now
        {
            self.alarms.pop();
            let index = slot as usize;
            self.details[index].queued -= 1;
            if self.wake(index, at, now) {
                return Some(index);
            }
        }
        while self.is_due_in_time(now) {
            let Some(slot) = self.next_idle() else {
                self.last_starved = now;
                return None;
            };
            let schedule = self.schedule.as_mut()?;
            let due = self.origin + schedule.take();
            self.allowance -= 1;
            if due <= self.last_starved
                && self.window.has(due)
                && let Some(open) = &mut self.stats.open
            {
                open.waited += 1;
            }
            if self.assign(slot, due, now) {
                return Some(slot);
            }
        }
        None
    }

    /// When the schedule's next request is due, if it may be sent.
    pub(super) fn next_scheduled(&self) -> u64 {
        match &self.schedule {
            Some(schedule) if self.begun && self.window.from < u64::MAX && self.allowance > 0 => {
                self.origin.saturating_add(schedule.peek())
            }
            _ => u64::MAX,
        }
    }

    /// Whether the schedule's next request is due before clients stop sending. It is sent even if the worker wakes up
    /// after that.
    fn is_due_in_time(&self, now: u64) -> bool {
        self.next_scheduled() <= now.min(self.sends_until.saturating_sub(1))
    }

    /// Whether a client can send or connect now for a request that was due before the end of the window.
    fn has_unsent(&self, now: u64) -> bool {
        self.schedule.is_some()
            && (!self.connect_queue.is_empty()
                || (!self.idle.is_empty() && self.is_due_in_time(now)))
    }

    /// Whether clients begin no more requests.
    pub(super) fn is_at_end(&self, now: u64) -> bool {
        let connects = self.schedule.is_some() && self.connecting > 0;
        now >= self.window.until && !connects && !self.has_unsent(now)
    }

    /// Queues a client for its next due requests.
    pub(super) fn wait_for_due(&mut self, slot: usize, now: u64) {
        if self.is_in_session(slot) {
            self.go_on_later(slot, now);
            return;
        }
        while self.has_room(slot) {
            if self.schedule.is_some() {
                if self.idle.is_empty() && self.next_scheduled() <= now {
                    self.last_starved = now;
                }
                self.details[slot].queued += 1;
                self.idle.push_back(slot as u32);
            } else {
                let time = time_to_think(self.plan.think, &mut self.random);
                if let Some(jobs) = &mut self.stats.jobs {
                    jobs.think.add(time);
                }
                self.set_alarm(slot, now + time);
            }
        }
    }

    /// Whether a client may send one more request, in addition to the open ones and those that it waits to send.
    fn has_room(&self, slot: usize) -> bool {
        let (client, details) = (&self.clients[slot], &self.details[slot]);
        let made = match client.state {
            State::Open => details.requests_begun(client.budget),
            _ => 0, // the next one has a new connection
        };
        client.outstanding + details.queued < self.rules.pipeline
            && u64::from(details.queued) < client.budget
            && u64::from(made) + u64::from(details.queued) < self.rules.requests_per_connection
    }

    /// Lets a client continue at this time.
    pub(super) fn set_alarm(&mut self, slot: usize, at: u64) {
        self.details[slot].queued += 1;
        self.alarms.push(Reverse((at, slot as u32)));
    }

    /// The client that has been idle longest.
    fn next_idle(&mut self) -> Option<usize> {
        loop {
            let slot = self.idle.pop_front()? as usize;
            self.details[slot].queued -= 1;
            // It may have failed, or be reconnecting, since it was queued.
            if matches!(self.clients[slot].state, State::Open | State::Disconnected) {
                return Some(slot);
            }
        }
    }

    /// Handles a client's alarm. Returns whether the client has something to send now.
    fn wake(&mut self, slot: usize, at: u64, now: u64) -> bool {
        if self.has_lived(slot, now) && self.clients[slot].state == State::Open {
            // It leaves at the next check for timeouts.
            return false;
        }
        let client = &mut self.clients[slot];
        if client.state == State::Failed && at >= self.details[slot].since {
            client.state = State::Disconnected;
        }
        let (state, was_answered) = (client.state, client.was_answered);
        match state {
            State::Open | State::Disconnected
                if self.rules.has_flow && self.is_in_session(slot) =>
            {
                self.next_step(slot, now) == super::Action::Send
            }
            State::Open | State::Disconnected if self.schedule.is_some() => {
                self.wait_for_due(slot, now);
                false
            }
            State::Open if self.rules.thinks_first => {
                self.has_room(slot) && self.assign(slot, at, now)
            }
            State::Open | State::Disconnected if self.plan.has_due_times() && was_answered => {
                // A client that failed may be queued once too often.
                self.has_room(slot) && self.assign(slot, at, now)
            }
            State::Open => self.schedule_next(slot, now) == super::Action::Send,
            State::Disconnected => {
                self.queue_connect(slot);
                false
            }
            _ => false,
        }
    }

    /// Gives an idle client the request that was due at `due`. Returns whether the client sends it now.
    fn assign(&mut self, slot: usize, due: u64, now: u64) -> bool {
        if self.clients[slot].state == State::Open {
            self.begin_overdue_request(slot, due, now);
            return true;
        }
        self.dues[slot] = due;
        self.queue_connect(slot);
        false
    }

    /// Begins an overdue request.
    pub(super) fn begin_overdue_request(&mut self, slot: usize, due: u64, now: u64) {
        if self.rules.has_dues && self.window.has(due) {
            self.stats.lateness.record(now.saturating_sub(due));
        }
        self.begin_request(slot, due, now);
    }

    /// Queues a client without a connection to connect.
    pub(super) fn queue_connect(&mut self, slot: usize) {
        self.clients[slot].state = State::Queued;
        self.connect_queue.push_back(slot as u32);
    }

    /// Maximum time for which an engine may wait for its sockets.
    pub(in super::super) fn time_to_wait(&self, now: u64) -> Duration {
        if now >= self.window.until {
            return if self.has_unsent(now) {
                Duration::ZERO
            } else {
                self.longest_wait()
            };
        }
        if !self.connect_queue.is_empty() {
            return Duration::ZERO;
        }
        if now >= self.sends_until {
            return self.longest_wait();
        }
        let mut next = u64::MAX;
        if self.may_start_next() {
            next = self.start_time(self.next_to_start);
        }
        if let Some(&Reverse((at, _))) = self.alarms.peek() {
            next = next.min(at);
        }
        if !self.idle.is_empty() {
            next = next.min(self.next_scheduled());
        }
        if self.needs_sweep() {
            next = next.min(self.sweep.looked_at + self.sweep.period);
        }
        if self.plan.in_slices {
            next = next.min(self.sends_until);
        }
        Duration::from_nanos(next.saturating_sub(now)).min(self.longest_wait())
    }
}
