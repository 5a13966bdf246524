//! The clients of one worker: their connections and requests, and their stats.
//!
//! It has no socket and no clock: an engine reports events with their time, and performs the returned actions
//! ([`Action`]). So all ways to schedule requests share the same few lines, whatever moves the bytes, and are tested
//! with made-up time.
//!
//! Requests are scheduled in one of three ways. In a closed loop, a client sends the next request after its reply, or
//! after a think time (`alarms`). In an open loop, a schedule decides (`schedule`), regardless of the server, and the
//! client that has been idle longest takes the request (`idle`). A request that becomes due while no client is idle
//! stays in the schedule.

mod client_state;
mod connecting;
mod dues;
mod endings;
mod handshake;
mod rules;
mod sending;
mod sessions;
#[cfg(test)]
mod tests;
mod window;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::arrival::Schedule;
use super::client::{Client, ClientDetails, Moment, NO_DUE, Since, Stamp, State};
use super::client_stats::{self, ErrorKinds, Sources};
use super::phase::Progress;
use super::{Close, Plan, Until};
use endings::Closer;
use rules::Rules;
use sessions::Session;
pub(super) use sessions::longest_delay;
use throng_protocol::{Replies, Requesters};
use throng_record::load_stats::{LoadStats, Times};
use throng_spec::Share;
use throng_sys::prefetch::prefetch;
use window::Window;

/// An engine's action on a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Action {
    /// Nothing.
    Keep,
    /// Send pending bytes.
    Send,
    /// Close it.
    Close(Close),
}

/// The clients of one worker.
pub(super) struct ClientPool {
    plan: Arc<Plan>,
    /// The worker's number, and the number of workers, among which clients are divided.
    number: usize,
    workers: usize,
    began: u64,
    /// The clients, in parallel arrays: their dialogue, the state that a request touches, and the rest.
    requesters: Box<dyn Requesters>,
    clients: Vec<Client>,
    details: Vec<ClientDetails>,
    /// If requests are scheduled: when each client's oldest open request was due, or the request for which it
    /// connects; otherwise `NO_DUE`.
    dues: Vec<u64>,
    /// With TLS: when each client's handshake began.
    handshakes: Vec<Moment>,
    /// With pipelining: the open requests after the oldest.
    later: Vec<VecDeque<Stamp>>,
    /// With a flow: each client's session.
    sessions: Vec<Session>,
    errors: ErrorKinds,
    sources: Sources,
    /// When replies count. No requests are sent after the window.
    window: Window,
    /// Until when clients send: the end of the load, or of a slice, after which they rest.
    sends_until: u64,
    /// The same as `sends_until` if a usual reply is immediately followed by the next request; otherwise 0.
    exchanges_until: u64,
    /// Whether clients that have had their first reply continue.
    begun: bool,
    /// The next client to start.
    next_to_start: usize,
    /// Clients that wait for their turn to connect.
    connect_queue: VecDeque<u32>,
    connecting: usize,
    closer: Closer,
    /// Number of clients of all workers that have been connected, which makes their order.
    connected: Arc<AtomicU64>,
    /// Number of current clients, and its maximum.
    present: u32,
    at_once: u32,
    /// The part of the plan that requests need.
    rules: Rules,
    /// Clients that continue at a time of their own.
    alarms: BinaryHeap<Reverse<(u64, u32)>>,
    /// Idle clients of an open loop, longest idle first.
    idle: VecDeque<u32>,
    schedule: Option<Schedule>,
    /// When the schedule began. In a load with slices, the schedule pauses between them.
    origin: u64,
    /// The total planned length of all slices so far.
    asked_ns: u64,
    /// Number of requests that an open loop may still begin.
    allowance: u64,
    /// When a due request last found no idle client.
    last_starved: u64,
    sweep: Sweep,
    stats: LoadStats,
    /// The recorded service times at the end of the last slice, and the number of replies.
    seen: Times,
    seen_replies: u64,
    progress: Progress,
    random: fastrand::Rng,
}

/// A sweep over all clients for timeouts, a few at a time.
#[derive(Debug, Default)]
struct Sweep {
    /// Time for a complete sweep.
    period: u64,
    looked_at: u64,
    next: usize,
    left: usize,
}

