//! The mechanism of a claim. No cause is named without an ablation or a counter that shows it.

use serde::Serialize;

use super::family::Family;
use super::judge::Judge;
use super::words::of_checks;
use super::{ClaimVerdict, JudgedCheck};
use crate::study::PartReport;
use throng_record::claim::{Baseline, Claim, Expectation, Mechanism, Relation};
use throng_record::format::{self, counted, list};
use throng_record::metrics::{Metric, find};
use throng_record::{Cause, Purpose};

/// The cause that a claim names, and related measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedMechanism {
    /// The cause, in words; `None` if only values are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ClaimVerdict>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sentence: String,
    /// Measured values, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<JudgedCheck>,
}

impl JudgedMechanism {
    /// The whole mechanism as one line.
    pub fn line(&self) -> String {
        let cause = match (&self.text, self.verdict) {
            (Some(text), Some(ClaimVerdict::Confirmed)) => {
                vec![format!("{text} {}", self.sentence)]
            }
            (Some(text), Some(verdict)) => {
                let standing = match verdict {
                    ClaimVerdict::Refuted => "Ruled out",
                    ClaimVerdict::Equivalent => "Too small to matter",
                    ClaimVerdict::NotTestable => "Not testable here",
                    _ => "Not shown",
                };
                vec![format!("{standing}: {text} {}", self.sentence)]
            }
            _ => Vec::new(),
        };
        let seen = self.seen.iter().map(|line| format::sentence(line));
        cause.into_iter().chain(seen).collect::<Vec<_>>().join(" ")
    }
}

/// The mechanism of a claim: the cause that its author names, and for limits the cause that was found.
pub(super) fn of(
    judge: &Judge<'_>,
    claim: &Claim,
    checks: &[JudgedCheck],
    family: &Family,
    place: usize,
) -> Option<JudgedMechanism> {
    let verdict = family.verdict(place);
    let named = claim.mechanism.as_ref();
    let mut seen = causes(judge, claim);
    seen.extend(named.map_or_else(Vec::new, |named| values(judge, claim, named)));
    let text = named.and_then(|named| named.text.clone());
    if text.is_none() && seen.is_empty() {
        return None;
    }
    // The claim itself already lists what could not be compared.
    let compared: Vec<JudgedCheck> = checks
        .iter()
        .filter(|check| !check.evidence.is_empty())
        .map(|check| JudgedCheck {
            missing: Vec::new(),
            ..check.clone()
        })
        .collect();
    let shown = if compared.is_empty() {
        checks
    } else {
        &compared
    };
    Some(JudgedMechanism {
        verdict: text.as_ref().map(|_| verdict),
        sentence: if text.is_some() {
            of_checks(verdict, shown) + &family.not_after_correction(place, checks)
        } else {
            String::new()
        },
        text,
        seen,
        checks: checks.to_vec(),
    })
}

/// The cause of the limit of each server that a claim is about.
fn causes(judge: &Judge<'_>, claim: &Claim) -> Vec<String> {
    let is_of_search = |expect: &&Expectation| find(&expect.metric).is_ok_and(Metric::is_of_search);
    let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
    let about = claim.expect.iter().filter(is_of_search);
    // If the claim is about the cause, the cause has already been named.
    for expect in about.filter(|expect| expect.relation != Relation::EndedBy) {
        for part in judge.parts_of(expect) {
            let limit = part
                .report
                .as_ref()
                .and_then(|report| report.run.limit.as_ref());
            for found in limit.map_or(&[][..], |limit| &limit.found) {
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
    }
    let lines = causes.iter();
    lines
        .map(|(cause, servers)| format!("limit of {}: {cause}", list(servers)))
        .collect()
}

/// The values shown with a claim: those of its servers at the largest number of clients that it covers, in the last
/// part that has them.
fn values(judge: &Judge<'_>, claim: &Claim, named: &Mechanism) -> Vec<String> {
    let Some(expect) = claim.expect.first() else {
        return Vec::new();
    };
    let parts = judge.parts_of(expect);
    let metrics = named.metrics.iter().filter_map(|name| find(name).ok());
    let lines = metrics.filter_map(|metric| {
        let name = match metric.purpose {
            Purpose::Profiled => format!("{} (profiled)", metric.noun()),
            _ => metric.noun(),
        };
        let mut absent = None;
        for part in parts.iter().rev() {
            match values_in(part, expect, metric) {
                Some(Ok(values)) if parts.len() > 1 => {
                    return Some(format!("{name} in part {} {values}", part.record.name));
                }
                Some(Ok(values)) => return Some(format!("{name} {values}")),
                Some(Err(why)) => absent = absent.or(Some(why)),
                None => {}
            }
        }
        absent.map(|why| match why.strip_prefix("not ") {
            Some(_) => format!("{name}: {why}"),
            None => format!("{name}: not measured ({why})"),
        })
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
    let mut clients = run.settings.clients.iter().rev();
    let clients = *clients.find(|clients| expect.is_about(**clients))?;
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
    let known: Vec<String> = known.into_iter().flatten().collect();
    if known.is_empty() {
        return absent.into_iter().next();
    }
    let with = counted(clients, "client");
    Some(Ok(format!("with {with}: {}", list(&known))))
}
