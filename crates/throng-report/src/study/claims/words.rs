//! Expectations and evidence in words.

use super::repeats::{Repeats, taking};
use super::term::Term;
use super::weigh::TestResult;
use super::{ClaimVerdict, Evidence, JudgedCheck};
use crate::comparison::size::inverse;
use throng_record::claim::{Baseline, Bounds, Clients, Expectation, Reference, Relation};
use throng_record::format::{self, counted, list, whole};
use throng_record::metrics::{Metric, Quantity, find};
use throng_record::{Cause, TriedValue};

/// Maximum decimals used to distinguish the ends of an interval.
const MOST_DECIMALS: usize = 4;

/// An expectation in words, with its part if one is given.
pub(super) fn expected(expect: &Expectation, part: Option<&str>) -> String {
    let metric = find(&expect.metric).map_or_else(|_| expect.metric.clone(), Metric::noun);
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

/// Two values of a metric in a sentence.
pub(super) fn compared(
    a: &Term,
    b: &Term,
    relation: Relation,
    weighed: TestResult,
    repeats: Repeats,
) -> Evidence {
    let finding = weighed.finding();
    let names = a.name.and(&b.name);
    let (shared, metric, [one, other]) = (&names.shared, &a.name.metric, &names.each);
    let (a_text, b_text) = (&a.text, &b.text);
    // The larger value first, unless the claim is about the ratio or about a bound.
    let turns = matches!(
        relation,
        Relation::Less | Relation::Greater | Relation::Alike
    );
    let is_plain = b.factor.total_cmp(&1.0).is_eq();
    let values = match weighed.ratio {
        Some(ratio) if ratio.value < 1.0 && turns && is_plain => {
            let (ratio, ends) = times(inverse(ratio));
            format!("{other} has {ratio} the {metric} of {one}{ends}: {b_text} vs {a_text}")
        }
        Some(ratio) => {
            let (ratio, ends) = times(ratio);
            format!("{one} has {ratio} the {metric} of {other}{ends}: {a_text} vs {b_text}")
        }
        None => format!("{metric}: {one} {a_text} vs {other} {b_text}"),
    };
    let tail = match finding {
        ClaimVerdict::Censored => bounded([(one, a), (other, b)]),
        _ => between(finding, relation, b.factor, weighed.margin),
    };
    // A sentence that begins with the name of a server does not start with a capital.
    let sentence = if shared.is_empty() && weighed.ratio.is_some() {
        format!("{values}{tail}.")
    } else {
        format::sentence(&format!("{shared}{values}{tail}"))
    };
    Evidence {
        verdict: finding,
        sentence: sentence + &taking(finding, weighed.need, repeats),
        ratio: weighed.ratio,
        margin: weighed.margin,
        p: [weighed.shown, weighed.contrary, weighed.within],
    }
}

/// How a ratio relates to the expected one.
fn between(finding: ClaimVerdict, relation: Relation, factor: f64, margin: f64) -> String {
    let margin = percent(margin);
    let is_plain = factor.total_cmp(&1.0).is_eq();
    let needed = match relation {
        Relation::Alike => {
            return match finding {
                ClaimVerdict::Confirmed => format!(", within the {margin} that count as equal"),
                ClaimVerdict::Refuted => format!(", outside the {margin} that count as equal"),
                _ => format!("; whether that is within the {margin} that count as equal is open"),
            };
        }
        _ if finding == ClaimVerdict::Equivalent => {
            return format!("; differences up to {margin} do not count");
        }
        Relation::Less | Relation::Greater if is_plain => {
            return match finding {
                ClaimVerdict::Inconclusive => ", which is not significant".to_owned(),
                _ => String::new(),
            };
        }
        Relation::Less => format!("less than {factor}x"),
        Relation::Greater => format!("more than {factor}x"),
        Relation::AtLeast => format!("at least {factor}x, give or take {margin}"),
        _ => format!("at most {factor}x, give or take {margin}"),
    };
    needs(finding, &needed)
}

/// "; the claim needs less than 2x"
fn needs(finding: ClaimVerdict, needed: &str) -> String {
    let open = match finding {
        ClaimVerdict::Inconclusive => ", which is open",
        _ => "",
    };
    format!("; the claim needs {needed}{open}")
}

/// Which of two values are bounds, and why.
fn bounded(both: [(&String, &Term); 2]) -> String {
    let bounds = both.map(|(name, term)| term.bound.as_ref().map(|bound| (name, bound)));
    match bounds {
        [Some((one, bound)), Some((other, same))] if bound == same => {
            format!(
                "; the value of {one} {}; the same holds for {other}",
                bound.text()
            )
        }
        bounds => {
            let each = bounds.into_iter().flatten();
            each.map(|(name, bound)| format!("; the value of {name} {}", bound.text()))
                .collect()
        }
    }
}

/// A value compared with a number from the study, in a sentence.
pub(super) fn compared_with_number(
    term: &Term,
    relation: Relation,
    limit: &Term,
    weighed: TestResult,
    repeats: Repeats,
) -> Evidence {
    let finding = weighed.finding();
    let ends = term.ends.as_ref();
    let ends = ends.map_or_else(String::new, |ends| format!(" ({ends})"));
    let limit = &limit.text;
    let tail = match (&term.bound, relation) {
        (Some(bound), _) if finding == ClaimVerdict::Censored => format!("; it {}", bound.text()),
        (_, Relation::Less) => needs(finding, &format!("less than {limit}")),
        (_, Relation::AtMost) => needs(finding, &format!("at most {limit}")),
        (_, Relation::Greater) => needs(finding, &format!("more than {limit}")),
        (_, Relation::AtLeast) => needs(finding, &format!("at least {limit}")),
        _ => needs(
            finding,
            &format!("{limit} within {}", percent(weighed.margin)),
        ),
    };
    let (shared, metric, server) = (
        term.name.circumstances(),
        &term.name.metric,
        &term.name.server,
    );
    let sentence = format!("{shared}{metric} of {server}: {}{ends}{tail}", term.text);
    Evidence {
        verdict: finding,
        sentence: format::sentence(&sentence) + &taking(finding, weighed.need, repeats),
        ratio: weighed.ratio,
        margin: weighed.margin,
        p: [weighed.shown, weighed.contrary, weighed.within],
    }
}

/// The cause of a limit, and whether it was expected.
pub(super) fn ended(
    server: &str,
    passed: Option<TriedValue>,
    cause: &Cause,
    expected: &[String],
) -> Evidence {
    let is_so = expected.iter().any(|name| name == cause.kind.name);
    let weighed = TestResult::certainly(is_so);
    let passed = whole(passed.map_or(0, |passed| passed.value) as f64);
    let instead = if is_so {
        String::new()
    } else {
        format!("; the claim needs {}", either(expected))
    };
    let sentence = format!(
        "the limit of {server} is {passed}: {} ({}){instead}",
        cause.sentence,
        cause.evidence.join("; ")
    );
    Evidence {
        verdict: weighed.finding(),
        sentence: format::sentence(&sentence),
        ratio: None,
        margin: 0.0,
        p: [weighed.shown, weighed.contrary, weighed.within],
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

/// Why comparisons lead to a verdict: the comparison that decides, how many agree with it, and what was not compared.
pub(super) fn reasons(
    verdict: ClaimVerdict,
    evidence: &[&Evidence],
    missing: &[&String],
) -> String {
    let mut sentences = Vec::new();
    // If nothing is decided after correction, use what would be decided without it.
    let alone = ClaimVerdict::of_all(evidence.iter().map(|one| one.verdict));
    let shown = alone.filter(|_| verdict == ClaimVerdict::Inconclusive);
    let lead = deciding(shown.unwrap_or(verdict), evidence);
    sentences.extend(lead.map(|lead| lead.sentence.clone()));
    if evidence.len() > 1 || lead.is_none() {
        sentences.extend(tally(evidence, lead.is_some()));
    }
    let most = if evidence.is_empty() { 3 } else { 1 };
    let mut unknown: Vec<String> = missing
        .iter()
        .take(most)
        .map(|why| format::sentence(why))
        .collect();
    if let (false, Some(first)) = (evidence.is_empty(), unknown.first_mut()) {
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        *first = format!("Not compared: {}{more}.", missing[0]);
    }
    if lead.is_none() {
        // The verdict rests on what is missing.
        unknown.append(&mut sentences);
        sentences = unknown;
    } else {
        sentences.append(&mut unknown);
    }
    if sentences.is_empty() {
        return "Nothing was measured for this claim.".to_owned();
    }
    sentences.join(" ")
}

/// The comparison that decides: the least certain one if all must hold, or the most certain one that refutes.
fn deciding<'a>(verdict: ClaimVerdict, evidence: &[&'a Evidence]) -> Option<&'a Evidence> {
    let weight = |one: &Evidence| match verdict {
        ClaimVerdict::Confirmed => one.p[0],
        ClaimVerdict::Refuted => -one.p[1],
        ClaimVerdict::Equivalent => one.p[2],
        _ => one.p.into_iter().fold(1.0, f64::min),
    };
    let those = evidence.iter().filter(|one| one.verdict == verdict);
    those
        .copied()
        .max_by(|a, b| weight(a).total_cmp(&weight(b)))
}

