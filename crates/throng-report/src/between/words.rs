//! Two runs side by side in words.

use super::{Between, Outcome, Pair, PartBetween, Question, Recorded};
use crate::comparison::PairMetric;
use crate::document::Text;
use crate::facts::{self, Fact, NAMED};
use crate::grade::Grade;
use throng_record::format::{capitalized, counted, first_of, list, lowered};
use throng_record::{Ending, Run};
use throng_stats::Verdict;

/// The result in one sentence, then its counts.
pub(super) fn headline(between: &Between) -> Vec<String> {
    if between.question == Question::Reproduction {
        return outcomes(between);
    }
    let counts = verdicts(between);
    if !different(between).is_empty() {
        let mut pairs = between.parts.iter().flat_map(|part| &part.pairs);
        let only = pairs.next().filter(|_| pairs.next().is_none());
        let sentence = only.map(Pair::first_sentences);
        return sentence.into_iter().chain([counts]).collect();
    }
    // The same program with the same settings neither improved nor regressed.
    let known = if between.unknown.is_empty() {
        ""
    } else {
        ", as far as recorded"
    };
    let is_any = |word: Verdict| between.verdicts().any(|verdict| verdict == word);
    let machine = match (is_any(Verdict::Better), is_any(Verdict::Worse)) {
        (false, false) => {
            return vec![format!(
                "Same program and settings{known}: {}",
                lowered(&counts)
            )];
        }
        (false, true) => "the machine was slower in B",
        (true, false) => "the machine was faster in B",
        (true, true) => "the machine changed between the runs",
    };
    let lead = match differing(between).as_slice() {
        [only] => format!(
            "only {} differs ({} in B), because of noise or the machine",
            only.metric.label,
            only.size()
        ),
        several => machine.to_owned() + &sizes(several),
    };
    vec![format!("Same program and settings{known}: {lead}."), counts]
}

/// All measures that differ.
fn differing(between: &Between) -> Vec<&PairMetric> {
    let pairs = between.parts.iter().flat_map(|part| &part.pairs);
    let measures = pairs.flat_map(|pair| &pair.measures);
    let differing = measures.filter(|one| one.verdict.is_difference());
    differing.collect()
}

/// The smallest and largest difference: " (5 to 8 %)".
fn sizes(differing: &[&PairMetric]) -> String {
    let ratios = differing.iter().filter_map(|one| one.ratio);
    let mut percent: Vec<f64> = ratios
        .map(|ratio| 100.0 * (ratio.value.max(1.0 / ratio.value) - 1.0))
        .collect();
    percent.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (percent.first(), percent.last()) else {
        return String::new();
    };
    match [low, high].map(|end| format!("{end:.0}")) {
        [low, high] if low == high => format!(" ({low} %)"),
        [low, high] => format!(" ({low} to {high} %)"),
    }
}

/// "Of 8 comparisons: 7 worse in B and 1 equivalent.", or "No difference: 8 comparisons equivalent."
fn verdicts(between: &Between) -> String {
    let count = |word| {
        between
            .verdicts()
            .filter(|verdict| *verdict == word)
            .count()
    };
    let counts = [
        (count(Verdict::Better), "better in B"),
        (count(Verdict::Worse), "worse in B"),
        (count(Verdict::Equivalent), "equivalent"),
        (count(Verdict::Inconclusive), "inconclusive"),
    ];
    let others = [(count(Verdict::NotComparable), "not comparable")];
    let all: usize = counts.iter().map(|(number, _)| number).sum();
    if all > 0 && !between.verdicts().any(Verdict::is_difference) {
        let compared = counted(all as u32, "comparison");
        let none = match count(Verdict::Inconclusive) {
            0 => format!("No difference: {compared} equivalent"),
            noisy if noisy == all => {
                format!("All {compared} are inconclusive: too noisy to tell")
            }
            noisy => {
                let are = if noisy == 1 { "is" } else { "are" };
                format!(
                    "No difference found in {compared}, but {noisy} {are} too noisy to exclude one"
                )
            }
        };
        return with_others(none, &others);
    }
    tally(&counts, &others).unwrap_or_else(|| "The two runs have nothing to compare.".to_owned())
}

