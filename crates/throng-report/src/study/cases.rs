//! Parts that are test cases: what was expected of their servers, and what was seen.

use serde::Serialize;

use super::PartReport;
use throng_record::format::{capitalized, counted};
use throng_record::metrics::Condition;
use throng_record::{Expected, FailedStage, Trial};

/// A part that is a test case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case<'a> {
    /// The name of the part.
    pub part: &'a str,
    /// Its heading.
    pub title: &'a str,
    /// What is expected, in words.
    pub expected: String,
    /// Why it did not run, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<&'a str>,
    /// Its servers.
    pub servers: Vec<CaseResult<'a>>,
}

/// The result of a case for one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseResult<'a> {
    pub server: &'a str,
    /// Whether every trial was as expected.
    pub as_expected: bool,
    /// What was seen, in the first trial that was not as expected, or else in the last one.
    pub seen: String,
}

impl<'a> Case<'a> {
    /// Whether every trial of every server was as expected, or the case cannot run here.
    pub fn is_as_expected(&self) -> bool {
        let all = self.servers.iter().all(|one| one.as_expected);
        self.skipped.is_some() || (all && !self.servers.is_empty())
    }

    /// The case of a part, if it is one.
    pub(super) fn of(part: &PartReport<'a>) -> Option<Self> {
        let record = part.record;
        let expected = record.expected.as_ref()?;
        let report = part.report.iter();
        let servers = report.flat_map(|report| {
            let servers = report.run.servers.iter();
            servers.map(|server| CaseResult::of(expected, &server.name, report.trials))
        });
        Some(Self {
            part: &record.name,
            title: &record.title,
            expected: in_words(expected),
            skipped: record.skipped.as_deref(),
            servers: servers.collect(),
        })
    }
}

impl<'a> CaseResult<'a> {
    fn of(expected: &Expected, server: &'a str, trials: &[Trial]) -> Self {
        let own = trials
            .iter()
            .filter(|trial| trial.server == server && trial.purpose.is_timed());
        let mut last = (false, "no trial has finished yet".to_owned());
        for trial in own {
            last = seen(expected, trial);
            if !last.0 {
                break;
            }
        }
        let (as_expected, seen) = last;
        Self {
            server,
            as_expected,
            seen,
        }
    }
}

/// Whether a trial is as expected, and what was seen.
fn seen(expected: &Expected, trial: &Trial) -> (bool, String) {
    if let Some(failure) = &trial.failure {
        let is_expected = expected.failure == Some(failure.stage);
        let mut lines = failure.output.lines().rev().map(str::trim);
        let says = lines
            .find(|line| failure.stage == FailedStage::Start && !line.is_empty())
            .map_or_else(String::new, |line| format!(": {line}"));
        return (is_expected, format!("{}{says}", failure.reason));
    }
    let mut as_expected = expected.failure.is_none();
    let mut values = Vec::new();
    for text in &expected.conditions {
        let Ok(condition) = Condition::parse(text) else {
            as_expected = false;
            values.push(format!("`{text}` cannot be checked by this version"));
            continue;
        };
        let server = condition.name.as_ref();
        if server.is_some_and(|server| *server != trial.server) {
            continue;
        }
        let known = condition.of_trial(trial);
        let (holds, value) = known.unwrap_or((false, "not measured".to_owned()));
        as_expected &= holds;
        values.push(format!("{}: {value}", condition.metric.label));
    }
    if values.is_empty() {
        values.push("it did not fail".to_owned());
    }
    (as_expected, values.join(", "))
}

fn in_words(expected: &Expected) -> String {
    let failure = expected.failure.map(|stage| match stage {
        FailedStage::Start => "the server does not start".to_owned(),
        FailedStage::Serve => "the server ends during the load".to_owned(),
        stage => format!("the trial fails ({stage})"),
    });
    let all: Vec<String> = failure
        .into_iter()
        .chain(expected.conditions.iter().cloned())
        .collect();
    all.join(", ")
}

/// "All 15 cases are as expected."; `None` if there are no cases.
pub(crate) fn sentence(cases: &[Case<'_>]) -> Option<String> {
    let ran = cases.iter().filter(|case| case.skipped.is_none());
    let (good, bad): (Vec<_>, Vec<_>) = ran.partition(|case| case.is_as_expected());
    let skipped = match (cases.len() - good.len() - bad.len()) as u32 {
        0 => String::new(),
        skipped => format!(
            " {} cannot run here.",
            capitalized(&counted(skipped, "case"))
        ),
    };
    let count = good.len() as u32;
    match bad.as_slice() {
        _ if cases.is_empty() => None,
        [] if count > 1 => Some(format!("All {} as expected.{skipped}", are(count))),
        [] => Some(format!("{} as expected.{skipped}", are(count))),
        bad => {
            let names: Vec<&str> = bad.iter().map(|case| case.title).collect();
            let titles = names.join("; ");
            Some(format!(
                "Not as expected: {titles}. {} as expected.{skipped}",
                are(count)
            ))
        }
    }
}

/// "14 cases are", "1 case is".
fn are(cases: u32) -> String {
    let verb = if cases == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(cases, "case"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::Load;

    fn seen_with(
        conditions: &[&str],
        failure: Option<FailedStage>,
        trial: &Trial,
    ) -> (bool, String) {
        let expected = Expected {
            conditions: conditions.iter().map(|text| (*text).to_owned()).collect(),
            failure,
        };
        seen(&expected, trial)
    }

    #[test]
    fn only_what_was_seen_is_as_expected() {
        let trial = Trial {
            server: "epoll".to_owned(),
            load: Some(Load {
                requests: 20,
                ..Load::default()
            }),
            ..Trial::default()
        };
        for (conditions, failure, is_so) in [
            (&["requests = 20", "errors = 0"][..], None, true),
            (&["requests = 21"], None, false),
            (&["requests = 20"], Some(FailedStage::Serve), false),
            (&["poll: requests = 21"], None, true),
            (&["weight > 1"], None, false),
            (&["server_pss_bytes > 1B"], None, false),
        ] {
            let (as_expected, text) = seen_with(conditions, failure, &trial);
            assert_eq!(as_expected, is_so, "{conditions:?}: {text}");
        }
    }

    #[test]
    fn a_case_that_no_server_ran_is_not_as_expected() {
        let case = |skipped| Case {
            part: "one",
            title: "One",
            expected: "errors = 0".to_owned(),
            skipped,
            servers: Vec::new(),
        };
        assert!(!case(None).is_as_expected());
        assert!(case(Some("no root")).is_as_expected());
        let text = sentence(&[case(None), case(Some("no root"))]).unwrap();
        assert_eq!(
            text,
            "Not as expected: One. 0 cases are as expected. 1 case cannot run here."
        );
        assert_eq!(sentence(&[]), None);
    }
}
