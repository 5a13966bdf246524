//! The export formats of a report.
//!
//! To add a format, add a file here, its `mod` line and its entry in [`EXPORTERS`].

mod benchmarks;
mod card;
pub mod csv;
mod hgrm;
mod json;
mod junit;
mod openmetrics;

use std::io::Write;

use super::Report;
use super::document::{html, markdown};
use super::sections::{of_run, of_study};
use super::study::StudyReport;
use throng_spec::registry::{Entry, Info};

/// Every format, in the order in which they are written.
pub const EXPORTERS: &[&Exporter] = &[
    &HTML,
    &MARKDOWN,
    &json::JSON,
    &csv::CSV,
    &openmetrics::OPENMETRICS,
    &benchmarks::BENCHER,
    &benchmarks::BIGGER,
    &benchmarks::SMALLER,
    &junit::JUNIT,
    &hgrm::HGRM,
    &card::CARD,
];

/// The page.
const HTML: Exporter = Exporter {
    info: Info {
        name: "html",
        summary: "the report as one page that works offline",
    },
    file_name: Some("report.html"),
    render: |report, to| Ok(to.write_all(html::page(&of_run(report)).as_bytes())?),
    render_study: |report, to| Ok(to.write_all(html::page(&of_study(report)).as_bytes())?),
};

const MARKDOWN: Exporter = Exporter {
    info: Info {
        name: "markdown",
        summary: "the report as Markdown, with still figures",
    },
    file_name: Some("report.md"),
    render: |report, to| Ok(to.write_all(markdown::text(&of_run(report)).as_bytes())?),
    render_study: |report, to| Ok(to.write_all(markdown::text(&of_study(report)).as_bytes())?),
};

/// A format in which a report is written.
#[derive(Debug)]
pub struct Exporter {
    /// Name and summary.
    pub info: Info,
    /// Name of the file in the record's directory; `None` if it is written only on request.
    pub file_name: Option<&'static str>,
    /// Writes the report.
    pub render: fn(&Report<'_>, &mut dyn Write) -> anyhow::Result<()>,
    /// Writes the report of a study of several parts.
    pub render_study: fn(&StudyReport<'_>, &mut dyn Write) -> anyhow::Result<()>,
}

/// The formats that give reasons and limits, and not only values.
#[cfg(test)]
pub(crate) fn with_reasons() -> impl Iterator<Item = &'static Exporter> {
    let others = [
        "bencher",
        "benchmark-bigger",
        "benchmark-smaller",
        "junit",
        "hgrm",
        "card",
    ];
    let all = EXPORTERS.iter().copied();
    all.filter(move |one| !others.contains(&one.info.name))
}

impl Entry for Exporter {
    fn info(&self) -> Info {
        self.info
    }
}
