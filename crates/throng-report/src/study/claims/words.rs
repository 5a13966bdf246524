//! Claims and their cells in words.

use std::collections::BTreeSet;

use super::value::{Measured, Place, Repeats, Value};
use super::weigh::{RoundsToDecide, Weighed};
use super::{ClaimCell, ClaimVerdict, MissingValue};
use crate::comparison::size::Size;
use crate::study::PartReport;
use throng_record::claim::Relation;
use throng_record::format::{self, counted, first_of, list, whole};
use throng_record::metrics::{Quantity, find};
use throng_record::{Cause, LimitResult};
use throng_stats::paired::FEWEST_PAIRS;

/// Most groups of cells that are named; of more, only their number is given.
const NAMED: usize = 3;
/// Most reasons for missing values that are given.
const REASONS: usize = 2;

/// The verdict on a claim, counted from its cells. It is yes only if most of them are decided.
pub(super) fn verdict(cells: &[ClaimCell]) -> ClaimVerdict {
    use ClaimVerdict::{No, Noisy, NotMeasured, Partly, Tie, Yes};
    let count = |verdict| cells.iter().filter(|cell| cell.verdict == verdict).count();
    let decided = count(Yes) + count(No) + count(Tie);
    let open = cells.len() - decided;
    match (count(Yes), count(Tie)) {
        _ if open == count(NotMeasured) && decided == 0 => NotMeasured,
        _ if decided < count(Noisy) => Noisy,
        (yes, _) if yes == decided && open < decided => Yes,
        (1.., _) => Partly,
        (_, tie) if tie == decided => Tie,
        _ => No,
    }
}

/// "Yes in 4 of 7 comparisons, no in 2 (thread against poll) and too noisy in 1 (select against polling)." Then a cell
/// of each: the smallest difference that says yes, the largest that says otherwise.
pub(super) fn sentence(cells: &[ClaimCell]) -> String {
    if let [only] = cells {
        return only.seen.clone();
    }
    let of = |verdict| -> Vec<&ClaimCell> {
        cells
            .iter()
            .filter(|cell| cell.verdict == verdict)
            .collect()
    };
    let kinds: Vec<(ClaimVerdict, Vec<&ClaimCell>)> = ClaimVerdict::ALL
        .map(|verdict| (verdict, of(verdict)))
        .into_iter()
        .filter(|(_, those)| !those.is_empty())
        .collect();
    let mut sentences = Vec::new();
    match kinds.as_slice() {
        [(ClaimVerdict::NotMeasured, _)] => {}
        [(verdict, those)] => {
            let all = match those.len() {
                2 => "both".to_owned(),
                many => format!("all {many}"),
            };
            let text = format!("{} in {all} comparisons", verdict.text());
            sentences.push(format::sentence(&text));
        }
        several => {
            let most = several.iter().map(|(_, those)| those.len()).max();
            let counts = several.iter().enumerate().map(|(index, (verdict, those))| {
                let all = match index {
                    0 => format!(" of {}", counted(cells.len() as u32, "comparison")),
                    _ => String::new(),
                };
                let apart = names(those, cells);
                let is_short = apart.len() <= NAMED && Some(those.len()) != most;
                let which = if is_short {
                    format!(" ({})", list(&apart))
                } else {
                    String::new()
                };
                format!("{} in {}{all}{which}", verdict.text(), those.len())
            });
            sentences.push(format::sentence(&list(&counts.collect::<Vec<_>>())));
        }
    }
    let shown = kinds.iter().filter(|(verdict, _)| verdict.is_decided());
    let noisy = kinds
        .iter()
        .filter(|(verdict, _)| *verdict == ClaimVerdict::Noisy);
    for (verdict, those) in shown.chain(noisy).take(2) {
        sentences.extend(telling(*verdict, those).map(|cell| cell.seen.clone()));
    }
    sentences.extend(not_measured(&of(ClaimVerdict::NotMeasured), cells));
    sentences.join(" ")
}

/// The cell that tells most: the smallest difference that says yes, otherwise the largest.
pub(super) fn telling<'a>(verdict: ClaimVerdict, cells: &[&'a ClaimCell]) -> Option<&'a ClaimCell> {
    let size = |cell: &&&ClaimCell| cell.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
    let each = cells.iter();
    let found = match verdict {
        ClaimVerdict::Yes => each.min_by(|a, b| size(a).total_cmp(&size(b))),
        _ => each.max_by(|a, b| size(a).total_cmp(&size(b))),
    };
    found.copied()
}

