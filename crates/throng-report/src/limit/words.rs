//! A limit in words: how much, what gave way, and how certain that is.

use super::{Limits, ServerLimit, Try, amount};
use throng_record::format::{list, time};
use throng_record::{Find, Found, Purpose, SearchEnding, Tried};

/// What is said about one server.
pub(super) fn sentences(
    limit: &ServerLimit,
    find: Find,
    found: Option<&Found>,
    most_because: &str,
) -> Vec<String> {
    let name = &limit.server;
    let Some(found) = found else {
        return vec![format!("The search for the limit of {name} has not ended.")];
    };
    let mut sentences = vec![first(name, found, find, most_because)];
    sentences.extend(cause(found));
    sentences.extend(certainty(found, find));
    sentences.extend(at_load(limit));
    sentences
}

fn first(name: &str, found: &Found, find: Find, most_because: &str) -> String {
    let of = |tried: Option<Tried>| tried.map_or(0, |tried| tried.value);
    let (held, broke) = (of(found.held), of(found.broke));
    let gave_way = match found.gave_way.as_str() {
        "" => "it broke",
        gave_way => gave_way,
    };
    let so_far = || match (found.held, found.broke) {
        (Some(_), Some(_)) => format!(
            "it held {} and broke at {}",
            amount(held, find),
            amount(broke, find)
        ),
        (Some(_), None) => format!("it held {} and broke at nothing", amount(held, find)),
        (None, Some(_)) => format!("it broke at {} and held nothing", amount(broke, find)),
        (None, None) => "nothing is known".to_owned(),
    };
    match found.ending {
        SearchEnding::Found => format!(
            "{name} holds {}; with {}: {gave_way}.",
            amount(held, find),
            amount(broke, find)
        ),
        SearchEnding::Between => format!(
            "{name} holds {}, and at {} no more: {gave_way}. In between it went now one way, now the other.",
            amount(held, find),
            amount(broke, find)
        ),
        SearchEnding::AtLeast => {
            let because = found
                .stopped_at
                .as_ref()
                .map_or(most_because, |at| &at.because);
            format!(
                "{name} holds at least {}, where the search ended: {because}.",
                amount(held, find)
            )
        }
        SearchEnding::Nothing => {
            format!(
                "{name} does not even hold {}: {gave_way}.",
                amount(broke, find)
            )
        }
        SearchEnding::OutOfTries => {
            format!(
                "The tries for {name} (--tries) were used up before its limit was certain: {}.",
                so_far()
            )
        }
        SearchEnding::OutOfTime => {
            format!(
                "The time for {name} (--search-time) was up before its limit was certain: {}.",
                so_far()
            )
        }
        SearchEnding::Interrupted => {
            format!(
                "The search for the limit of {name} was interrupted: {}.",
                so_far()
            )
        }
        SearchEnding::Failed => {
            format!(
                "The limit of {name} could not be searched for: {}.",
                found.failure
            )
        }
    }
}

/// "What gave way first: .... Evidence: ...."
fn cause(found: &Found) -> Option<String> {
    let cause = found.cause.as_ref()?;
    let mut text = format!("What gave way first: {}.", cause.sentence);
    if !cause.evidence.is_empty() {
        text += &format!(" Evidence: {}.", cause.evidence.join("; "));
    }
    if !cause.also.is_empty() {
        text += &format!(" Seen beside it: {}.", cause.also.join("; "));
    }
    Some(text)
}

fn certainty(found: &Found, find: Find) -> Option<String> {
    let times = |tried: Tried, what: &str| {
        let value = amount(tried.value, find);
        match tried.times {
            1 => format!("{value} {what} in the only trial"),
            times => format!("{value} {what} in {times} of {times} trials"),
        }
    };
    let parts: Vec<String> = [
        found.held.map(|held| times(held, "held")),
        found.broke.map(|broke| times(broke, "broke")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("{}.", list(&parts)))
}

/// How the server does below its limit.
fn at_load(limit: &ServerLimit) -> Option<String> {
    let at = |one: &Try| Some((one.value, one.p99_us()?));
    let at_load = limit
        .tries
        .iter()
        .filter(|one| one.purpose == Purpose::Share);
    let mut parts: Vec<String> = at_load
        .filter_map(at)
        .zip(["half", "80 %"])
        .map(|((_, p99), share)| format!("{} at {share} of it", time(p99)))
        .collect();
    let held = limit.held?.value;
    let mut full = limit.tries.iter();
    let full = full.rfind(|one| one.held && one.value == held && one.purpose != Purpose::Share);
    if parts.is_empty() {
        return None;
    }
    parts.extend(
        full.and_then(at)
            .map(|(_, p99)| format!("{} at the limit", time(p99))),
    );
    Some(format!("99 of 100 requests take up to {}.", list(&parts)))
}

/// Several servers beside each other, the one that holds most first.
pub(super) fn beside(limits: &Limits) -> Option<String> {
    if limits.servers.len() < 2 {
        return None;
    }
    let mut servers: Vec<&ServerLimit> = limits.servers.iter().collect();
    servers.sort_by_key(|one| std::cmp::Reverse(one.held.map(|held| held.value)));
    let each: Vec<String> = servers
        .iter()
        .map(|one| format!("{} {}", one.server, one.text()))
        .collect();
    Some(format!(
        "{}, by server: {}.",
        match limits.find {
            Find::Clients => "Most clients",
            Find::Rate => "Most requests a second",
        },
        list(&each)
    ))
}
