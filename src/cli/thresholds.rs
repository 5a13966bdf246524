//! `--fail-if`: conditions under which `load`, `run` and `compare` end with an exit code of their own.

use super::Usage;
use crate::record::metrics::{Absence, Condition, Judged, Values};
use crate::record::{Load, Trial};

#[derive(Debug, clap::Args)]
pub(super) struct Thresholds {
    /// Exit with 3 if a metric misses a threshold, like `p99 > 10ms` or `errors > 0.1%`; repeat for more.
    #[arg(long, value_name = "[NAME:]CONDITION", value_parser = condition, help_heading = "Thresholds")]
    pub(super) fail_if: Vec<String>,
}

impl Thresholds {
    /// Refuses conditions about servers that do not take part.
    pub(super) fn check(&self, servers: &[&str]) -> Result<(), Usage> {
        for text in &self.fail_if {
            let condition = Condition::parse(text).map_err(Usage)?;
            let name = condition.server.as_deref();
            if let Some(name) = name.filter(|name| !servers.contains(name)) {
                return Err(Usage(format!(
                    "--fail-if: there is no server `{name}`; there are: {}",
                    servers.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Refuses conditions on what a load by itself does not measure.
    pub(super) fn check_of_load(&self) -> Result<(), Usage> {
        for text in &self.fail_if {
            let condition = Condition::parse(text).map_err(Usage)?;
            let metric = condition.metric.name;
            if condition.server.is_some() {
                return Err(Usage(format!(
                    "--fail-if '{text}': a load has one server; leave the name out"
                )));
            }
            if condition.metric.probe.is_some() {
                return Err(Usage(format!(
                    "--fail-if '{text}': {metric} is measured by `throng compare` and `throng run`, not by \
                     `throng load`"
                )));
            }
        }
        Ok(())
    }

    /// Judges a load by itself.
    pub(super) fn of_load(&self, load: &Load) -> anyhow::Result<Vec<Judged>> {
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

/// A condition, kept as it was written.
fn condition(text: &str) -> Result<String, String> {
    Condition::parse(text).map(|_| text.to_owned())
}
