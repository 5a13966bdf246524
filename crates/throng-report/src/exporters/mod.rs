//! The export formats of a report.
//!
//! To add a format, add a file here, its `mod` line and its entry in [`EXPORTERS`].

pub mod csv;
mod documents;
mod json;
mod openmetrics;

use std::io::Write;

use super::Report;
use super::study::StudyReport;
use throng_spec::registry::{Entry, Info};

/// Every format, in the order in which they are written.
pub const EXPORTERS: &[&Exporter] = &[
    &documents::HTML,
    &documents::MARKDOWN,
    &json::JSON,
    &csv::CSV,
    &openmetrics::OPENMETRICS,
];

/// A format in which a report is written.
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

impl Entry for Exporter {
    fn info(&self) -> Info {
        self.info
    }
}
