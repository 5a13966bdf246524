//! An earlier record to compare with.

use std::path::{Path, PathBuf};

use crate::cli::{Usage, runner};
use crate::measure::RunSpec;
use crate::record::{self, Store};

/// An earlier record to compare with.
pub(super) struct Baseline {
    directory: PathBuf,
}

impl Baseline {
    /// Reads the record, and checks that it has the same settings and a server in common.
    pub(super) fn read(directory: &Path, plan: &RunSpec) -> anyhow::Result<Self> {
        let refused = |why: String| Usage(format!("--baseline {}: {why}", directory.display()));
        let run = record::read(directory).map_err(|error| refused(runner::chain(&error)))?;
        record::read_trials(directory).map_err(|error| refused(runner::chain(&error)))?;
        let differences = plan.settings.differences(&run.settings);
        if !differences.is_empty() {
            let listed = differences.join("; ");
            return Err(refused(format!("the loads differ: {listed}")).into());
        }
        let there: Vec<&str> = run
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        if !plan
            .servers
            .iter()
            .any(|server| there.contains(&server.name.as_str()))
        {
            let names = there.join(", ");
            return Err(refused(format!(
                "it has no server of the same name, only {names}; use --name to name a server"
            ))
            .into());
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// Copies what the report needs, so that the new record is complete.
    pub(super) fn copy_into(&self, store: &Store) -> anyhow::Result<()> {
        runner::copy_baseline(&self.directory, store)
    }
}