/// "No: 11 of 12 verdicts are reproduced and 1 is not.", "1 with another size; 2 not comparable."
fn outcomes(between: &Between) -> Vec<String> {
    let count = |which| {
        let all = between.repeated();
        all.filter(|(_, repeated)| repeated.outcome == which)
            .count()
    };
    let [held, not, undecided] = [Outcome::Held, Outcome::NotHeld, Outcome::Undecided].map(count);
    let all = held + not + undecided;
    if all == 0 {
        return vec!["No verdict to check.".to_owned()];
    }
    let word = match (not, undecided) {
        (0, 0) => "Yes",
        (0, _) => "Partly",
        _ => "No",
    };
    let are = |number: usize| if number == 1 { "is" } else { "are" };
    let failed = [(not, "not"), (undecided, Outcome::Undecided.text())];
    let found = failed.into_iter().filter(|(number, _)| *number > 0);
    let mut parts = vec![format!(
        "{held} of {} {} reproduced",
        counted(all as u32, "verdict"),
        are(all)
    )];
    parts.extend(found.map(|(number, text)| format!("{number} {} {text}", are(number))));
    let resized = between.repeated().filter(|(_, one)| one.other_size);
    let others = [
        (resized.count(), "reproduced with another size"),
        (count(Outcome::NotComparable), "not comparable (–)"),
        (count(Outcome::NoVerdict), "without an original verdict (–)"),
    ];
    let some = others.iter().filter(|(number, _)| *number > 0);
    let counts: Vec<String> = some
        .map(|(number, words)| format!("{number} {words}"))
        .collect();
    let lead = format!("{word}: {}.", list(&parts));
    let rest = (!counts.is_empty()).then(|| counts.join("; ") + ".");
    std::iter::once(lead).chain(rest).collect()
}

/// "Of 8 comparisons: 7 worse in B and 1 equivalent; 2 more not comparable."
fn tally(counts: &[(usize, &str)], others: &[(usize, &str)]) -> Option<String> {
    let all: usize = counts.iter().map(|(count, _)| count).sum();
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let each: Vec<String> = some
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    let first = format!("Of {}: {}", counted(all as u32, "comparison"), list(&each));
    (all > 0).then(|| with_others(first, others))
}

/// The first words, then "; 2 more not comparable."
fn with_others(first: String, others: &[(usize, &str)]) -> String {
    let some = others.iter().filter(|(count, _)| *count > 0);
    let more = some.map(|(count, words)| format!("{count} more {words}"));
    let all: Vec<String> = std::iter::once(first).chain(more).collect();
    all.join("; ") + "."
}

/// What matters most, each in a sentence: servers that differ, or results that did not hold.
pub(super) fn sentences(between: &Between) -> Vec<String> {
    if between.question == Question::Reproduction {
        let all = between.repeated();
        let failed = all.filter(|(_, repeated)| repeated.outcome == Outcome::NotHeld);
        return failed
            .map(|(part, repeated)| prefix(part) + &repeated.sentence())
            .collect();
    }
    let pairs = between.parts.iter().flat_map(|part| &part.pairs);
    let differing = pairs.filter(|pair| {
        let mut measures = pair.measures.iter();
        measures.any(|one| one.verdict.is_difference())
    });
    differing.map(|pair| pair.sentence.clone()).collect()
}

/// "part large: ", if there are parts.
fn prefix(part: &str) -> String {
    if part.is_empty() {
        String::new()
    } else {
        format!("part {part}: ")
    }
}

