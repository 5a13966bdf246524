//! Expectations and evidence in words.

use super::weigh::{FEWEST_FOR_INTERVALS, Need, Term, Weighed};
use super::{Evidence, Finding, JudgedCheck};
use throng_record::claim::{Baseline, Bounds, Clients, Expectation, Reference, Relation};
use throng_record::format::{counted, list, number, whole};
use throng_record::metrics::{Quantity, find};
use throng_record::{Cause, Tried};

/// An expectation, of a part if one is named.
pub(super) fn expected(expect: &Expectation, part: Option<&str>) -> String {
    let metric =
        find(&expect.metric).map_or_else(|_| expect.metric.clone(), |metric| lowered(metric.label));
    let servers = match expect.servers.as_slice() {
        [] => "every server".to_owned(),
        servers => list(servers),
    };
    let relation = match expect.relation {
        Relation::Less => "is less than",
        Relation::AtMost => "is at most",
        Relation::Greater => "is greater than",
        Relation::AtLeast => "is at least",
        Relation::Alike if expect.baseline.is_none() => "is equal",
        Relation::Alike => "equals",
        Relation::Grows => "grows with the number of clients",
        Relation::Falls => "falls with the number of clients",
        Relation::Flat => "does not change with the number of clients",
        Relation::Highest => "is the highest",
        Relation::Lowest => "is the lowest",
        Relation::EndedBy => "is caused by",
    };
    let mut words = format!("{metric} of {servers} {relation}");
    match &expect.baseline {
        Some(Baseline::Value(other)) => words += &other_value(other),
        Some(number) => words += &format!(" {}", number.number().unwrap_or_default()),
        None => {}
    }
    if expect.relation == Relation::EndedBy {
        words += &format!(" {}", either(&expect.causes));
    } else if matches!(expect.relation, Relation::Alike | Relation::Flat) {
        words += &format!(" within {} %", expect.margin());
    } else if expect.has_margin() && matches!(expect.relation, Relation::AtMost | Relation::AtLeast)
    {
        words += &format!(", give or take {} %", expect.margin());
    } else if let Some(margin) = expect.margin.filter(|_| expect.has_margin()) {
        words += &format!(" by more than {margin} %");
    }
    words += &expect
        .clients
        .as_ref()
        .map_or_else(String::new, with_clients);
    match part {
        Some(part) => format!("{part}: {words}"),
        None => words,
    }
}

fn other_value(other: &Reference) -> String {
    let mut words = other
        .factor
        .map_or_else(String::new, |factor| format!(" {factor} times"));
    words += " that";
    if let Some(server) = &other.server {
        words += &format!(" of {server}");
    }
    if let Some(part) = &other.part {
        words += &format!(" in {part}");
    }
    if let Some(clients) = other.clients {
        words += &format!(" with {}", counted(clients, "client"));
    }
    words
}

fn with_clients(clients: &Clients) -> String {
    let whole = |clients: &u32| whole(f64::from(*clients));
    match clients {
        Clients::Numbers(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(whole).collect();
            format!(" with {} clients", list(&numbers))
        }
        Clients::Bounds(Bounds { min, max }) => match (min, max) {
            (Some(min), Some(max)) => format!(" with {} to {} clients", whole(min), whole(max)),
            (Some(min), None) => format!(" with at least {} clients", whole(min)),
            (None, Some(max)) => format!(" with up to {} clients", whole(max)),
            (None, None) => String::new(),
        },
    }
}

/// Two values in a sentence; if there are two numbers of clients, the first belongs to the first value.
pub(super) fn compared(
    a: &Term,
    b: &Term,
    clients: &[u32],
    relation: Relation,
    weighed: Weighed,
    repeats: &str,
) -> Evidence {
    let same = match clients {
        [0] | [] => String::new(),
        [one] => format!("with {}, ", counted(*one, "client")),
        _ => String::new(),
    };
    let with = |place: usize| match clients {
        [_, _] if clients[place] > 0 => format!(" with {}", counted(clients[place], "client")),
        _ => String::new(),
    };
    let (a_text, b_text) = (&a.text, &b.text);
    let sentence = match weighed.ratio {
        Some(ratio) => format!(
            "{same}the {}{} is {}{} times the {}{} ({a_text} vs {b_text})",
            a.name,
            with(0),
            times(ratio.value),
            ends(ratio),
            b.name,
            with(1),
        ),
        None => format!(
            "{same}the {}{} is {a_text} and the {}{} is {b_text}",
            a.name,
            with(0),
            b.name,
            with(1)
        ),
    };
    let margin = percent(weighed.margin);
    let finding = weighed.finding();
    let apart = match (finding, relation) {
        (Finding::Confirmed, Relation::Alike) => format!(", equal within {margin}"),
        (Finding::Refuted, Relation::Alike) => format!(", a difference of more than {margin}"),
        (Finding::Equivalent, _) => format!(", a difference of less than {margin}"),
        (Finding::Inconclusive, Relation::Alike) => {
            format!(", which may or may not be within {margin}")
        }
        (Finding::Inconclusive, _) => ", a difference that is not significant".to_owned(),
        (Finding::Censored, _) => {
            let why = a.censored.iter().map(|why| (&a.name, why));
            let why = why.chain(b.censored.iter().map(|why| (&b.name, why)));
            let why: Vec<String> = why
                .map(|(name, why)| format!("the {name} may be higher, because {why}"))
                .collect();
            format!("; {}", list(&why))
        }
        _ => String::new(),
    };
    Evidence {
        verdict: finding,
        sentence: sentence_of(&format!("{sentence}{apart}"))
            + &taking(finding, weighed.need, repeats),
        ratio: weighed.ratio,
        margin: weighed.margin,
        p: [weighed.shown, weighed.contrary, weighed.within],
    }
}

