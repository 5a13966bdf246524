//! The numbers and the answer as JSON, for other programs.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::Exporter;
use crate::Report;
use crate::answer::Answer;
use crate::comparison::Comparison;
use crate::glance::Glance;
use crate::grade::Grade;
use crate::limit::Limits;
use crate::provenance::Provenance;
use crate::study::cases::Case;
use crate::study::claims::JudgedClaim;
use crate::study::published::Table;
use crate::study::scenes::SceneResult;
use crate::study::{PartReport, StudyReport};
use crate::summary::Summary;
use crate::why::Why;
use throng_record::{Ending, LeftOut, metrics};
use throng_spec::registry::Info;

pub(super) const JSON: Exporter = Exporter {
    info: Info {
        name: "json",
        summary: "the summary for other programs",
    },
    file_name: Some("summary.json"),
    render,
    render_study,
};

#[derive(Serialize)]
struct SummaryJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    glance: Option<Glance>,
    grade: &'a Grade,
    answer: &'a Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    why: &'a [Why],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    thresholds: &'a [metrics::ConditionResult],
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a Limits>,
    made_with: Provenance<'a>,
    #[serde(flatten)]
    summary: &'a Summary,
}

fn render(report: &Report<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &SummaryJson::of_run(report))?;
    writeln!(to)?;
    Ok(())
}

fn render_study(report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let whole = Study {
        glance: Glance::of_study(report),
        name: &report.study.name,
        question: &report.study.question,
        source: report.study.source.as_deref(),
        scale: report.study.scale.as_ref().map(|scale| scale.by.as_str()),
        ending: report.ending(),
        claims: &report.claims,
        cases: report.cases(),
        scenes: report.scenes(),
        parts: report.parts.iter().map(part).collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &whole)?;
    writeln!(to)?;
    Ok(())
}

fn part<'a>(part: &'a PartReport<'_>) -> Part<'a> {
    Part {
        name: &part.record.name,
        title: &part.record.title,
        skipped: part.record.skipped.as_deref(),
        left_out: &part.record.left_out,
        scaled: &part.record.scaled,
        published: &part.published,
        summary: part.report.as_ref().map(SummaryJson::of),
    }
}

/// A study of several parts.
#[derive(Serialize)]
struct Study<'a> {
    glance: Glance,
    #[serde(rename = "study")]
    name: &'a str,
    question: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<&'a str>,
    ending: Ending,
    claims: &'a [JudgedClaim],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cases: Vec<Case<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scenes: Vec<SceneResult<'a>>,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Part<'a> {
    name: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [LeftOut],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    scaled: &'a BTreeMap<String, String>,
    published: &'a Table,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryJson<'a>>,
}

impl<'a> SummaryJson<'a> {
    fn of_run(report: &'a Report<'_>) -> Self {
        Self {
            glance: Some(Glance::of(report)),
            ..Self::of(report)
        }
    }

    /// The summary of a part of a study, which the glance of the study covers.
    fn of(report: &'a Report<'_>) -> Self {
        Self {
            glance: None,
            grade: &report.grade,
            answer: &report.answer,
            comparison: report.comparison.requested(),
            why: &report.why,
            thresholds: &report.thresholds,
            limits: report.limits.as_ref(),
            made_with: Provenance::of(report.run),
            summary: &report.summary,
        }
    }
}
