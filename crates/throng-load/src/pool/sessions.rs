//! Sessions of a flow: a client goes through its steps, one after the other, and then begins the next session.

use std::time::Duration;

use super::super::client::{NO_DUE, Stamp, State};
use super::{Action, ClientPool};

/// One client's session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    /// When it was due; [`NO_DUE`] between two sessions.
    pub(super) due: u64,
    /// How long the client still waits before the next step.
    delay: u64,
    /// Whether the client rested between two slices since then, so that the session's time is not the server's.
    pub(super) has_rested: bool,
    /// Requests begun after the first one of each session.
    pub(super) later_requests: u64,
}

impl Session {
    pub(super) const NONE: Self = Self {
        due: NO_DUE,
        delay: 0,
        has_rested: false,
        later_requests: 0,
    };
}

impl ClientPool {
    /// Whether a client is between two steps of a session, or at one.
    pub(super) fn is_in_session(&self, slot: usize) -> bool {
        self.sessions
            .get(slot)
            .is_some_and(|session| session.due != NO_DUE)
    }

    /// A request is begun. Returns whether it counts as one of the load: the first one of a session stands for the
    /// whole session.
    pub(super) fn counts_request(&mut self, slot: usize, due: u64) -> bool {
        let Some(session) = self.sessions.get_mut(slot) else {
            return true;
        };
        let is_first = session.due == NO_DUE;
        if is_first {
            (session.due, session.has_rested) = (due, false);
        } else {
            session.later_requests += 1;
        }
        is_first
    }

    /// A step was answered.
    pub(super) fn count_step(&mut self, slot: usize, stamp: Stamp, now: u64) {
        let done = self.requesters.step_done(slot);
        let (Some(flow), Some(stats)) = (self.plan.settings.flow, &mut self.stats.sessions) else {
            return;
        };
        let session = &mut self.sessions[slot];
        let is_open = self.schedule.is_some();
        let counts = |due: u64, window: &super::Window| window.has(if is_open { due } else { now });
        let place = usize::from(done.step);
        let took = now - stamp.sent;
        let limit = flow.steps[place].limit;
        let missed = limit.filter(|limit| took >= limit.as_nanos() as u64);
        let is_slow = missed.is_some();
        if let Some(missed_limit) = missed {
            let name = &flow.steps[place].name;
            let why = format!("{name}: duration < {}", missed_limit.as_millis());
            *self.stats.unexpected.entry(why).or_default() += 1;
        }
        if counts(stamp.due, &self.window) {
            let step = &mut stats.steps[place];
            step.times.record(took);
            step.failed += u64::from(done.has_failed || is_slow);
            step.slow += u64::from(is_slow);
        }
        // In an open loop, the next session begins when it is due.
        let next = match done.is_last {
            true if is_open => None,
            true => flow.steps.first(),
            false => flow.steps.get(place + 1),
        };
        session.delay = next.map_or(0, |step| step.delay.as_nanos() as u64);
        if !done.is_last {
            return;
        }
        let due = std::mem::replace(&mut session.due, NO_DUE);
        self.progress.sessions += 1;
        if counts(due, &self.window) {
            if done.has_failed {
                stats.failed += 1;
            } else {
                stats.completed += 1;
                if !session.has_rested {
                    stats.time.record(now - due);
                }
            }
        }
    }

    /// Whether a client waits before its next session.
    pub(super) fn delays_session(&mut self, slot: usize, now: u64) -> bool {
        let delay = std::mem::take(&mut self.sessions[slot].delay);
        if delay > 0 {
            self.set_alarm(slot, now + delay);
        }
        delay > 0
    }

    /// A client in a session goes on to its next step, at once or after the delay before it.
    pub(super) fn next_step(&mut self, slot: usize, now: u64) -> Action {
        let delay = std::mem::take(&mut self.sessions[slot].delay);
        if delay > 0 {
            self.set_alarm(slot, now + delay);
            return Action::Keep;
        }
        match self.clients[slot].state {
            State::Open => {
                self.begin_request(slot, now, now);
                Action::Send
            }
            State::Disconnected => {
                self.queue_connect(slot);
                Action::Keep
            }
            _ => Action::Keep,
        }
    }

    /// The same for a client that cannot send now: it continues when its alarm is due.
    pub(super) fn go_on_later(&mut self, slot: usize, now: u64) {
        let delay = std::mem::take(&mut self.sessions[slot].delay);
        self.set_alarm(slot, now + delay);
    }

    /// The connection ended within a step, and with it the session.
    pub(super) fn drop_session(&mut self, slot: usize) {
        if !self.is_in_session(slot) {
            return;
        }
        let due = std::mem::replace(&mut self.sessions[slot].due, NO_DUE);
        if self.window.has(due)
            && let Some(stats) = &mut self.stats.sessions
        {
            stats.failed += 1;
        }
    }
}

/// The longest time that a session of a plan waits before its steps.
pub(in super::super) fn longest_delay(plan: &super::Plan) -> Duration {
    let steps = plan.settings.flow.map(|flow| &flow.steps);
    steps.into_iter().flatten().map(|step| step.delay).sum()
}
