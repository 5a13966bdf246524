//! The verdict on each claim, and the answer of each part in one line.

use crate::document::{Block, Kind, List, Medium, Role, Section, Style, Text, Tone};
use crate::glance;
use crate::grade::Level;
use crate::study::claims::{ClaimVerdict, JudgedCheck, JudgedClaim, p_value};
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
    let mechanism = claim.mechanism.as_ref().map(|mechanism| {
        let line = Text::default()
            .strong("Mechanism: ")
            .plain(mechanism.line());
        Block::Paragraph(Role::Body, line)
    });
    if let Some(mechanism) = &mechanism {
        folded.push(mechanism.clone());
        names.push("mechanism".to_owned());
    }
    if let Some(fidelity) = &claim.fidelity {
        let text = format!("Differences from the source: {fidelity}");
        folded.push(Block::paragraph(Role::Fine, text));
        names.push("differences from the source".to_owned());
    }
    let checks = claim.checks.iter();
    let of_cause = claim
        .mechanism
        .iter()
        .flat_map(|mechanism| &mechanism.checks);
    folded.push(Block::List(List {
        items: checks.chain(of_cause).map(check).collect(),
        at_once: None,
    }));
    names.push(counted(claim.checks.len() as u32, "check"));
    let p = match claim.p {
        None => String::new(),
        Some(p) if p < 0.0001 => " (p < 0.0001, Holm-corrected)".to_owned(),
        Some(p) => format!(" (p = {}, Holm-corrected)", p_value(p)),
    };
    let blocks = vec![
        Block::paragraph(Role::Body, &claim.sentence),
        Block::Except(
            &[Medium::Html, Medium::Markdown],
            mechanism.into_iter().collect(),
        ),
        Block::Fold(format!("Details: {}{p}", list(&names)).into(), folded),
    ];
    (
        verdict(claim.verdict).plain(": ").strong(&claim.text),
        blocks,
    )
}

fn check(check: &JudgedCheck) -> (Text, Vec<Block>) {
    let text = verdict(check.verdict).plain(format!(": {}", check.text));
    let evidence = check.evidence.iter();
    let evidence = evidence.map(|one| verdict(one.verdict).plain(format!(": {}", one.sentence)));
    let missing = check.missing.iter();
    let missing = missing.map(|why| format!("Not checked: {why}").into());
    let all = evidence.chain(missing).collect::<Vec<Text>>();
    (text, vec![Block::list(all)])
}

fn verdict(finding: ClaimVerdict) -> Text {
    let tone = match finding {
        ClaimVerdict::Confirmed => Tone::Good,
        ClaimVerdict::Refuted => Tone::Bad,
        ClaimVerdict::Equivalent
        | ClaimVerdict::Inconclusive
        | ClaimVerdict::Censored
        | ClaimVerdict::NotTestable => Tone::Quiet,
    };
    Text::default().toned(finding.text(), tone)
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
