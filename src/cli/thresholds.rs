//! `--fail-if`: conditions under which `load`, `run` and `compare` exit with code 3.

use super::Usage;
use crate::record::metrics::{Absence, Condition, ConditionResult, Values};
use crate::record::{Load, Trial};

#[derive(Debug, clap::Args)]
pub(super) struct Thresholds {
    /// Exit with 3 on this condition, like `p99 > 10ms`.
    ///
    /// Repeat for more. `errors > 0.1%` is a share of requests. NAME:CONDITION is for a single server, or a step of
    /// its sessions, like `login:p99 > 50ms`.
    #[arg(long, value_name = "CONDITION", value_parser = condition, help_heading = "Thresholds")]
    pub(super) fail_if: Vec<String>,
}

impl Thresholds {
    /// Rejects conditions on servers that are not part of the run, or on steps that its sessions do not have.
    pub(super) fn check(&self, servers: &[&str], steps: &[String]) -> Result<(), Usage> {
        let names: Vec<&str> = steps.iter().map(String::as_str).collect();
        for text in &self.fail_if {
            let condition = Condition::parse(text).map_err(Usage)?;
            let checked = condition.named(servers, &names);
            checked.map_err(|why| Usage(format!("--fail-if: {why}")))?;
        }
        Ok(())
    }

    /// Rejects conditions on metrics that `throng load` does not measure.
    pub(super) fn check_of_load(&self, steps: &[String]) -> Result<(), Usage> {
        for text in &self.fail_if {
            let condition = Condition::parse(text).map_err(Usage)?;
            let metric = condition.metric.name;
            let is_of_step = |name: &str| steps.iter().any(|step| step == name);
            if condition
                .name
                .as_deref()
                .is_some_and(|name| !is_of_step(name))
            {
                return Err(Usage(format!(
                    "--fail-if '{text}': `throng load` has a single server; leave the name out, or name a step"
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
        let mut judged = Vec::new();
        for text in &self.fail_if {
            let Ok(condition) = Condition::parse(text) else {
                continue;
            };
            let of_step = condition.name.as_ref().and_then(|step| trial.of_step(step));
            let measured = of_step.as_ref().unwrap_or(&trial);
            let values = Values::of([measured])?;
            let too_few = condition.metric.lacks_replies([measured]);
            let why = too_few.then_some(Absence::TooFewReplies);
            judged.push(condition.judge(text, "", load.clients, (&values, why)));
        }
        Ok(judged)
    }
}

/// Checks a condition, and keeps it as written.
fn condition(text: &str) -> Result<String, String> {
    Condition::parse(text).map(|_| text.to_owned())
}
