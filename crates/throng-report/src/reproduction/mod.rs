//! A run and its repeat: which verdicts of the first run held in the second, and the differences between the two.
//!
//! The same rules judge both records. If a run compares no servers, the reference is the best server of the first run.

mod outcome;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::Report;
use super::answer::leader;
use super::comparison::{Pair, PairMetric, Source, against_reference, conclude};
use super::diff::{Fact, LimitDiff, differing, limits_of};
use super::grade::{Grade, Level};
use super::study::claims::ClaimVerdict;
pub use outcome::{Outcome, RunVerdict};
use throng_record::Study;
use throng_record::format::counted;

/// A run and its repeat.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduction {
    /// The directory of the first record.
    pub earlier: String,
    /// The directory of the second record.
    pub again: String,
    /// The question that both answer.
    pub question: String,
    /// The result in one sentence.
    pub headline: String,
    /// Each verdict that did not hold, in a sentence.
    pub not_held: Vec<String>,
    /// The parts of a study; a single part for a run.
    pub parts: Vec<Part>,
    /// The claims of a study.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Differences in how the runs were made, each once.
    pub differences: Vec<Fact>,
}

/// A part that both runs have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its name; `None` if the runs have no parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The grade of the first run.
    pub earlier_grade: Grade,
    /// The grade of the second run.
    pub again_grade: Grade,
    /// Verdicts on servers.
    pub verdicts: Vec<RepeatedVerdict>,
    /// Limits, if the runs searched for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<RepeatedLimit>,
}

/// A verdict and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepeatedVerdict {
    /// Number of clients.
    pub clients: u32,
    /// The server.
    pub server: String,
    pub reference: String,
    /// The metric.
    pub metric: &'static str,
    /// Its heading in tables.
    #[serde(skip)]
    pub title: &'static str,
    /// The metric in a sentence.
    #[serde(skip)]
    noun: String,
    /// The verdict in the first run.
    pub earlier: RunVerdict,
    /// The verdict in the second run; absent if the two were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<RunVerdict>,
    /// Whether it held.
    pub outcome: Outcome,
    /// Whether the difference has the same direction but another size: the intervals do not overlap.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub other_size: bool,
}

/// A limit and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepeatedLimit {
    /// Both limits.
    #[serde(flatten)]
    pub limits: LimitDiff,
    /// Whether the first one held.
    pub outcome: Outcome,
}

/// A claim of a study and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// The claim in words.
    pub text: String,
    /// The verdict of the first run.
    pub earlier: ClaimVerdict,
    /// The verdict of the second run.
    pub again: ClaimVerdict,
    /// Whether the first verdict held.
    pub outcome: Outcome,
}

impl Reproduction {
    /// Compares the record in `again` with the one in `earlier`, which it repeats.
    ///
    /// # Errors
    /// When a file of a record is missing or damaged, naming it.
    pub fn of(earlier: &Path, again: &Path) -> anyhow::Result<Self> {
        let (parts, claims, question, differences);
        if Study::is_in(earlier) {
            let [then, mut now] = [super::study::load(earlier)?, super::study::load(again)?];
            now.study.claims.clone_from(&then.study.claims);
            let [then, now] = [then.report()?, now.report()?];
            let both = then.parts.iter().filter_map(|then| {
                let mut parts = now.parts.iter();
                let now = parts.find(|now| now.record.name == then.record.name)?;
                let reports = (then.report.as_ref()?, now.report.as_ref()?);
                Some((Some(then.record.name.as_str()), reports))
            });
            let both: Vec<_> = both.collect();
            parts = both
                .iter()
                .map(|&(name, both)| Part::of(name, both))
                .collect();
            differences = differences_of(both.iter().map(|(_, both)| *both));
            let claimed = then.claims.iter().zip(&now.claims);
            claims = claimed
                .map(|(then, now)| Claim {
                    text: then.text.clone(),
                    earlier: then.verdict,
                    again: now.verdict,
                    outcome: outcome::of_claim(then.verdict, now.verdict),
                })
                .collect();
            question = then.study.question.clone();
        } else {
            let [then, now] = [super::load(earlier)?, super::load(again)?];
            let [then, now] = [then.report()?, now.report()?];
            parts = vec![Part::of(None, (&then, &now))];
            differences = differences_of(std::iter::once((&then, &now)));
            claims = Vec::new();
            question = then.run.study.question.clone();
        }
        let mut reproduction = Self {
            earlier: earlier.display().to_string(),
            again: again.display().to_string(),
            question,
            headline: String::new(),
            not_held: Vec::new(),
            parts,
            claims,
            differences,
        };
        reproduction.headline = words::headline(&reproduction);
        reproduction.not_held = words::not_held(&reproduction);
        Ok(reproduction)
    }

