//! The interval between a probe's samples: long enough that sampling does not show in the measurement.

use std::time::{Duration, Instant};

use throng_sys::clock::thread_cpu_time;

/// A sample may take one part in this many of the time until the next one. Four probes on two subjects keep such a
/// pace, so that all together stay below 1 %.
const SHARE: u32 = 800;

/// When to take the next sample, based on the cost of the last ones.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Minimum time between two samples.
    interval: Duration,
    /// The most CPU time that a sample took.
    cost: Duration,
    next: Option<Instant>,
}

impl Pace {
    /// A pace with at least `interval` between two samples.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            cost: Duration::ZERO,
            next: None,
        }
    }

    /// Whether it is time for a sample.
    pub(super) fn is_due(&self, at: Instant) -> bool {
        self.next.is_none_or(|next| at >= next)
    }

    /// Takes a sample, and works out when the next one may be taken.
    pub(super) fn sample<T>(&mut self, at: Instant, look: impl FnOnce() -> T) -> T {
        let before = thread_cpu_time();
        let seen = look();
        self.took(at, thread_cpu_time().saturating_sub(before));
        seen
    }

    /// Records that a sample at `at` took `cost` CPU time.
    fn took(&mut self, at: Instant, cost: Duration) {
        self.cost = self.cost.max(cost);
        self.wait_from(at);
    }

    /// Allows no sample until a whole pause has passed.
    pub(super) fn wait_from(&mut self, at: Instant) {
        self.next = Some(at + self.pause());
    }

    /// Time between two samples.
    pub(super) fn pause(&self) -> Duration {
        self.interval.max(self.cost * SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_follows_from_what_a_look_costs() {
        let at = Instant::now();
        let mut pace = Pace::new(Duration::from_millis(200));
        assert!(pace.is_due(at), "nothing is known against it");
        pace.took(at, Duration::from_micros(50));
        assert_eq!(pace.pause(), Duration::from_millis(200));
        assert!(!pace.is_due(at + Duration::from_millis(199)));
        assert!(pace.is_due(at + Duration::from_millis(200)));
        // 3000 processes at 30 µs each: no second sample within the ten seconds of a trial.
        pace.took(at, Duration::from_millis(90));
        assert_eq!(pace.pause(), Duration::from_secs(72));
        assert!(!pace.is_due(at + Duration::from_secs(71)));
        // One cheap sample does not make the next ones cheap.
        pace.took(at, Duration::from_micros(50));
        assert_eq!(pace.pause(), Duration::from_secs(72));
    }

    #[test]
    fn all_looks_together_stay_below_their_share() {
        let begin = Instant::now();
        for cost_us in [10, 300, 4000, 90_000] {
            let cost = Duration::from_micros(cost_us);
            let mut pace = Pace::new(Duration::from_millis(100));
            pace.took(begin, cost);
            let mut spent = Duration::ZERO;
            let run = Duration::from_secs(100);
            for tick in 1..=1000 {
                let at = begin + run / 1000 * tick;
                if pace.is_due(at) {
                    spent += cost;
                    pace.took(at, cost);
                }
            }
            assert!(spent * SHARE <= run, "{cost:?} a look took {spent:?}");
        }
    }

    #[test]
    fn a_look_gives_what_it_saw() {
        let mut pace = Pace::new(Duration::from_secs(1));
        let at = Instant::now();
        assert_eq!(pace.sample(at, || 7), 7);
        assert!(!pace.is_due(at));
    }
}