/// "Of 11 comparisons, 6 confirm it and 5 contradict it."
fn tally(evidence: &[&Evidence], one_is_shown: bool) -> Option<String> {
    let counts = [
        (ClaimVerdict::Confirmed, "confirm it", "confirms it"),
        (ClaimVerdict::Refuted, "contradict it", "contradicts it"),
        (
            ClaimVerdict::Equivalent,
            "show no difference that counts",
            "shows no difference that counts",
        ),
        (
            ClaimVerdict::Inconclusive,
            "are inconclusive",
            "is inconclusive",
        ),
        (ClaimVerdict::Censored, "are censored", "is censored"),
    ];
    let all = evidence.len();
    let counts = counts.into_iter().filter_map(|(finding, many, one)| {
        let count = evidence.iter().filter(|one| one.verdict == finding).count();
        (count > 0).then_some((finding, count, if count == 1 { one } else { many }))
    });
    let counts: Vec<(ClaimVerdict, usize, &str)> = counts.collect();
    match counts.as_slice() {
        [] => None,
        [(_, 1, words)] => Some(format!("The only other comparison {words}.")),
        [(finding, _, words)] => {
            let which = match finding {
                ClaimVerdict::Confirmed if one_is_shown => "; this is the least certain",
                ClaimVerdict::Refuted if one_is_shown => "; this is the most certain",
                _ => "",
            };
            Some(match all {
                2 => format!("Both comparisons {words}{which}."),
                _ => format!("All {all} comparisons {words}{which}."),
            })
        }
        several => {
            let each = several
                .iter()
                .map(|(_, count, words)| format!("{count} {words}"));
            Some(format!(
                "Of {all} comparisons, {}.",
                list(&each.collect::<Vec<_>>())
            ))
        }
    }
}

