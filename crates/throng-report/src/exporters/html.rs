//! The report as one page that works without a network.

use std::io::Write;

use super::Exporter;
use crate::document::html;
use crate::study::StudyReport;
use crate::{Report, sections};
use throng_registry::{Entry, Info};

/// See the module.
pub(super) struct Html;

impl Entry for Html {
    fn info(&self) -> Info {
        Info {
            name: "html",
            summary: "the report as one page that works offline",
        }
    }
}

impl Exporter for Html {
    fn file_name(&self) -> &'static str {
        "report.html"
    }

    fn render(&self, report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        to.write_all(html::page(&sections::of_run(report)).as_bytes())?;
        Ok(())
    }

    fn render_study(&self, report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        to.write_all(html::page(&sections::of_study(report)).as_bytes())?;
        Ok(())
    }
}
