//! The phases of a load: a pure state machine, without a clock.
//!
//! connect (first replies included) → warm-up → measure (replies count) → drain (last replies) → idle (connections
//! open, no requests) → done.
//!
//! A client that has had its first reply rests until all clients have theirs (unless the load is eager). The measured
//! phase begins only when every client has had its first verified reply, or none arrived within the timeout for first
//! replies. Otherwise, many clients of which most are still in the accept queue would be measured as a few fast ones.
//! For an eager load, it is enough that clients are connected, within the timeout for first replies: clients that
//! other clients keep from getting a first reply do not get one in the measured phase either. A load bounded by
//! requests counts from the start and goes from connect to idle. With short-lived clients, the whole load is the
//! measured phase: it begins before the first client connects and ends when the last one has ended.

mod warming;

use std::time::Duration;

use super::{Plan, Until};
use throng_record::load_event::{LONGEST_CONNECT, Phase};
use throng_record::{StoppedBy, WarmUp};
use warming::Warming;

/// The progress of the clients of all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Connections established.
    pub connected: u64,
    /// Clients that have had a first verified reply.
    pub answered: u64,
    /// Clients that ended with an error.
    pub failed: u64,
    /// Clients that have made all their requests.
    pub done: u64,
    /// Clients that failed or are done, and had been connected.
    pub gone: u64,
    /// Open requests of clients that have had a reply before.
    pub waiting: u64,
    /// Verified replies.
    pub verified: u64,
    /// Sessions of a flow that are over.
    pub sessions: u64,
    /// Requests that failed, and those that clients can no longer make.
    pub lost: u64,
    /// Bytes sent and received.
    pub bytes: u64,
    /// Whether all workers have seen the end of the window, so that they begin no more requests.
    pub at_end: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Check again after this time.
    Wait(Duration),
    /// Enter a phase, and confirm with [`Phases::entered`].
    Enter(Phase),
    /// Close the connections.
    Done(StoppedBy),
}

impl Progress {
    /// What a number of requests counts: replies, or sessions of a flow.
    fn complete(&self, has_flow: bool) -> u64 {
        if has_flow {
            self.sessions
        } else {
            self.verified
        }
    }

    /// Connected clients.
    pub fn present(&self) -> u64 {
        self.connected.saturating_sub(self.gone)
    }
}

/// Interval between checks when the next step depends on the clients.
const CLIENTS_INTERVAL: Duration = Duration::from_millis(1);
/// Interval between checks when the next step depends on time.
const TIME_INTERVAL: Duration = Duration::from_millis(50);

/// The time at which replies begin to count, while it is not known yet.
const NOT_YET: u64 = u64::MAX / 2;

/// The drain lasts at most this multiple of the grace period, while replies keep arriving.
const LONGEST_DRAIN: u64 = 30;

/// The state machine.
#[derive(Debug)]
pub struct Phases {
    clients: u64,
    until: Until,
    warm_up: u64,
    /// The warm-up, if it lasts until the rate is level.
    warming: Option<Warming>,
    first_reply_timeout: u64,
    /// Whether clients continue while others wait for their first reply.
    eager: bool,
    /// Whether requests are the steps of a flow.
    has_flow: bool,
    /// Whether the load comes in slices.
    in_slices: bool,
    /// When the last client's turn to connect comes.
    all_connect_by: u64,
    grace: u64,
    phase: Phase,
    entered_at: u64,
    /// When something last happened: a first reply while connecting (a connection if eager); any reply while draining
    /// or for a load bounded by requests; any byte for a load bounded by bytes; any step of a short-lived client.
    progress_at: u64,
    progress_seen: u64,
    window: (u64, u64),
    ending: StoppedBy,
}

