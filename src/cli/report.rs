//! `throng report DIR`: the report again, from the record alone.

use std::path::PathBuf;

use super::{Exit, output};
use crate::{record, report};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng report throng-results/20260101T120000Z-overview
  throng report results --json")]
pub(super) struct Arguments {
    /// Directories that hold records.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    for directory in &arguments.directories {
        let run = record::read(directory)?;
        let trials = record::read_trials(directory)?;
        let written = report::write_all(directory)?;
        let summary = report::summary::Summary::of(&run, &trials)?;
        if arguments.json {
            output::json(&summary)?;
            continue;
        }
        output::text(&report::terminal::table(&summary, output::width(), true))?;
        let files: Vec<String> = written
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        output::text(&format!("\nWritten: {}", files.join(", ")))?;
    }
    Ok(Exit::Done)
}
