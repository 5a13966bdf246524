//! The cause of a claim. No cause is named without an ablation or a counter that shows it.

use serde::Serialize;

use super::{ClaimCell, ClaimVerdict, words};
use crate::study::PartReport;
use throng_record::claim::{Baseline, Claim, Expectation, Mechanism, Relation};
use throng_record::format::{self, counted, list};
use throng_record::metrics::{Metric, find};
use throng_record::{Cause, Purpose};

/// The cause that a claim names, and related measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedCause {
    /// In words; `None` if only values are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ClaimVerdict>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sentence: String,
    /// Measured values, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<ClaimCell>,
}

impl JudgedCause {
    /// The cause, with how far it is shown; `None` if none is named.
    pub fn stated(&self) -> Option<String> {
        self.text.as_ref().zip(self.verdict).map(|(text, verdict)| {
            let standing = match verdict {
                ClaimVerdict::Yes => return text.clone(),
                ClaimVerdict::No => "ruled out",
                ClaimVerdict::Tie => "too small to matter",
                ClaimVerdict::Partly => "shown in part",
                ClaimVerdict::Noisy => "not shown",
                ClaimVerdict::NotMeasured => "not measurable here",
            };
            format!("{} ({standing}).", text.trim_end_matches('.'))
        })
    }

    /// All of it as one line.
    pub fn line(&self) -> String {
        let stated = self
            .stated()
            .map(|stated| format!("{stated} {}", self.sentence));
        let seen = self.seen.iter().map(|line| format::sentence(line));
        stated.into_iter().chain(seen).collect::<Vec<_>>().join(" ")
    }
}

/// The cause of a claim: the one that its author names, judged by `cells`, and for limits the one that was found.
pub(super) fn of(
    parts: &[PartReport<'_>],
    claim: &Claim,
    cells: Vec<ClaimCell>,
) -> Option<JudgedCause> {
    let named = claim.mechanism.as_ref();
    let mut seen = limits(parts, claim);
    seen.extend(named.map_or_else(Vec::new, |named| values(parts, claim, named)));
    let text = named.and_then(|named| named.text.clone());
    (text.is_some() || !seen.is_empty()).then(|| JudgedCause {
        verdict: text.as_ref().map(|_| words::verdict(&cells)),
        sentence: text
            .as_ref()
            .map_or_else(String::new, |_| words::sentence(&cells)),
        text,
        seen,
        cells,
    })
}

/// The parts that an expectation is about.
fn parts_of<'a>(parts: &'a [PartReport<'a>], expect: &Expectation) -> Vec<&'a PartReport<'a>> {
    let names = &expect.parts;
    let all = parts.iter().enumerate();
    let meant = all.filter(|(index, part)| match names.as_slice() {
        [] => *index == 0,
        names => names.contains(&part.record.name),
    });
    meant.map(|(_, part)| part).collect()
}

/// The cause of the limit of each server that a claim is about.
fn limits(parts: &[PartReport<'_>], claim: &Claim) -> Vec<String> {
    let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
    for expect in &claim.expect {
        // If the claim is about the cause, the cause has already been named.
        let is_of_search = find(&expect.metric).is_ok_and(Metric::is_of_search);
        if !is_of_search || expect.relation == Relation::EndedBy {
            continue;
        }
        let reports = parts_of(parts, expect)
            .into_iter()
            .filter_map(|part| part.report.as_ref());
        let limits = reports.filter_map(|report| report.run.limit.as_ref());
        for found in limits.flat_map(|limit| &limit.found) {
            let Some(Cause { sentence, .. }) = &found.cause else {
                continue;
            };
            match causes.iter_mut().find(|(cause, _)| cause == sentence) {
                Some((_, servers)) if servers.contains(&found.server.as_str()) => {}
                Some((_, servers)) => servers.push(&found.server),
                None => causes.push((sentence, vec![&found.server])),
            }
        }
    }
    let lines = causes.iter();
    lines
        .map(|(cause, servers)| format!("limit of {}: {cause}", list(servers)))
        .collect()
}

/// The values shown with a claim: those of its servers at the largest number of clients that it covers, in the last
/// part that has them.
fn values(parts: &[PartReport<'_>], claim: &Claim, named: &Mechanism) -> Vec<String> {
    let Some(expect) = claim.expect.first() else {
        return Vec::new();
    };
    let meant = parts_of(parts, expect);
    let metrics = named.metrics.iter().filter_map(|name| find(name).ok());
    let lines = metrics.filter_map(|metric| {
        let name = match metric.purpose {
            Purpose::Profiled => format!("{} (profiled)", metric.noun()),
            _ => metric.noun(),
        };
        let mut absent = None;
        for part in meant.iter().rev() {
            match values_in(part, expect, metric) {
                Some(Ok(values)) if meant.len() > 1 => {
                    return Some(format!("{name} in part {} {values}", part.record.name));
                }
                Some(Ok(values)) => return Some(format!("{name} {values}")),
                Some(Err(why)) => absent = absent.or(Some(why)),
                None => {}
            }
        }
        absent.map(|why| format!("{name}: {why}"))
    });
    lines.collect()
}

/// The values of a metric in a part, or why there are none; `None` if the part has no results for the claim.
fn values_in(
    part: &PartReport<'_>,
    expect: &Expectation,
    metric: &'static Metric,
) -> Option<Result<String, String>> {
    let run = part.report.as_ref()?.run;
    let mut numbers = run.settings.clients.iter().rev();
    let clients = *numbers.find(|clients| expect.is_about(**clients))?;
    let mut servers: Vec<&str> = expect.servers.iter().map(String::as_str).collect();
    if let Some(Baseline::Value(other)) = &expect.baseline {
        servers.extend(other.server.as_deref());
    }
    if servers.is_empty() || expect.relation.is_extreme() {
        servers = run
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
    }
    let values = servers.iter().map(|server| {
        let sample = part.sample(metric, server, clients)?;
        Ok(format!("{server} {}", metric.text(sample.value)))
    });
    let (known, absent): (Vec<_>, Vec<Result<String, String>>) = values.partition(Result::is_ok);
    let listed: Vec<String> = known.into_iter().flatten().collect();
    if listed.is_empty() {
        return absent.into_iter().next();
    }
    let with = counted(clients, "client");
    Some(Ok(format!("with {with}: {}", list(&listed))))
}
