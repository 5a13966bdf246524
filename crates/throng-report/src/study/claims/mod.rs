//! Claims about servers, checked against the results.
//!
//! `judge` takes the values that an expectation names from the trials of the parts, and `weigh` compares them in
//! pairs. `family` applies Holm's procedure to the p-values of all claims of a study and of their causes: the chance
//! that any verdict is wrong is at most 5 %.

mod family;
mod judge;
mod mechanism;
mod missing;
mod name;
mod repeats;
mod term;
mod weigh;
mod words;

use serde::{Deserialize, Serialize};

use super::PartReport;
use family::Family;
use judge::Judge;
pub use mechanism::JudgedMechanism;
use throng_record::metrics::Quantity;
use throng_record::{self as record, Claim};
pub(crate) use words::p_value;

/// The verdict on a claim, a check, or a comparison within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The results confirm it.
    Confirmed,
    /// The results contradict it.
    Refuted,
    /// A difference was claimed, but it is shown to be too small to matter.
    Equivalent,
    /// The results are too few or too noisy to decide.
    Inconclusive,
    /// A limit of this machine, or a setting that all servers share, ended the measurement before the effect could
    /// show.
    Censored,
    /// There are no results to check it against.
    NotTestable,
}

/// A claim and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedClaim {
    /// In words.
    pub text: String,
    pub verdict: ClaimVerdict,
    /// Why, in a sentence.
    pub sentence: String,
    /// The deciding p-value, corrected for all tests of the study; `None` if nothing was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The mechanism behind it, as far as it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<JudgedMechanism>,
    /// Differences from the published setting, in the words of the study's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<String>,
    pub checks: Vec<JudgedCheck>,
}

/// A check of an expectation in one part, and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedCheck {
    /// In words.
    pub text: String,
    /// The finding without correction.
    pub verdict: ClaimVerdict,
    /// Why, in a sentence.
    pub sentence: String,
    /// The numbers it rests on.
    pub evidence: Vec<Evidence>,
    /// Checks that were not possible, and why: each reason once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One comparison within a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// The finding without correction.
    pub verdict: ClaimVerdict,
    /// In words, with its numbers.
    pub sentence: String,
    /// The first value over the second one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Quantity>,
    /// The share by which values must differ to matter there.
    pub margin: f64,
    /// The p-values of what was expected, of the contrary, and of no difference that matters.
    pub p: [f64; 3],
}

impl ClaimVerdict {
    /// The finding as tables show it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
            Self::Censored => "censored",
            Self::NotTestable => "not testable on this machine",
        }
    }

    /// The finding about several findings that must all hold.
    fn of_all(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let all: Vec<Self> = all.into_iter().collect();
        let rank = [
            Self::Refuted,
            Self::Inconclusive,
            Self::Censored,
            Self::NotTestable,
            Self::Equivalent,
            Self::Confirmed,
        ];
        rank.into_iter().find(|finding| all.contains(finding))
    }
}

/// Judges every claim of a study.
pub(super) fn judge(study: &record::Study, parts: &[PartReport<'_>]) -> Vec<JudgedClaim> {
    let judge = Judge { parts };
    let checks: Vec<Vec<JudgedCheck>> = study
        .claims
        .iter()
        .map(|claim| judge.expectations(&claim.expect))
        .collect();
    let causes: Vec<Vec<JudgedCheck>> = study
        .claims
        .iter()
        .map(|claim| claim.mechanism.iter())
        .map(|mut mechanism| {
            mechanism
                .next()
                .map_or_else(Vec::new, |one| judge.expectations(&one.expect))
        })
        .collect();
    let family = Family::of(checks.iter().chain(&causes));
    let both = checks.iter().zip(&causes).enumerate();
    both.zip(&study.claims)
        .map(|((place, (checks, causes)), claim)| {
            let of_cause = study.claims.len() + place;
            JudgedClaim {
                mechanism: mechanism::of(&judge, claim, causes, &family, of_cause),
                ..one(claim, checks, &family, place)
            }
        })
        .collect()
}

fn one(claim: &Claim, checks: &[JudgedCheck], family: &Family, place: usize) -> JudgedClaim {
    let (verdict, p) = (family.verdict(place), family.p(place));
    let sentence = words::of_checks(verdict, checks) + &family.not_after_correction(place, checks);
    JudgedClaim {
        text: claim.text.clone(),
        verdict,
        sentence,
        p,
        mechanism: None,
        fidelity: claim.fidelity.clone(),
        checks: checks.to_vec(),
    }
}

#[cfg(test)]
mod tests;
