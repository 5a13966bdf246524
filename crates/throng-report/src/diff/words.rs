//! Two runs side by side in words, with caveats.

use super::{Diff, Likeness, Part, StoredRecord};
use throng_record::format::{counted, list};
use throng_record::{Ending, Run};
use throng_stats::Verdict;

/// The result in one sentence. The same program with the same settings neither improved nor regressed.
pub(super) fn headline(diff: &Diff) -> String {
    let counts = counts(diff);
    let same = match diff.made {
        Likeness::Alike => "Same program and settings",
        Likeness::AlikeAsFarAsKnown(_) => "Same program and settings, as far as recorded",
        Likeness::Differently(_) => return counts,
    };
    let is_any = |word: Verdict| diff.verdicts().any(|verdict| verdict == word);
    let by = sizes(diff);
    let machine = match (is_any(Verdict::Better), is_any(Verdict::Worse)) {
        (false, false) => "no difference found".to_owned(),
        (false, true) => format!("the machine was slower in B{by}"),
        (true, false) => format!("the machine was faster in B{by}"),
        (true, true) => format!("the machine changed between the runs{by}"),
    };
    format!("{same}: {machine}. {counts}")
}

/// The smallest and largest difference: " (5 to 8 %)".
fn sizes(diff: &Diff) -> String {
    let pairs = diff.parts.iter().flat_map(|part| &part.pairs);
    let measures = pairs.flat_map(|compared| &compared.pair.measures);
    let differing = measures.filter(|one| one.verdict.is_difference());
    let ratios = differing.filter_map(|one| one.ratio);
    let percent = ratios.map(|ratio| 100.0 * (ratio.value.max(1.0 / ratio.value) - 1.0));
    let ends = percent.fold(None, |ends: Option<(f64, f64)>, percent| {
        let (low, high) = ends.unwrap_or((percent, percent));
        Some((low.min(percent), high.max(percent)))
    });
    let Some((low, high)) = ends else {
        return String::new();
    };
    let [low, high] = [low, high].map(|percent| format!("{percent:.0}"));
    if low == high {
        format!(" ({low} %)")
    } else {
        format!(" ({low} to {high} %)")
    }
}

/// "Of 8 comparisons: 7 worse in B and 1 equivalent."
fn counts(diff: &Diff) -> String {
    let count = |word: Verdict| diff.verdicts().filter(|verdict| *verdict == word).count();
    let [better, worse, equivalent, inconclusive, not_comparable] = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::Equivalent,
        Verdict::Inconclusive,
        Verdict::NotComparable,
    ]
    .map(count);
    let made = better + worse + equivalent + inconclusive;
    if made == 0 {
        return "The two runs have nothing to compare.".to_owned();
    }
    let comparisons = counted(made as u32, "comparison");
    let counts = [
        (better, "better in B"),
        (worse, "worse in B"),
        (equivalent, "equivalent"),
        (inconclusive, "inconclusive"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let mut text = format!("Of {comparisons}: {}", list(&counts));
    if not_comparable > 0 {
        text += &format!("; {not_comparable} more are not comparable");
    }
    text + "."
}

/// Each caveat once, with the parts it applies to, unless it applies to all.
pub(super) fn caveats(parts: &[Part], [a, b]: [&StoredRecord; 2]) -> Vec<String> {
    let mut caveats: Vec<(String, Vec<&str>)> = Vec::new();
    for part in parts {
        let name = part.name.as_deref().unwrap_or_default();
        for caveat in &part.caveats {
            match caveats.iter_mut().find(|(known, _)| known == caveat) {
                Some((_, names)) => names.push(name),
                None => caveats.push((caveat.clone(), vec![name])),
            }
        }
    }
    let scale = |recorded: &StoredRecord| {
        let study = recorded.study.as_ref();
        study.and_then(|study| Some(study.scale.as_ref()?.by.clone()))
    };
    let mut all = Vec::new();
    let (in_a, in_b) = (scale(a), scale(b));
    if in_a != in_b {
        let words = |scale: Option<String>| scale.unwrap_or_else(|| "full".to_owned());
        let (in_a, in_b) = (words(in_a), words(in_b));
        all.push(format!(
            "The study ran at different scales: {in_a} in A and {in_b} in B."
        ));
    }
    all.extend(caveats.into_iter().map(|(caveat, names)| {
        if names.len() == parts.len() {
            caveat
        } else {
            format!("{}: {caveat}", list(&names))
        }
    }));
    all
}

/// Caveats of any comparison of two runs.
pub(super) fn notes(diff: &Diff) -> Vec<String> {
    let (a, b) = (&diff.a, &diff.b);
    let mut notes = vec![format!(
        "A started at {} and B at {}. They were not interleaved, so changes on the machine between them show as \
         differences too, which the intervals do not cover. To compare servers in one run, use throng compare.",
        a.started_at, b.started_at
    )];
    for (name, run) in [("A", a), ("B", b)] {
        let how = match run.ending {
            Ending::Complete => continue,
            Ending::Interrupted => "was interrupted",
            Ending::HostLost => "ended when a client host was lost",
            Ending::ServerFailed => "ended when a server did not start or answer properly",
            Ending::Unfinished => "is not finished",
        };
        notes.push(format!(
            "{name} {how}: it has {} of {}.",
            run.trials,
            counted(run.trials_planned, "trial")
        ));
    }
    notes
}

/// The measurements of each record, if they have none in common.
pub(super) fn apart(a: &StoredRecord, b: &StoredRecord) -> String {
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
    let of = |recorded: &StoredRecord| {
        let runs: Vec<String> = match &recorded.study {
            Some(_) => recorded.directories(),
            None => recorded.measured().map(|(run, _)| of_run(run)).collect(),
        };
        format!("{} has {}", recorded.directory, list(&runs))
    };
    format!("{}, and {}", of(a), of(b))
}
