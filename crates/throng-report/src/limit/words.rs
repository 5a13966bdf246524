//! A limit in words: its value, cause and certainty.

use super::{Limits, ServerLimit, amount};
use throng_record::findings::cause::UNKNOWN;
use throng_record::format::{list, lowered, sentence};
use throng_record::{Cause, Find, LimitResult, SearchEnding, TriedValue};

/// The sentences about one server.
pub(super) fn sentences(
    name: &str,
    find: Find,
    found: Option<&LimitResult>,
    max_reason: &str,
) -> Vec<String> {
    let Some(found) = found else {
        return vec![format!("The search for the limit of {name} has not ended.")];
    };
    let mut sentences = vec![first(name, found, find, max_reason)];
    sentences.extend(failure(found, find));
    sentences
}

fn first(name: &str, found: &LimitResult, find: Find, max_reason: &str) -> String {
    let of = |tried: Option<TriedValue>| tried.map_or(0, |tried| tried.value);
    let (passed, failed) = (of(found.passed), of(found.failed));
    let reason = match found.reason.as_str() {
        "" => "it failed",
        reason => reason,
    };
    let cause = known_cause(found).map_or(reason, |cause| &cause.sentence);
    let so_far = |why: &str| {
        let so_far = match (found.passed, found.failed) {
            (Some(_), Some(_)) => format!(
                "{name} handles at least {} and fails with {}",
                amount(passed, find),
                amount(failed, find)
            ),
            (Some(_), None) => format!("{name} handles at least {}", amount(passed, find)),
            (None, Some(_)) => format!("{name} fails with {}", amount(failed, find)),
            (None, None) => format!("Nothing is known of the limit of {name}"),
        };
        format!("{so_far}: the search {why} before its limit was certain.")
    };
    match found.ending {
        SearchEnding::Found if known_cause(found).is_some() => {
            format!("{name} handles {}: {cause}.", amount(passed, find))
        }
        SearchEnding::Found => format!(
            "{name} handles {}; with {}: {reason}.",
            amount(passed, find),
            amount(failed, find)
        ),
        SearchEnding::Between => format!(
            "{name} handles {} and fails with {}: {cause}. Results in between vary.",
            amount(passed, find),
            amount(failed, find)
        ),
        SearchEnding::AtLeast => {
            let because = found
                .stopped_at
                .as_ref()
                .map_or(max_reason, |at| &at.reason);
            format!(
                "{name} handles at least {}, where the search ended: {because}.",
                amount(passed, find)
            )
        }
        SearchEnding::Nothing => {
            format!("{name} fails even with {}: {cause}.", amount(failed, find))
        }
        SearchEnding::OutOfTries => so_far("ran out of tries (--tries)"),
        SearchEnding::OutOfTime => so_far("ran out of time (--search-time)"),
        SearchEnding::Interrupted => so_far("was interrupted"),
        SearchEnding::Failed => {
            format!("The search for {name} failed: {}.", found.failure)
        }
    }
}

/// The cause, if any is known.
fn known_cause(found: &LimitResult) -> Option<&Cause> {
    let cause = found.cause.as_ref();
    cause.filter(|cause| cause.kind != UNKNOWN.kind())
}

/// "With 288 clients: 1 of 288 clients failed. Evidence: ... Also observed: ..."
fn failure(found: &LimitResult, find: Find) -> Option<String> {
    let cause = found.cause.as_ref()?;
    let failed = match (known_cause(found), found.failed) {
        (None, _) => Some(sentence(&cause.sentence)),
        (Some(_), Some(failed)) if !found.reason.is_empty() => Some(format!(
            "With {}: {}.",
            amount(failed.value, find),
            found.reason
        )),
        _ => None,
    };
    let observed = |label: &str, all: &[String]| {
        (!all.is_empty()).then(|| format!("{label}: {}.", all.join("; ")))
    };
    let parts: Vec<String> = [
        failed,
        observed("Evidence", &cause.evidence),
        observed("Also observed", &cause.also),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// "1,013 clients passed in 4 of 4 trials and 1,014 clients failed in the only trial."
pub(super) fn certainty(limit: &ServerLimit, find: Find) -> Option<String> {
    let times = |tried: TriedValue, what: &str| {
        let value = amount(tried.value, find);
        match tried.times {
            1 => format!("{value} {what} in the only trial"),
            times => format!("{value} {what} in {times} of {times} trials"),
        }
    };
    let parts: Vec<String> = [
        limit.passed.map(|passed| times(passed, "passed")),
        limit.failed.map(|failed| times(failed, "failed")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("{}.", list(&parts)))
}

/// "Most clients: poll 19,987 and epoll 19,986 (the server ran out of file descriptors); thread 16,126." The highest first.
pub(super) fn overview(limits: &Limits) -> Option<String> {
    if limits.servers.len() < 2 {
        return None;
    }
    // Servers with the same cause come together.
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for one in limits.best_first() {
        let found = one.cause.as_ref().map(|cause| cause.kind);
        let kind = found.filter(|kind| *kind != UNKNOWN.kind());
        let cause = kind.map_or_else(String::new, |kind| {
            lowered(kind.meaning.trim_end_matches('.'))
        });
        let words = format!("{} {}", one.server, one.text());
        match groups.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, together)) => together.push(words),
            None => groups.push((cause, vec![words])),
        }
    }
    let each: Vec<String> = groups
        .iter()
        .map(|(cause, together)| match cause.as_str() {
            "" => list(together),
            cause => format!("{} ({cause})", list(together)),
        })
        .collect();
    Some(format!(
        "{}: {}.",
        match limits.find {
            Find::Clients => "Most clients",
            Find::Rate => "Most requests per second",
            Find::Sessions => "Most sessions per second",
        },
        each.join("; ")
    ))
}
