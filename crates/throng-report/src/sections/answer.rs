//! The answer in words.

use crate::Report;
use crate::document::{Block, Kind, Role, Section, Text, Tone};
use crate::grade::{Grade, Level};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let answer = &report.answer;
    let mut blocks = Vec::new();
    let mut role = Role::Lead;
    for sentence in &answer.headline {
        blocks.push(Block::paragraph(role, sentence));
        if role == Role::Lead && report.limits.is_none() {
            blocks.push(Block::Paragraph(Role::Body, grade(&report.grade)));
        }
        role = Role::Body;
    }
    if !answer.others.is_empty() {
        blocks.push(Block::Heading("With fewer clients".into()));
        blocks.push(Block::list(&answer.others));
    }
    let notes = answer.notes.iter();
    blocks.extend(notes.map(|note| Block::paragraph(Role::Fine, note)));
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// "Grade: rough: 3 rounds measured, and intervals need at least 6. Also: ..."
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
        [] => text.plain("."),
        causes => text.plain(format!(" ({}).", causes.join("; "))),
    }
}