/// Longest and shortest time for a complete sweep.
const SWEEP: (u64, u64) = (50_000_000, 1_000_000);
/// A timeout may be exceeded by one part in this many.
const SWEEPS_PER_TIMEOUT: u64 = 10;

/// The start of a schedule that waits for the first slice.
const NOT_BEGUN: u64 = u64::MAX / 2;

/// Number of replies after which their sizes are recorded.
const SIZES_NOTED: u64 = 64;

impl ClientPool {
    /// Every `workers`th client, from client `number`, of a load that began at `began`. Its workers share the number
    /// of clients that have been `connected`.
    pub(super) fn new(
        plan: &Arc<Plan>,
        number: usize,
        workers: usize,
        began: u64,
        connected: &Arc<AtomicU64>,
    ) -> Self {
        let count = u64::from(plan.clients);
        let share = Share::new(number as u32, workers as u32).unwrap_or(Share::WHOLE);
        let mut numbers = (number as u64..count).step_by(workers);
        let clients: Vec<Client> = numbers
            .clone()
            .map(|client| Client::new(plan, client))
            .collect();
        let places = clients.len();
        let places_if = |needed: bool| if needed { places } else { 0 };
        let schedule = plan
            .rate
            .as_ref()
            .map(|rate| Schedule::new(rate, number, workers, plan.seed));
        let allowance = match plan.until {
            Until::Requests(total) => share.of(total),
            _ => u64::MAX,
        };
        let limits = [
            Some(plan.connect_timeout),
            plan.request_timeout,
            plan.lifetime,
            plan.life(),
        ];
        let shortest = limits.into_iter().flatten().min().unwrap_or_default();
        Self {
            number,
            workers,
            began,
            requesters: plan.dialogue.requesters(&plan.settings, &mut numbers),
            clients,
            details: std::iter::repeat_with(ClientDetails::new)
                .take(places)
                .collect(),
            dues: vec![NO_DUE; places_if(plan.has_due_times())],
            handshakes: vec![Moment::NEVER; places_if(plan.tls.is_some())],
            later: vec![VecDeque::new(); places_if(plan.pipeline > 1)],
            sessions: vec![Session::NONE; places_if(plan.settings.flow.is_some())],
            errors: ErrorKinds::default(),
            sources: Sources::default(),
            window: Window::default(),
            sends_until: u64::MAX,
            exchanges_until: 0,
            begun: plan.eager || plan.has_jobs(),
            next_to_start: 0,
            connect_queue: VecDeque::new(),
            connecting: 0,
            closer: Closer::default(),
            connected: Arc::clone(connected),
            present: 0,
            at_once: plan.at_once.map_or(u32::MAX, |most| share.of_clients(most)),
            rules: Rules::of(plan),
            alarms: BinaryHeap::new(),
            idle: VecDeque::new(),
            stats: client_stats::empty_stats(plan),
            seen: Times::default(),
            seen_replies: 0,
            schedule,
            origin: if plan.in_slices { NOT_BEGUN } else { 0 },
            asked_ns: 0,
            allowance,
            last_starved: 0,
            sweep: Sweep {
                period: (shortest.as_nanos() as u64 / SWEEPS_PER_TIMEOUT).clamp(SWEEP.1, SWEEP.0),
                looked_at: began,
                ..Sweep::default()
            },
            progress: Progress::default(),
            random: fastrand::Rng::with_seed(plan.seed ^ number as u64),
            plan: Arc::clone(plan),
        }
    }

    /// The number of clients.
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Their progress.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The times so far: response times in an open loop, otherwise service times.
    pub(super) fn times(&self) -> &Times {
        match &self.stats.open {
            Some(open) => &open.response_time,
            None => &self.stats.service_time,
        }
    }

    /// A client's number among the clients of all workers.
    pub(super) fn client_number(&self, slot: usize) -> u64 {
        (slot * self.workers + self.number) as u64
    }

    /// The number that selects a client's route: its own among the clients of this process. Otherwise, the clients of
    /// one host would use few of its addresses.
    pub(super) fn route_number(&self, slot: usize) -> u64 {
        self.client_number(slot) / u64::from(self.plan.share.parts())
    }

