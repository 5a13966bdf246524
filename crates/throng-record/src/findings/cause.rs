//! Why a server did not serve all clients, or not as required, derived from all probes in the failed trials.
//!
//! Each sign is an entry of the table of findings. Direct signs weigh most: the server reports rejections with a reason, or the kernel
//! killed it. Limits that were reached come before resources that were full. The strongest sign is the cause; the
//! others are reported with it.

pub mod direct;
mod failed_trial;
pub mod indirect;

use super::{Circumstances, FINDINGS, FindingKind, Kind, Rule, Severity};
use crate::{Cause, Trial};
pub(crate) use failed_trial::FailedTrial;

/// A sign of the resource that failed.
pub(crate) struct Sign {
    weight: Weight,
    sentence: String,
    evidence: Vec<String>,
}

/// The directness of a sign, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Nothing was full, so the bottleneck is something else.
    Exclusion,
    /// A resource was full.
    Full,
    /// Clients had to wait.
    Queue,
    /// A limit by design.
    Design,
    /// The server ended.
    Crash,
    /// A limit was reached.
    Reached,
    /// The kernel, the server or the client reports it.
    Direct,
}

/// Nothing that was measured shows a cause.
pub static UNKNOWN: FindingKind = FindingKind::new(
    "unknown",
    Severity::Note,
    "Nothing that was measured shows why the server failed.",
    "--server-log adds the server's log",
    Rule::Met,
)
.of_server();

/// The checks to report if nothing was found.
const CHECKED: &str = "the server's output and rejected clients; descriptors, threads and memory of the server, its \
                       control group and the machine; the accept queue; source ports; the CPU of both sides";

/// The cause that the failed trials point to. `passed` are the trials of the value that passed.
pub fn of(passed: &[&Trial], failed: &[&Trial], circumstances: &Circumstances<'_>) -> Cause {
    strongest(signs(passed, failed, circumstances)).unwrap_or_else(|| Cause {
        kind: UNKNOWN.kind(),
        sentence: "the cause is unknown".to_owned(),
        evidence: vec![format!(
            "checked: {CHECKED}; --server-log adds the server's log"
        )],
        also: Vec::new(),
    })
}

/// Why clients were not served in these trials, if a sign shows it. A full CPU is no reason: it only makes clients
/// wait.
pub fn of_unserved(trials: &[&Trial], circumstances: &Circumstances<'_>) -> Option<Cause> {
    let mut failed: Vec<&Trial> = trials
        .iter()
        .copied()
        .filter(|trial| left_out_clients(trial))
        .collect();
    failed.sort_by_key(|trial| trial.load.as_ref().map_or(0, |load| load.served));
    let mut signs = signs(&[], &failed, circumstances);
    signs.retain(|(_, sign)| sign.weight > Weight::Full);
    strongest(signs)
}

/// Whether clients of a trial were not served, or did not finish their jobs.
fn left_out_clients(trial: &Trial) -> bool {
    trial.load.as_ref().is_some_and(|load| {
        let jobs = load.completion.as_ref();
        load.served < load.clients || jobs.is_some_and(|jobs| jobs.unfinished > 0)
    })
}

/// The signs in the failed trials, the strongest first.
fn signs(
    passed: &[&Trial],
    failed: &[&Trial],
    circumstances: &Circumstances<'_>,
) -> Vec<(Kind, Sign)> {
    let mut signs: Vec<(Kind, Sign)> = Vec::new();
    for trial in failed {
        let seen = FailedTrial {
            trial,
            passed: passed.last().copied(),
            circumstances,
        };
        for kind in FINDINGS {
            // If several trials have the same sign, the first one counts.
            if let Rule::Cause(rule) = kind.rule
                && !signs.iter().any(|(known, _)| *known == kind.kind())
            {
                signs.extend(rule(&seen).map(|sign| (kind.kind(), sign)));
            }
        }
    }
    signs.sort_by_key(|(_, sign)| std::cmp::Reverse(sign.weight));
    signs
}

/// The first sign as the cause, with the others that matter.
fn strongest(signs: Vec<(Kind, Sign)>) -> Option<Cause> {
    let mut all = signs.into_iter();
    let (kind, first) = all.next()?;
    // A crash is already evidence of its cause, and full resources are common.
    let matters =
        |(other, sign): &(Kind, Sign)| sign.weight > Weight::Full && *other != direct::CRASH.kind();
    Some(Cause {
        kind,
        sentence: first.sentence,
        evidence: first.evidence,
        also: all.filter(matters).map(|(_, sign)| sign.sentence).collect(),
    })
}

#[cfg(test)]
mod tests;