/// Why several checks lead to this verdict.
pub(super) fn of_checks(verdict: ClaimVerdict, checks: &[JudgedCheck]) -> String {
    let evidence: Vec<&Evidence> = checks.iter().flat_map(|check| &check.evidence).collect();
    // Checks that have nothing to compare come first: they decide.
    let lacking = |check: &&JudgedCheck| check.evidence.is_empty();
    let first = checks.iter().filter(lacking);
    let others = checks.iter().filter(|check| !lacking(check));
    let mut missing: Vec<&String> = Vec::new();
    for why in first.chain(others).flat_map(|check| &check.missing) {
        if !missing.contains(&why) {
            missing.push(why);
        }
    }
    reasons(verdict, &evidence, &missing)
}

/// A ratio: "3.34x" and " (3.18–3.50x)", or the range if there are too few trials.
fn times(ratio: Quantity) -> (String, String) {
    let least = match ratio.value {
        ..0.1 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let text = |value: f64, decimals: usize| match decimals {
        0 => whole(value),
        decimals => format!("{value:.decimals$}"),
    };
    let Some((low, high)) = ratio.low.zip(ratio.high) else {
        return (format!("{}x", text(ratio.value, least)), String::new());
    };
    let differ = |decimals: &usize| text(low, *decimals) != text(high, *decimals);
    let Some(decimals) = (least..=MOST_DECIMALS.max(least)).find(differ) else {
        return (format!("{}x", text(ratio.value, least)), String::new());
    };
    let [value, low, high] = [ratio.value, low, high].map(|value| text(value, decimals));
    let range = if ratio.is_range { "range " } else { "" };
    (format!("{value}x"), format!(" ({range}{low}–{high}x)"))
}

/// "5 %", "2.5 %"
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}
