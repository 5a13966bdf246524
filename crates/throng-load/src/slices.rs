//! Slices: short times in which a load asks, each from rest to rest, with pauses in between in which others have
//! the machine.
//!
//! A slice ends for the clients when its time is over, and for the leader when the last reply has come, so that
//! nothing of it falls into what somebody else does next.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pool::ClientPool;
use super::{NextSlice, SliceStats, Watcher, now};
use throng_record::load_stats::Times;
use throng_sys::clock;

/// What the workers of a load in slices and their leader share.
pub(super) struct Slices {
    workers: usize,
    /// When the slice that lasts began, and until when clients ask.
    from: AtomicU64,
    until: AtomicU64,
    state: Mutex<State>,
    /// A slice begins, a worker is at rest, or all is over.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many slices have begun.
    number: u64,
    /// Workers that are at rest since the last one.
    resting: usize,
    /// When the last of them came to rest.
    rested_at: u64,
    /// The service times that these saw in it.
    times: Times,
    /// How long all slices that count took together, in nanoseconds.
    total_ns: u64,
    /// Whether the last slice was one that warms up, and whether what was seen in such ones is to be forgotten.
    warmed_up: bool,
    forgets: bool,
    /// There is no other slice.
    over: bool,
}

impl Slices {
    /// Of a load with so many workers, which asks until it is to [rest](Self::rest) for the first time.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers,
            from: AtomicU64::new(0),
            until: AtomicU64::new(u64::MAX),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Until when clients ask.
    pub(super) fn until(&self) -> u64 {
        self.until.load(Relaxed)
    }

    /// From when until when the slice is that lasts.
    pub(super) fn span(&self) -> (u64, u64) {
        (self.from.load(Relaxed), self.until())
    }

    /// How long all slices took together.
    pub(super) fn total_ns(&self) -> u64 {
        self.state().total_ns
    }

    // Of the leader.

    /// Ends what came before the first slice, and waits for the last replies; but no longer than this.
    pub(super) fn rest(&self, grace: Duration) {
        self.until.store(now(), Relaxed);
        drop(self.await_rest(self.state(), grace));
    }

    /// Has slices, as long as the watcher wants another one.
    pub(super) fn lead(&self, watcher: &mut dyn Watcher, grace: Duration) -> anyhow::Result<()> {
        let mut last = None;
        while let Some(slice) = watcher.next_slice(last.take())? {
            last = Some(self.have(slice, grace));
        }
        self.end();
        Ok(())
    }

    /// Has one slice, from rest to rest.
    fn have(&self, slice: NextSlice, grace: Duration) -> SliceStats {
        let length = Duration::from_nanos(slice.length_ns);
        let cpu = clock::own_cpu_time();
        let mut state = self.state();
        state.forgets = state.warmed_up && !slice.warms_up;
        state.warmed_up = slice.warms_up;
        state.number += 1;
        state.resting = 0;
        state.times.clear();
        let began = now();
        self.from.store(began, Relaxed);
        self.until
            .store(began.saturating_add(slice.length_ns), Relaxed);
        self.changed.notify_all();
        let mut state = self.await_rest(state, length.saturating_add(grace));
        let complete = state.resting == self.workers;
        let ended = if complete { state.rested_at } else { now() };
        let took_ns = ended.saturating_sub(began);
        if !slice.warms_up {
            state.total_ns += took_ns;
        }
        let cpu = clock::own_cpu_time().saturating_sub(cpu);
        let (mean_ns, [p50_ns, p90_ns, p99_ns]) =
            state.times.mean_and_percentiles([50.0, 90.0, 99.0]);
        SliceStats {
            took_ns,
            replies: state.times.count(),
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
        let waits = |state: &mut State| state.resting < self.workers;
        let awaited = self.changed.wait_timeout_while(state, limit, waits);
        awaited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Lets the workers go on without another slice.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    // Of a worker.

    /// Says that all clients of a worker are at rest, and what they saw, and waits for the next slice; false if there
    /// is none.
    pub(super) fn await_next(&self, pool: &mut ClientPool) -> bool {
        let mut state = self.state();
        if state.over {
            return false;
        }
        pool.add_seen_since_rest(&mut state.times);
        state.resting += 1;
        state.rested_at = now();
        self.changed.notify_all();
        let number = state.number;
        let waits = |state: &mut State| state.number == number && !state.over;
        let awaited = self.changed.wait_while(state, waits);
        let state = awaited.unwrap_or_else(PoisonError::into_inner);
        let (forgets, over) = (state.forgets, state.over);
        drop(state);
        if forgets && !over {
            pool.forget();
        }
        !over
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
