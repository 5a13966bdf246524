//! Requests that come due by themselves: after a time to think, or by a schedule.

use std::cmp::Reverse;

use super::super::client::State;
use super::Crowd;

impl Crowd {
    /// Whether some client has something to do at its own time by now.
    #[inline]
    pub(in super::super) fn has_due(&self, now: u64) -> bool {
        self.alarms
            .peek()
            .is_some_and(|&Reverse((at, _))| at <= now)
            || (self.schedule.is_some() && self.next_scheduled() <= now)
    }

    /// A client that has something to send now since its time has come.
    pub(in super::super) fn next_due(&mut self, now: u64) -> Option<usize> {
        if now >= self.until {
            return None;
        }
        while let Some(&Reverse((at, place))) = self.alarms.peek()
            && at <= now
        {
            self.alarms.pop();
            let place = place as usize;
            self.clients[place].queued -= 1;
            if self.is_woken(place, at, now) {
                return Some(place);
            }
        }
        while self.next_scheduled() <= now {
            let Some(place) = self.next_idle() else {
                self.last_starved = now;
                return None;
            };
            let schedule = self.schedule.as_mut()?;
            let due = self.origin + schedule.take();
            self.allowance -= 1;
            if due <= self.last_starved
                && self.counts(due)
                && let Some(open) = &mut self.tally.open
            {
                open.waited += 1;
            }
            if self.takes(place, due, now) {
                return Some(place);
            }
        }
        None
    }

    /// When the schedule has its next request, if it may.
    pub(super) fn next_scheduled(&self) -> u64 {
        match &self.schedule {
            Some(schedule) if self.settled && self.from < u64::MAX && self.allowance > 0 => {
                self.origin.saturating_add(schedule.peek())
            }
            _ => u64::MAX,
        }
    }

    /// Whether a request that is due then is one of those that count.
    pub(super) fn counts(&self, due: u64) -> bool {
        due >= self.from && due < self.until
    }

    /// Puts a client where its next due requests find it.
    pub(super) fn wait_for_due(&mut self, place: usize, now: u64) {
        while self.has_room(place) {
            if self.schedule.is_some() {
                if self.idle.is_empty() && self.next_scheduled() <= now {
                    self.last_starved = now;
                }
                self.clients[place].queued += 1;
                self.idle.push_back(place as u32);
            } else {
                let time = self.plan.think.draw(&mut self.random);
                if let Some(jobs) = &mut self.tally.jobs {
                    jobs.think.add(time);
                }
                self.set_alarm(place, now + time);
            }
        }
    }

    /// Whether a client may ask one more than are out and than it lies in wait for.
    fn has_room(&self, place: usize) -> bool {
        let client = &self.clients[place];
        let made = match client.state {
            State::Open => client.made,
            _ => 0, // the next one has a new connection
        };
        client.outstanding + client.queued < self.rules.pipeline
            && u64::from(client.queued) < client.budget
            && made + u32::from(client.queued) < self.rules.requests_per_connection
    }

    /// A client goes on at this time.
    pub(super) fn set_alarm(&mut self, place: usize, at: u64) {
        self.clients[place].queued += 1;
        self.alarms.push(Reverse((at, place as u32)));
    }

    /// The client that has been free longest.
    fn next_idle(&mut self) -> Option<usize> {
        loop {
            let place = self.idle.pop_front()? as usize;
            let client = &mut self.clients[place];
            client.queued -= 1;
            // It may have failed, or have been sent to connect, since it lay down here.
            if matches!(client.state, State::Open | State::Apart) {
                return Some(place);
            }
        }
    }

    /// A client's alarm rings; whether it has something to send now.
    fn is_woken(&mut self, place: usize, at: u64, now: u64) -> bool {
        let client = &mut self.clients[place];
        if client.state == State::Failed && at >= client.since {
            client.state = State::Apart;
        }
        match client.state {
            State::Open | State::Apart if self.schedule.is_some() => {
                self.wait_for_due(place, now);
                false
            }
            State::Open if self.rules.thinks_first => {
                self.has_room(place) && self.takes(place, at, now)
            }
            State::Open | State::Apart if self.plan.has_dues() && client.was_answered() => {
                // A client that failed may lie in wait once too often.
                self.has_room(place) && self.takes(place, at, now)
            }
            State::Open => self.schedule_next(place, now) == super::Then::Send,
            State::Apart => {
                self.line_up(place);
                false
            }
            _ => false,
        }
    }

    /// A free client takes the request that was due at `due`; whether it sends it now.
    fn takes(&mut self, place: usize, due: u64, now: u64) -> bool {
        if self.clients[place].state == State::Open {
            self.ask_late(place, due, now);
            return true;
        }
        self.clients[place].owed = due;
        self.line_up(place);
        false
    }

    /// A request leaves that was due before.
    pub(super) fn ask_late(&mut self, place: usize, due: u64, now: u64) {
        if self.counts(due)
            && let Some(lateness) = &mut self.tally.lateness
        {
            lateness.record(now.saturating_sub(due));
        }
        self.ask(place, due, now);
    }

    /// A client without a connection is to have one.
    pub(super) fn line_up(&mut self, place: usize) {
        self.clients[place].state = State::InLine;
        self.in_line.push_back(place as u32);
    }
}
