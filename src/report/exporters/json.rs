//! The numbers and the answer as JSON, for other programs.

use std::io::Write;

use serde::Serialize;

use super::Exporter;
use crate::registry::{Entry, Info};
use crate::report::Report;
use crate::report::answer::Answer;
use crate::report::comparison::Comparison;
use crate::report::limit::Limits;
use crate::report::summary::Summary;

/// See the module.
pub(super) struct Json;

impl Entry for Json {
    fn info(&self) -> Info {
        Info {
            name: "json",
            summary: "the summary for other programs",
        }
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    answer: &'a Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a Limits>,
    #[serde(flatten)]
    summary: &'a Summary,
}

impl Exporter for Json {
    fn file_name(&self) -> &'static str {
        "summary.json"
    }

    fn render(&self, report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
        let whole = Whole {
            answer: &report.answer,
            comparison: report.comparison.as_ref(),
            limits: report.limits.as_ref(),
            summary: &report.summary,
        };
        serde_json::to_writer_pretty(&mut *to, &whole)?;
        writeln!(to)?;
        Ok(())
    }
}
