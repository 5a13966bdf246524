//! `--fail-if`: conditions under which `load`, `run` and `compare` exit with code 3.

use super::Usage;
use crate::record::metrics::{Absence, Condition, ConditionResult, Values};
use crate::record::{Load, Trial};

#[derive(Debug, clap::Args)]
pub(super) struct Thresholds {
    /// Exit with 3 on this condition, like `p99 > 10ms`.
    ///
    /// Repeat for more. `errors > 0.1%` is a share of requests. NAME:CONDITION is for a single server.
    #[arg(long, value_name = "CONDITION", value_parser = condition, help_heading = "Thresholds")]
    pub(super) fail_if: Vec<String>,
}

impl Thresholds {
    /// Rejects conditions on servers that are not part of the run.
    pub(super) fn check(&self, servers: &[&str]) -> Result<(), Usage> {
        for text in &self.fail_if {
            let condition = Condition::parse(text).map_err(Usage)?;
            let name = condition.server.as_deref();
            if let Some(name) = name.filter(|name| !servers.contains(name)) {
                return Err(Usage(format!(
                    "--fail-if: unknown server `{name}`; expected one of: {}",
                    servers.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Rejects conditions on metrics that `throng load` does not measure.
    pub(super) fn check_of_load(&self) -> Result<(), Usage> {
        for text in &self.fail_if {
            let condition = Condition::parse(text).map_err(Usage)?;
            let metric = condition.metric.name;
            if condition.server.is_some() {
                return Err(Usage(format!(
                    "--fail-if '{text}': `throng load` has a single server; leave the name out"
                )));
            }
            if condition.metric.probe.is_some() {
                return Err(Usage(format!(
                    "--fail-if '{text}': `throng load` does not measure {metric}; use `throng compare`"
                )));
            }
        }
        Ok(())
    }

    /// Checks the conditions of `throng load`.
    pub(super) fn of_load(&self, load: &Load) -> anyhow::Result<Vec<ConditionResult>> {
        if self.fail_if.is_empty() {
            return Ok(Vec::new());
        }
        let trial = Trial {
            clients: load.clients,
            load: Some(load.clone()),
            ..Trial::default()
        };
        let values = Values::of([&trial])?;
        let judged = self.fail_if.iter().filter_map(|text| {
            let condition = Condition::parse(text).ok()?;
            let too_few = condition.metric.lacks_replies([&trial]);
            let why = too_few.then_some(Absence::TooFewReplies);
            Some(condition.judge(text, "", load.clients, (&values, why)))
        });
        Ok(judged.collect())
    }
}

/// Checks a condition, and keeps it as written.
fn condition(text: &str) -> Result<String, String> {
    Condition::parse(text).map(|_| text.to_owned())
}