/// What was not measured, each reason once.
fn not_measured(those: &[&ClaimCell], all: &[ClaimCell]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<ClaimCell>)> = Vec::new();
    let mut bounds: Vec<&str> = Vec::new();
    for cell in those {
        let Some(MissingValue { server, why }) = &cell.missing else {
            bounds.push(&cell.seen);
            continue;
        };
        let lacking = ClaimCell {
            server: server.clone(),
            rival: String::new(),
            ..(*cell).clone()
        };
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, cells)) if cells.contains(&lacking) => {}
            Some((_, cells)) => cells.push(lacking),
            None => reasons.push((why, vec![lacking])),
        }
    }
    let left = (bounds.len() + reasons.len()).saturating_sub(REASONS);
    let missing = reasons.iter().map(|(why, cells)| {
        let every = cells.len() == all.len() && cells.iter().all(|cell| cell.server.is_empty());
        let names: Vec<String> = names(&cells.iter().collect::<Vec<_>>(), cells)
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect();
        let server = cells.first().map_or("", |cell| cell.server.as_str());
        match names.as_slice() {
            _ if every || server.is_empty() => format::sentence(why),
            [] => format!("{server}: {why}."),
            _ if cells.iter().all(|cell| cell.server == server) => {
                format!("{server} {}: {why}.", first_of(&names, NAMED))
            }
            _ => format!("{}: {why}.", first_of(&names, NAMED)),
        }
    });
    let all_reasons = bounds.iter().map(|seen| (*seen).to_owned()).chain(missing);
    let mut sentences: Vec<String> = all_reasons.take(REASONS).collect();
    if left > 0 {
        sentences.push(format!("{} more.", counted(left as u32, "reason")));
    }
    sentences
}

/// What sets these cells apart from the others of a claim: "thread against poll with 100 and 1,000 clients".
fn names(those: &[&ClaimCell], all: &[ClaimCell]) -> Vec<String> {
    let varies = |of: fn(&ClaimCell) -> &str| all.iter().any(|cell| of(cell) != of(&all[0]));
    let (metric, part) = (varies(|cell| &cell.metric), varies(|cell| &cell.part));
    let (server, rival) = (varies(|cell| &cell.server), varies(|cell| &cell.rival));
    let clients = all.iter().any(|cell| cell.clients != all[0].clients);
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for cell in those {
        let mut words: Vec<String> = Vec::new();
        if metric {
            words.push(noun(cell));
        }
        if server || rival {
            let of = if metric { "of " } else { "" };
            words.push(match (server, rival && !cell.rival.is_empty()) {
                (true, true) => format!("{of}{} against {}", cell.server, cell.rival),
                (false, true) => format!("against {}", cell.rival),
                _ => format!("{of}{}", cell.server),
            });
        }
        if part {
            words.push(format!("in {}", cell.title));
        }
        let head = words.join(" ");
        let number = cell
            .clients
            .filter(|_| clients)
            .map(|number| whole(f64::from(number)));
        match groups.iter_mut().find(|(known, _)| *known == head) {
            Some((_, numbers)) => numbers.extend(number),
            None => groups.push((head, number.into_iter().collect())),
        }
    }
    // Servers with the same numbers of clients, all of which need no mention.
    let mut by_numbers: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for (head, numbers) in groups {
        match by_numbers.iter_mut().find(|(known, _)| *known == numbers) {
            Some((_, heads)) => heads.push(head),
            None => by_numbers.push((numbers, vec![head])),
        }
    }
    let every: BTreeSet<u32> = all.iter().filter_map(|cell| cell.clients).collect();
    let named = by_numbers.into_iter().map(|(numbers, heads)| {
        let is_short = numbers.len() == every.len();
        let with = match numbers.as_slice() {
            [] => String::new(),
            _ if is_short && heads.iter().any(|head| !head.is_empty()) => String::new(),
            [one] => format!("with {one} clients"),
            several => format!("with {} clients", list(several)),
        };
        format!("{} {with}", first_of(&heads, NAMED))
            .trim()
            .to_owned()
    });
    named.collect()
}