    /// The outcomes of all verdicts.
    pub fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        let of_parts = self.parts.iter().flat_map(|part| {
            let verdicts = part.verdicts.iter().map(|repeated| repeated.outcome);
            verdicts.chain(part.limits.iter().map(|limit| limit.outcome))
        });
        of_parts.chain(self.claims.iter().map(|claim| claim.outcome))
    }

    /// Whether anything did not hold.
    pub fn has_failed(&self) -> bool {
        self.outcomes().any(|outcome| outcome == Outcome::NotHeld)
    }
}

impl Part {
    fn of(name: Option<&str>, (then, now): (&Report<'_>, &Report<'_>)) -> Self {
        let leaders: BTreeMap<u32, String> = then
            .summary
            .clients
            .iter()
            .filter_map(|clients| Some((*clients, leader(&then.summary, *clients)?.to_owned())))
            .collect();
        let [in_then, in_now] = [then, now].map(|report| pairs(report, &leaders));
        let verdicts = in_then.iter().flat_map(|pair| {
            let again = in_now.iter().find(|other| is_same(pair, other));
            let measures = pair.measures.iter();
            measures.map(move |measured| {
                let by = again.and_then(|again| again.by(measured.name));
                RepeatedVerdict::of(pair, measured, by)
            })
        });
        let limits = limits_of([then, now]).into_iter();
        Self {
            name: name.map(str::to_owned),
            earlier_grade: then.grade.clone(),
            again_grade: now.grade.clone(),
            verdicts: verdicts.collect(),
            limits: limits
                .map(|limits| RepeatedLimit {
                    outcome: outcome::of_limit(limits.verdict),
                    limits,
                })
                .collect(),
        }
    }

    /// "part large: ", if there are parts.
    pub(crate) fn prefix(&self) -> String {
        let name = self.name.as_ref();
        name.map_or_else(String::new, |name| format!("part {name}: "))
    }
}

impl RepeatedVerdict {
    fn of(pair: &Pair, then: &PairMetric, now: Option<&PairMetric>) -> Self {
        let earlier = RunVerdict::of(then);
        let again = now.map(RunVerdict::of);
        let outcome = again.as_ref().map_or(Outcome::NotComparable, |again| {
            outcome::of(&earlier, again, then.metric.least_difference)
        });
        Self {
            clients: pair.clients,
            server: pair.server.clone(),
            reference: pair.reference.clone(),
            metric: then.name,
            title: then.title,
            noun: then.metric.noun(),
            other_size: outcome == Outcome::Held
                && earlier.verdict.is_difference()
                && again.as_ref().is_some_and(|again| !earlier.overlaps(again)),
            earlier,
            again,
            outcome,
        }
    }

    /// "throughput of poll compared with epoll, 50 clients".
    fn about(&self) -> String {
        let (noun, clients) = (&self.noun, counted(self.clients, "client"));
        format!(
            "{noun} of {} compared with {}, {clients}",
            self.server, self.reference
        )
    }
}

/// All pairs of servers that are compared, with their verdicts.
fn pairs(report: &Report<'_>, leaders: &BTreeMap<u32, String>) -> Vec<Pair> {
    if let Some(comparison) = &report.comparison {
        return comparison.all_pairs().cloned().collect();
    }
    let source = Source {
        run: report.run,
        summary: &report.summary,
    };
    let mut pairs = against_reference(source, |clients| leaders.get(&clients).map(String::as_str));
    conclude(&mut pairs);
    if let (Level::Unusable, Some(cause)) = (report.grade.level, report.grade.cause()) {
        for pair in &mut pairs {
            pair.withhold(cause);
        }
    }
    pairs
}

fn is_same(a: &Pair, b: &Pair) -> bool {
    (a.clients, &a.server, &a.reference) == (b.clients, &b.server, &b.reference)
}

/// Differences in how the runs of each pair were made, as far as both record them, each once.
fn differences_of<'a>(both: impl Iterator<Item = (&'a Report<'a>, &'a Report<'a>)>) -> Vec<Fact> {
    let mut differences: Vec<Fact> = Vec::new();
    for fact in both.flat_map(|(then, now)| differing(then.run, now.run)) {
        if !differences.contains(&fact) {
            differences.push(fact);
        }
    }
    differences
}
