//! Whether the last run of a study agrees with the previous one, whose verdicts were kept.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use throng::report::study::StudyReport;
use throng::report::study::claims::{ClaimVerdict, JudgedClaim};

use super::{file_name, machine};

/// `claims.json`: what `results/retire` keeps of an earlier run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EarlierRun {
    machine: String,
    claims: Vec<EarlierClaim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EarlierClaim {
    text: String,
    verdict: ClaimVerdict,
    #[serde(rename = "sentence")]
    _sentence: String,
}

/// The file in the directory of an earlier run.
pub(super) const FILE: &str = "claims.json";

/// A table of the verdicts of both runs.
pub(super) fn with(before: &Path, record: &Path, report: &StudyReport<'_>) -> String {
    let path = before.join(FILE);
    let text = std::fs::read(&path);
    let text = text.unwrap_or_else(|error| {
        panic!("{}: {error}; run results/retire", path.display());
    });
    let earlier: EarlierRun = serde_json::from_slice(&text).expect("as results/retire writes it");
    let [then, now] =
        [before, record].map(|path| path.parent().map_or_else(String::new, file_name));
    let (then_on, now_on) = (earlier.machine, machine(report));
    let machines = if then_on == now_on {
        format!("Both ran on {now_on}.")
    } else {
        format!("They ran on different machines: {then_on} in {then}, and {now_on} in {now}.")
    };
    let pairs: Vec<(Option<ClaimVerdict>, &JudgedClaim)> = report
        .claims
        .iter()
        .map(|claim| {
            let mut before = earlier.claims.iter();
            let same = before.find(|one| one.text == claim.text);
            (same.map(|one| one.verdict), claim)
        })
        .collect();
    let outcomes = || {
        pairs
            .iter()
            .map(|(then, now)| Agreement::of(*then, now.verdict))
    };
    let count = |which: Agreement| outcomes().filter(|one| *one == which).count();
    let mut text = format!(
        "\nThe last two runs agree on {} of these {} claims, and contradict each other on {}. {machines}\n\n\
         | claim | [{then}](../results/{then}) | {now} | |\n|---|---|---|---|\n",
        count(Agreement::Same),
        pairs.len(),
        count(Agreement::Contradicts)
    );
    for ((then, now), outcome) in pairs.iter().zip(outcomes()) {
        let claim = now.text.trim_end_matches('.');
        let then = match outcome {
            Agreement::NotMeasured => "not measured",
            _ => then.map_or("not measured", ClaimVerdict::text),
        };
        let (now, outcome) = (now.verdict.text(), outcome.text());
        writeln!(text, "| {claim} | {then} | {now} | {outcome} |").expect("it is a string");
    }
    text
}

/// The agreement of two verdicts on a claim.
#[derive(Clone, Copy, PartialEq)]
enum Agreement {
    Same,
    /// One of them is undecided.
    Differs,
    /// Neither confirms it: one finds the contrary, the other no difference that counts.
    BothDeny,
    /// The earlier run lacks what the claim needs.
    NotMeasured,
    Contradicts,
}

impl Agreement {
    fn of(then: Option<ClaimVerdict>, now: ClaimVerdict) -> Self {
        let denies = |verdict: ClaimVerdict| {
            matches!(verdict, ClaimVerdict::Refuted | ClaimVerdict::Equivalent)
        };
        let confirms = |verdict: ClaimVerdict| verdict == ClaimVerdict::Confirmed;
        match then {
            Some(then) if then == now => Self::Same,
            None | Some(ClaimVerdict::NotTestable) => Self::NotMeasured,
            Some(then) if denies(then) && denies(now) => Self::BothDeny,
            Some(then) if confirms(then) && denies(now) || denies(then) && confirms(now) => {
                Self::Contradicts
            }
            Some(_) => Self::Differs,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "**differs**",
            Self::BothDeny => "**differs**, but neither confirms it",
            Self::NotMeasured => "new",
            Self::Contradicts => "**contradicts**",
        }
    }
}
