//! Claims: what was said about servers, checked by what results must show for it.
//!
//! The values that an expectation names are taken from the parts' trials (`judge`), and pairs of them are
//! weighed by the interval of their ratio (`weigh`).

mod judge;
mod missing;
mod weigh;
mod words;

use serde::Serialize;

use super::PartReport;
use judge::Judge;
use throng_record::metrics::Quantity;
use throng_record::{self as record, Claim};

/// What came of a claim, a check, or a comparison within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The results say so.
    Confirmed,
    /// They say the contrary.
    Refuted,
    /// Too few or too noisy to say either.
    Inconclusive,
    /// There are no results that it is about.
    NotChecked,
}

/// A claim and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// In words.
    pub text: String,
    /// What came of it.
    pub verdict: Finding,
    /// Why, in a sentence.
    pub sentence: String,
    /// What the author of the study says the figures show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub checks: Vec<JudgedCheck>,
}

/// What is expected of a part, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedCheck {
    /// In words.
    pub text: String,
    /// What came of it.
    pub verdict: Finding,
    /// Why, in a sentence.
    pub sentence: String,
    /// The numbers it rests on.
    pub evidence: Vec<Evidence>,
    /// What it could not look at, and why: each reason once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One comparison within a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// What it shows.
    pub verdict: Finding,
    /// In words, with its numbers.
    pub sentence: String,
    /// The first value over the second one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Quantity>,
    /// The share by which values must differ to matter there.
    pub floor: f64,
}

impl Finding {
    /// As it stands in tables.
    pub fn text(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::Inconclusive => "inconclusive",
            Self::NotChecked => "not checked",
        }
    }

    /// What holds of several that must all be so.
    fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        let all: Vec<Self> = all.into_iter().collect();
        let rank = [Self::Refuted, Self::Inconclusive, Self::NotChecked];
        let worst = rank.into_iter().find(|finding| all.contains(finding));
        let usual = if all.is_empty() {
            Self::NotChecked
        } else {
            Self::Confirmed
        };
        worst.unwrap_or(usual)
    }
}

/// Judges every claim of a study.
pub(super) fn judge(study: &record::Study, parts: &[PartReport<'_>]) -> Vec<Judged> {
    let judge = Judge {
        parts,
        is_scaled: study.scale.is_some(),
    };
    study
        .claims
        .iter()
        .map(|claim| one(&judge, claim))
        .collect()
}

fn one(judge: &Judge<'_>, claim: &Claim) -> Judged {
    let expected = claim.expect.iter();
    let checks: Vec<JudgedCheck> = expected
        .flat_map(|expect| judge.expectation(expect))
        .collect();
    let verdict = Finding::of_all(checks.iter().map(|check| check.verdict));
    // The check that decided says why.
    let deciding = checks.iter().find(|check| check.verdict == verdict);
    let mut sentence = deciding.map_or_else(String::new, |check| check.sentence.clone());
    let agreeing = checks
        .iter()
        .filter(|check| check.verdict == verdict)
        .count();
    if verdict == Finding::Confirmed && agreeing > 1 {
        sentence += &format!(" All {agreeing} checks of it are confirmed.");
    }
    Judged {
        text: claim.text.clone(),
        verdict,
        sentence,
        why: claim.why.clone(),
        checks,
    }
}

#[cfg(test)]
mod tests;
