//! `throng report DIR`: remakes the report from a record.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;

use super::{Exit, Usage, output};
use crate::record::{Draft, StoreError, Study};
use crate::report::Report;
use crate::report::between::{Between, Recorded, Unlike};
use crate::report::document::{Document, terminal};
use crate::report::exporters::{EXPORTERS, Exporter};
use crate::report::sections;
use crate::report::study::StudyReport;
use crate::report::study::cases::Case;
use crate::{registry, report};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng report throng-results/20260101T120000Z-overview
  throng report results --json
  throng report results --diff earlier
  throng report results --export openmetrics=metrics.txt --export junit=thresholds.xml")]
pub(super) struct Arguments {
    /// Directories of records.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// Compare with this record: settings, and the ratio of every server in both.
    #[arg(long, value_name = "DIR")]
    diff: Option<PathBuf>,
    /// Write the record in a format of `throng list exporters` to a file, or - for standard output, and nothing else. A
    /// name with {server} makes a file for each server.
    #[arg(long, value_name = "FORMAT=FILE", conflicts_with_all = ["json", "diff"])]
    export: Vec<FormatFile>,
    /// Write a picture of the answer to share, card.svg and card.png, into the directory of the record.
    #[arg(long, conflicts_with_all = ["json", "diff"])]
    card: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(other) = &arguments.diff {
        let [directory] = arguments.directories.as_slice() else {
            let what = "--diff compares two records: throng report DIR --diff DIR";
            return Err(Usage(what.to_owned()).into());
        };
        make_diff(directory, other, arguments.json).map_err(usage_if_unreadable)?;
        return Ok(Exit::Done);
    }
    if arguments.card {
        for directory in &arguments.directories {
            card::write(directory).map_err(usage_if_unreadable)?;
        }
        return Ok(Exit::Done);
    }
    if !arguments.export.is_empty() {
        let [directory] = arguments.directories.as_slice() else {
            let what = "--export exports one record";
            return Err(Usage(what.to_owned()).into());
        };
        for export in &arguments.export {
            export.write(directory).map_err(usage_if_unreadable)?;
        }
        return Ok(Exit::Done);
    }
    for directory in &arguments.directories {
        make(directory, Print::of(arguments.json)).map_err(usage_if_unreadable)?;
    }
    Ok(Exit::Done)
}

mod card;

/// A format, and the file to write.
#[derive(Debug, Clone)]
struct FormatFile {
    exporter: &'static Exporter,
    path: PathBuf,
}

impl FromStr for FormatFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text
            .split_once('=')
            .ok_or("expected FORMAT=FILE, like junit=thresholds.xml")?;
        let exporter = registry::find("exporter", EXPORTERS, name);
        Ok(Self {
            exporter: exporter.map_err(|unknown| unknown.to_string())?,
            path: path.into(),
        })
    }
}

impl FormatFile {
    /// Writes a record to its file or files, or to standard output.
    fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let name = self.path.to_string_lossy();
        if name.contains(SERVER) {
            for (server, text) in report::exported_by_server(directory, self.exporter)? {
                let server = server.replace(|c: char| !is_plain(c), "_");
                write_file(Path::new(&name.replace(SERVER, &server)), &text)?;
            }
            return Ok(());
        }
        let text = report::exported(directory, self.exporter)?;
        if self.path == Path::new("-") {
            return output::written(|out| out.write_all(&text));
        }
        write_file(&self.path, &text)
    }
}

/// The place of a server's name in the name of a file.
const SERVER: &str = "{server}";

/// Whether a character of a server's name may be in the name of a file.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || ['-', '_', '.'].contains(&c)
}

fn write_file(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = Draft::named(path).with_context(cannot)?;
    let written = file.write_all(text).and_then(|()| file.finish());
    written.with_context(cannot)
}

/// Turns the error for an unreadable record into wrong usage, as in every other command.
fn usage_if_unreadable(error: anyhow::Error) -> anyhow::Error {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    match causes.next() {
        Some(store) if StoreError::is_unreadable(store) => Usage(format!("{error:#}")).into(),
        _ => error,
    }
}

/// What to print of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Print {
    /// Its text for a terminal.
    Text,
    /// Its summary as JSON.
    Json,
    /// Nothing: the caller prints something else.
    #[cfg(target_os = "linux")]
    Nothing,
}

