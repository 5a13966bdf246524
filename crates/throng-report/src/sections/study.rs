//! A study of several parts: its claims, published and measured values, then each part.

mod answering;
mod cases;
mod claims;
mod marks;
mod published;
mod scenes;

use super::{TAGLINE, conditions, ending, host, sections};
use crate::document::{Block, Document, Kind, Medium, Role, Section, Style, Text};
use crate::study::{PartReport, StudyReport};
use throng_record::format::counted;

/// The document of a study.
pub fn of_study(report: &StudyReport<'_>) -> Document {
    let study = report.study;
    let reports = || report.parts.iter().filter_map(|part| part.report.as_ref());
    let trials: u32 = reports().map(|of_part| of_part.summary.trials_run).sum();
    let mut badges: Vec<Text> = vec![
        counted(study.parts.len() as u32, "part").into(),
        counted(trials, "trial").into(),
    ];
    if !report.claims.is_empty() {
        badges.insert(1, counted(report.claims.len() as u32, "claim").into());
    }
    badges.extend(reports().next().map(host));
    badges.push(study.started_at.as_str().into());
    badges.extend(ending(report.ending()));
    let cases = report.cases();
    let mut all = Vec::new();
    if !cases.is_empty() {
        all.extend(cases::section(report, &cases));
    } else if report.has_scenes() {
        all.extend(scenes::sections(report));
        if !report.claims.is_empty() {
            all.extend(claims::section(report).map(|section| Section {
                id: "verdicts".to_owned(),
                title: "Claims".to_owned(),
                kind: Kind::Plain,
                ..section
            }));
        }
        all.extend(claims::details(report));
        all.extend(published::section(report));
    } else {
        all.extend(claims::section(report));
        all.extend(published::section(report));
        all.extend(claims::details(report));
        all.extend(report.parts.iter().map(part));
    }
    let source = "The data is in study.json and the directories of the parts next to this file, the numbers in summary.json.";
    let command = conditions::command(&study.arguments, source);
    let repeat = Section::of("repeat", "How to repeat", command);
    all.extend(repeat.map(|section| section.except(&[Medium::Terminal])));
    Document {
        title: study.name.clone(),
        question: study.question.clone(),
        tagline: TAGLINE,
        badges,
        sections: all,
        version: study.throng_version.clone(),
    }
}

fn part(part: &PartReport<'_>) -> Section {
    let record = part.record;
    let question = Block::paragraph(Role::Hint, &record.question);
    let mut blocks = vec![question];
    if let Some(why) = &record.skipped {
        blocks.push(Block::Warning(
            format!("Not run on this machine: {why}"),
            String::new(),
        ));
    }
    let left_out = record.left_out.iter();
    blocks.extend(left_out.map(|left_out| Block::Warning(left_out.words(), String::new())));
    if !record.scaled.is_empty() {
        let scaled = format!("Changed settings: {}.", record.scaled_in_words());
        blocks.push(Block::paragraph(Role::Hint, scaled));
    }
    let mut of_part = Vec::new();
    if let Some(report) = &part.report {
        let page = Style::Link(format!("{}/report.html", record.name));
        let text = Text::default().then("This part on its own page", page);
        let link = vec![Block::Paragraph(Role::Hint, text)];
        blocks.push(Block::Except(&[Medium::Markdown, Medium::Terminal], link));
        of_part = sections(report);
    }
    Section {
        id: record.name.clone(),
        title: record.title.clone(),
        kind: Kind::Part,
        blocks,
        sections: of_part,
        // A terminal shows the answer of each part in one line.
        omit: &[Medium::Terminal],
    }
}
