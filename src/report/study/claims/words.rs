//! What a check has come to, in words.

use super::weigh::{Term, Weighed};
use super::{Evidence, Finding};
use crate::report::format::{counted, list, number};

/// Two values in a sentence; of two numbers of clients the first is the first value's.
pub(super) fn beside(
    a: &Term,
    b: &Term,
    clients: &[u32],
    weighed: Weighed,
    said: &str,
) -> Evidence {
    let same = match clients {
        [0] | [] => String::new(),
        [one] => format!("with {} ", counted(*one, "client")),
        _ => String::new(),
    };
    let with = |place: usize| match clients {
        [_, _] if clients[place] > 0 => format!(" with {}", counted(clients[place], "client")),
        _ => String::new(),
    };
    let (a_text, b_text) = (&a.text, &b.text);
    let sentence = match weighed.ratio {
        Some(ratio) => format!(
            "{same}the {}{} is {} ({}–{}) times the {}{} ({a_text} and {b_text})",
            a.name,
            with(0),
            times(ratio.estimate),
            times(ratio.low),
            times(ratio.high),
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
    let apart = match (weighed.finding, said) {
        (Finding::NotDistinguishable, "") => {
            if weighed.floor > 0.0 {
                format!(
                    ", and differences below {} are not told from noise there",
                    percent(weighed.floor)
                )
            } else {
                ", and the interval does not tell which is more".to_owned()
            }
        }
        (Finding::NotDistinguishable, _) => {
            format!(", which may be within {} or not", percent(weighed.floor))
        }
        (Finding::Confirmed, " alike") => format!(", which is within {}", percent(weighed.floor)),
        (Finding::Refuted, " alike") => {
            format!(", which is apart by more than {}", percent(weighed.floor))
        }
        _ => String::new(),
    };
    Evidence {
        verdict: weighed.finding,
        sentence: sentence_of(&format!("{sentence}{apart}")),
        ratio: weighed.ratio,
        floor: weighed.floor,
    }
}

/// A value and a number that was written, in a sentence.
pub(super) fn beside_number(term: &Term, limit: &Term, clients: u32, weighed: Weighed) -> Evidence {
    let with = if clients == 0 {
        String::new()
    } else {
        format!("with {} ", counted(clients, "client"))
    };
    let interval = term.sample.as_ref().and_then(|sample| sample.interval);
    let interval = interval.map_or_else(String::new, |(low, high)| {
        format!(" ({}–{})", number(low), number(high))
    });
    let sentence = format!(
        "{with}the {} is {}{interval}, beside {}",
        term.name, term.text, limit.text
    );
    Evidence {
        verdict: weighed.finding,
        sentence: sentence_of(&sentence),
        ratio: weighed.ratio,
        floor: weighed.floor,
    }
}

/// Why a check has come to this, in a sentence or two.
pub(super) fn sentence(verdict: Finding, evidence: &[Evidence], missing: &[String]) -> String {
    let deciding: Vec<&Evidence> = evidence
        .iter()
        .filter(|one| one.verdict == verdict)
        .collect();
    let Some(last) = deciding.last() else {
        return match missing {
            [] => "Nothing was measured that it is about.".to_owned(),
            reasons => sentence_of(&list(&reasons[..reasons.len().min(3)])),
        };
    };
    let mut text = last.sentence.clone();
    let (agree, all) = (deciding.len(), evidence.len());
    if all > 1 {
        text += &format!(" So it is in {agree} of {all} comparisons.");
    }
    if let Some(first) = missing.first() {
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        text += &format!(" Not looked at: {first}{more}.");
    }
    text
}

/// A heading within a sentence; abbreviations keep their letters.
pub(super) fn lowered(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

fn sentence_of(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
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
