//! The verdict on each claim, and the answer of each part in one line.

use crate::document::{Block, Kind, List, Medium, Role, Section, Style, Text, Tone};
use crate::glance;
use crate::grade::Level;
use crate::study::claims::{ClaimCell, ClaimVerdict, JudgedClaim};
use crate::study::{PartReport, StudyReport};
use throng_record::format::{counted, list};

pub(super) fn section(report: &StudyReport<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    if !report.claims.is_empty() || report.study.scale.is_some() {
        blocks.push(Block::paragraph(Role::Lead, glance::sentence(report)));
    }
    blocks.push(Block::List(List {
        items: report.claims.iter().map(claim).collect(),
        at_once: None,
    }));
    let parts = Block::list(report.parts.iter().map(part));
    blocks.push(Block::Except(&[Medium::Markdown], vec![parts]));
    blocks.extend(summary(report));
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// What the study does, unless it did less.
pub(super) fn summary(report: &StudyReport<'_>) -> Option<Block> {
    let summary = report.study.summary.as_ref();
    let summary = summary.filter(|_| report.study.scale.is_none());
    summary.map(|summary| Block::paragraph(Role::Hint, summary))
}

/// The verdict with its reason; everything else is folded.
fn claim(claim: &JudgedClaim) -> (Text, Vec<Block>) {
    let (mut folded, mut names) = (Vec::new(), Vec::new());
    let cause = claim.cause.as_ref().map(|cause| {
        let line = Text::default().strong("Cause: ").plain(cause.line());
        Block::Paragraph(Role::Body, line)
    });
    if let Some(cause) = &cause {
        folded.push(cause.clone());
        names.push("cause".to_owned());
    }
    if let Some(fidelity) = &claim.fidelity {
        let text = format!("Differences from the source: {fidelity}");
        folded.push(Block::paragraph(Role::Fine, text));
        names.push("differences from the source".to_owned());
    }
    let of_cause = claim.cause.iter().flat_map(|cause| &cause.cells);
    folded.push(Block::list(claim.cells.iter().chain(of_cause).map(cell)));
    names.push(counted(claim.cells.len() as u32, "comparison"));
    let blocks = vec![
        Block::paragraph(Role::Body, &claim.sentence),
        Block::Except(
            &[Medium::Html, Medium::Markdown],
            cause.into_iter().collect(),
        ),
        Block::Fold(format!("Details: {}", list(&names)).into(), folded),
    ];
    (
        verdict(claim.verdict).plain(": ").strong(&claim.text),
        blocks,
    )
}

fn cell(cell: &ClaimCell) -> Text {
    verdict(cell.verdict).plain(format!(": {}", cell.seen))
}

fn verdict(verdict: ClaimVerdict) -> Text {
    let tone = match verdict {
        ClaimVerdict::Yes => Tone::Good,
        ClaimVerdict::No => Tone::Bad,
        _ => Tone::Quiet,
    };
    Text::default().toned(verdict.text(), tone)
}

/// "The title: what it says first."
fn part(part: &PartReport<'_>) -> Text {
    let says = match (&part.record.skipped, &part.report) {
        (Some(why), _) => format!("not run on this machine: {why}."),
        (None, Some(report)) if !report.trials.is_empty() => {
            let first = report.answer.first.clone();
            match report.grade.level {
                Level::Good => first,
                level => format!("{first} ({})", level.text()),
            }
        }
        (None, _) => "not run yet.".to_owned(),
    };
    let to = Style::Link(format!("#part-{}", part.record.name));
    let title = Text::default().then(&part.record.title, to);
    title.plain(format!(": {says}"))
}