/// A metric as sentences call it.
fn noun(cell: &ClaimCell) -> String {
    find(&cell.metric).map_or_else(
        |_| cell.metric.clone(),
        throng_record::metrics::Metric::noun,
    )
}

/// What a value is compared with: the server, and what sets its value apart.
pub(super) fn against(parts: &[PartReport<'_>], own: Place<'_>, rival: Place<'_>) -> String {
    let mut words = rival.server.to_owned();
    if rival.part != own.part {
        words += &format!(" in {}", parts[rival.part].record.title);
    }
    if let Some(clients) = rival.clients.filter(|_| rival.clients != own.clients) {
        words += &format!(" with {}", counted(clients, "client"));
    }
    words
}

/// "In \"All busy\", with 100 clients, "; empty if neither is known.
fn circumstances(cell: &ClaimCell) -> String {
    let part = (!cell.part.is_empty()).then(|| format!("in \"{}\", ", cell.title));
    let clients = cell
        .clients
        .map(|clients| format!("with {}, ", counted(clients, "client")));
    part.into_iter().chain(clients).collect()
}

/// Why a cell has no values.
pub(super) fn lacking(cell: &ClaimCell, missing: &MissingValue) -> String {
    let MissingValue { server, why } = missing;
    match server.as_str() {
        "" => format::sentence(why),
        server => format::sentence(&format!("{}{server}: {why}", circumstances(cell))),
    }
}

/// Both values of a cell and their ratio, in a sentence.
pub(super) fn compared(cell: &ClaimCell, weighed: &Weighed) -> String {
    let Weighed { first, second, .. } = weighed;
    let (server, metric) = (&cell.server, noun(cell));
    let values = match (&second.place, weighed.ratio) {
        (None, _) => {
            let ends = first
                .ends
                .as_ref()
                .map_or_else(String::new, |ends| format!(" ({ends})"));
            format!("{metric} of {server}: {}{ends}", first.text)
        }
        (Some(_), None) => {
            let (own, other) = (&first.text, &second.text);
            format!("{metric}: {server} {own} vs {} {other}", cell.against)
        }
        (Some(_), Some(ratio)) => {
            let other = &cell.against;
            let relation = ratio_words(ratio, &metric);
            let Size { range, .. } = Size::of(ratio);
            format!(
                "{server} has {relation} {other}{range}: {} vs {}",
                first.text, second.text
            )
        }
    };
    let shared = circumstances(cell);
    let tail = tail(cell.verdict, weighed);
    let bounds = match cell.verdict {
        ClaimVerdict::NotMeasured => String::new(),
        _ => bounded([first, second]),
    };
    let text = format!("{shared}{values}{tail}{bounds}");
    // A sentence that begins with the name of a server does not start with a capital.
    let begins_with_server = shared.is_empty() && weighed.ratio.is_some() && second.place.is_some();
    let sentence = if begins_with_server {
        text + "."
    } else {
        format::sentence(&text)
    };
    sentence + &more(cell.verdict, weighed)
}

/// "3.4x the memory of", "3.4x less memory than", "12 % more memory than".
fn ratio_words(ratio: Quantity, metric: &str) -> String {
    let Size {
        estimate,
        is_factor,
        ..
    } = Size::of(ratio);
    match (is_factor, ratio.value >= 1.0) {
        _ if ratio.value.total_cmp(&1.0).is_eq() => format!("the same {metric} as"),
        (true, true) => format!("{estimate} the {metric} of"),
        (false, true) => format!("{estimate} more {metric} than"),
        (_, false) => format!("{estimate} less {metric} than"),
    }
}

/// How the values relate to the claim.
fn tail(verdict: ClaimVerdict, weighed: &Weighed) -> String {
    let Weighed {
        first,
        second,
        relation,
        ..
    } = weighed;
    let margin = format!("{} %", (weighed.margin * 1e4).round() / 1e2);
    let is_plain = second.factor.total_cmp(&1.0).is_eq();
    let number = second.place.is_none().then_some(&second.text);
    let needed = match (relation, number) {
        _ if verdict == ClaimVerdict::NotMeasured => return bounded([first, second]),
        (Relation::Alike | Relation::Flat, None) => {
            return match verdict {
                ClaimVerdict::Yes => format!(", within the {margin} that count as equal"),
                ClaimVerdict::No => format!(", outside the {margin} that count as equal"),
                _ => format!("; whether that is within the {margin} that count as equal is open"),
            };
        }
        _ if verdict == ClaimVerdict::Tie => {
            return format!("; differences up to {margin} do not count");
        }
        (Relation::Alike | Relation::Flat, Some(number)) => format!("{number} within {margin}"),
        (Relation::Less, Some(number)) => format!("less than {number}"),
        (Relation::Greater, Some(number)) => format!("more than {number}"),
        (Relation::AtMost, Some(number)) => format!("at most {number}"),
        (_, Some(number)) => format!("at least {number}"),
        (Relation::AtLeast, None) if is_plain => format!("at least as much, give or take {margin}"),
        (Relation::AtMost, None) if is_plain => format!("at most as much, give or take {margin}"),
        (Relation::AtLeast, None) => format!("at least {}x, give or take {margin}", second.factor),
        (Relation::AtMost, None) => format!("at most {}x, give or take {margin}", second.factor),
        (Relation::Less, None) if !is_plain => format!("less than {}x", second.factor),
        (_, None) if !is_plain => format!("more than {}x", second.factor),
        _ if verdict == ClaimVerdict::Noisy => return ", which is not significant".to_owned(),
        _ => return String::new(),
    };
    let open = if verdict == ClaimVerdict::Noisy {
        ", which is open"
    } else {
        ""
    };
    format!("; the claim needs {needed}{open}")
}

/// Which of two values are bounds, and why.
fn bounded(both: [&Value; 2]) -> String {
    let name =
        |place: &Option<Measured>| place.as_ref().map_or("", |place| &place.server).to_owned();
    let bounds = both.map(|value| Some((name(&value.place), value.bound.as_ref()?)));
    match bounds {
        [Some((one, bound)), Some((other, same))] if bound == same => {
            let text = bound.text();
            format!("; the value of {one} {text}; the same holds for {other}")
        }
        bounds => {
            let each = bounds.into_iter().flatten();
            each.map(|(parameter, bound)| format!("; the value of {parameter} {}", bound.text()))
                .collect()
        }
    }
}

/// A sentence on the trials that a decision would need, if the cell is too noisy.
fn more(verdict: ClaimVerdict, weighed: &Weighed) -> String {
    if verdict != ClaimVerdict::Noisy {
        return String::new();
    }
    let repeats = weighed
        .first
        .place
        .as_ref()
        .map_or(Repeats::Timed, |place| place.repeats);
    let unit = if repeats == Repeats::Slices {
        "slice"
    } else {
        "trial"
    };
    let number = |number: usize| counted(number as u32, unit);
    let takes = |about: &str, wanted: usize, had: usize| {
        let are = if had == 1 { "is" } else { "are" };
        let option = match repeats {
            Repeats::Timed => format!("--runs {wanted}"),
            Repeats::Profiled => format!("--profiled-runs {wanted}"),
            Repeats::Slices => "a longer --budget".to_owned(),
        };
        format!(
            " It takes {about} {} each; there {are} {had} ({option}).",
            number(wanted)
        )
    };
    if weighed.alone().is_decided() {
        return " It would be significant alone, but not among the comparisons of this claim; more trials decide it.".to_owned();
    }
    match weighed.need {
        RoundsToDecide::None => String::new(),
        RoundsToDecide::More { had } if had < FEWEST_PAIRS => takes("at least", FEWEST_PAIRS, had),
        RoundsToDecide::More { had } => {
            format!(
                " Some of the {} are 0, which allows no interval.",
                number(had)
            )
        }
        RoundsToDecide::About { had, rounds } => takes("about", rounds, had),
        RoundsToDecide::TooMany { had } => {
            format!(
                " The {} vary so much that it takes over 1,000.",
                number(had)
            )
        }
    }
}

/// The cause of a limit, and whether it was expected.
pub(super) fn ended(
    found: &LimitResult,
    cause: &Cause,
    is_so: bool,
    expected: &[String],
) -> String {
    let passed = whole(found.passed.map_or(0, |passed| passed.value) as f64);
    let either = match expected {
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
        [] => String::new(),
    };
    let instead = if is_so {
        String::new()
    } else {
        format!("; the claim needs {either}")
    };
    format::sentence(&format!(
        "the limit of {} is {passed}: {} ({}){instead}",
        found.server,
        cause.sentence,
        cause.evidence.join("; ")
    ))
}
