//! Failed trials, with the last output of the server.

use crate::Report;
use crate::document::{Block, Medium, Role, Section};
use throng_record::format::counted;
use throng_record::{Failure, Trial, set_aside};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let trials = report.trials.iter();
    let failed = trials.filter_map(|trial| Some(of(report, trial, trial.failure.as_ref()?)));
    let invalid = set_aside(report.trials);
    let invalid = invalid.map(|(trial, invalid, replaced)| {
        let clients = counted(trial.clients, "client");
        let repeated = if replaced { "; repeated" } else { "" };
        super::server(report, &trial.server).plain(format!(
            ", {clients}, {}: invalid, {}{repeated}",
            trial.occasion(),
            invalid.text
        ))
    });
    let invalid: Vec<_> = invalid.collect();
    let list = (!invalid.is_empty()).then(|| Block::list(invalid));
    let blocks = list.into_iter().chain(failed).collect();
    let section = Section::of("failed", "Failed and invalid trials", blocks)?;
    Some(section.except(&[Medium::Terminal]))
}

fn of(report: &Report<'_>, trial: &Trial, failure: &Failure) -> Block {
    let clients = counted(trial.clients, "client");
    let summary = super::server(report, &trial.server).plain(format!(
        ", {clients}, {}: {}",
        trial.occasion(),
        failure.reason
    ));
    let output = if failure.output.is_empty() {
        Block::paragraph(Role::Body, "No output.")
    } else {
        Block::Code(failure.output.clone())
    };
    let stage = format!("Stage: {}.", failure.stage);
    Block::Fold(summary, vec![Block::paragraph(Role::Body, stage), output])
}
