//! Claims about servers, judged cell by cell.
//!
//! A claim names relations: a metric, servers, loads and a margin. Each relation has a cell for every pair of values:
//! per rival, part and number of clients (`cells`). A cell is judged by itself: yes, no, tie, or too noisy
//! (`weigh`). What the run's own comparison decides is taken from there, so the same ratio has the same verdict in
//! both; the other cells of a claim are one family of tests. The verdict on the claim is counted from its cells
//! (`words`).

mod cause;
mod cells;
mod value;
mod weigh;
mod words;

use serde::Serialize;

use super::PartReport;
pub use cause::JudgedCause;
use cells::Draft;
use throng_record::claim::Expectation;
use throng_record::metrics::Quantity;
use throng_record::{Claim, Study};
use throng_stats::family;

/// The verdict on a claim, or on one of its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The results show it.
    Yes,
    /// The results show the contrary.
    No,
    /// A difference was claimed, but any is too small to matter.
    Tie,
    /// Some of its cells say yes, and others do not.
    Partly,
    /// The results are too few or too noisy to decide.
    Noisy,
    /// There are no results, or a limit of this machine ended the measurement before the effect could show.
    NotMeasured,
}

/// A claim and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedClaim {
    /// In words.
    pub text: String,
    /// Whether it leads the page.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leads: bool,
    pub verdict: ClaimVerdict,
    /// Its cells counted, and one that shows why.
    pub sentence: String,
    pub cells: Vec<ClaimCell>,
    /// The cause of it, as far as it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<JudgedCause>,
    /// Differences from the published setting, in the words of the study's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<String>,
}

/// One comparison of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimCell {
    /// The part; empty if the study has only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// The title of the part.
    #[serde(skip)]
    pub title: String,
    /// Name of the metric.
    pub metric: String,
    pub server: String,
    /// The server that it is compared with; empty if it is compared with itself elsewhere or with a number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rival: String,
    /// What it is compared with, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub against: String,
    /// Number of clients; `None` for a value over all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    pub verdict: ClaimVerdict,
    /// Both values and their relation, or why there are none, in a sentence.
    pub seen: String,
    /// The first value over the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Quantity>,
    /// The share by which values must differ to matter.
    pub margin: f64,
    /// What the published values say by themselves, if both were published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<ClaimVerdict>,
    /// The server whose value is missing, and why; nothing else is known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingValue>,
}

/// Why a cell has no values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MissingValue {
    /// The server that lacks one; empty if all do.
    pub server: String,
    pub why: String,
}

impl ClaimVerdict {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Yes,
        Self::Partly,
        Self::No,
        Self::Tie,
        Self::Noisy,
        Self::NotMeasured,
    ];

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Tie => "tie",
            Self::Partly => "partly",
            Self::Noisy => "too noisy",
            Self::NotMeasured => "not measurable here",
        }
    }

    /// Whether it says something about the servers.
    pub fn is_decided(self) -> bool {
        !matches!(self, Self::Noisy | Self::NotMeasured)
    }
}

impl JudgedClaim {
    /// The cell that shows the verdict: the smallest difference that says yes, otherwise the largest.
    pub fn telling(&self) -> Option<&ClaimCell> {
        let of_verdict = |verdict| -> Vec<&ClaimCell> {
            let cells = self.cells.iter();
            cells.filter(|cell| cell.verdict == verdict).collect()
        };
        let verdicts = [self.verdict, ClaimVerdict::Yes, ClaimVerdict::No];
        let mut each = verdicts.into_iter();
        each.find_map(|verdict| words::telling(verdict, &of_verdict(verdict)))
    }
}

impl ClaimCell {
    /// Whether another is the same comparison, perhaps in another run.
    pub fn is_same(&self, other: &Self) -> bool {
        let name = |cell: &Self| {
            let servers = (cell.server.clone(), cell.against.clone());
            (
                cell.part.clone(),
                cell.metric.clone(),
                servers,
                cell.clients,
            )
        };
        name(self) == name(other)
    }
}

/// Judges every claim of a study.
pub(super) fn judge(study: &Study, parts: &[PartReport<'_>]) -> Vec<JudgedClaim> {
    let cells = |expectations: &[Expectation]| -> Vec<ClaimCell> {
        let each = expectations.iter();
        let drafts = each.flat_map(|expect| cells::all(parts, expect));
        judged(&drafts.collect::<Vec<_>>())
    };
    let claims = study.claims.iter().map(|claim| {
        let of_cause = claim.mechanism.as_ref().map(|named| cells(&named.expect));
        one(
            claim,
            cells(&claim.expect),
            cause::of(parts, claim, of_cause.unwrap_or_default()),
        )
    });
    claims.collect()
}

/// The cells of a claim, or of a cause, which are one family of tests.
fn judged(drafts: &[Draft<'_>]) -> Vec<ClaimCell> {
    let tested = drafts.iter().filter_map(Draft::p_values);
    let mut shown = family(&tested.collect::<Vec<_>>()).into_iter();
    let cells = drafts.iter().map(|draft| {
        let of_it = draft.p_values().and_then(|_| shown.next());
        draft.judged(of_it.unwrap_or_default())
    });
    cells.collect()
}

fn one(claim: &Claim, cells: Vec<ClaimCell>, cause: Option<JudgedCause>) -> JudgedClaim {
    JudgedClaim {
        text: claim.text.clone(),
        leads: claim.leads,
        verdict: words::verdict(&cells),
        sentence: words::sentence(&cells),
        cells,
        cause,
        fidelity: claim.fidelity.clone(),
    }
}

#[cfg(test)]
mod tests;
