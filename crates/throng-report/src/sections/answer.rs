//! The answer: one sentence and one picture, then all sentences.

use super::{comparison, limits, results};
use crate::Report;
use crate::document::{Block, Medium, Role, Text, Tone};
use crate::figures::OfSection;
use crate::grade::{Grade, Level};

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let answer = &report.answer;
    let picture = report
        .figures
        .iter()
        .find(|figure| figure.section == OfSection::Answer)
        .map(|figure| Block::Picture(Box::new(figure.clone())));
    let mut first = vec![Block::paragraph(Role::Lead, &answer.first)];
    if report.limits.is_none() {
        first.push(Block::Paragraph(Role::Body, grade(&report.grade)));
    }
    first.extend(picture);
    let pair = comparison::of_one_pair(report);
    let is_pair = pair.is_some();
    let of_one = || results::of_one_server(report).map(|table| vec![table]);
    let tables = match report.limits {
        Some(_) => limits::around(report).into_iter().collect(),
        None => pair.or_else(of_one).unwrap_or_default(),
    }
    .into_iter()
    .filter(|block| !matches!(block, Block::Heading(_)));
    first.push(Block::Except(&[Medium::Markdown], tables.collect()));
    let rest = answer.headline.iter().filter(|one| **one != answer.first);
    let sentences = Block::list(rest);
    let mut whole = Vec::new();
    match report.limits {
        Some(_) => first.push(sentences),
        None => whole.push(sentences),
    }
    if is_pair {
        whole.push(Block::paragraph(Role::Hint, comparison::HINT));
    }
    if !answer.others.is_empty() {
        whole.push(Block::Heading("With fewer clients".into()));
        whole.push(Block::list(&answer.others));
    }
    let notes = answer.notes.iter();
    whole.extend(notes.map(|note| Block::paragraph(Role::Fine, note)));
    whole.retain(|block| !matches!(block, Block::List(list) if list.items.is_empty()));
    if !whole.is_empty() {
        first.push(Block::Fold(
            "The whole answer, with intervals".into(),
            whole,
        ));
    }
    vec![
        Block::Except(&[Medium::Terminal], first),
        Block::Except(&[Medium::Html, Medium::Markdown], in_full(report)),
    ]
}

/// Everything in one go, the most important sentence first.
fn in_full(report: &Report<'_>) -> Vec<Block> {
    let answer = &report.answer;
    let mut blocks = Vec::new();
    let mut role = Role::Lead;
    // For a single pair, its own sentence says the same with intervals.
    let lead = Some(&answer.first).filter(|_| answer.is_led());
    // For several, a table says it, except why some are not compared.
    let several = comparison::of_several(report);
    let is_shown = |sentence: &&String| {
        let mut pairs = report.comparison.all_pairs();
        let is_in_table =
            pairs.any(|pair| pair.not_compared.is_none() && pair.sentence == **sentence);
        several.is_none() || !is_in_table
    };
    let shown = answer.headline.iter().filter(is_shown);
    for sentence in lead.into_iter().chain(shown) {
        blocks.push(Block::paragraph(role, sentence));
        if role == Role::Lead && report.limits.is_none() {
            blocks.push(Block::Paragraph(Role::Body, grade(&report.grade)));
        }
        role = Role::Body;
    }
    blocks.extend(limits::around(report));
    if let Some(table) = several {
        blocks.push(Block::Heading(table.caption.as_str().into()));
        blocks.push(Block::Table(table));
    } else if !answer.others.is_empty() {
        blocks.push(Block::Heading("With fewer clients".into()));
        blocks.push(Block::list(&answer.others));
    }
    let notes = answer.notes.iter();
    blocks.extend(notes.map(|note| Block::paragraph(Role::Fine, note)));
    blocks
}

/// "Grade: rough (only 3 rounds; intervals need at least 6)."
fn grade(grade: &Grade) -> Text {
    let tone = match grade.level {
        Level::Good => Tone::Good,
        Level::Rough => Tone::Quiet,
        Level::Unusable => Tone::Bad,
    };
    let text = Text::default()
        .plain("Grade: ")
        .toned(grade.level.text(), tone);
    let causes: Vec<&str> = grade
        .causes
        .iter()
        .map(|cause| cause.text.as_str())
        .collect();
    match causes.as_slice() {
        [] => text,
        causes => text.plain(format!(" ({}).", causes.join("; "))),
    }
}
