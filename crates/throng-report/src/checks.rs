//! What a run says about itself: how far apart two equal servers came out, and what its clients
//! could reach.

use serde::Serialize;

use throng_record::metrics::{Metric, Values, named};
use throng_record::{Purpose, Run, Trial};
use throng_stats::Interval;

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
    /// Measured again, and as it is measured anyway.
    #[serde(skip)]
    both: [Values; 2],
}

/// What the clients reach against a server that does least.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// The server.
    pub server: String,
    /// What they reached, median over trials.
    pub requests_per_s: f64,
    /// With so much of the CPUs they can use.
    pub client_cpu_share: f64,
    /// What they would reach with all of it: the server may have been the limit here too.
    pub reachable_per_s: f64,
}

impl Checks {
    pub(super) fn of(run: &Run, trials: &[Trial], clients: u32) -> anyhow::Result<Self> {
        let of = |purpose| -> Vec<&Trial> {
            trials
                .iter()
                .filter(|trial| trial.clients == clients && trial.purpose == purpose)
                .filter(|trial| trial.failure.is_none() && trial.load.is_some())
                .collect()
        };
        Ok(Self {
            clients,
            control: Control::of(run, &of(Purpose::Control), &of(Purpose::Timed))?,
            ceiling: Ceiling::of(run, &of(Purpose::Ceiling))?,
        })
    }

    /// How far apart two equal servers came out by a metric, as a share; none where no server was
    /// measured twice.
    pub fn noise(&self, metric: &Metric, seed: u64) -> Option<f64> {
        let ratio = self.control.as_ref()?.ratio(metric, seed)?;
        Some((ratio.estimate - 1.0).abs())
    }

    /// Share of what the clients can reach, if that is so much that they may have been the limit.
    pub fn near_ceiling(&self, requests_per_s: f64) -> Option<f64> {
        let share = requests_per_s / self.ceiling.as_ref()?.reachable_per_s;
        (share >= NEAR).then_some(share)
    }
}

impl Control {
    fn of(run: &Run, again: &[&Trial], timed: &[&Trial]) -> anyhow::Result<Option<Self>> {
        let Some(first) = again.first() else {
            return Ok(None);
        };
        let values = |trials: &[&Trial]| {
            let own = trials.iter().filter(|trial| trial.server == first.server);
            Values::of(own.copied(), run.seed)
        };
        let mut control = Self {
            server: first.server.clone(),
            rate_ratio: None,
            cost_ratio: None,
            both: [values(again)?, values(timed)?],
        };
        let ratio = |name| control.ratio(named(name)?, run.seed);
        (control.rate_ratio, control.cost_ratio) =
            (ratio("requests_per_s"), ratio("server_cpu_us_per_request"));
        Ok(Some(control))
    }

    fn ratio(&self, metric: &Metric, seed: u64) -> Option<Interval> {
        let [again, timed] = &self.both;
        again.ratio(timed, metric, seed)
    }
}

impl Ceiling {
    fn of(run: &Run, trials: &[&Trial]) -> anyhow::Result<Option<Self>> {
        let values = Values::of(trials.iter().copied(), run.seed)?;
        let (rate, percent) = (
            values.value("requests_per_s"),
            values.value("client_cpu_percent"),
        );
        let (Some(first), Some(requests_per_s), Some(percent)) = (trials.first(), rate, percent)
        else {
            return Ok(None);
        };
        let share = (percent / 100.0 / f64::from(run.client_cpus())).clamp(0.01, 1.0);
        Ok(Some(Self {
            server: first.server.clone(),
            requests_per_s,
            client_cpu_share: share,
            reachable_per_s: requests_per_s / share,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

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
        let noise = |checks: &Checks, name| checks.noise(named(name).unwrap(), 1);
        let checks = Checks::of(&run, &trials, 100).unwrap();
        assert!((noise(&checks, "requests_per_s").unwrap() - 0.03).abs() < 1e-9);
        assert!(noise(&checks, "server_cpu_us_per_request").unwrap() < 1e-9);
        let (run, trials) = fixture::record();
        let checks = Checks::of(&run, &trials, 100).unwrap();
        assert_eq!(noise(&checks, "requests_per_s"), None);
        assert!(checks.control.is_none());
    }

    #[test]
    fn clients_that_had_time_left_could_reach_more() {
        let (run, trials) = again("epoll", Purpose::Ceiling, |trial| {
            let side = trial.client_side.as_mut().unwrap();
            side.metrics.insert("cpu_percent".to_owned(), 50.0);
            trial.load.as_mut().unwrap().window.replies_per_s = 100_000.0;
        });
        let checks = Checks::of(&run, &trials, 100).unwrap();
        let ceiling = checks.ceiling.as_ref().unwrap();
        let cpus = f64::from(run.client_cpus());
        assert!((ceiling.reachable_per_s - 200_000.0 * cpus).abs() < 1.0);
        let reachable = ceiling.reachable_per_s;
        assert_eq!(checks.near_ceiling(reachable * 0.79), None);
        assert!(checks.near_ceiling(reachable * 0.81).is_some());
    }
}
