//! The answer in words.

use crate::Report;
use crate::document::{Block, Kind, Role, Section};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let answer = &report.answer;
    let mut blocks = Vec::new();
    let mut role = Role::Lead;
    for sentence in &answer.headline {
        blocks.push(Block::paragraph(role, sentence));
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
