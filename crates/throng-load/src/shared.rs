//! State that the workers of a load share with their leader: the window, and the progress of the clients.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hdrhistogram::Histogram;

use super::phase::Progress;
use super::pool::ClientPool;
use super::slices::Slices;
use super::{Plan, Until, now};
use throng_record::load_stats::Times;

/// State that the workers share with their leader.
pub(super) struct Shared {
    /// When the load began, on the clock of [`now`].
    began: OnceLock<u64>,
    from: AtomicU64,
    until: AtomicU64,
    close: AtomicBool,
    /// Whether the length of the window is fixed in advance.
    is_timed: bool,
    /// Number of times that copies of the times so far were requested.
    times_asked: AtomicU64,
    progress: Vec<WorkerProgress>,
    /// Number of clients that have been connected.
    pub(super) connected: Arc<AtomicU64>,
    /// The slices, if the load has them.
    pub(super) slices: Option<Slices>,
}

/// One worker's counters, alone on their cache lines.
#[derive(Default)]
#[repr(align(128))]
struct WorkerProgress {
    connected: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    done: AtomicU64,
    gone: AtomicU64,
    waiting: AtomicU64,
    verified: AtomicU64,
    sessions: AtomicU64,
    lost: AtomicU64,
    bytes: AtomicU64,
    at_end: AtomicBool,
    times_given: AtomicU64,
    times: Mutex<Option<Times>>,
}

/// The window, in which replies counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowTimes {
    /// When the load began.
    pub(super) began: u64,
    /// Its first nanosecond, `u64::MAX` until it is known.
    pub(super) from: u64,
    /// The first nanosecond after it.
    pub(super) until: u64,
    /// Whether its length was fixed in advance.
    pub(super) is_timed: bool,
    /// The total time in which the load did not rest, if it had slices.
    pub(super) slices_ns: Option<u64>,
}

impl WindowTimes {
    /// Whether `time`, counted from the start of the load, is before the end of the window. A load that was
    /// interrupted while clients were still connecting has no window; then any time is.
    pub(super) fn ends_after(&self, time: u64) -> bool {
        self.from >= self.until || self.began.saturating_add(time) < self.until
    }

    pub(super) fn duration_ns(&self) -> u64 {
        if self.from == u64::MAX {
            0
        } else {
            self.until.saturating_sub(self.from)
        }
    }
}

impl Shared {
    pub(super) fn new(threads: usize, plan: &Plan) -> Self {
        let timed = matches!(plan.until, Until::Duration(_));
        Self {
            began: OnceLock::new(),
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(u64::MAX),
            close: AtomicBool::new(false),
            is_timed: timed,
            times_asked: AtomicU64::new(0),
            progress: (0..threads).map(|_| WorkerProgress::default()).collect(),
            connected: Arc::default(),
            slices: plan.in_slices.then(|| Slices::new(threads)),
        }
    }

    /// Lets the workers begin, once all of them exist. Workers that began earlier would have a head start, and with
    /// thousands of them would keep the leader from starting the others.
    pub(super) fn begin(&self) {
        let began = now();
        if !self.is_timed {
            self.from.store(began, Relaxed);
        }
        self.began.get_or_init(|| began);
    }

    /// When the load began; waits until it has begun.
    pub(super) fn began(&self) -> u64 {
        *self.began.wait()
    }

    pub(super) fn set_window(&self, (from, until): (u64, u64)) {
        self.from.store(from, Relaxed);
        self.until.store(until, Relaxed);
    }

    pub(super) fn window(&self) -> WindowTimes {
        WindowTimes {
            began: self.began(),
            from: self.from.load(Relaxed),
            until: self.until.load(Relaxed),
            is_timed: self.is_timed,
            slices_ns: self.slices.as_ref().map(Slices::total_ns),
        }
    }

    /// Lets the workers close their connections and end.
    pub(super) fn close(&self) {
        self.close.store(true, Relaxed);
        self.slices.iter().for_each(Slices::end);
    }

    /// Whether the workers may end.
    pub(super) fn may_close(&self) -> bool {
        self.close.load(Relaxed)
    }

    /// Publishes the progress of the clients of worker `number`.
    pub(super) fn publish(&self, number: usize, pool: &ClientPool) {
        let progress = pool.progress();
        let published = &self.progress[number];
        published.connected.store(progress.connected, Relaxed);
        published.answered.store(progress.answered, Relaxed);
        published.failed.store(progress.failed, Relaxed);
        published.done.store(progress.done, Relaxed);
        published.gone.store(progress.gone, Relaxed);
        published.waiting.store(progress.waiting, Relaxed);
        published.verified.store(progress.verified, Relaxed);
        published.sessions.store(progress.sessions, Relaxed);
        published.lost.store(progress.lost, Relaxed);
        published.bytes.store(progress.bytes, Relaxed);
        // Stored last: a reader that sees it also sees the open requests.
        published.at_end.store(progress.at_end, Release);
        let asked = self.times_asked.load(Relaxed);
        if published.times_given.load(Relaxed) < asked {
            published.times_given.store(asked, Relaxed);
            let mut given = published
                .times
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // Reuses the same memory, since a thread under load has no time to allocate.
            match &mut *given {
                Some(times) => times.copy_from(pool.times()),
                None => *given = Some(pool.times().clone()),
            }
        }
    }

    /// Requests a copy of the workers' latencies, which [`times`](Self::times) returns soon after.
    pub(super) fn ask_for_times(&self) {
        self.times_asked.fetch_add(1, Relaxed);
    }

    /// Response times in an open loop, otherwise service times, as far as available.
    pub(super) fn times(&self) -> Histogram<u64> {
        let mut sum = Times::default();
        for worker in &self.progress {
            let times = worker.times.lock();
            if let Some(times) = &*times.unwrap_or_else(PoisonError::into_inner) {
                sum.merge(times);
            }
        }
        sum.histogram()
    }

    /// The progress of the clients of all workers.
    pub(super) fn progress(&self) -> Progress {
        // Loaded first: requests begun before the end are included in what is read after it.
        let at_end = self
            .progress
            .iter()
            .all(|worker| worker.at_end.load(Acquire));
        let sum = |counter: fn(&WorkerProgress) -> &AtomicU64| {
            self.progress
                .iter()
                .map(|worker| counter(worker).load(Relaxed))
                .sum()
        };
        Progress {
            connected: sum(|worker| &worker.connected),
            answered: sum(|worker| &worker.answered),
            failed: sum(|worker| &worker.failed),
            done: sum(|worker| &worker.done),
            gone: sum(|worker| &worker.gone),
            waiting: sum(|worker| &worker.waiting),
            verified: sum(|worker| &worker.verified),
            sessions: sum(|worker| &worker.sessions),
            lost: sum(|worker| &worker.lost),
            bytes: sum(|worker| &worker.bytes),
            at_end,
        }
    }
}
