//! The forms a report is written in.
//!
//! A new form is one file here, its `mod` line and its line in [`EXPORTERS`].

mod html;
mod json;
mod markdown;
mod openmetrics;

use std::io::Write;

use super::Report;
use super::study::StudyReport;
use throng_registry::Entry;

/// Every form, in the order in which they are written.
pub const EXPORTERS: &[&dyn Exporter] = &[
    &html::Html,
    &markdown::Markdown,
    &json::Json,
    &openmetrics::OpenMetrics,
];

/// A form a report is written in.
pub trait Exporter: Entry + Sync {
    /// Name of the file in the record's directory.
    fn file_name(&self) -> &'static str;

    /// Writes the report.
    ///
    /// # Errors
    /// When `to` cannot be written.
    fn render(&self, report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()>;

    /// Writes the report of a study of several parts.
    ///
    /// # Errors
    /// When `to` cannot be written.
    fn render_study(&self, report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()>;
}
