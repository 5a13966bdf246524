//! `throng report DIR`: the report again, from the record alone.

use std::path::{Path, PathBuf};

use super::{Exit, Usage, output};
use crate::record::Study;
use crate::report::comparison::Comparison;
use crate::report::diff::{self, Diff, Unlike};
use crate::report::document::{Document, terminal};
use crate::report::exporters::EXPORTERS;
use crate::report::sections;
use crate::{registry, report};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng report throng-results/20260101T120000Z-overview
  throng report results --json
  throng report results --diff earlier")]
pub(super) struct Arguments {
    /// Directories that hold records.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// Put the run beside this one: what each was, and every server of both with its ratio. The page is
    /// written beside the record that is not this one.
    #[arg(long, value_name = "DIR")]
    diff: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(other) = &arguments.diff {
        let [directory] = arguments.directories.as_slice() else {
            let what = "--diff puts one record beside another; name one before it";
            return Err(Usage(what.to_owned()).into());
        };
        make_diff(directory, other, arguments.json)?;
        return Ok(Exit::Done);
    }
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
    show(&sections::of_run(&report), "Report", &written)?;
    Ok(missed)
}

/// Puts the run of a directory beside another one, and prints what differs.
fn make_diff(directory: &Path, other: &Path, json: bool) -> anyhow::Result<()> {
    let (a, b) = (diff::load(other)?, diff::load(directory)?);
    let diff = Diff::of(&a, &b).map_err(|error| match error.downcast::<Unlike>() {
        Ok(unlike) => Usage(unlike.to_string()).into(),
        Err(error) => error,
    })?;
    let written = report::write_diff(&diff, directory)?;
    if json {
        return output::json(&diff);
    }
    show(&sections::of_diff(&diff), "Page", &written)
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
    show(&sections::of_study(&report), "Report", &written)
}

/// Prints a document, and where the page of it is.
fn show(document: &Document, what: &str, written: &[PathBuf]) -> anyhow::Result<()> {
    output::text(&terminal::text(document, output::width(), true))?;
    match written.first() {
        Some(page) => output::text(&format!("\n{what}: {}", page.display())),
        None => Ok(()),
    }
}