/// A value and a number that was written, in a sentence.
pub(super) fn compared_with_number(
    term: &Term,
    limit: &Term,
    clients: u32,
    weighed: Weighed,
    repeats: &str,
) -> Evidence {
    let with = if clients == 0 {
        String::new()
    } else {
        format!("with {}, ", counted(clients, "client"))
    };
    let interval = term.sample.as_ref().and_then(|sample| sample.interval);
    let interval = interval.map_or_else(String::new, |(low, high)| {
        format!(" ({}–{})", number(low), number(high))
    });
    let finding = weighed.finding();
    let more = term
        .censored
        .as_ref()
        .filter(|_| finding == Finding::Censored);
    let more = more.map_or_else(String::new, |why| {
        format!(" and may be higher, because {why}")
    });
    let sentence = format!(
        "{with}the {} is {}{interval}, compared with {}{more}",
        term.name, term.text, limit.text
    );
    Evidence {
        verdict: finding,
        sentence: sentence_of(&sentence) + &taking(finding, weighed.need, repeats),
        ratio: weighed.ratio,
        margin: weighed.margin,
        p: [weighed.shown, weighed.contrary, weighed.within],
    }
}

/// The cause of a limit, and whether it was expected.
pub(super) fn ended(server: &str, held: Option<Tried>, cause: &Cause, is_so: bool) -> Evidence {
    let weighed = Weighed::certainly(is_so);
    let held = held.map_or(0, |held| held.value);
    let sentence = format!(
        "{server} handled {} and no more, because {} ({}: {})",
        whole(held as f64),
        cause.sentence,
        cause.kind,
        cause.evidence.join("; ")
    );
    Evidence {
        verdict: weighed.finding(),
        sentence: sentence_of(&sentence),
        ratio: None,
        margin: 0.0,
        p: [weighed.shown, weighed.contrary, weighed.within],
    }
}

/// What a decision would need, if there is none.
fn taking(finding: Finding, need: Need, repeats: &str) -> String {
    if finding != Finding::Inconclusive {
        return String::new();
    }
    let had = |had: usize| counted(had as u32, "trial");
    match need {
        Need::None => String::new(),
        Need::More { had: few } if few < FEWEST_FOR_INTERVALS => format!(
            " Each needs at least {FEWEST_FOR_INTERVALS} trials and had {few} ({repeats} {FEWEST_FOR_INTERVALS})."
        ),
        Need::More { had: few } => format!(" {} are not enough ({repeats}).", had(few)),
        Need::About { had: few, rounds } => {
            format!(" Each needs about {rounds} trials instead of {few} ({repeats} {rounds}).")
        }
        Need::TooMany { had: few } => format!(
            " The {} vary so much that more than 1,000 are needed.",
            had(few)
        ),
    }
}

fn either(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
        [] => String::new(),
    }
}

/// A p-value: "0.003", "below 0.0001".
pub(crate) fn p_value(p: f64) -> String {
    match p {
        ..0.0001 => "below 0.0001".to_owned(),
        ..0.01 => format!("{p:.4}"),
        p => format!("{p:.2}"),
    }
}

/// Why several checks have come to this: that of the one that decided.
pub(super) fn of_checks(verdict: Finding, checks: &[JudgedCheck]) -> String {
    let deciding = checks.iter().find(|check| check.verdict == verdict);
    let Some(deciding) = deciding.or(checks.first()) else {
        return String::new();
    };
    let mut sentence = deciding.sentence.clone();
    let agreeing = checks
        .iter()
        .filter(|check| check.verdict == verdict)
        .count();
    if verdict == Finding::Confirmed && agreeing > 1 {
        sentence += &format!(" All {agreeing} checks are confirmed.");
    }
    sentence
}

/// Why a check has come to this, in a sentence or two.
pub(super) fn sentence(verdict: Finding, evidence: &[Evidence], missing: &[String]) -> String {
    let deciding: Vec<&Evidence> = evidence
        .iter()
        .filter(|one| one.verdict == verdict)
        .collect();
    let Some(last) = deciding.last() else {
        return match missing {
            [] => "Nothing was measured for this claim.".to_owned(),
            reasons => sentence_of(&list(&reasons[..reasons.len().min(3)])),
        };
    };
    let mut text = last.sentence.clone();
    let (agree, all) = (deciding.len(), evidence.len());
    if all > 1 {
        text += &format!(" This holds in {agree} of {all} comparisons.");
    }
    if let Some(first) = missing.first() {
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        text += &format!(" Not checked: {first}{more}.");
    }
    text
}

/// A heading within a sentence; abbreviations keep their letters.
pub(in crate::study) fn lowered(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

pub(super) fn sentence_of(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// " (1.47–1.58)", or the range of too few trials.
fn ends(ratio: Quantity) -> String {
    let range = if ratio.is_range { "range " } else { "" };
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!(" ({range}{}–{})", times(low), times(high)),
        _ => String::new(),
    }
}

fn times(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.2}")
    } else {
        number(ratio)
    }
}

fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}