impl Print {
    pub(super) fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// The result of making a report.
#[derive(Debug, Default)]
pub(super) struct ReportOutcome {
    /// Whether a threshold was missed.
    pub(super) missed: bool,
    /// Why the results are rough, if they are.
    pub(super) rough: Option<String>,
}

impl ReportOutcome {
    fn of<'a>(reports: impl IntoIterator<Item = &'a Report<'a>>) -> Self {
        let mut made = Self::default();
        for report in reports {
            made.missed |= report.missed();
            made.rough = made.rough.or_else(|| report.rough());
        }
        made
    }

    /// Test cases decide by what was expected, which may be a failure.
    fn of_study(report: &StudyReport<'_>) -> Self {
        let cases = report.cases();
        if cases.is_empty() {
            return Self::of(report.parts.iter().filter_map(|part| part.report.as_ref()));
        }
        Self {
            missed: !cases.iter().all(Case::is_as_expected),
            rough: None,
        }
    }
}

/// Makes the report of the record in a directory and prints its summary.
pub(super) fn make(directory: &Path, print: Print) -> anyhow::Result<ReportOutcome> {
    if Study::is_in(directory) {
        return make_study(directory, print);
    }
    let loaded = report::load(directory)?;
    let report = loaded.report()?;
    let written = unless_read_only(report::write_all(&report, directory))?;
    match print {
        Print::Json => {
            let exporter = registry::find("exporter", EXPORTERS, "json")?;
            let mut text = Vec::new();
            (exporter.render)(&report, &mut text)?;
            output::text(&String::from_utf8_lossy(&text))?;
        }
        Print::Text => show(&sections::of_run(&report), "Report", &written)?,
        #[cfg(target_os = "linux")]
        Print::Nothing => {}
    }
    Ok(ReportOutcome::of([&report]))
}

/// Compares two records, and prints the differences.
fn make_diff(directory: &Path, other: &Path, json: bool) -> anyhow::Result<()> {
    let (a, b) = (Recorded::read(other)?, Recorded::read(directory)?);
    let diff = Between::diff(&a, &b).map_err(|error| match error.downcast::<Unlike>() {
        Ok(unlike) => Usage(unlike.to_string()).into(),
        Err(error) => error,
    })?;
    let written = unless_read_only(report::write_between(&diff, directory))?;
    if json {
        return output::json(&diff);
    }
    show(&sections::of_between(&diff), "Page", &written)
}

/// Makes the reports of a study and of its parts.
fn make_study(directory: &Path, print: Print) -> anyhow::Result<ReportOutcome> {
    let loaded = report::study::load(directory)?;
    let report = loaded.report()?;
    let written = unless_read_only(report::write_study(&report, directory))?;
    match print {
        Print::Json => {
            let exporter = registry::find("exporter", EXPORTERS, "json")?;
            let mut text = Vec::new();
            (exporter.render_study)(&report, &mut text)?;
            output::text(&String::from_utf8_lossy(&text))?;
        }
        Print::Text => show(&sections::of_study(&report), "Report", &written)?,
        #[cfg(target_os = "linux")]
        Print::Nothing => {}
    }
    Ok(ReportOutcome::of_study(&report))
}

/// The files written: none in a place that this user may only read. Then the report is printed all the same.
fn unless_read_only(written: anyhow::Result<Vec<PathBuf>>) -> anyhow::Result<Vec<PathBuf>> {
    let is_read_only = |error: &anyhow::Error| {
        let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
        let kind = causes.next().map(io::Error::kind);
        matches!(
            kind,
            Some(io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
        )
    };
    written.or_else(|error| {
        if !is_read_only(&error) {
            return Err(error);
        }
        output::warning(&format!("{error:#}; it is only printed"));
        Ok(Vec::new())
    })
}

/// Rows around a document: two gaps, the path of its page, the note about the exit code, and the next prompt.
const BELOW: usize = 5;

/// Prints a document and the path of its page.
pub(super) fn show(document: &Document, what: &str, written: &[PathBuf]) -> anyhow::Result<()> {
    let screen = terminal::Screen {
        columns: output::width(),
        rows: output::rows()
            .filter(|_| !output::is_verbose())
            .map(|rows| rows.saturating_sub(BELOW)),
        colour: true,
    };
    if screen.rows.is_some() {
        // The lines of finished trials are above it.
        output::text("")?;
    }
    output::text(&terminal::within(document, screen))?;
    match written.first() {
        Some(page) => output::text(&format!("\n{what}: {}", page.display())),
        None => Ok(()),
    }
}
