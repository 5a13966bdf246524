//! The outcome of each verdict, in sentences.

use super::{Outcome, Reproduction, RunVerdict};
use crate::comparison::size::Size;
use throng_record::format::{counted, list};

/// The result in one sentence.
pub(super) fn headline(reproduction: &Reproduction) -> String {
    let count = |which: Outcome| {
        let outcomes = reproduction.outcomes();
        outcomes.filter(|outcome| *outcome == which).count()
    };
    let counts = [
        (Outcome::Held, "reproduced"),
        (Outcome::NotHeld, "not reproduced"),
        (Outcome::NowInconclusive, "now inconclusive"),
    ];
    let counts = counts.map(|(outcome, words)| (count(outcome), words));
    let said: usize = counts.iter().map(|(count, _)| count).sum();
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    let mut text = if said == 0 {
        "No verdict to check".to_owned()
    } else {
        format!("Of {}: {}", counted(said as u32, "verdict"), list(&counts))
    };
    let rest = [
        (Outcome::NotComparable, "not comparable"),
        (Outcome::NoVerdict, "without an original verdict"),
    ];
    for (outcome, words) in rest {
        let count = count(outcome);
        if count > 0 {
            text += &format!("; {count} more {words}");
        }
    }
    text + "."
}

/// Each verdict that did not hold.
pub(super) fn not_held(reproduction: &Reproduction) -> Vec<String> {
    let mut sentences = Vec::new();
    for part in &reproduction.parts {
        let prefix = part.prefix();
        let failed = part.verdicts.iter();
        let failed = failed.filter(|repeated| repeated.outcome == Outcome::NotHeld);
        sentences.extend(failed.map(|repeated| {
            let again = repeated.again.as_ref().map_or_else(String::new, sized);
            let (about, earlier) = (repeated.about(), sized(&repeated.earlier));
            format!("{prefix}{about}: was {earlier}, now {again}")
        }));
        let failed = part.limits.iter();
        let failed = failed.filter(|limit| limit.outcome == Outcome::NotHeld);
        sentences.extend(failed.map(|limit| {
            let limits = &limit.limits;
            let (server, a, b) = (&limits.server, &limits.a, &limits.b);
            format!(
                "{prefix}limit of {server}: was {a}, now {b} {}",
                limits.unit
            )
        }));
    }
    let failed = reproduction.claims.iter();
    let failed = failed.filter(|claim| claim.outcome == Outcome::NotHeld);
    sentences.extend(failed.map(|claim| {
        let (then, now) = (claim.earlier.text(), claim.again.text());
        format!("claim \"{}\": was {then}, now {now}", claim.text)
    }));
    sentences
}

/// "3.4x faster (3.1–3.7x)", "equivalent".
fn sized(seen: &RunVerdict) -> String {
    let of_difference = seen.ratio.filter(|_| seen.verdict.is_difference());
    of_difference.map_or_else(
        || seen.word.to_owned(),
        |ratio| Size::of(ratio).with(seen.word),
    )
}
