//! Warm-up until the server's rate is level.
//!
//! The leader decides once for all workers, from the replies to all clients. So this works only in a load of one
//! process: several hosts would have to begin to count at the same time.

use std::time::Duration;

use super::super::{Plan, Until};
use super::nanoseconds;
use throng_record::WarmUp;
use throng_spec::Share;
use throng_stats::steadiness::{FEWEST_ROWS, Level};

/// Time between the decision and the first reply that counts. In this time, every worker reads the window again.
const NOTICE: u64 = 15_000_000;
/// Number of equal parts of the requested time, whose rates are compared.
const PARTS: u64 = FEWEST_ROWS as u64;
/// The shortest length of a part.
const SHORTEST_PART: u64 = 2_000_000;

/// A warm-up that lasts for the requested time, and then until the rate is level or its limit is reached.
#[derive(Debug)]
pub(super) struct Warming {
    least: u64,
    limit: u64,
    part: u64,
    began: u64,
    level: Level,
    /// When the current part began, with the number of replies at that time, and when it ends.
    part_began: Option<(u64, u64)>,
    part_ends: u64,
    ended: Option<WarmUp>,
}

impl Warming {
    /// The warm-up of a load, if it has one.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let is_timed = matches!(plan.until, Until::Duration(_)) && !plan.in_slices;
        let is_alone = plan.share == Share::WHOLE;
        let may_last = plan.longest_warm_up > plan.warm_up;
        let least = nanoseconds(plan.warm_up);
        (is_timed && is_alone && may_last).then(|| Self {
            least,
            limit: nanoseconds(plan.longest_warm_up),
            part: (least.saturating_sub(NOTICE) / PARTS).max(SHORTEST_PART),
            began: 0,
            level: Level::default(),
            part_began: None,
            part_ends: 0,
            ended: None,
        })
    }

    /// Begins the warm-up.
    pub(super) fn begin(&mut self, now: u64) {
        self.began = now;
        self.part_ends = now + self.part;
    }

    /// The earliest end.
    pub(super) fn earliest_end(&self, now: u64) -> u64 {
        now.max(self.began + self.least)
    }

    /// Checks the number of replies so far, and returns when replies count.
    ///
    /// # Errors
    /// When to check again, if that is not decided yet.
    pub(super) fn check(&mut self, now: u64, replies: u64) -> Result<u64, u64> {
        let (from, before) = *self.part_began.get_or_insert((now, replies));
        if now >= self.part_ends && now > from {
            let rate = (replies - before) as f64 * 1e9 / (now - from) as f64;
            self.level.push([Some(rate), None]);
            self.part_began = Some((now, replies));
            while self.part_ends <= now {
                self.part_ends += self.part;
            }
        }
        let noticed_at = now + NOTICE;
        let is_over = noticed_at >= self.began + self.limit;
        let may_be = noticed_at >= self.began + self.least;
        if is_over || (may_be && self.level.is_reached()) {
            let at = noticed_at.max(self.began + self.least);
            let took = Duration::from_nanos(at - self.began);
            self.ended = Some(WarmUp::ended(took.as_secs_f64(), &self.level));
            return Ok(at);
        }
        Err(self.part_ends)
    }

    /// The outcome, once it is over.
    pub(super) fn ended(&self) -> Option<WarmUp> {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, answered, enter, plan};
    use super::super::{NOT_YET, Next, Phase, Phases, Progress};
    use super::*;
    use crate::arrival::Think;
    use throng_protocol::{PROTOCOLS, Settings};
    use throng_spec::{LoadSpec, RateRange};

    /// Runs a load until the measured phase, with `replies` replies by a given time. Returns the start of that phase,
    /// and the outcome of the warm-up.
    fn warmed_up(replies: impl Fn(f64) -> f64) -> (f64, WarmUp) {
        let plan = Plan {
            longest_warm_up: Duration::from_secs(5),
            ..plan(Until::Duration(Duration::from_millis(500)))
        };
        let mut phases = Phases::new(&plan, 0);
        let mut now = 5 * MS;
        enter(&mut phases, now, &answered(10), Phase::WarmUp);
        loop {
            let seconds = now as f64 / 1e9;
            let progress = Progress {
                verified: replies(seconds) as u64,
                ..answered(10)
            };
            match phases.advance(now, &progress) {
                Next::Enter(Phase::Measure) => {
                    let (from, until) = phases.window();
                    assert_eq!((from, until), (now, now + 500 * MS));
                    return (seconds, phases.warm_up_ended().unwrap());
                }
                Next::Wait(time) => now += time.as_nanos() as u64,
                other => panic!("{other:?} at {now}"),
            }
            let (from, _) = phases.window();
            let is_ahead = from == NOT_YET || from >= now;
            assert!(is_ahead, "the window began before anybody knew of it");
        }
    }

    #[test]
    fn a_warm_up_lasts_until_the_rate_is_level() {
        let (at, warm_up) = warmed_up(|s| 50_000.0 * s);
        assert!((at - 0.105).abs() < 0.001, "no longer than asked: {at}");
        assert!((warm_up.took_s - 0.1).abs() < 0.001 && warm_up.unsettled.is_none());
        // The rate rises tenfold within a second.
        let rising =
            |s: f64| 10_000.0 * s + 45_000.0 * s.min(1.0).powi(2) + 90_000.0 * (s - 1.0).max(0.0);
        let (at, warm_up) = warmed_up(rising);
        assert!((1.0..4.5).contains(&at), "{at}");
        assert_eq!(warm_up.unsettled, None);
        assert!((warm_up.took_s - at).abs() < 0.01);
    }

    #[test]
    fn a_warm_up_without_end_is_cut_off_and_said() {
        let (at, warm_up) = warmed_up(|s| 10_000.0 * (2.0 * s).exp());
        assert!((at - 5.005).abs() < 0.02, "{at}");
        let fault = warm_up.fault().unwrap();
        assert!(
            fault.starts_with("its rate was still rising after 5.0"),
            "{fault}"
        );
        // Without replies there is nothing to wait for.
        assert!(warmed_up(|_| 0.0).0 < 0.2);
    }

    #[test]
    fn only_a_load_of_one_process_that_the_server_paces_is_warmed_up_for_longer() {
        let with = |change: fn(&mut LoadSpec), share| {
            let mut load = LoadSpec {
                duration: Some(Duration::from_secs(1)),
                ..LoadSpec::default()
            };
            change(&mut load);
            let routes = plan(load.until()).routes;
            let plan = Plan {
                share,
                ..Plan::new(&load, routes, PROTOCOLS[0], Settings::default())
            };
            Warming::of(&plan).is_some()
        };
        let half = Share::new(0, 2).unwrap();
        assert!(with(|_| (), Share::WHOLE));
        assert!(!with(|_| (), half));
        assert!(!with(|load| load.warm_up = Duration::ZERO, Share::WHOLE));
        assert!(!with(
            |load| load.warm_up_limit = Some(load.warm_up),
            Share::WHOLE
        ));
        assert!(!with(
            |load| load.rate = Some(RateRange::constant(5.0)),
            Share::WHOLE
        ));
        assert!(!with(
            |load| load.think = Think::Fixed(Duration::from_millis(1)),
            Share::WHOLE
        ));
        assert!(!with(
            |load| (load.duration, load.requests) = (None, Some(5)),
            Share::WHOLE
        ));
        assert!(!with(
            |load| (load.duration, load.requests_per_client) = (None, Some(5)),
            Share::WHOLE
        ));
    }
}
