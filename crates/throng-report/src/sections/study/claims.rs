//! The verdict on each claim, and the answer of each part in one line.

use super::answering;
use crate::document::{
    Block, Cell, Column, Kind, List, Medium, NOT_IN_TERMINAL, Role, Row, Section, Style, Table,
    Text, Tone,
};
use crate::glance;
use crate::grade::Level;
use crate::study::claims::{ClaimCell, ClaimVerdict, JudgedCause, JudgedClaim};
use crate::study::{PartReport, StudyReport};
use throng_record::format::{counted, list};

pub(super) fn section(report: &StudyReport<'_>) -> Option<Section> {
    let mut blocks = answering::blocks(report);
    let is_answered = !blocks.is_empty();
    let leader = leading(&report.claims).filter(|_| !is_answered);
    blocks.extend(leader.map(|claim| {
        let JudgedClaim { text, verdict, .. } = claim;
        let said = text.trim_end_matches('.');
        Block::paragraph(Role::Lead, format!("{said}: {}.", verdict.text()))
    }));
    let shown = leader.and_then(|claim| claim.telling());
    blocks.extend(shown.map(|cell| Block::paragraph(Role::Body, &cell.seen)));
    if !report.claims.is_empty() || report.study.scale.is_some() {
        let role = match leader {
            None if !is_answered => Role::Lead,
            _ => Role::Body,
        };
        blocks.push(Block::paragraph(role, glance::sentence(report)));
    }
    if !report.claims.is_empty() {
        let full = Block::Table(matrix(&report.claims));
        if is_answered {
            // The section about the claims has the rest.
            let [on_page, elsewhere]: [&'static [Medium]; 2] =
                [&[Medium::Markdown, Medium::Terminal], &[Medium::Html]];
            let short = Block::Table(verdicts(&report.claims));
            blocks.push(Block::Except(on_page, vec![short]));
            blocks.push(Block::Except(elsewhere, vec![full]));
        } else {
            blocks.push(full);
        }
    }
    let each = vec![Block::list(report.parts.iter().map(part))];
    let folded = Block::Fold("Each part in one line".into(), each);
    let no_page = &[Medium::Markdown, Medium::Terminal];
    blocks.push(Block::Except(no_page, vec![folded]));
    if !report.has_scenes() && !is_answered {
        let listed = vec![Block::list(report.parts.iter().map(part))];
        blocks.push(Block::Except(&[Medium::Markdown, Medium::Html], listed));
    }
    if !report.study.changed.is_empty() {
        let title = Block::paragraph(Role::Body, "What differs from the published setting:");
        let bullets = Block::list(report.study.changed.iter().map(String::as_str));
        blocks.push(Block::Except(&[Medium::Terminal], vec![title, bullets]));
    }
    blocks.extend(summary(report).filter(|_| !report.has_scenes()));
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// The claim that answers the study's question, if it is decided; otherwise the first that is.
fn leading(claims: &[JudgedClaim]) -> Option<&JudgedClaim> {
    let mut decided = claims.iter().filter(|claim| claim.verdict.is_decided());
    let first = decided.clone().next();
    decided.find(|claim| claim.leads).or(first)
}

/// A row per claim: the verdict.
fn verdicts(claims: &[JudgedClaim]) -> Table {
    let row = |claim: &JudgedClaim| Row::of(verdict(claim.verdict), vec![Cell::plain(&claim.text)]);
    let columns = vec![Column::text("Here"), Column::text("Claim")];
    Table::of("Claims", columns, claims.iter().map(row).collect())
}

/// A row per claim: the verdict, its comparisons counted, and the cause.
fn matrix(claims: &[JudgedClaim]) -> Table {
    let cells = || claims.iter().flat_map(|claim| &claim.cells);
    let has_published = cells().any(|cell| cell.published.is_some());
    let row = |claim: &JudgedClaim| {
        let cause = claim.cause.as_ref().and_then(JudgedCause::stated);
        let mut row = vec![
            Cell::plain(&claim.text),
            Cell::plain(counts(claim.cells.iter().map(|cell| cell.verdict))),
            Cell::plain(cause.unwrap_or_default()),
        ];
        if has_published {
            let theirs = claim.cells.iter().filter_map(|cell| cell.published);
            row.insert(2, Cell::plain(counts(theirs)));
        }
        Row::of(verdict(claim.verdict), row)
    };
    let beside = |title: &str| Column {
        drop: NOT_IN_TERMINAL,
        ..Column::text(title)
    };
    let mut columns = vec![
        Column::text("Here"),
        Column::text("Claim"),
        beside("Comparisons"),
        beside("Why"),
    ];
    if has_published {
        let theirs = Column {
            note: "The same comparisons with the published values, which have no intervals."
                .to_owned(),
            ..beside("By published values")
        };
        columns.insert(3, theirs);
    }
    Table::of("Claims", columns, claims.iter().map(row).collect())
}

/// "3 yes, 1 no": the comparisons of a claim.
fn counts(verdicts: impl Iterator<Item = ClaimVerdict>) -> String {
    let all: Vec<ClaimVerdict> = verdicts.collect();
    let counts = ClaimVerdict::ALL.into_iter().filter_map(|verdict| {
        let count = all.iter().filter(|one| **one == verdict).count();
        (count > 0).then(|| format!("{count} {}", verdict.text()))
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// Every claim with its numbers.
pub(super) fn details(report: &StudyReport<'_>) -> Option<Section> {
    let items: Vec<(Text, Vec<Block>)> = report.claims.iter().map(claim).collect();
    let list = (!items.is_empty()).then_some(List {
        items,
        at_once: None,
    });
    let blocks = list.map(Block::List).into_iter().collect();
    let section = Section::of("claims", "The claims, one by one", blocks)?;
    Some(section.except(&[Medium::Terminal]))
}

/// What the study does, unless it did less.
pub(super) fn summary(report: &StudyReport<'_>) -> Option<Block> {
    let summary = report
        .study
        .summary
        .as_ref()
        .filter(|_| report.study.scale.is_none());
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
    let of_cause = claim
        .cause
        .iter()
        .flat_map(|shown_cause| &shown_cause.cells);
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
    let published = cell.published.map_or_else(String::new, |verdict| {
        format!(" The published values say: {}.", verdict.text())
    });
    verdict(cell.verdict).plain(format!(": {}{published}", cell.seen))
}

fn tone(verdict: ClaimVerdict) -> Tone {
    match verdict {
        ClaimVerdict::Yes => Tone::Good,
        ClaimVerdict::No => Tone::Bad,
        _ => Tone::Quiet,
    }
}

fn verdict(verdict: ClaimVerdict) -> Text {
    Text::default().toned(verdict.text(), tone(verdict))
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
