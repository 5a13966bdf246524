//! Response times below the maximum rate: the headroom of a server.
//!
//! At full speed, a response time measures the queue, and a closed loop has none. So each server is also measured in
//! an open loop, once at each of several percentages of its maximum rate.

use serde::Serialize;

use throng_record::metrics::Values;
use throng_record::{Load, Purpose, Trial};

/// One server with one number of clients, at a share of the rate that it reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The share, in percent.
    pub percent: u32,
    /// The requested rate in requests/s; absent if the server had reached no rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_asked_per_s: Option<f64>,
    /// Whether replies kept up with the due requests. If not, this rate is not below the maximum.
    pub kept: bool,
    /// Share of the requests that came due while no client was free, and so waited for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_share: Option<f64>,
    /// Every metric that was measured.
    pub metrics: Values,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Share {
    /// Takes the trials below the maximum rate from those of one server and one number of clients, in ascending order.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub(super) fn all<'a>(trials: impl Iterator<Item = &'a Trial>) -> anyhow::Result<Vec<Self>> {
        let at_load = trials.filter(|trial| trial.purpose == Purpose::AtLoad);
        let mut shares = at_load
            .filter_map(Self::of)
            .collect::<Result<Vec<_>, _>>()?;
        shares.sort_by_key(|share| share.percent);
        Ok(shares)
    }

    fn of(trial: &Trial) -> Option<anyhow::Result<Self>> {
        let at_load = trial.at_load?;
        let nothing = Self {
            percent: at_load.percent,
            rate_asked_per_s: at_load.rate_per_s,
            kept: false,
            waited_share: None,
            metrics: Values::default(),
            failure: trial.failure.as_ref().map(|failure| failure.reason.clone()),
        };
        Some(match &trial.load {
            Some(load) if trial.failure.is_none() => {
                Values::of([trial]).map(|metrics| nothing.with(load, metrics))
            }
            _ => Ok(nothing),
        })
    }

    fn with(self, load: &Load, metrics: Values) -> Self {
        let open = load.open_loop.as_ref();
        let due = open.filter(|open| open.due > 0);
        Self {
            kept: due.is_some() && !load.falls_short(),
            waited_share: due.map(|arrivals| arrivals.waited as f64 / arrivals.due as f64),
            metrics,
            ..self
        }
    }

    /// Requests answered per second.
    pub(super) fn rate_reached_per_s(&self) -> Option<f64> {
        self.metrics.value("requests_per_s")
    }

    /// The 99th percentile of the response time; `None` if the rate was not kept, since it is then not comparable.
    pub(super) fn p99_us(&self) -> Option<f64> {
        let p99 = self.metrics.value("response_p99_us");
        p99.filter(|_| self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::summary::Summary;

    fn shares(change: impl Fn(&mut Trial)) -> Vec<Share> {
        let (run, mut trials) = fixture::at_load();
        trials.iter_mut().for_each(change);
        let summary = Summary::of(&run, &trials).unwrap();
        let row = summary.rows_at(100).find(|row| row.server == "epoll");
        row.unwrap().at_load.clone()
    }

    fn load(trial: &mut Trial) -> Option<&mut Load> {
        let at_load = trial.purpose == Purpose::AtLoad && trial.percent() == Some(80);
        trial.load.as_mut().filter(|_| at_load)
    }

    #[test]
    fn each_part_has_what_was_asked_and_what_was_reached() {
        let shares = shares(|_| ());
        let percents: Vec<u32> = shares.iter().map(|share| share.percent).collect();
        assert_eq!(percents, [50, 80]);
        for share in &shares {
            let (asked, reached) = (share.rate_asked_per_s, share.rate_reached_per_s());
            assert!((reached.unwrap() / asked.unwrap() - 1.0).abs() < 0.01);
            assert!(share.kept);
            for metric in ["response_p50_us", "latency_p50_us"] {
                assert!(share.metrics.value(metric).is_some(), "{metric}");
            }
        }
        assert!(shares[0].p99_us() < shares[1].p99_us());
    }

    #[test]
    fn they_change_nothing_of_what_is_reported_at_full_speed() {
        let (run, trials) = fixture::at_load();
        let (_, without) = fixture::record();
        let with = Summary::of(&run, &trials).unwrap();
        let without = Summary::of(&run, &without).unwrap();
        assert_eq!(with.checks, without.checks);
        assert_eq!(with.scaling, without.scaling);
        for (row, other) in with.rows.iter().zip(&without.rows) {
            let mut row = row.clone();
            assert!(!row.at_load.is_empty());
            row.at_load.clear();
            assert_eq!(row, *other);
        }
    }

    #[test]
    fn a_rate_that_was_not_kept_is_compared_with_nothing() {
        let shares = shares(|trial| {
            if let Some(load) = load(trial) {
                load.window.replies /= 2;
            }
        });
        assert!(shares[0].kept && !shares[1].kept);
        assert!(shares[1].metrics.value("response_p99_us").is_some());
        assert!(shares[1].p99_us().is_none());
    }

    #[test]
    fn a_trial_that_failed_has_its_reason_and_no_figures() {
        let shares = shares(|trial| {
            if load(trial).is_some() {
                trial.failure = Some(fixture::failure());
                trial.load = None;
            }
        });
        assert!(shares[1].failure.as_ref().unwrap().contains("exit code 1"));
        assert_eq!(shares[1].rate_reached_per_s(), None);
        assert!(!shares[1].kept);
    }
}
