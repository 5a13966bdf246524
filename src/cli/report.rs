//! `throng report DIR`: the report again, from the record alone.

use std::path::{Path, PathBuf};

use super::{Exit, output};
use crate::record::Study;
use crate::report::comparison::Comparison;
use crate::report::exporters::EXPORTERS;
use crate::{registry, report};

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
        make(directory, arguments.json)?;
    }
    Ok(Exit::Done)
}

/// Makes the report of the record in a directory and prints its summary. Whether a threshold is missed.
pub(super) fn make(directory: &Path, json: bool) -> anyhow::Result<bool> {
    if Study::is_in(directory) {
        make_study(directory, json)?;
        return Ok(false);
    }
    let loaded = report::load(directory)?;
    let report = loaded.report()?;
    let written = report::write_all(&report, directory)?;
    let missed = report.comparison.as_ref().is_some_and(Comparison::missed);
    if json {
        let exporter = registry::find("exporter", EXPORTERS, "json")?;
        let mut text = Vec::new();
        exporter.render(&report, &mut text)?;
        output::text(&String::from_utf8_lossy(&text))?;
        return Ok(missed);
    }
    let width = output::width();
    let (summary, answer) = (&report.summary, &report.answer);
    output::text(&match (&report.limits, &report.comparison) {
        (Some(limits), _) => report::terminal::limits(answer, limits, width, true),
        (None, Some(comparison)) => {
            report::terminal::comparison(summary, answer, comparison, width, true)
        }
        (None, None) => report::terminal::table(summary, width, true),
    })?;
    let page = written.first().map_or(directory, PathBuf::as_path);
    output::text(&format!("\nReport: {}", page.display()))?;
    Ok(missed)
}

/// Makes the reports of a study and of its parts.
fn make_study(directory: &Path, json: bool) -> anyhow::Result<()> {
    let loaded = report::study::load(directory)?;
    let report = loaded.report()?;
    let written = report::write_study(&report, directory)?;
    if json {
        let exporter = registry::find("exporter", EXPORTERS, "json")?;
        let mut text = Vec::new();
        exporter.render_study(&report, &mut text)?;
        return output::text(&String::from_utf8_lossy(&text));
    }
    output::text(&report::terminal::study(&report, output::width(), true))?;
    let page = written.first().map_or(directory, PathBuf::as_path);
    output::text(&format!("\nReport: {}", page.display()))
}
