//! What came of each claim, and the answer of each part in a line.

use crate::document::{Block, Kind, List, Medium, Role, Section, Style, Text, Tone};
use crate::grade::Level;
use crate::study::claims::{Finding, Judged, JudgedCheck};
use crate::study::{PartReport, StudyReport};
use throng_record::format::counted;

pub(super) fn section(report: &StudyReport<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    if let Some(summary) = &report.study.summary {
        blocks.push(Block::paragraph(Role::Hint, summary));
    }
    if let Some(note) = report.scale_note() {
        blocks.push(Block::Warning(note, String::new()));
    }
    blocks.push(Block::List(List {
        items: report.claims.iter().map(claim).collect(),
        at_once: None,
    }));
    let parts = Block::list(report.parts.iter().map(part));
    blocks.push(Block::Except(&[Medium::Markdown], vec![parts]));
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

fn claim(claim: &Judged) -> (Text, Vec<Block>) {
    let mut blocks = vec![Block::paragraph(Role::Body, &claim.sentence)];
    if let Some(mechanism) = &claim.mechanism {
        let line = Text::default()
            .strong("Mechanism: ")
            .plain(mechanism.line());
        blocks.push(Block::Paragraph(Role::Body, line));
    }
    if let Some(fidelity) = &claim.fidelity {
        blocks.push(Block::paragraph(Role::Fine, format!("Setting: {fidelity}")));
    }
    let checks = claim.checks.iter();
    let of_cause = claim
        .mechanism
        .iter()
        .flat_map(|mechanism| &mechanism.checks);
    let checks = Block::List(List {
        items: checks.chain(of_cause).map(check).collect(),
        at_once: None,
    });
    let mut summary = counted(claim.checks.len() as u32, "check");
    if let Some(p) = claim.p {
        summary += &format!(", p = {p:.4} with all of this study corrected together (Holm)");
    }
    blocks.push(Block::Fold(summary.into(), vec![checks]));
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
    let missing = missing.map(|why| format!("Not looked at: {why}").into());
    let all = evidence.chain(missing).collect::<Vec<Text>>();
    (text, vec![Block::list(all)])
}

fn verdict(finding: Finding) -> Text {
    let tone = match finding {
        Finding::Confirmed => Tone::Good,
        Finding::Refuted => Tone::Bad,
        Finding::Equivalent | Finding::Inconclusive | Finding::Censored | Finding::NotTestable => {
            Tone::Quiet
        }
    };
    Text::default().toned(finding.text(), tone)
}

/// "The title: what it says first."
fn part(part: &PartReport<'_>) -> Text {
    let says = match (&part.record.skipped, &part.report) {
        (Some(why), _) => format!("not run here: {why}."),
        (None, Some(report)) if !report.trials.is_empty() => {
            let first = report.answer.headline.first();
            let first = first.cloned().unwrap_or_default();
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