    /// The state of a client.
    pub(super) fn state(&self, slot: usize) -> State {
        self.clients[slot].state
    }

    /// Prefetches the two cache lines that most events of a client touch. With hundreds of clients, system calls for
    /// other clients have evicted them from the CPU's caches.
    #[inline]
    pub(super) fn prefetch(&self, slot: usize) {
        prefetch(&raw const self.clients[slot]);
        prefetch(self.requesters.state_address(slot));
    }

    /// Bytes arrived.
    #[inline]
    pub(super) fn received(&mut self, slot: usize, bytes: &[u8], now: u64) -> Action {
        if now < self.exchanges_until
            && self.clients[slot].is_usual()
            && let Some(next) = self.requesters.exchange(slot, bytes)
        {
            return self.exchanged(slot, bytes.len() as u64, next, now);
        }
        self.take_reply(slot, bytes, now)
    }

    /// The usual case: a complete, correct reply, followed by the next request.
    #[inline]
    fn exchanged(&mut self, slot: usize, count: u64, next: &'static [u8], now: u64) -> Action {
        self.progress.verified += 1;
        if self.progress.verified.is_multiple_of(SIZES_NOTED) {
            self.record_sizes(slot);
        }
        let client = &mut self.clients[slot];
        client.bytes_received += count;
        self.progress.bytes += count;
        let took = now - client.sent;
        if let Some(part) = self.window.part_at(now) {
            self.stats.window_bytes_received += count;
            client.counted += 1;
            self.stats.replies_by_tenth[usize::from(client.tenth)][part.interval] += 1;
            self.stats.times_by_part.record_in_place(part.number, took);
            self.stats.service_time.record_in_place(took);
        } else {
            self.details[slot].uncounted += 1;
        }
        client.budget -= 1;
        client.sent = now;
        client.unsent = next;
        client.is_ahead = true;
        Action::Send
    }

    #[inline(never)]
    fn take_reply(&mut self, slot: usize, bytes: &[u8], now: u64) -> Action {
        self.sync_requester(slot);
        let count = bytes.len() as u64;
        let client = &mut self.clients[slot];
        client.bytes_received += count;
        self.progress.bytes += count;
        if self.window.part_at(now).is_some() {
            self.stats.window_bytes_received += count;
        }
        let action = match self.requesters.receive(slot, bytes) {
            Ok(replies) if replies.completed > 0 => self.answered(slot, replies, now),
            // Later requests are sent again.
            Ok(replies) if replies.close && self.may_end(slot) => self.await_close(slot, now),
            Ok(_) => {
                // The next reply has begun.
                let replying = &mut self.clients[slot];
                replying.was_refused = false;
                if replying.since_reply == Since::Rest {
                    replying.since_reply = Since::Reply;
                }
                Action::Keep
            }
            Err(wrong) => self.fail_with_reply(slot, bytes, &wrong, now),
        };
        if self.rules.has_handshake && action == Action::Keep {
            return self.answer(slot);
        }
        action
    }

    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    fn answered(&mut self, slot: usize, replies: Replies, now: u64) -> Action {
        for _ in 0..replies.completed {
            self.count_reply(slot, now);
        }
        let client = &mut self.clients[slot];
        if client.since_reply != Since::Reply {
            client.since_reply = Since::Reply;
            self.details[slot].failures = 0;
        }
        client.was_refused = replies.refused > 0;
        if replies.close {
            return self.await_close(slot, now);
        }
        self.after_reply(slot, now)
    }

    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    fn count_reply(&mut self, slot: usize, now: u64) {
        let stamp = self.take_answered(slot);
        self.progress.verified += 1;
        if self.rules.has_flow {
            self.count_step(slot, stamp, now);
        }
        if self.progress.verified.is_multiple_of(SIZES_NOTED) {
            self.record_sizes(slot);
        }
        let client = &mut self.clients[slot];
        if std::mem::replace(&mut client.was_answered, true) {
            self.progress.waiting -= 1;
        } else {
            self.details[slot]
                .first_reply_at
                .set_first(now - self.began);
            self.progress.answered += 1;
            self.progress.waiting += u64::from(client.outstanding);
        }
        let part = self.window.part_at(now);
        if let Some(part) = part {
            client.counted += 1;
            let tenth = usize::from(client.tenth);
            self.stats.replies_by_tenth[tenth][part.interval] += 1;
        } else {
            self.details[slot].uncounted += 1;
        }
        let took = now - stamp.sent;
        let Some(open) = &mut self.stats.open else {
            if let Some(part) = part {
                self.stats.times_by_part.record_in_place(part.number, took);
                self.stats.service_time.record_in_place(took);
            }
            return;
        };
        let since_due = now - stamp.due;
        if let Some(part) = part {
            self.stats
                .times_by_part
                .record_in_place(part.number, since_due);
        }
        // Everything that was due in the window counts, and nothing else.
        if self.window.has(stamp.due) {
            open.response_time.record_in_place(since_due);
            self.stats.service_time.record_in_place(took);
        }
    }

