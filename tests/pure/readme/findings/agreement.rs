//! Whether the last two records of a study agree.

use std::fmt::Write as _;
use std::path::Path;

use throng::report::study::StudyReport;
use throng::report::study::claims::{Finding, JudgedClaim};

use super::{file_name, machine, rejudged};

/// A table of the verdicts of both: the same claims judge the trials of both.
pub(super) fn with(name: &str, before: &Path, record: &Path, report: &StudyReport<'_>) -> String {
    let loaded = rejudged(name, before);
    let earlier = loaded.report().expect("histograms can be read");
    let [then, now] =
        [before, record].map(|path| path.parent().map_or_else(String::new, file_name));
    let (then_on, now_on) = (machine(&earlier), machine(report));
    let machines = if then_on == now_on {
        format!("Both ran on {now_on}.")
    } else {
        format!("They ran on different machines: {then_on} in {then}, and {now_on} in {now}.")
    };
    let pairs = || earlier.claims.iter().zip(&report.claims);
    let outcomes = pairs().map(|(then, now)| Agreement::of(then, now));
    let outcomes: Vec<Agreement> = outcomes.collect();
    let count = |which: Agreement| outcomes.iter().filter(|one| **one == which).count();
    let mut text = format!(
        "\nThe last two records agree on {} of these {} claims, and contradict each other on {}. {machines}\n\n\
         | claim | {then} | {now} | |\n|---|---|---|---|\n",
        count(Agreement::Same),
        outcomes.len(),
        count(Agreement::Contradicts)
    );
    for ((then, now), outcome) in pairs().zip(&outcomes) {
        let claim = now.text.trim_end_matches('.');
        let (then, now, outcome) = (outcome.then(then), now.verdict.text(), outcome.text());
        writeln!(text, "| {claim} | {then} | {now} | {outcome} |").expect("it is a string");
    }
    text
}

/// How two verdicts on a claim stand to each other.
#[derive(Clone, Copy, PartialEq)]
enum Agreement {
    Same,
    /// One of them is undecided.
    Differs,
    /// The older record lacks what the claim needs.
    NotMeasured,
    Contradicts,
}

impl Agreement {
    fn of(then: &JudgedClaim, now: &JudgedClaim) -> Self {
        let is_decided = |judged: &JudgedClaim| {
            matches!(
                judged.verdict,
                Finding::Confirmed | Finding::Refuted | Finding::Equivalent
            )
        };
        match (then.verdict, now.verdict) {
            (then, now) if then == now => Self::Same,
            (Finding::NotTestable, _) => Self::NotMeasured,
            _ if is_decided(then) && is_decided(now) => Self::Contradicts,
            _ => Self::Differs,
        }
    }

    fn then(self, then: &JudgedClaim) -> &'static str {
        match self {
            Self::NotMeasured => "not measured",
            _ => then.verdict.text(),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "**differs**",
            Self::NotMeasured => "new",
            Self::Contradicts => "**contradicts**",
        }
    }
}
