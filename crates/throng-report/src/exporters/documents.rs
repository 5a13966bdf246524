//! The report as a self-contained HTML page, and as Markdown for READMEs and merge requests.

use super::Exporter;
use crate::document::{html, markdown};
use crate::sections::{of_run, of_study};
use throng_spec::registry::Info;

/// The page.
pub(super) const HTML: Exporter = Exporter {
    info: Info {
        name: "html",
        summary: "the report as one page that works offline",
    },
    file_name: Some("report.html"),
    render: |report, to| Ok(to.write_all(html::page(&of_run(report)).as_bytes())?),
    render_study: |report, to| Ok(to.write_all(html::page(&of_study(report)).as_bytes())?),
};

pub(super) const MARKDOWN: Exporter = Exporter {
    info: Info {
        name: "markdown",
        summary: "the report as Markdown, with still figures",
    },
    file_name: Some("report.md"),
    render: |report, to| Ok(to.write_all(markdown::text(&of_run(report)).as_bytes())?),
    render_study: |report, to| Ok(to.write_all(markdown::text(&of_study(report)).as_bytes())?),
};
