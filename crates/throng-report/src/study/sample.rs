//! The trials of a server in a part of a study, or why there are none.

use super::PartReport;
use crate::grade::Level;
use crate::summary::Row;
use throng_record::format::counted;
use throng_record::metrics::{BoundedValue, Metric, OverClients};
use throng_record::{Purpose, Trial};

/// Metrics that are also meaningful for a server that did not serve all its clients.
const OF_ANY_LOAD: [&str; 8] = [
    "clients_served",
    "clients_never_served",
    "errors",
    "failed_trials",
    "clients_failed",
    "clients_unfinished",
    "established_max",
    "clients_starved",
];

/// A metric of a server with one number of clients, over all trials.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) trials: throng_stats::Sample,
    /// The value over all trials.
    pub(super) value: f64,
    /// The 95 % interval, or the range if there are too few trials.
    pub(super) interval: Option<(f64, f64)>,
    /// Whether it is a count over all trials, which has no interval.
    pub(super) exact: bool,
}

impl PartReport<'_> {
    /// A metric of a server with `clients` clients, or why there is none.
    pub(super) fn sample(
        &self,
        metric: &'static Metric,
        server: &str,
        clients: u32,
    ) -> Result<Sample, String> {
        self.was_run(server, Some(clients))?;
        let trials = self.trials(server, clients, Purpose::Timed);
        if trials.is_empty() {
            return Err("not measured: the run ended early".to_owned());
        }
        let row = self.row(server, clients);
        let any_load = OF_ANY_LOAD.contains(&metric.name);
        let Some(report) = &self.report else {
            return Err("not measured".to_owned());
        };
        if let Some(row) = row.filter(|_| !any_load) {
            served(row, report.run.settings.unserved_counts)?;
        }
        let Some(found) = row.and_then(|row| row.metrics.get(metric.name)) else {
            let stated = metric
                .why_absent(report.run, trials.iter().copied())
                .map(ToString::to_string);
            let too_few = || Some(row?.absent.get(metric.name)?.text().to_owned());
            let why = stated.or_else(too_few);
            return Err(why.unwrap_or_else(|| "not measured".to_owned()));
        };
        let quantity = found.quantity;
        Ok(Sample {
            trials: found.sample.clone(),
            value: quantity.value,
            interval: quantity.low.zip(quantity.high),
            exact: metric.is_exact(),
        })
    }

    /// A metric of a server over all its numbers of clients, or why it was not measured.
    pub(super) fn over(&self, over: OverClients, server: &str) -> Result<BoundedValue, String> {
        self.was_run(server, None)?;
        let report = self.report.as_ref().ok_or("not measured")?;
        let limit = report.run.limit.as_ref();
        match (over.of_trials, over.of_search, limit) {
            (Some(value), _, None) => {
                let by_clients: Vec<(u32, Vec<&Trial>)> = report
                    .run
                    .settings
                    .clients
                    .iter()
                    .map(|clients| (*clients, self.trials(server, *clients, Purpose::Timed)))
                    .filter(|(_, trials)| trials.iter().any(|trial| trial.load.is_some()))
                    .collect();
                if by_clients.is_empty() {
                    return Err("not measured".to_owned());
                }
                Ok(value(&by_clients))
            }
            (_, Some(value), Some(limit)) => {
                let found = limit
                    .found
                    .iter()
                    .find(|found| found.server == server)
                    .ok_or("not measured: the run ended early")?;
                let trials = report.trials.iter().filter(|trial| trial.server == server);
                value(found, &trials.collect::<Vec<_>>())
            }
            (None, _, None) => Err("no search for a limit ran".to_owned()),
            (_, None, Some(_)) => Err("a search for a limit does not measure it".to_owned()),
        }
    }

    /// Why values of a metric do not count, if other processes or a broken control spoilt the run.
    pub(super) fn spoilt(&self, metric: &Metric) -> Option<String> {
        let is_of_speed = metric.follows_rate || metric.is_time() || metric.is_cpu();
        let grade = &self.report.as_ref()?.grade;
        let is_unusable = grade.level == Level::Unusable && is_of_speed;
        let cause = grade.cause().filter(|_| is_unusable)?;
        Some(format!(
            "the run is unusable ({cause}); repeat it on a quiet machine"
        ))
    }

    /// Its row in the summary.
    pub(super) fn row(&self, server: &str, clients: u32) -> Option<&Row> {
        let report = self.report.as_ref()?;
        report
            .summary
            .rows_at(clients)
            .find(|row| row.server == server)
    }

    /// Timed trials of a server for this purpose, and all its trials that are not timed.
    fn trials(&self, server: &str, clients: u32, purpose: Purpose) -> Vec<&Trial> {
        let all = self.report.iter().flat_map(|report| report.trials);
        let wanted = all.filter(|trial| {
            let is_of_purpose = trial.purpose == purpose || !trial.purpose.is_timed();
            trial.server == server && trial.clients == clients && is_of_purpose
        });
        wanted.collect()
    }

    /// Checks that a server ran, with this number of clients if one is given; otherwise says why not.
    fn was_run(&self, server: &str, clients: Option<u32>) -> Result<(), String> {
        if let Some(why) = &self.record.skipped {
            return Err(format!("not run on this machine: {why}"));
        }
        let Some(report) = &self.report else {
            return Err("not measured".to_owned());
        };
        for left_out in &self.record.left_out {
            let of_server = left_out.server.as_deref().is_none_or(|out| out == server);
            let all = left_out.clients.is_empty();
            let of_clients =
                all || clients.is_some_and(|clients| left_out.clients.contains(&clients));
            if of_server && of_clients {
                return Err(format!("not run on this machine: {}", left_out.reason));
            }
        }
        if !report.run.servers.iter().any(|info| info.name == server) {
            return Err("it is not in this part".to_owned());
        }
        match clients.filter(|clients| !report.run.settings.clients.contains(clients)) {
            Some(clients) => Err(format!("not run with {}", counted(clients, "client"))),
            None => Ok(()),
        }
    }
}

/// Checks that a server served all its clients, unless one that did not `counts` too; otherwise says how many it served,
/// and why.
fn served(row: &Row, counts: bool) -> Result<(), String> {
    if row.trials_ok == 0 {
        let reason = row
            .failures
            .first()
            .map_or("unknown reason", String::as_str);
        return Err(format!("every trial failed: {reason}"));
    }
    if row.served_all || counts {
        return row.not_comparable().map_or(Ok(()), Err);
    }
    let served = row
        .served_in_words()
        .unwrap_or_else(|| format!("not all {}", counted(row.clients, "client")));
    let why = row
        .why_not_all()
        .map_or_else(String::new, |why| format!(" ({why})"));
    Err(format!("it served {served}{why}"))
}
