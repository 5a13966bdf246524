//! The load of a trial below the maximum: a percentage of the rate that the same server reached before.

use serde::{Deserialize, Serialize};

use super::{Latency, Load, Purpose, Trial, counting};
use throng_stats::median;

/// The lowest rate of a load.
const LOWEST_PER_S: f64 = 1e-3;
/// Share of the due requests that may lack a reply before the rate counts as missed.
const MISSING: f64 = 0.05;
/// This many replies may always be missing: the last requests are still in flight.
const IN_FLIGHT: u64 = 10;

/// The load of a trial below the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtLoad {
    /// Share of the rate that the server reached with the same number of clients.
    pub percent: u32,
    /// The resulting requests per second; absent if no rate was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
}

impl AtLoad {
    /// `percent` of the median rate that a server reached with `clients` clients in the valid trials among `trials`.
    pub fn of(percent: u32, trials: &[Trial], server: &str, clients: u32) -> Self {
        let rates: Vec<f64> = counting(trials)
            .iter()
            .filter(|trial| trial.purpose == Purpose::Timed && trial.failure.is_none())
            .filter(|trial| trial.server == server && trial.clients == clients)
            .filter_map(|trial| trial.load.as_ref()?.window.replies_per_s)
            .collect();
        let rate = median(&rates).map(|rate| rate * f64::from(percent) / 100.0);
        Self {
            percent,
            rate_per_s: rate.filter(|rate| *rate >= LOWEST_PER_S),
        }
    }
}

impl Load {
    /// Response times in an open loop, otherwise service times.
    pub fn request_times(&self) -> Option<&Latency> {
        let of_rate = self.open_loop.as_ref();
        let response = of_rate.and_then(|seen| seen.response_time.as_ref());
        response.or(self.service_time.as_ref())
    }

    /// Whether an open loop missed its rate: it got fewer replies than requests were due. This compares counts rather
    /// than times, since random arrivals never match their rate exactly.
    pub fn falls_short(&self) -> bool {
        let Some(open) = &self.open_loop else {
            return false;
        };
        let missing = open.due.saturating_sub(self.window.replies);
        missing > IN_FLIGHT && missing as f64 > open.due as f64 * MISSING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::generator::STALLED;
    use crate::{FailedStage, Failure, OpenLoop, Window};

    fn trial(server: &str, clients: u32, purpose: Purpose, replies_per_s: f64) -> Trial {
        let window = Window {
            replies_per_s: Some(replies_per_s),
            ..Window::default()
        };
        Trial {
            server: server.to_owned(),
            clients,
            purpose,
            load: Some(Load {
                window,
                ..Load::default()
            }),
            ..Trial::default()
        }
    }

    #[test]
    fn it_is_a_share_of_the_median_rate_of_the_same_server_and_clients() {
        let mut failed = trial("epoll", 10, Purpose::Timed, 7e6);
        failed.failure = Some(Failure {
            stage: FailedStage::Load,
            reason: "it failed".to_owned(),
            output: String::new(),
            signal: None,
        });
        let mut invalid = trial("epoll", 10, Purpose::Timed, 1.0);
        invalid.findings = vec![STALLED.found("it stood still".to_owned())];
        let trials = vec![
            invalid,
            trial("epoll", 10, Purpose::Timed, 900.0),
            trial("epoll", 10, Purpose::Timed, 1000.0),
            trial("epoll", 10, Purpose::Timed, 5000.0),
            trial("epoll", 10, Purpose::Control, 1e6),
            trial("epoll", 10, Purpose::AtLoad, 1.0),
            trial("epoll", 20, Purpose::Timed, 2e6),
            trial("poll", 10, Purpose::Timed, 3e6),
            failed,
        ];
        let at_load = AtLoad::of(80, &trials, "epoll", 10);
        assert!((at_load.rate_per_s.unwrap() - 800.0).abs() < 1e-9);
        assert_eq!(AtLoad::of(80, &trials, "select", 10).rate_per_s, None);
        let nobody_served = [trial("epoll", 10, Purpose::Timed, 0.0)];
        assert_eq!(AtLoad::of(80, &nobody_served, "epoll", 10).rate_per_s, None);
    }

    #[test]
    fn a_rate_is_kept_when_replies_come_as_requests_come_due() {
        let load = |due, replies| Load {
            window: Window {
                replies,
                ..Window::default()
            },
            open_loop: Some(OpenLoop {
                due,
                ..OpenLoop::default()
            }),
            ..Load::default()
        };
        assert!(!load(10_000, 9600).falls_short());
        assert!(!load(10_000, 10_050).falls_short());
        assert!(load(10_000, 9400).falls_short());
        assert!(!load(20, 12).falls_short(), "they are under way");
        assert!(!Load::default().falls_short(), "a closed loop has no rate");
    }
}
