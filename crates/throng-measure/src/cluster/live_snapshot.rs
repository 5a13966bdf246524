//! The live state of a trial, for display.

use std::time::{Duration, Instant};

use throng_record::LoadSnapshot;

/// The current state of a trial. Unknown values are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LiveSnapshot {
    /// The phase of the load.
    pub phase: &'static str,
    /// The progress of its clients.
    pub clients: LoadSnapshot,
    /// Verified replies per second.
    pub replies_per_s: Option<f64>,
    /// Connections to the server, as the kernel counts them.
    pub established: Option<u64>,
    /// CPU time of the server, 100 for one CPU.
    pub server_cpu_percent: Option<f64>,
    /// The same for the clients.
    pub client_cpu_percent: Option<f64>,
}

/// Minimum interval for a rate.
const RATE_OVER: Duration = Duration::from_millis(200);

/// Replies per second since the last computation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rate {
    last: Option<(Instant, u64)>,
    per_s: Option<f64>,
}

impl Rate {
    /// Adds the number of replies so far; returns the rate, once there is one.
    pub fn at(&mut self, now: Instant, replies: u64) -> Option<f64> {
        let Some((then, before)) = self.last else {
            self.last = Some((now, replies));
            return None;
        };
        let passed = now.saturating_duration_since(then);
        if passed >= RATE_OVER {
            self.per_s = Some(replies.saturating_sub(before) as f64 / passed.as_secs_f64());
            self.last = Some((now, replies));
        }
        self.per_s
    }
}

/// Durations of trials estimated from their settings; actual durations show the error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeEstimate {
    /// All trials before the current one.
    pub before: f64,
    /// The current trial.
    pub this: f64,
    /// All later trials.
    pub after: f64,
    /// Whether these are seconds. If no setting determines a trial's duration, only their proportions count.
    pub in_seconds: bool,
}

impl TimeEstimate {
    /// For the trial at index `place`, from the estimates of all trials.
    pub(crate) fn of(all: &[f64], place: usize, in_seconds: bool) -> Self {
        let (before, rest) = all.split_at(place.min(all.len()));
        let (this, after) = rest
            .split_first()
            .map_or((0.0, rest), |(this, after)| (*this, after));
        Self {
            before: before.iter().sum(),
            this,
            after: after.iter().sum(),
            in_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_time_since_the_last_one() {
        let mut rate = Rate::default();
        let start = Instant::now();
        assert_eq!(rate.at(start, 100), None);
        assert_eq!(rate.at(start + RATE_OVER / 2, 150), None);
        assert_eq!(rate.at(start + RATE_OVER, 200), Some(500.0));
        assert_eq!(rate.at(start + RATE_OVER * 3 / 2, 900), Some(500.0));
        assert_eq!(rate.at(start + RATE_OVER * 3, 200), Some(0.0));
    }

    #[test]
    fn each_trial_has_a_time_before_and_after_it() {
        let all = [1.0, 2.0, 4.0];
        let middle = TimeEstimate::of(&all, 1, true);
        assert_eq!((middle.before, middle.this, middle.after), (1.0, 2.0, 4.0));
        let last = TimeEstimate::of(&all, 2, true);
        assert_eq!((last.before, last.this, last.after), (3.0, 4.0, 0.0));
        let beyond = TimeEstimate::of(&all, 3, true);
        assert_eq!((beyond.before, beyond.this, beyond.after), (7.0, 0.0, 0.0));
    }
}
