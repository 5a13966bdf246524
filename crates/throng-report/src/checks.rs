//! Checks of a run itself: the difference between two equal servers, and the maximum rate of its clients.

use serde::Serialize;

use throng_record::metrics::{Quantity, Values};
use throng_record::{Purpose, Run, Trial};
use throng_stats::{LogRatio, holm};

/// At this share or more of the clients' maximum rate, the clients count as the limit.
const NEAR: f64 = 0.8;

/// The checks for one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checks {
    /// Number of clients.
    pub clients: u32,
    /// The server that was measured twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// The server that does the least work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
}

/// A server measured a second time, relative to its first measurement. Any difference here is not a property of the
/// server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// The server measured twice.
    pub server: String,
    /// The ratio of replies per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_ratio: Option<Quantity>,
    /// The ratio of CPU time per reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ratio: Option<Quantity>,
    /// The ratio that differs from 1 by more than chance allows, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<ControlDifference>,
}

/// A significant difference between a server and itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ControlDifference {
    /// The measure: "throughput" or "CPU per request".
    pub what: &'static str,
    /// The control measurement over the regular one.
    pub ratio: Quantity,
}

/// The maximum rate of the clients, measured against the server that does the least work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    pub server: String,
    /// The clients' rate, the median over trials.
    pub requests_per_s: f64,
    /// The share of their usable CPUs that the clients used at that rate.
    pub client_cpu_share: f64,
    /// That rate, extrapolated to all of the clients' CPU time: the server may have been the limit here too.
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
            control: Control::of(&of(Purpose::Control), &of(Purpose::Timed))?,
            ceiling: Ceiling::of(run, &of(Purpose::Ceiling))?,
        })
    }

    /// `requests_per_s` as a share of the clients' maximum rate, if it is so large that the clients may have been the
    /// limit.
    pub fn near_ceiling(&self, requests_per_s: f64) -> Option<f64> {
        let share = requests_per_s / self.ceiling.as_ref()?.reachable_per_s;
        (share >= NEAR).then_some(share)
    }
}

impl Control {
    fn of(again: &[&Trial], timed: &[&Trial]) -> anyhow::Result<Option<Self>> {
        let Some(first) = again.first() else {
            return Ok(None);
        };
        let values = |trials: &[&Trial]| {
            let own = trials.iter().filter(|trial| trial.server == first.server);
            Values::of(own.copied())
        };
        let [again, timed] = [values(again)?, values(timed)?];
        let ratio = |name| again.sample(name)?.ratio_of_bursts(timed.sample(name)?);
        let rough = |name| again.sample(name)?.rough_ratio(timed.sample(name)?);
        let [rate, cost] = ["requests_per_s", "server_cpu_us_per_request"];
        let shown = |name| {
            ratio(name)
                .map(Quantity::of_ratio)
                .or(rough(name).map(Quantity::bare))
        };
        Ok(Some(Self {
            server: first.server.clone(),
            rate_ratio: shown(rate),
            cost_ratio: shown(cost),
            off: off([
                ("throughput", ratio(rate)),
                ("CPU per request", ratio(cost)),
            ]),
        }))
    }
}

/// The ratio that differs from 1 with the greatest certainty, if any does. Together, the two tests are wrong in 5 % of
/// runs.
fn off(ratios: [(&'static str, Option<LogRatio>); 2]) -> Option<ControlDifference> {
    let known: Vec<(&'static str, LogRatio)> = ratios
        .into_iter()
        .filter_map(|(what, ratio)| Some((what, ratio?)))
        .collect();
    let p_values: Vec<f64> = known.iter().map(|(_, ratio)| ratio.p_value()).collect();
    let tested = known.into_iter().zip(holm(&p_values));
    let ((what, ratio), p) = tested.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (p < 0.05).then(|| ControlDifference {
        what,
        ratio: Quantity::of_ratio(ratio),
    })
}

impl Ceiling {
    fn of(run: &Run, trials: &[&Trial]) -> anyhow::Result<Option<Self>> {
        let values = Values::of(trials.iter().copied())?;
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

    /// The fixture's record with `server` measured again in each round, and those trials changed by `change`.
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
            load.window
                .replies_per_s
                .iter_mut()
                .for_each(|rate| *rate *= 1.03);
        }
    }

    #[test]
    fn a_control_that_differs_from_itself_is_off() {
        let (run, trials) = again("epoll", Purpose::Control, faster);
        let control = Checks::of(&run, &trials, 100).unwrap().control.unwrap();
        let off = control.off.expect("3 % in all rounds");
        assert_eq!(off.what, "throughput");
        assert!((off.ratio.value - 1.03).abs() < 1e-9);
        let (run, trials) = again("epoll", Purpose::Control, |_| ());
        let control = Checks::of(&run, &trials, 100).unwrap().control.unwrap();
        assert_eq!(control.off, None);
        let (run, trials) = fixture::record();
        assert!(Checks::of(&run, &trials, 100).unwrap().control.is_none());
    }

    #[test]
    fn clients_that_had_time_left_could_reach_more() {
        let (run, trials) = again("epoll", Purpose::Ceiling, |trial| {
            let side = trial.client_side.as_mut().unwrap();
            side.metrics.insert("cpu_percent".to_owned(), 50.0);
            trial.load.as_mut().unwrap().window.replies_per_s = Some(100_000.0);
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
