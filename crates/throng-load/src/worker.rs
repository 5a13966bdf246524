//! The one loop that drives clients, for every protocol, schedule and engine.
//!
//! A worker owns its clients, their sockets and its histograms. It shares only the window and a few counters with the
//! other workers, and writes the counters once per round.

use std::sync::Arc;
use std::time::Duration;

use super::client::State;
use super::client_stats::WorkerStats;
use super::engine::{self, Engine};
use super::pool::{Action, ClientPool};
use super::shared::Shared;
use super::{Close, Plan, now};

/// Maximum number of connections to begin per round, before existing ones are served.
const CONNECTS_PER_ROUND: usize = 64;
/// Maximum number of due requests to begin per round, before replies are processed.
const DUE_PER_ROUND: usize = 64;

/// One thread's clients and their engine.
pub(super) struct Worker {
    /// Its number, if it reports its progress.
    reports_as: Option<usize>,
    shared: Arc<Shared>,
    pool: ClientPool,
    engine: Box<dyn Engine>,
}

impl Worker {
    /// The worker with every `workers`th client, from `number`. It reports its progress to the leader under the number
    /// `reports_as`, if that is set.
    pub(super) fn new(
        plan: &Arc<Plan>,
        number: usize,
        workers: usize,
        shared: &Arc<Shared>,
        reports_as: Option<usize>,
    ) -> anyhow::Result<Self> {
        let of_probes = Arc::default();
        let connected = reports_as.map_or(&of_probes, |_| &shared.connected);
        let pool = ClientPool::new(plan, number, workers, shared.began(), connected);
        Ok(Self {
            reports_as,
            engine: engine::start(plan, pool.len())?,
            pool,
            shared: Arc::clone(shared),
        })
    }

    /// Drives the clients until connections may be closed.
    pub(super) fn run(mut self) -> anyhow::Result<WorkerStats> {
        let mut gaps = Gaps::default();
        while !self.shared.may_close() {
            let time = now();
            let window = self.shared.window();
            gaps.record(time, window.from, window.until);
            self.pool.set_window(window.from, window.until, time);
            if let Some(slices) = &self.shared.slices
                && self.pool.update_slice(slices.until(), time)
            {
                if slices.await_next(&mut self.pool) {
                    // Servers may have closed idle connections; nothing is sent over those.
                    self.pool.end_rest();
                    self.engine.run_once(&mut self.pool, Duration::ZERO)?;
                    self.pool.begin_slice(slices.span(), now());
                }
                gaps = Gaps::default(); // the worker waits in between
                continue;
            }
            self.connect_some(time);
            self.send_due();
            self.check_timeouts(time);
            let longest_wait = self.pool.time_to_wait(now());
            self.engine.run_once(&mut self.pool, longest_wait)?;
            if let Some(number) = self.reports_as {
                self.shared.publish(number, &self.pool);
            }
        }
        let time = now();
        self.close_open_connections();
        self.engine.end(&mut self.pool);
        let (mut stats, clients) = self.pool.finish(time);
        stats.longest_gap_ns = gaps.longest;
        Ok((stats, clients))
    }

    /// Closes open connections in an orderly way when the load is over.
    fn close_open_connections(&mut self) {
        if !self.pool.has_closing_message() {
            return;
        }
        for slot in 0..self.pool.len() {
            if self.pool.state(slot) == State::Open {
                let close = Action::Close(Close::Orderly);
                self.engine.apply(&mut self.pool, slot, close);
            }
        }
    }

    fn connect_some(&mut self, time: u64) {
        for _ in 0..CONNECTS_PER_ROUND {
            let Some(slot) = self.pool.next_to_connect(time) else {
                return;
            };
            self.engine.connect(&mut self.pool, slot);
        }
    }

    fn send_due(&mut self) {
        for _ in 0..DUE_PER_ROUND {
            if !self.pool.has_due(u64::MAX) {
                return; // there are none, at any time
            }
            let Some(slot) = self.pool.next_due(now()) else {
                return;
            };
            self.engine.apply(&mut self.pool, slot, Action::Send);
        }
    }

    fn check_timeouts(&mut self, time: u64) {
        self.pool.begin_sweep(time);
        while let Some((slot, action)) = self.pool.next_overdue(time) {
            self.engine.apply(&mut self.pool, slot, action);
        }
    }
}

/// Periods in which a worker did not attend to its clients, which it does every few milliseconds.
#[derive(Debug, Default)]
struct Gaps {
    recorded_at: Option<u64>,
    /// The longest gap, counting only the part within the window.
    longest: Option<u64>,
}

impl Gaps {
    fn record(&mut self, time: u64, from: u64, until: u64) {
        let last = self.recorded_at.replace(time);
        let (Some(last), true) = (last, time > from) else {
            return;
        };
        let gap = time.min(until).saturating_sub(last.max(from));
        self.longest = self.longest.max(Some(gap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_count_as_far_as_they_lie_in_the_window() {
        let mut gaps = Gaps::default();
        for (time, longest) in [
            (10, None),
            (90, None),
            (130, Some(30)),
            (140, Some(30)),
            (175, Some(35)),
            (900, Some(35)),
            (2000, Some(35)),
        ] {
            gaps.record(time, 100, 200);
            assert_eq!(gaps.longest, longest, "at {time}");
        }
        let mut gaps = Gaps::default();
        gaps.record(50, 100, 200);
        gaps.record(500, 100, 200);
        assert_eq!(gaps.longest, Some(100), "all of it");
    }
}