/// The names of what differs between the two runs.
fn different(between: &Between) -> Vec<String> {
    let of_parts = between.parts.iter().flat_map(|part| &part.only_in);
    let only_in = of_parts.chain(&between.only_in).flatten().cloned();
    let facts = between.differences.iter().map(Fact::title);
    let mut names: Vec<String> = Vec::new();
    for name in facts.chain(only_in) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// "A/A: settings, programs and machine are the same." Then any difference is noise or a change on the machine.
pub(crate) fn made(between: &Between) -> Text {
    let names = different(between);
    let same = "any difference is noise or a change on the machine between the runs.";
    let (what, more) = if !names.is_empty() {
        (
            "Different conditions",
            format!(": {}.", first_of(&names, NAMED)),
        )
    } else if between.unknown.is_empty() {
        (
            "A/A",
            format!(": settings, programs and machine are the same, so {same}"),
        )
    } else {
        let unknown: Vec<&String> = between.unknown.iter().collect();
        (
            "A/A, as far as recorded",
            format!(
                ": settings, machine and all recorded program hashes are the same, so {same} No hash is recorded for {}.",
                first_of(&unknown, NAMED)
            ),
        )
    };
    Text::default().strong(what).plain(more)
}

/// Each caveat once, with the parts it applies to, unless it applies to all. `whole` are facts about the records.
pub(super) fn caveats(parts: &[PartBetween], whole: &[Fact]) -> Vec<String> {
    let of = |facts: &[Fact]| {
        let differing = facts.iter().filter(|fact| fact.differs());
        facts::caveats(&differing.cloned().collect::<Vec<_>>(), ["A", "B"])
    };
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for part in parts {
        for caveat in of(&part.facts) {
            match all.iter_mut().find(|(known, _)| *known == caveat) {
                Some((_, names)) => names.push(&part.name),
                None => all.push((caveat, vec![&part.name])),
            }
        }
    }
    let of_parts = all.into_iter().map(|(caveat, names)| {
        if names.len() == parts.len() {
            caveat
        } else {
            format!("{}: {caveat}", list(&names))
        }
    });
    of(whole).into_iter().chain(of_parts).collect()
}

/// Caveats of any comparison of two runs; of a reproduction, the grades of both.
pub(crate) fn notes(between: &Between) -> Vec<String> {
    if between.question == Question::Reproduction {
        let in_words = |grade: &Grade| {
            let cause = grade.cause().map(|cause| format!(" ({cause})"));
            grade.level.text().to_owned() + &cause.unwrap_or_default()
        };
        let of_part = |part: &PartBetween| {
            let [then, now] = part.grades.each_ref().map(in_words);
            let of = prefix(&part.name);
            capitalized(&if then == now {
                format!("{of}grade of both: {then}.")
            } else {
                format!("{of}grade of the original: {then}; grade of the repeat: {now}.")
            })
        };
        return between.parts.iter().map(of_part).collect();
    }
    let [a, b] = &between.runs;
    let mut notes = vec![format!(
        "A started at {} and B at {}. They were not interleaved, so changes on the machine between them show as \
         differences too, which the intervals do not cover. To compare servers in one run, use throng compare.",
        a.started_at, b.started_at
    )];
    let incomplete = [("A", a), ("B", b)]
        .into_iter()
        .filter(|(_, run)| run.ending != Ending::Complete);
    notes.extend(incomplete.map(|(name, run)| {
        let trials = counted(run.trials_planned, "trial");
        format!(
            "{name}: {}; it has {} of {trials}.",
            ending(run.ending),
            run.trials
        )
    }));
    notes
}

/// How a run ended.
pub(super) fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Complete => "complete",
        Ending::Interrupted => "interrupted",
        Ending::HostLost => "a client host was lost",
        Ending::ServerFailed => "a server did not start or answer properly",
        Ending::Unfinished => "unfinished",
    }
}

/// The measurements of each record, if they have none in common.
pub(super) fn measured(both: [&Recorded; 2]) -> String {
    let of_run = |run: &Run| {
        let servers: Vec<&str> = run
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        let clients: Vec<String> = run.settings.clients.iter().map(u32::to_string).collect();
        let what = match &run.limit {
            Some(_) => "in a search for limits".to_owned(),
            None => format!("with {} clients", list(&clients)),
        };
        format!("{} {what}", list(&servers))
    };
    let [a, b] = both.map(|recorded| {
        let runs: Vec<String> = if recorded.is_single() {
            let loaded = recorded.study.parts.iter().flatten();
            loaded.map(|loaded| of_run(&loaded.run)).collect()
        } else {
            recorded.directories()
        };
        format!("{} has {}", recorded.directory, list(&runs))
    });
    format!("{a}, and {b}")
}
