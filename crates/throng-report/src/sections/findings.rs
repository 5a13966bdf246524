//! Thresholds, warnings, and failed trials.

use crate::Report;
use crate::document::{Block, Role, Text, Tone};
use throng_record::format::counted;
use throng_record::{Failure, Finding, Trial, set_aside};

/// Thresholds, and whether they were met.
pub(super) fn thresholds(report: &Report<'_>) -> Vec<Block> {
    let items = report.thresholds.iter().map(|judged| {
        let tone = if judged.missed { Tone::Bad } else { Tone::Good };
        let clients = counted(judged.clients, "client");
        let (server, demand, seen) = (&judged.server, &judged.demand, &judged.seen);
        let text = format!(" {server} with {clients}: fail if {demand}: {seen}");
        Text::default().toned(judged.word(), tone).plain(text)
    });
    vec![Block::list(items)]
}

/// Findings about the run and about single trials.
pub(super) fn warnings(report: &Report<'_>) -> Vec<Block> {
    let mut blocks = of_run(&report.run.findings);
    let trials = report.trials.iter();
    let of_trials: Vec<Text> = trials
        .flat_map(|trial| {
            trial.findings.iter().map(move |finding| {
                let text = format!("{}: {} – {}", with(trial), finding.text, finding.remedy);
                Text::default().strong(&trial.server).plain(text)
            })
        })
        .collect();
    let summary = format!("Warnings about single trials ({})", of_trials.len());
    blocks.push(Block::Fold(summary.into(), vec![Block::list(of_trials)]));
    blocks
}

/// One block per finding, with its remedy.
pub(super) fn of_run(findings: &[Finding]) -> Vec<Block> {
    let each = findings.iter();
    each.map(|finding| Block::Warning(finding.text.clone(), finding.remedy.clone()))
        .collect()
}

/// Invalid trials, and failed ones with the last output of the server.
pub(super) fn failures(report: &Report<'_>) -> Vec<Block> {
    let invalid = set_aside(report.trials).map(|(trial, invalid, replaced)| {
        let repeated = if replaced { "; repeated" } else { "" };
        let text = format!("{}: invalid, {}{repeated}", with(trial), invalid.text);
        super::server(report, &trial.server).plain(text)
    });
    let failed = report
        .trials
        .iter()
        .filter_map(|trial| Some(of_trial(report, trial, trial.failure.as_ref()?)));
    std::iter::once(Block::list(invalid))
        .chain(failed)
        .collect()
}

fn of_trial(report: &Report<'_>, trial: &Trial, failure: &Failure) -> Block {
    let text = format!("{}: {}", with(trial), failure.reason);
    let summary = super::server(report, &trial.server).plain(text);
    let output = if failure.output.is_empty() {
        Block::paragraph(Role::Body, "No output.")
    } else {
        Block::Code(failure.output.clone())
    };
    let stage = format!("Stage: {}.", failure.stage);
    Block::Fold(summary, vec![Block::paragraph(Role::Body, stage), output])
}

/// ", 100 clients, round 2", after the name of a server.
fn with(trial: &Trial) -> String {
    let clients = counted(trial.clients, "client");
    format!(", {clients}, {}", trial.occasion())
}