impl Phases {
    /// Begins at `now` (nanoseconds, any origin).
    pub fn new(plan: &Plan, now: u64) -> Self {
        Self {
            clients: u64::from(plan.own_clients()),
            until: plan.own_until(),
            warm_up: nanoseconds(plan.warm_up),
            warming: Warming::of(plan),
            all_connect_by: plan.connects_per_s.map_or(now, |rate| {
                now + (f64::from(plan.clients) * 1e9 / rate) as u64
            }),
            first_reply_timeout: match plan.until {
                // First replies depend only on the server.
                Until::Duration(_) => nanoseconds(plan.first_reply_timeout),
                Until::Requests(_) | Until::Bytes(_) => {
                    nanoseconds(plan.first_reply_timeout).saturating_add(plan.longest_pause())
                }
                // Clients that can connect have done so, or will fail.
                Until::Each { .. } => nanoseconds(plan.first_reply_timeout)
                    .saturating_add(nanoseconds(plan.connect_timeout))
                    .saturating_add(plan.longest_pause()),
            },
            eager: plan.eager,
            has_flow: plan.settings.flow.is_some(),
            in_slices: plan.in_slices,
            grace: nanoseconds(plan.grace),
            phase: match plan.until {
                Until::Each { .. } => Phase::Measure,
                _ => Phase::Connect,
            },
            entered_at: now,
            progress_at: now,
            progress_seen: 0,
            window: match plan.until {
                Until::Duration(_) => (u64::MAX, u64::MAX),
                Until::Requests(_) | Until::Bytes(_) => (now, u64::MAX),
                Until::Each { limit, .. } => {
                    let limit_ns = limit.map_or(u64::MAX, nanoseconds);
                    (now, now.saturating_add(limit_ns))
                }
            },
            ending: match plan.until {
                Until::Duration(_) => StoppedBy::Duration,
                Until::Requests(_) => StoppedBy::Requests,
                Until::Bytes(_) => StoppedBy::Bytes,
                Until::Each { .. } => StoppedBy::TimeLimit,
            },
        }
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The window in which replies count. At its end, no more requests are sent.
    pub fn window(&self) -> (u64, u64) {
        match self.phase {
            // The first slice begins later, once all clients rest.
            Phase::WarmUp if self.in_slices => (NOT_YET, u64::MAX),
            Phase::WarmUp if self.window.0 == u64::MAX => (NOT_YET, u64::MAX),
            _ => self.window,
        }
    }

    /// The next step at `now`.
    pub fn advance(&mut self, now: u64, progress: &Progress) -> Next {
        match self.phase {
            Phase::Connect => self.connect(now, progress),
            Phase::WarmUp => self.warm_up(now, progress),
            Phase::Measure if now >= self.window.1 => Next::Enter(Phase::Drain),
            Phase::Measure if matches!(self.until, Until::Each { .. }) => {
                self.measure_each(now, progress)
            }
            Phase::Measure if progress.answered > 0 && self.active(progress) == 0 => {
                self.ending = StoppedBy::NoClientsLeft;
                self.window.1 = now;
                Next::Enter(Phase::Drain)
            }
            Phase::Measure => wait_until(now, self.window.1),
            Phase::Drain => self.drain(now, progress),
            Phase::Idle => Next::Done(self.ending),
        }
    }

    fn connect(&mut self, now: u64, progress: &Progress) -> Next {
        let news = match self.until {
            Until::Duration(_) if self.eager => progress.connected + progress.failed,
            Until::Duration(_) => progress.answered,
            Until::Requests(_) => progress.verified,
            Until::Bytes(_) => progress.bytes,
            Until::Each { .. } => return Next::Enter(Phase::Measure),
        };
        self.note_progress(news, now);
        let timed = matches!(self.until, Until::Duration(_));
        let longest = self
            .first_reply_timeout
            .saturating_mul(LONGEST_CONNECT.into());
        let gave_up = now >= self.progress_at.max(self.all_connect_by) + self.first_reply_timeout
            || (timed && now >= self.all_connect_by.saturating_add(longest));
        let nobody_is_left = progress.failed >= self.clients;
        match self.until {
            Until::Duration(_)
                if progress.answered + progress.failed >= self.clients || gave_up =>
            {
                if self.active(progress) == 0 {
                    self.ending = StoppedBy::NoClientsLeft;
                    self.window = (now, now);
                    return Next::Enter(Phase::Idle);
                }
                Next::Enter(Phase::WarmUp)
            }
            Until::Requests(total)
                if progress.complete(self.has_flow) + progress.lost >= total
                    || nobody_is_left
                    || gave_up =>
            {
                self.end_of_count(now, gave_up, progress);
                Next::Enter(Phase::Idle)
            }
            Until::Bytes(total) if progress.bytes >= total || nobody_is_left || gave_up => {
                self.end_of_count(now, gave_up, progress);
                Next::Enter(Phase::Drain)
            }
            _ => Next::Wait(CLIENTS_INTERVAL),
        }
    }

    /// Waits until replies count. That time may not be decided yet.
    fn warm_up(&mut self, now: u64, progress: &Progress) -> Next {
        if let (Some(warming), Until::Duration(duration)) = (&mut self.warming, self.until)
            && self.window.0 == u64::MAX
        {
            match warming.check(now, progress.verified) {
                Ok(from) => self.window = (from, from + nanoseconds(duration)),
                Err(then) => return wait_until(now, then),
            }
        }
        if now >= self.window.0 {
            Next::Enter(Phase::Measure)
        } else {
            wait_until(now, self.window.0)
        }
    }

    /// The warm-up, if it lasted until the server's rate was level.
    pub fn warm_up_ended(&self) -> Option<WarmUp> {
        self.warming.as_ref().and_then(Warming::ended)
    }

    fn note_progress(&mut self, news: u64, now: u64) {
        if news > self.progress_seen {
            self.progress_seen = news;
            self.progress_at = now;
        }
    }

    /// Waits until every client is done or has failed.
    fn measure_each(&mut self, now: u64, progress: &Progress) -> Next {
        let ended = progress.done + progress.failed;
        self.note_progress(progress.connected + progress.verified + ended, now);
        if ended >= self.clients {
            self.ending = StoppedBy::Clients;
            self.end_of_count(now, false, progress);
        } else if now >= self.progress_at.max(self.all_connect_by) + self.first_reply_timeout {
            self.end_of_count(now, true, progress);
        } else {
            return Next::Wait(CLIENTS_INTERVAL);
        }
        Next::Enter(Phase::Drain)
    }

    /// Ends the window of a load bounded by its work, which has done that work or makes no more progress.
    fn end_of_count(&mut self, now: u64, gave_up: bool, progress: &Progress) {
        self.window.1 = if gave_up { self.progress_at } else { now };
        if gave_up {
            self.ending = StoppedBy::Silence;
        }
        if progress.verified == 0 || progress.failed >= self.clients {
            self.ending = StoppedBy::NoClientsLeft;
        }
    }

    /// Waits until all clients have their replies. With many clients that takes a while, so only silence ends it.
    fn drain(&mut self, now: u64, progress: &Progress) -> Next {
        self.note_progress(progress.verified, now);
        let longest = self.grace.saturating_mul(LONGEST_DRAIN);
        let silent = now >= self.progress_at + self.grace;
        let over = silent || now >= self.entered_at.saturating_add(longest);
        if (progress.at_end && progress.waiting == 0) || over {
            Next::Enter(Phase::Idle)
        } else {
            Next::Wait(CLIENTS_INTERVAL)
        }
    }

    /// Number of clients that had a reply and have not failed. A client that failed before its first reply makes this
    /// number one too low, never too high.
    fn active(&self, progress: &Progress) -> u64 {
        let never_answered = self.clients.saturating_sub(progress.answered);
        let failed_later = progress.failed.saturating_sub(never_answered);
        progress.answered.saturating_sub(failed_later)
    }

    /// The requested phase began at `now`.
    pub fn entered(&mut self, phase: Phase, now: u64) {
        self.phase = phase;
        self.entered_at = now;
        (self.progress_seen, self.progress_at) = (0, now);
        if phase == Phase::Measure && self.in_slices {
            self.window.0 = now;
        }
        match (phase, self.until, &mut self.warming) {
            (Phase::WarmUp, Until::Duration(_), Some(warming)) => warming.begin(now),
            (Phase::WarmUp, Until::Duration(duration), None) => {
                let from = now + self.warm_up;
                self.window = (from, from + nanoseconds(duration));
            }
            _ => {}
        }
    }

    /// The measured phase is over, however long it was meant to be.
    pub fn finish(&mut self, now: u64) {
        self.window.1 = now;
    }

    /// A stop was requested: results so far are kept.
    pub fn interrupt(&mut self, now: u64) {
        if matches!(self.phase, Phase::Drain | Phase::Idle) {
            return;
        }
        self.ending = StoppedBy::Interrupted;
        self.window = (self.window.0.min(now), now);
        self.phase = Phase::Measure;
    }

    /// Progress of the load, from 0 to 1.
    pub fn share_done(&self, now: u64, progress: &Progress) -> f64 {
        let share = match self.until {
            Until::Requests(requests) => {
                progress.complete(self.has_flow) as f64 / requests.max(1) as f64
            }
            Until::Bytes(bytes) => progress.bytes as f64 / bytes.max(1) as f64,
            Until::Duration(duration) => {
                let duration_ns = nanoseconds(duration);
                let until = match (&self.warming, self.phase) {
                    _ if self.window.0 < u64::MAX => self.window.1,
                    (Some(warming), Phase::WarmUp) => warming.earliest_end(now) + duration_ns,
                    _ => return 0.0,
                };
                let total = self.warm_up + duration_ns;
                1.0 - until.saturating_sub(now) as f64 / total.max(1) as f64
            }
            Until::Each { .. } => {
                (progress.done + progress.failed) as f64 / self.clients.max(1) as f64
            }
        };
        share.clamp(0.0, 1.0)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

fn wait_until(now: u64, then: u64) -> Next {
    Next::Wait(Duration::from_nanos(then - now).min(TIME_INTERVAL))
}

#[cfg(test)]
mod tests;
