//! Warnings about the run and about single trials.

use crate::Report;
use crate::document::{Block, Medium, Section, Text};
use throng_record::Warning;
use throng_record::format::counted;

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let mut blocks = blocks(&report.run.warnings);
    let trials = report.trials.iter();
    let of_trials: Vec<Text> = trials
        .flat_map(|trial| trial.warnings.iter().map(move |warning| (trial, warning)))
        .map(|(trial, warning)| {
            let with = format!(
                ", {}, {}: ",
                counted(trial.clients, "client"),
                trial.occasion()
            );
            let text = format!("{with}{} – {}", warning.message, warning.remedy);
            Text::default().strong(&trial.server).plain(text)
        })
        .collect();
    let summary = format!("Warnings about single trials ({})", of_trials.len());
    blocks.push(Block::Fold(summary.into(), vec![Block::list(of_trials)]));
    Some(Section::of("warnings", "Warnings", blocks)?.except(&[Medium::Terminal]))
}

/// One block per warning, with its remedy.
pub(super) fn blocks(warnings: &[Warning]) -> Vec<Block> {
    let warnings = warnings.iter();
    warnings
        .map(|warning| Block::Warning(warning.message.clone(), warning.remedy.clone()))
        .collect()
}