    /// A client got a reply, and its connection stays open.
    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    fn after_reply(&mut self, slot: usize, now: u64) -> Action {
        if now >= self.sends_until {
            return self.rest(slot, now);
        }
        let client = &self.clients[slot];
        if self.rules.has_flow && self.begun && self.is_in_session(slot) {
            return self.next_step(slot, now);
        }
        if client.budget == 0 {
            return if client.outstanding == 0 {
                self.finish_job(slot, now)
            } else {
                Action::Keep
            };
        }
        if self.is_expired(slot, now) {
            return if client.outstanding == 0 {
                self.close_expired(slot, now)
            } else {
                Action::Keep
            };
        }
        if self.begun {
            self.schedule_next(slot, now)
        } else {
            Action::Keep
        }
    }

    /// Whether a connection has reached its limit.
    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    fn is_expired(&self, slot: usize, now: u64) -> bool {
        self.rules.expires && {
            let details = &self.details[slot];
            u64::from(details.requests_begun(self.clients[slot].budget))
                >= self.rules.requests_per_connection
                || now.saturating_sub(details.since) >= self.rules.lifetime
                || self.has_lived(slot, now)
        }
    }

    /// Whether a short-lived client has lived its time.
    fn has_lived(&self, slot: usize, now: u64) -> bool {
        self.rules.life < u64::MAX && {
            let connected_at = self.details[slot].connected_at.get();
            connected_at.is_some_and(|at| now >= self.began + at + self.rules.life)
        }
    }

    /// The next step of a client that may send more: it sends, or waits for its time.
    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    fn schedule_next(&mut self, slot: usize, now: u64) -> Action {
        if self.rules.has_dues {
            self.wait_for_due(slot, now);
            return Action::Keep;
        }
        if self.rules.has_flow && self.delays_session(slot, now) {
            return Action::Keep;
        }
        let mut action = Action::Keep;
        loop {
            let client = &self.clients[slot];
            let is_full = client.outstanding >= self.rules.pipeline
                || client.budget == 0
                || (self.rules.has_handshake && self.is_out_of_room(slot));
            if is_full || (action == Action::Send && self.is_expired(slot, now)) {
                return action;
            }
            self.begin_request(slot, now, now);
            action = Action::Send;
            if self.rules.pipeline == 1 {
                return action;
            }
        }
    }

    /// Whether the server allows no further open request. A client without any always begins one.
    fn is_out_of_room(&self, slot: usize) -> bool {
        let open = u32::from(self.clients[slot].outstanding);
        open > 0 && open >= self.requesters.room(slot)
    }

    /// Begins a request that was due at `due`.
    #[expect(clippy::inline_always, reason = "part of one request's path")]
    #[inline(always)]
    fn begin_request(&mut self, slot: usize, due: u64, now: u64) {
        let counts = !self.rules.has_flow || self.counts_request(slot, due);
        let client = &mut self.clients[slot];
        client.budget = client.budget.saturating_sub(counts.into());
        if client.was_answered {
            self.progress.waiting += 1;
        }
        if client.outstanding == 0 {
            client.sent = now;
            if self.rules.has_dues {
                self.dues[slot] = due;
            }
        } else {
            self.later[slot].push_back(Stamp { due, sent: now });
        }
        client.outstanding += 1;
        client.is_ahead = false;
        client.unsent = self.requesters.begin(slot);
    }
}
