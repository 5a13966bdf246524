//! Findings about the run and about single trials.

use crate::Report;
use crate::document::{Block, Medium, Section, Text};
use throng_record::Finding;
use throng_record::format::counted;

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let mut blocks = blocks(&report.run.findings);
    let trials = report.trials.iter();
    let of_trials: Vec<Text> = trials
        .flat_map(|trial| trial.findings.iter().map(move |finding| (trial, finding)))
        .map(|(trial, finding)| {
            let with = format!(
                ", {}, {}: ",
                counted(trial.clients, "client"),
                trial.occasion()
            );
            let text = format!("{with}{} – {}", finding.text, finding.remedy);
            Text::default().strong(&trial.server).plain(text)
        })
        .collect();
    let summary = format!("Warnings about single trials ({})", of_trials.len());
    blocks.push(Block::Fold(summary.into(), vec![Block::list(of_trials)]));
    Some(Section::of("warnings", "Warnings", blocks)?.except(&[Medium::Terminal]))
}

/// One block per finding, with its remedy.
pub(super) fn blocks(findings: &[Finding]) -> Vec<Block> {
    let findings = findings.iter();
    findings
        .map(|finding| Block::Warning(finding.text.clone(), finding.remedy.clone()))
        .collect()
}
