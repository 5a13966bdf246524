//! A picture that fits in a line of text: marks with intervals, without words.

use serde::{Deserialize, Serialize};

use crate::Report;
use crate::figures::{Part, Standing};
use crate::limit::Limits;
use crate::study::StudyReport;
use crate::study::claims::Finding;

/// The maximum number of marks drawn. If there are more, only the first are drawn.
const MOST_MARKS: usize = 16;

/// The picture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Strip {
    /// The title, which says which end is better.
    pub title: String,
    /// The reference value, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The marks, the best first.
    pub marks: Vec<Mark>,
    /// The number of marks left out.
    #[serde(default)]
    pub left_out: usize,
}

/// A mark in a strip.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    pub name: String,
    /// The place of the server in the palette, which sets its look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    pub value: f64,
    /// The ends of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The value in words.
    pub text: String,
    /// Whether the verdict is good; `None` if there is no such verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<bool>,
    /// Whether it is tied with others: none of them is shown to be better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tied: bool,
}

impl Strip {
    /// The first picture of a report.
    pub(super) fn of(report: &Report<'_>) -> Option<Self> {
        if let Some(limits) = &report.limits {
            return Self::of_limits(report, limits);
        }
        let mut answers = report.figures.iter();
        let figure = answers.find(|figure| figure.part == Part::Answer)?;
        let ranked = figure.ranked.first()?;
        let groups = ranked.groups.iter();
        let rows = groups.flat_map(|group| group.rows.iter().map(move |row| (group, row)));
        let marks = rows.filter_map(|(group, row)| {
            let point = row.point?;
            Some(Mark {
                name: row.name.clone(),
                place: row.place,
                value: point.y,
                low: point.low,
                high: point.high,
                text: row.text.clone(),
                good: row.better,
                tied: group.standing == Standing::Tied,
            })
        });
        Self::with(ranked.title.clone(), ranked.level, marks.collect())
    }

    /// The limit of each server, and the lowest value that failed.
    fn of_limits(report: &Report<'_>, limits: &Limits) -> Option<Self> {
        let servers = limits.servers.iter();
        let mut marks: Vec<Mark> = servers
            .filter_map(|server| {
                let passed = server.passed?.value as f64;
                let failed = server.failed.map(|tried| tried.value as f64);
                Some(Mark {
                    name: server.server.clone(),
                    place: Some(report.place(&server.server)),
                    value: passed,
                    low: failed.map(|_| passed),
                    high: failed,
                    text: server.text(),
                    good: None,
                    tied: false,
                })
            })
            .filter(|mark| mark.value > 0.0)
            .collect();
        marks.sort_by(|one, other| other.value.total_cmp(&one.value));
        let title = format!("Limits, {} (higher is better)", limits.unit());
        Self::with(title, None, marks)
    }

    /// The verdicts on the claims of a study.
    pub(super) fn of_claims(report: &StudyReport<'_>) -> Option<Self> {
        let claims = report.claims.iter();
        let marks = claims.map(|claim| Mark {
            name: claim.text.clone(),
            value: 1.0,
            text: claim.verdict.text().to_owned(),
            good: match claim.verdict {
                Finding::Confirmed => Some(true),
                Finding::Refuted => Some(false),
                Finding::Equivalent
                | Finding::Inconclusive
                | Finding::Censored
                | Finding::NotTestable => None,
            },
            ..Mark::default()
        });
        Self::with("Claims".to_owned(), None, marks.collect())
    }

    fn with(title: String, level: Option<f64>, mut marks: Vec<Mark>) -> Option<Self> {
        let left_out = marks.len().saturating_sub(MOST_MARKS);
        marks.truncate(MOST_MARKS);
        (!marks.is_empty()).then_some(Self {
            title,
            level,
            marks,
            left_out,
        })
    }

    /// Alternative text: "Requests per second: epoll 120,000, poll 90,000".
    pub fn words(&self) -> String {
        let marks = self.marks.iter();
        let marks: Vec<String> = marks
            .map(|mark| format!("{} {}", mark.name, mark.text))
            .collect();
        let more = match self.left_out {
            0 => String::new(),
            more => format!(", {more} more"),
        };
        format!("{}: {}{more}", self.title, marks.join(", "))
    }

    /// Whether it shows only verdicts and no values.
    pub fn is_of_verdicts(&self) -> bool {
        self.level.is_none() && self.marks.iter().all(|mark| mark.place.is_none())
    }
}
