//! A run compared with its repeat.

use crate::document::{
    Block, Cell, Column, Document, Group, Kind, Medium, Role, Row, Section, Table, Tone,
};
use crate::grade::Grade;
use crate::reproduction::{Outcome, Part, RepeatedVerdict, Reproduction, RunVerdict};
use throng_record::format::{capitalized, counted};

/// How to read the tables.
const HINT: &str = "Ratios compare the first server with the second, with 95 % intervals. A verdict is not reproduced if the \
    repeat contradicts it: the difference is in the other direction, or it is gone and the two intervals do not overlap. This \
    version of throng judges both runs.";

/// The document of a reproduction.
pub fn of_reproduction(reproduction: &Reproduction) -> Document {
    let mut sections: Vec<Section> = answer(reproduction).into_iter().collect();
    sections.extend(claims(reproduction));
    for part in &reproduction.parts {
        let own = [verdicts(part), limits(part)].into_iter().flatten();
        match &part.name {
            None => sections.extend(own),
            Some(name) => sections.push(Section {
                id: name.clone(),
                title: name.clone(),
                kind: Kind::Part,
                blocks: Vec::new(),
                sections: own.collect(),
                omit: &[],
            }),
        }
    }
    sections.extend(differences(reproduction));
    let both = [
        ("Original", &reproduction.earlier),
        ("Repeat", &reproduction.again),
    ];
    Document {
        title: "Reproduction".to_owned(),
        question: reproduction.question.clone(),
        tagline: "a run and its repeat",
        badges: both
            .map(|(when, place)| format!("{when}: {place}").into())
            .to_vec(),
        sections,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn answer(reproduction: &Reproduction) -> Option<Section> {
    let mut blocks = vec![Block::paragraph(Role::Lead, &reproduction.headline)];
    let failed = reproduction.not_held.iter();
    blocks.extend(failed.map(|sentence| {
        let message = format!("Not reproduced: {sentence}.");
        Block::Warning(message, String::new())
    }));
    blocks.extend(reproduction.parts.iter().map(|part| {
        let prefix = part.prefix();
        let [then, now] = [&part.earlier_grade, &part.again_grade].map(grade);
        let text = format!("{prefix}grade of the original: {then}; grade of the repeat: {now}.");
        Block::paragraph(Role::Body, capitalized(&text))
    }));
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// "rough (only 3 rounds)".
fn grade(grade: &Grade) -> String {
    let cause = grade.cause().map(|cause| format!(" ({cause})"));
    grade.level.text().to_owned() + &cause.unwrap_or_default()
}

/// One table per pair of servers.
fn verdicts(part: &Part) -> Option<Section> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for repeated in &part.verdicts {
        let name = (repeated.server.as_str(), repeated.reference.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut blocks = vec![Block::paragraph(Role::Hint, HINT)];
    for (server, reference) in names {
        let own = part.verdicts.iter();
        let own = own.filter(|one| one.server == server && one.reference == reference);
        let mut groups: Vec<(u32, Vec<Row>)> = Vec::new();
        for repeated in own {
            match groups.last_mut() {
                Some((clients, rows)) if *clients == repeated.clients => rows.push(row(repeated)),
                _ => groups.push((repeated.clients, vec![row(repeated)])),
            }
        }
        let caption = format!("{server} compared with {reference}");
        let groups = groups.into_iter().map(|(clients, rows)| Group {
            title: counted(clients, "client"),
            rows,
        });
        blocks.push(Block::Heading(caption.as_str().into()));
        blocks.push(Block::Table(Table {
            caption,
            columns: columns(""),
            groups: groups.collect(),
            best_of: "",
        }));
    }
    Section::of("verdicts", "Verdicts", blocks)
}

fn columns(first: &str) -> Vec<Column> {
    [first, "Original", "Repeat", "Verdict"]
        .map(Column::text)
        .to_vec()
}

fn row(repeated: &RepeatedVerdict) -> Row {
    let again = repeated.again.as_ref();
    let mut seen = [Some(&repeated.earlier), again].into_iter().flatten();
    let why = seen.find_map(|seen| seen.why.as_deref());
    let size = if repeated.other_size {
        ", but the size differs"
    } else {
        ""
    };
    let words = repeated.outcome.text().to_owned() + size;
    let cells = vec![
        Cell::plain(repeated.earlier.text()),
        Cell::plain(again.map_or_else(|| "not measured".to_owned(), RunVerdict::text)),
        Cell {
            text: words,
            ..cell(repeated.outcome).with(why.unwrap_or_default())
        },
    ];
    Row::of(repeated.title, cells)
}

fn cell(outcome: Outcome) -> Cell {
    let tone = match outcome {
        Outcome::Held => Tone::Good,
        Outcome::NotHeld => Tone::Bad,
        Outcome::NowInconclusive | Outcome::NotComparable | Outcome::NoVerdict => Tone::Quiet,
    };
    Cell::plain(outcome.text()).toned(tone)
}

fn limits(part: &Part) -> Option<Section> {
    let unit = part.limits.first()?.limits.unit;
    let rows = part.limits.iter().map(|limit| {
        let [then, now, ..] = limit.limits.cells();
        let why = limit.limits.why.as_deref().unwrap_or_default();
        let cells = vec![
            Cell::plain(then),
            Cell::plain(now),
            cell(limit.outcome).with(why),
        ];
        Row::of(&limit.limits.server, cells)
    });
    let first = format!("Server, {unit}");
    let table = Table::of("Limits", columns(&first), rows.collect());
    let hint = "The highest value that passed. A limit is not reproduced if a value passed in one run and failed in the other.";
    let blocks = vec![Block::paragraph(Role::Hint, hint), Block::Table(table)];
    Section::of("limits", "Limits", blocks)
}

fn claims(reproduction: &Reproduction) -> Option<Section> {
    let rows = reproduction.claims.iter().map(|claim| {
        let [then, now] = [claim.earlier, claim.again].map(|finding| Cell::plain(finding.text()));
        Row::of(&claim.text, vec![then, now, cell(claim.outcome)])
    });
    let table = Table::of("Claims", columns("Claim"), rows.collect());
    Section::of("claims", "Claims", vec![Block::Table(table)])
}

fn differences(reproduction: &Reproduction) -> Option<Section> {
    let rows = reproduction.differences.iter().map(|fact| {
        let cells = [&fact.a, &fact.b].map(Cell::plain).to_vec();
        Row::of(&fact.name, cells)
    });
    let columns = ["", "Original", "Repeat"].map(Column::text).to_vec();
    let table = Table::of("Differences between the runs", columns, rows.collect());
    let mut blocks = vec![Block::Table(table)];
    if reproduction.differences.is_empty() {
        let text = "The records show no difference.";
        blocks = vec![Block::paragraph(Role::Body, text)];
    }
    let hint = "These differences may explain why a verdict changed.";
    blocks.insert(
        0,
        Block::Except(
            &[Medium::Terminal],
            vec![Block::paragraph(Role::Hint, hint)],
        ),
    );
    Section::of("differences", "Differences between the runs", blocks)
}
