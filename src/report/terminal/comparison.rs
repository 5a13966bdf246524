//! Servers beside the one that they are compared with, for a terminal.

use std::fmt::Write as _;

use anstyle::Style;

use super::{BAD, GOOD, Paint, QUIET, STRONG, grid, printable, sentences, wrap};
use crate::report::answer::Answer;
use crate::report::comparison::{Comparison, Measured, Pair, Word};
use crate::report::format::counted;
use crate::report::summary::Summary;

/// Names longer than this are cut.
const WIDEST_NAME: usize = 20;

/// The comparison as text of at most `width` columns, ending with a line break: what it says, then a
/// table for each pair, then what was demanded.
pub fn comparison(
    summary: &Summary,
    answer: &Answer,
    comparison: &Comparison,
    width: usize,
    colour: bool,
) -> String {
    let paint = Paint(colour);
    if comparison.all_pairs().next().is_none() {
        let mut text = super::table(summary, width, colour);
        demands(&mut text, comparison, width, &paint);
        return text;
    }
    let mut text = sentences(answer, width, &paint);
    for pair in comparison.all_pairs() {
        table(&mut text, pair, &paint);
    }
    super::below::table(&mut text, summary, width, &paint);
    demands(&mut text, comparison, width, &paint);
    text.push('\n');
    for note in &answer.notes {
        wrap(&mut text, note, width, "", |line| paint.with(QUIET, line));
    }
    text
}

/// A pair: what both have, the ratio and the verdict.
pub(super) fn table(text: &mut String, pair: &Pair, paint: &Paint) {
    let both = |m: &Measured| m.value.is_some() && m.reference.is_some();
    if !pair.measures.iter().any(both) {
        return;
    }
    let short = |name: &str| -> String { printable(name).chars().take(WIDEST_NAME).collect() };
    let clients = counted(pair.clients, "client");
    let heading = [
        clients.as_str(),
        &short(&pair.reference),
        &short(&pair.server),
        "Ratio (95 %)",
    ];
    let cells: Vec<[String; 4]> = pair.measures.iter().map(Measured::cells).collect();
    let rows = pair.measures.iter().zip(&cells).map(|(measured, cells)| {
        let [reference, server, ratio, _] = cells;
        vec![measured.title, reference, server, ratio]
    });
    let rows: Vec<Vec<&str>> = std::iter::once(heading.to_vec()).chain(rows).collect();
    let mut lines = grid::lines(&rows).into_iter();
    let heading = lines.next().unwrap_or_default();
    let _ = writeln!(text, "\n{}", paint.with(STRONG, &heading));
    for ((measured, [.., verdict]), line) in pair.measures.iter().zip(&cells).zip(lines) {
        let style = match measured.verdict {
            Word::Better => GOOD,
            Word::Worse => BAD,
            Word::NotDistinguishable | Word::Withheld => QUIET,
        };
        let _ = writeln!(text, "{line}  {}", paint.with(style, verdict));
    }
}

fn demands(text: &mut String, comparison: &Comparison, width: usize, paint: &Paint) {
    if comparison.demands.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", paint.with(STRONG, "Thresholds"));
    for judged in &comparison.demands {
        let style: Style = if judged.missed { BAD } else { QUIET };
        let sentence = format!(
            "{:6} {} with {}: fail if {}: {}",
            judged.word(),
            judged.server,
            counted(judged.clients, "client"),
            judged.demand,
            judged.seen
        );
        wrap(text, &sentence, width, "", |line| paint.with(style, line));
    }
}
