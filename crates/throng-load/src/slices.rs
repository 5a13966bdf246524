//! Slices: short periods of load, each from rest to rest, with pauses for other servers.
//!
//! For the clients, a slice ends when its time is over. For the leader, it ends when the last reply has arrived, so
//! that none of it overlaps with another server's slice.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pool::ClientPool;
use super::{NextSlice, SliceStats, Watcher, now};
use throng_record::load_stats::Times;
use throng_sys::clock;

/// The last reply of a slice may take this multiple of the grace period: a server that switches between thousands of
/// threads answers the last of thousands of clients late.
const LONGEST_REST: u32 = 4;

/// State that the workers of a load in slices share with their leader.
pub(super) struct Slices {
    workers: usize,
    /// When the current slice began, and until when clients send.
    from: AtomicU64,
    until: AtomicU64,
    state: Mutex<State>,
    /// Signalled at the start of a slice, when a worker rests, and at the end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of slices that have begun.
    number: u64,
    /// Number of workers that have come to rest since the last slice began.
    resting: usize,
    /// When the last of them came to rest.
    rested_at: u64,
    /// The service times of these workers in the slice, and their replies.
    times: Times,
    replies: u64,
    /// Total length of all slices that count, in nanoseconds.
    total_ns: u64,
    /// Whether the last slice was for warm-up, and whether the stats of warm-up slices are to be discarded.
    warmed_up: bool,
    forgets: bool,
    /// There are no more slices.
    over: bool,
}

impl Slices {
    /// The slices of a load with `workers` workers, which sends until its first [rest](Self::rest).
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers,
            from: AtomicU64::new(0),
            until: AtomicU64::new(u64::MAX),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Until when clients send.
    pub(super) fn until(&self) -> u64 {
        self.until.load(Relaxed)
    }

    /// Start and end of the current slice.
    pub(super) fn span(&self) -> (u64, u64) {
        (self.from.load(Relaxed), self.until())
    }

    /// Total length of all slices.
    pub(super) fn total_ns(&self) -> u64 {
        self.state().total_ns
    }

    // The leader's part.

    /// Ends what came before the first slice, and waits for the last replies, for at most `grace`.
    pub(super) fn rest(&self, grace: Duration) {
        self.until.store(now(), Relaxed);
        drop(self.await_rest(self.state(), grace));
    }

    /// Runs slices, as long as the watcher wants more.
    pub(super) fn lead(&self, watcher: &mut dyn Watcher, grace: Duration) -> anyhow::Result<()> {
        let mut last = None;
        while let Some(slice) = watcher.next_slice(last.take())? {
            last = Some(self.run_slice(slice, grace));
        }
        self.end();
        Ok(())
    }

    /// Runs one slice, from rest to rest.
    fn run_slice(&self, slice: NextSlice, grace: Duration) -> SliceStats {
        let length = Duration::from_nanos(slice.length_ns);
        let cpu_before = clock::own_cpu_time();
        let mut state = self.state();
        state.forgets = state.warmed_up && !slice.warms_up;
        state.warmed_up = slice.warms_up;
        state.number += 1;
        state.resting = 0;
        state.times.clear();
        state.replies = 0;
        let began = now();
        self.from.store(began, Relaxed);
        self.until
            .store(began.saturating_add(slice.length_ns), Relaxed);
        self.changed.notify_all();
        let limit = length.saturating_add(grace.saturating_mul(LONGEST_REST));
        let mut rested = self.await_rest(state, limit);
        let complete = rested.resting == self.workers;
        let ended = if complete { rested.rested_at } else { now() };
        let took_ns = ended.saturating_sub(began);
        if !slice.warms_up {
            rested.total_ns += took_ns;
        }
        let cpu = clock::own_cpu_time().saturating_sub(cpu_before);
        let (mean_ns, [p50_ns, p90_ns, p99_ns]) =
            rested.times.mean_and_percentiles([50.0, 90.0, 99.0]);
        SliceStats {
            took_ns,
            replies: rested.replies,
            cpu_ns: cpu.as_nanos() as u64,
            mean_ns,
            p50_ns,
            p90_ns,
            p99_ns,
            complete,
        }
    }

    fn await_rest<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        let waits = |inner: &mut State| inner.resting < self.workers;
        let awaited = self.changed.wait_timeout_while(state, limit, waits);
        awaited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Lets the workers end without another slice.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    // A worker's part.

    /// Reports that all clients of a worker rest, with their times, and waits for the next slice; false if there is
    /// none.
    pub(super) fn await_next(&self, pool: &mut ClientPool) -> bool {
        let mut state = self.state();
        if state.over {
            return false;
        }
        state.replies += pool.add_times_since_rest(&mut state.times);
        state.resting += 1;
        state.rested_at = now();
        self.changed.notify_all();
        let number = state.number;
        let waits = |inner: &mut State| inner.number == number && !inner.over;
        let awaited = self.changed.wait_while(state, waits);
        let resumed = awaited.unwrap_or_else(PoisonError::into_inner);
        let (forgets, over) = (resumed.forgets, resumed.over);
        drop(resumed);
        if forgets && !over {
            pool.discard_stats();
        }
        !over
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
