//! What a run says about itself: how far apart two equal servers came out, and what its clients
//! could reach.

use serde::Serialize;

use super::summary::Round;
use crate::record::{Purpose, Run, Trial};
use crate::stats::{Interval, bootstrap_ratio, median};

/// Share of what the clients can reach from which on they count as the limit.
const NEAR: f64 = 0.8;

/// The checks with one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checks {
    /// Number of clients.
    pub clients: u32,
    /// A server that was measured twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// A server that does least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
}

/// One of the servers a second time, over the same server: what differs here is noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// Which one.
    pub server: String,
    /// Of their replies a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_ratio: Option<Interval>,
    /// Of their CPU time a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ratio: Option<Interval>,
    #[serde(skip)]
    rounds: [Vec<Round>; 2],
}

/// What the clients reach against a server that does least.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// The server.
    pub server: String,
    /// What they reached, median over trials.
    pub replies_per_s: f64,
    /// With so much of the CPUs they can use.
    pub client_cpu_share: f64,
    /// What they would reach with all of it: the server may have been the limit here too.
    pub reachable_per_s: f64,
}

impl Checks {
    pub(super) fn of(run: &Run, trials: &[Trial], clients: u32) -> Self {
        let of = |purpose| -> Vec<&Trial> {
            trials
                .iter()
                .filter(|trial| trial.clients == clients && trial.purpose == purpose)
                .filter(|trial| trial.failure.is_none() && trial.load.is_some())
                .collect()
        };
        Self {
            clients,
            control: Control::of(run, &of(Purpose::Control), &of(Purpose::Timed)),
            ceiling: Ceiling::of(run, &of(Purpose::Ceiling)),
        }
    }

    /// How far apart two equal servers came out in what `value` tells, as a share; 0 where no
    /// server was measured twice.
    pub fn noise_floor(&self, value: fn(&Round) -> Option<f64>, seed: u64) -> f64 {
        let ratio = self
            .control
            .as_ref()
            .and_then(|control| control.ratio(value, seed));
        ratio.map_or(0.0, |ratio| (ratio.estimate - 1.0).abs())
    }

    /// Share of what the clients can reach, if that is so much that they may have been the limit.
    pub fn near_ceiling(&self, replies_per_s: f64) -> Option<f64> {
        let share = replies_per_s / self.ceiling.as_ref()?.reachable_per_s;
        (share >= NEAR).then_some(share)
    }
}

impl Control {
    fn of(run: &Run, again: &[&Trial], timed: &[&Trial]) -> Option<Self> {
        let server = &again.first()?.server;
        let rounds = |trials: &[&Trial]| -> Vec<Round> {
            trials
                .iter()
                .filter(|trial| trial.server == *server)
                .filter_map(|trial| Some(Round::of(trial, trial.load.as_ref()?)))
                .collect()
        };
        let mut control = Self {
            server: server.clone(),
            rate_ratio: None,
            cost_ratio: None,
            rounds: [rounds(again), rounds(timed)],
        };
        control.rate_ratio = control.ratio(|round| Some(round.replies_per_s), run.seed);
        control.cost_ratio = control.ratio(|round| round.server_cpu_us_per_reply, run.seed);
        Some(control)
    }

    fn ratio(&self, value: fn(&Round) -> Option<f64>, seed: u64) -> Option<Interval> {
        let [again, timed] = &self.rounds;
        let values = |rounds: &[Round]| -> Vec<(u32, f64)> {
            rounds
                .iter()
                .filter_map(|round| Some((round.round, value(round)?)))
                .collect()
        };
        bootstrap_ratio(&values(again), &values(timed), seed)
    }
}

impl Ceiling {
    fn of(run: &Run, trials: &[&Trial]) -> Option<Self> {
        let of_trials = |value: fn(&Trial) -> Option<f64>| {
            let values: Vec<f64> = trials.iter().filter_map(|trial| value(trial)).collect();
            median(&values)
        };
        let replies_per_s = of_trials(|trial| Some(trial.load.as_ref()?.window.replies_per_s))?;
        let percent = of_trials(|trial| {
            let side = trial.client_side.as_ref()?;
            side.metrics.get("cpu_percent").copied()
        })?;
        let share = (percent / 100.0 / f64::from(run.client_cpus())).clamp(0.01, 1.0);
        Some(Self {
            server: trials.first()?.server.clone(),
            replies_per_s,
            client_cpu_share: share,
            reachable_per_s: replies_per_s / share,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    /// The record of the fixture with `server` again in each round, its figures changed.
    fn again(server: &str, purpose: Purpose, change: fn(&mut Trial)) -> (Run, Vec<Trial>) {
        let (run, mut trials) = fixture::record();
        let timed = trials.iter().filter(|trial| trial.purpose.is_timed());
        let of_server = timed.filter(|trial| trial.server == server);
        let mut more: Vec<Trial> = of_server.cloned().collect();
        for trial in &mut more {
            trial.purpose = purpose;
            change(trial);
        }
        trials.extend(more);
        (run, trials)
    }

    fn faster(trial: &mut Trial) {
        if let Some(load) = &mut trial.load {
            load.window.replies_per_s *= 1.03;
        }
    }

    #[test]
    fn what_a_control_differs_by_is_the_noise_floor() {
        let (run, trials) = again("epoll", Purpose::Control, faster);
        let checks = Checks::of(&run, &trials, 100);
        let rate = |round: &Round| Some(round.replies_per_s);
        assert!((checks.noise_floor(rate, 1) - 0.03).abs() < 1e-9);
        let cost = |round: &Round| round.server_cpu_us_per_reply;
        assert!(checks.noise_floor(cost, 1) < 1e-9);
        let (run, trials) = fixture::record();
        let checks = Checks::of(&run, &trials, 100);
        assert!(checks.noise_floor(rate, 1) < 1e-12 && checks.control.is_none());
    }

    #[test]
    fn clients_that_had_time_left_could_reach_more() {
        let (run, trials) = again("epoll", Purpose::Ceiling, |trial| {
            let side = trial.client_side.as_mut().unwrap();
            side.metrics.insert("cpu_percent".to_owned(), 50.0);
            trial.load.as_mut().unwrap().window.replies_per_s = 100_000.0;
        });
        let checks = Checks::of(&run, &trials, 100);
        let ceiling = checks.ceiling.as_ref().unwrap();
        let cpus = f64::from(run.client_cpus());
        assert!((ceiling.reachable_per_s - 200_000.0 * cpus).abs() < 1.0);
        let reachable = ceiling.reachable_per_s;
        assert_eq!(checks.near_ceiling(reachable * 0.79), None);
        assert!(checks.near_ceiling(reachable * 0.81).is_some());
    }
}
