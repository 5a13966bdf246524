//! The limits of two runs compared.

use serde::Serialize;

use crate::Report;
use crate::limit::{Limits, ServerLimit};
use throng_record::format::{ABSENT, hundredths};
use throng_record::{Run, TriedValue};
use throng_stats::Verdict;

/// The limit of a server in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitDiff {
    /// Its name.
    pub server: String,
    /// The unit of the limits: "clients", "requests per second".
    pub unit: &'static str,
    /// The limit in A, in words.
    pub a: String,
    /// The limit in B, in words.
    pub b: String,
    /// The ratio of the limits, B over A. A limit comes from one search, so there is no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The verdict on B: different only if a value passed in one run and failed in the other, equal if the limits are.
    pub verdict: Verdict,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl LimitDiff {
    /// Both limits, the ratio and the verdict, as shown in tables.
    pub fn cells(&self) -> [String; 4] {
        let ratio = self.ratio.map_or_else(|| ABSENT.to_owned(), hundredths);
        let verdict = match self.verdict {
            Verdict::Better => "higher",
            Verdict::Worse => "lower",
            Verdict::Equivalent => "equal",
            Verdict::NotComparable => "not comparable",
            Verdict::Inconclusive => "inconclusive",
        };
        [self.a.clone(), self.b.clone(), ratio, verdict.to_owned()]
    }
}

/// The limits of two reports, the second of which repeats the first run.
pub(crate) fn limits_of([then, now]: [&Report<'_>; 2]) -> Vec<LimitDiff> {
    limits(then.limits.as_ref(), now.limits.as_ref(), now.run)
}

/// The limits of the servers that both runs searched, in the order of B.
pub(super) fn limits(a: Option<&Limits>, b: Option<&Limits>, run: &Run) -> Vec<LimitDiff> {
    let (Some(a), Some(b)) = (a, b) else {
        return Vec::new();
    };
    let of_server = |name: &str| {
        let find = |limits: &Limits| {
            let mut servers = limits.servers.iter();
            servers.find(|limit| limit.server == name).cloned()
        };
        Some((find(a)?, find(b)?))
    };
    run.servers
        .iter()
        .filter_map(|server| of_server(&server.name))
        .map(|(in_a, in_b)| {
            let other = (a.find != b.find).then(|| a.unit());
            diff(&in_a, &in_b, b.unit(), other)
        })
        .collect()
}

/// `other` is what A searched for, if that was something else.
fn diff(a: &ServerLimit, b: &ServerLimit, unit: &'static str, other: Option<&str>) -> LimitDiff {
    let value = |tried: Option<TriedValue>| tried.map(|tried| tried.value);
    let passed = value(a.passed).zip(value(b.passed));
    let apart = |lower: &ServerLimit, upper: &ServerLimit| {
        let ends = value(lower.failed).zip(value(upper.passed));
        ends.is_some_and(|(failed, passed)| passed >= failed)
    };
    let (verdict, why) = match (other, passed) {
        (Some(other), _) => (
            Verdict::NotComparable,
            Some(format!("A searched for {other}")),
        ),
        (None, None) => {
            let without = if a.passed.is_none() { "A" } else { "B" };
            (
                Verdict::NotComparable,
                Some(format!("nothing passed in {without}")),
            )
        }
        (None, Some(_)) if apart(a, b) => (Verdict::Better, None),
        (None, Some(_)) if apart(b, a) => (Verdict::Worse, None),
        (None, Some((in_a, in_b))) if in_a == in_b => (Verdict::Equivalent, None),
        (None, Some(_)) => (Verdict::Inconclusive, None),
    };
    let comparable = passed.filter(|(a, _)| other.is_none() && *a > 0);
    LimitDiff {
        server: b.server.clone(),
        unit,
        a: a.text(),
        b: b.text(),
        ratio: comparable.map(|(a, b)| b as f64 / a as f64),
        verdict,
        why,
    }
}
