//! Servers beside the one that they are compared with, for a terminal.

use std::fmt::Write as _;

use anstyle::Style;

use super::{BAD, GOOD, Paint, QUIET, STRONG, printable, sentences, wrap};
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
    let both = |pair: &&Pair| {
        pair.measures
            .iter()
            .any(|m| m.value.is_some() && m.reference.is_some())
    };
    for pair in comparison.all_pairs().filter(both) {
        table(&mut text, pair, &paint);
    }
    demands(&mut text, comparison, width, &paint);
    text.push('\n');
    for note in &answer.notes {
        wrap(&mut text, note, width, "", |line| paint.with(QUIET, line));
    }
    text
}

fn table(text: &mut String, pair: &Pair, paint: &Paint) {
    let short = |name: &str| -> String { printable(name).chars().take(WIDEST_NAME).collect() };
    let clients = counted(pair.clients, "client");
    let heading = [
        clients.as_str(),
        &short(&pair.reference),
        &short(&pair.server),
        "Ratio (95 %)",
    ];
    let cells: Vec<[String; 4]> = pair.measures.iter().map(Measured::cells).collect();
    let columns = heading.iter().enumerate().map(|(column, heading)| {
        let cell = |line: usize| match column {
            0 => pair.measures[line].title,
            _ => cells[line][column - 1].as_str(),
        };
        let lines = 0..pair.measures.len();
        let widest = lines.map(|line| cell(line).chars().count()).max();
        widest.unwrap_or(0).max(heading.chars().count())
    });
    let widths: Vec<usize> = columns.collect();
    let line = |cells: [&str; 4]| {
        let [title, reference, server, ratio] = cells;
        let (title, width) = (title.to_owned(), widths[0]);
        let mut line = format!("{title:width$}");
        for (cell, width) in [reference, server, ratio].into_iter().zip(&widths[1..]) {
            let _ = write!(line, "  {cell:>width$}");
        }
        line
    };
    let _ = writeln!(text, "\n{}", paint.with(STRONG, &line(heading)));
    for (measured, [reference, server, ratio, verdict]) in pair.measures.iter().zip(&cells) {
        let style = match measured.verdict {
            Word::Better => GOOD,
            Word::Worse => BAD,
            Word::NotDistinguishable | Word::Withheld => QUIET,
        };
        let line = line([measured.title, reference, server, ratio]);
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
