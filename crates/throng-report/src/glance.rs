//! The digest of a report, for the list of runs and for the history of a server. It is part of `summary.json`, so
//! lists and histories need neither trials nor histograms.

mod history;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Report;
use crate::grade::Level;
pub use crate::provenance::throng;
use crate::study::StudyReport;
use crate::study::cases;
use crate::study::claims::ClaimVerdict;
pub use history::{
    HistoryPoint, OF_HISTORY, Occasion, PastMeasure, ServerMeasures, machine, server_history,
};
use throng_record::format::{counted, list};
use throng_record::{self as record};
pub use throng_stats::Verdict;

/// The maximum size of a `summary.json` that is read, in bytes.
const MOST_BYTES: u64 = 32 << 20;

/// A report at a glance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Glance {
    /// The answer in one sentence.
    pub sentence: String,
    /// The grade; for a study, the worst grade of its parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Level>,
    /// Why the grade is not good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The measurements: one per part of a study, or the run itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub occasions: Vec<Occasion>,
}

impl Glance {
    /// The glance of a run.
    pub(crate) fn of(report: &Report<'_>) -> Self {
        let grade = report.limits.is_none().then_some(report.grade.level);
        Self {
            sentence: report.answer.first.clone(),
            grade,
            cause: report.grade.cause().map(str::to_owned),
            occasions: vec![Occasion::of(report, None)],
        }
    }

    /// The glance of a study of several parts.
    pub(crate) fn of_study(report: &StudyReport<'_>) -> Self {
        let parts = || {
            let parts = report.parts.iter();
            parts.filter_map(|part| Some((part, part.report.as_ref()?)))
        };
        let worst = parts().max_by_key(|(_, of_part)| of_part.grade.level);
        let occasions = parts()
            .map(|(part, of_part)| Occasion::of(of_part, Some(&part.record.name)))
            .collect();
        Self {
            sentence: sentence(report),
            grade: worst.map(|(_, of_part)| of_part.grade.level),
            cause: worst.and_then(|(part, of_part)| {
                let cause = of_part.grade.cause()?;
                Some(format!("{}: {cause}", part.record.name))
            }),
            occasions,
        }
    }
}

/// "5 claims: 3 yes, 1 no and 1 not measurable here."
pub fn sentence(report: &StudyReport<'_>) -> String {
    if let Some(note) = report.scale_note() {
        return note;
    }
    if let Some(sentence) = cases::sentence(&report.cases()) {
        return sentence;
    }
    let all = report.claims.len() as u32;
    if all == 0 {
        let answers = report.parts.iter().filter_map(|part| part.report.as_ref());
        let first = answers.map(|of_part| of_part.answer.first.clone()).next();
        return first.unwrap_or_else(|| "No part has run yet.".to_owned());
    }
    let counts: Vec<String> = ClaimVerdict::ALL
        .into_iter()
        .filter_map(|verdict| {
            let claims = report.claims.iter();
            let count = claims.filter(|claim| claim.verdict == verdict).count();
            (count > 0).then(|| format!("{count} {}", verdict.text()))
        })
        .collect();
    let what = match &report.study.source {
        Some(_) => "published claim",
        None => "claim",
    };
    format!("{}: {}.", counted(all, what), list(&counts))
}

/// The glance in the `summary.json` of a record; `None` if the file is missing, of another version, or without a
/// glance.
pub fn stored(directory: &Path) -> Option<Glance> {
    /// The part of the summary that is read.
    #[derive(Deserialize)]
    struct Stored {
        glance: Glance,
    }
    let file = record::open_if_there(&directory.join("summary.json")).ok()??;
    if file.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    let text = std::io::read_to_string(std::io::BufReader::new(file)).ok()?;
    let stored: Stored = serde_json::from_str(&text).ok()?;
    Some(stored.glance)
}

/// The glance of a record, from its trials.
///
/// # Errors
/// When a file of the record is missing or damaged, naming it.
pub fn make(directory: &Path) -> anyhow::Result<Glance> {
    if record::Study::is_in(directory) {
        let loaded = crate::study::load(directory)?;
        return Ok(Glance::of_study(&loaded.report()?));
    }
    Ok(Glance::of(&crate::load(directory)?.report()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logs, fixture};

    #[test]
    fn a_digest_equals_the_values_of_its_trials() {
        let directory = tempfile::tempdir().unwrap();
        fixture::write(directory.path());
        assert_eq!(stored(directory.path()), None);
        let made = super::make(directory.path()).unwrap();
        crate::write_all(
            &crate::load(directory.path()).unwrap().report().unwrap(),
            directory.path(),
        )
        .unwrap();
        assert_eq!(stored(directory.path()), Some(made.clone()));
        assert_eq!(
            made.sentence,
            "With 1,000 clients, io-uring uses the least CPU per request; select uses 4.81x as much (4.78–4.84x)."
        );
    }

    #[test]
    fn a_run_without_trials_has_a_glance() {
        let (run, _) = fixture::record();
        let glance = Glance::of(&Report::of(&run, &[], &Logs::default()).unwrap());
        assert_eq!(glance.sentence, "No trial has finished yet.");
    }
}
