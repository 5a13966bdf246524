//! The command that repeats the run.

use crate::document::{Block, Medium, Role, Section};
use crate::{Report, facts};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    of(
        &report.run.arguments,
        "The same seed gives the same order of trials. The data is in run.json and trials.jsonl next to this file, the \
         numbers in summary.json.",
    )
}

/// A command line, and what the report was made from.
pub(super) fn of(arguments: &[String], source: &str) -> Option<Section> {
    let blocks = vec![
        Block::Code(facts::command_line(arguments)),
        Block::paragraph(Role::Hint, source),
    ];
    Some(Section::of("repeat", "How to repeat", blocks)?.except(&[Medium::Terminal]))
}
