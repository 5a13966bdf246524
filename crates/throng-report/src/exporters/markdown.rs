//! The report as Markdown, for READMEs and merge requests.

use std::io::Write;

use super::Exporter;
use crate::document::markdown;
use crate::study::StudyReport;
use crate::{Report, sections};
use throng_registry::{Entry, Info};

/// See the module.
pub(super) struct Markdown;

impl Entry for Markdown {
    fn info(&self) -> Info {
        Info {
            name: "markdown",
            summary: "the report as Markdown, with still figures",
        }
    }
}

impl Exporter for Markdown {
    fn file_name(&self) -> &'static str {
        "report.md"
    }

    fn render(&self, report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        to.write_all(markdown::text(&sections::of_run(report)).as_bytes())?;
        Ok(())
    }

    fn render_study(&self, report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        to.write_all(markdown::text(&sections::of_study(report)).as_bytes())?;
        Ok(())
    }
}
