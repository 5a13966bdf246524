//! Elapsed and remaining time.

use std::time::{Duration, Instant};

use crate::measure::TimeEstimate;

/// The elapsed and estimated time of the current trial.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Clock {
    /// When the run began.
    began: Instant,
    known: DurationEstimate,
}

/// The duration, as far as it is known.
#[derive(Debug, Clone, Copy)]
enum DurationEstimate {
    /// The estimated duration of this trial and the remaining ones, when this trial began, and the actual seconds per
    /// estimated second so far.
    Trials {
        estimate: TimeEstimate,
        since: Instant,
        pace: Option<f64>,
    },
    /// The share that is done is reported; the whole takes `full_s` seconds, if known.
    Share {
        full_s: Option<f64>,
    },
    Nothing,
}

/// The times to show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cli) struct Times {
    pub(super) passed: Duration,
    pub(in crate::cli) left: Option<Duration>,
    /// The share that is done, from 0 to 1.
    pub(in crate::cli) share: Option<f64>,
}

/// The durations of finished trials, and their estimates.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Forecast {
    began: Instant,
    /// Expected seconds of the earlier and the later parts of a study.
    others_s: [f64; 2],
    current: Option<(TimeEstimate, Instant)>,
    estimate: f64,
    took: Duration,
}

impl Forecast {
    /// A forecast before the first trial, with the expected seconds of the earlier and the later parts of a study.
    pub(in crate::cli) fn new(others_s: [f64; 2]) -> Self {
        Self {
            began: Instant::now(),
            others_s,
            current: None,
            estimate: 0.0,
            took: Duration::ZERO,
        }
    }

    /// Starts the clock of a trial.
    pub(in crate::cli) fn begin(&mut self, own: Option<TimeEstimate>, now: Instant) -> Clock {
        let [earlier, later] = self.others_s;
        let estimate = own.map(|own| TimeEstimate {
            before: earlier + own.before,
            after: own.after + later,
            ..own
        });
        self.current = estimate.map(|estimate| (estimate, now));
        let pace = |expected: TimeEstimate| match self.estimate {
            sum if sum > 0.0 => Some(self.took.as_secs_f64() / sum),
            _ => expected.in_seconds.then_some(1.0),
        };
        let known = estimate.map_or(DurationEstimate::Nothing, |estimate| {
            DurationEstimate::Trials {
                estimate,
                since: now,
                pace: pace(estimate),
            }
        });
        Clock {
            began: self.began,
            known,
        }
    }

    pub(in crate::cli) fn end(&mut self, now: Instant) {
        if let Some((estimate, since)) = self.current.take() {
            self.estimate += estimate.this;
            self.took += now.saturating_duration_since(since);
        }
    }
}

impl Clock {
    /// A clock for something that reports how much of it is done.
    pub(in crate::cli) fn of_share(full_s: Option<f64>) -> Self {
        Self {
            began: Instant::now(),
            known: DurationEstimate::Share { full_s },
        }
    }

    /// The current times, given the share that is done, if reported.
    pub(in crate::cli) fn times(&self, reached: Option<f64>, now: Instant) -> Times {
        let passed = now.saturating_duration_since(self.began);
        let (left, share) = match &self.known {
            DurationEstimate::Nothing => (None, None),
            DurationEstimate::Share { full_s } => {
                let left = reached.and_then(|share| left_of(share, *full_s, passed));
                (left, reached)
            }
            DurationEstimate::Trials {
                estimate,
                since,
                pace,
            } => {
                let running = now.saturating_duration_since(*since).as_secs_f64();
                // A trial that has exceeded its estimate can end at any moment.
                let done = pace.map_or(0.0, |pace| (running / pace).min(estimate.this));
                let left = estimate.this - done + estimate.after;
                let all = estimate.before + estimate.this + estimate.after;
                (
                    pace.map(|pace| seconds(left * pace)),
                    (all > 0.0).then(|| (estimate.before + done) / all),
                )
            }
        };
        Times {
            passed,
            left,
            share,
        }
    }
}

/// The remaining time when `share` is done. If the total duration is unknown, extrapolates the elapsed time.
fn left_of(share: f64, full_s: Option<f64>, passed: Duration) -> Option<Duration> {
    let rest = (1.0 - share).clamp(0.0, 1.0);
    match full_s {
        Some(full_s) => Some(seconds(full_s * rest)),
        // A smaller share does not say enough.
        None if share >= 0.01 => Some(seconds(passed.as_secs_f64() * rest / share)),
        None => None,
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESTIMATE: TimeEstimate = TimeEstimate {
        before: 4.0,
        this: 2.0,
        after: 6.0,
        in_seconds: true,
    };

    #[test]
    fn the_remaining_time_follows_from_finished_trials() {
        let mut forecast = Forecast::new([0.0; 2]);
        let start = Instant::now();
        let clock = forecast.begin(Some(ESTIMATE), start);
        let times = clock.times(None, start + Duration::from_secs(1));
        assert_eq!(times.left, Some(Duration::from_secs(7)));
        assert!((times.share.unwrap() - 5.0 / 12.0).abs() < 1e-9);
        // It took twice its estimate, and so will the rest.
        forecast.end(start + Duration::from_secs(4));
        let next = TimeEstimate {
            before: 6.0,
            after: 4.0,
            ..ESTIMATE
        };
        let clock = forecast.begin(Some(next), start);
        assert_eq!(clock.times(None, start).left, Some(Duration::from_secs(12)));
        let late = clock.times(None, start + Duration::from_mins(1));
        assert_eq!(late.left, Some(Duration::from_secs(8)));
        assert!((late.share.unwrap() - 8.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn the_first_trial_gives_an_unknown_duration() {
        let mut forecast = Forecast::new([0.0; 2]);
        let start = Instant::now();
        let estimate = TimeEstimate {
            before: 0.0,
            this: 1.0,
            after: 3.0,
            in_seconds: false,
        };
        assert_eq!(
            forecast
                .begin(Some(estimate), start)
                .times(None, start)
                .left,
            None
        );
        forecast.end(start + Duration::from_secs(5));
        let clock = forecast.begin(Some(estimate), start);
        assert_eq!(clock.times(None, start).left, Some(Duration::from_secs(20)));
    }

    #[test]
    fn the_duration_of_a_search_is_unknown() {
        let clock = Forecast::new([0.0; 2]).begin(None, Instant::now());
        let times = clock.times(None, Instant::now());
        assert_eq!((times.left, times.share), (None, None));
    }

    #[test]
    fn a_share_that_is_reported_says_what_is_left() {
        let clock = Clock::of_share(Some(10.0));
        let at = clock.began + Duration::from_secs(100);
        let times = |clock: &Clock, share| clock.times(share, at).left.map(|left| left.as_secs());
        assert_eq!(times(&clock, Some(0.25)), Some(7), "7.5 s");
        assert_eq!(times(&clock, None), None);
        let unknown = Clock {
            known: DurationEstimate::Share { full_s: None },
            ..clock
        };
        assert_eq!(times(&unknown, Some(0.25)), Some(300));
        assert_eq!(times(&unknown, Some(0.0)), None);
    }
}
