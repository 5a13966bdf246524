//! Two runs compared.

use super::comparison::{HINT, table, tables, tone};
use super::{ending, findings};
use crate::diff::figures::places;
use crate::diff::{Diff, Fact, LimitDiff, Part};
use crate::document::{
    Block, Cell, Column, Document, Figures, Kind, List, Medium, Role, Row, Section, Table, Text,
    Tone,
};
use crate::facts;
use crate::figures::Figure;
use throng_record::format::list;

/// Sentences that a page shows at once.
const AT_ONCE: usize = 6;

/// The names of the two runs in tables.
const HEADINGS: [&str; 2] = ["A", "B"];

/// The document of two runs.
pub fn of_diff(diff: &Diff) -> Document {
    let mut badges = Vec::new();
    for (name, side) in [("A", &diff.a), ("B", &diff.b)] {
        let name = Text::default().strong(name);
        badges.push(name.plain(format!(" {}", side.directory)));
        badges.extend(ending(side.ending));
    }
    let mut sections: Vec<Section> = [answer(diff), runs(diff)].into_iter().flatten().collect();
    let first = usize::from(first_picture(diff).is_some());
    for part in &diff.parts {
        match &part.name {
            None => sections.extend(of_part(part, first)),
            Some(name) => sections.push(Section {
                id: name.clone(),
                title: part.title.as_ref().unwrap_or(name).clone(),
                kind: Kind::Part,
                blocks: Vec::new(),
                sections: of_part(part, first),
                omit: &[],
            }),
        }
    }
    for (id, title, side) in [
        ("warnings-a", "Warnings of A", &diff.a),
        ("warnings-b", "Warnings of B", &diff.b),
    ] {
        let section = Section::of(id, title, findings::of_run(&side.findings));
        sections.extend(section.map(|section| section.except(&[Medium::Terminal])));
    }
    sections.extend(repeat(diff));
    Document {
        title: diff.title(),
        question: diff.b.question.clone(),
        tagline: "two runs compared",
        badges,
        sections,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn answer(diff: &Diff) -> Option<Section> {
    let mut blocks = vec![Block::paragraph(Role::Lead, &diff.headline)];
    let (made, more) = diff.made.words();
    let made = Text::default().strong(made).plain(more);
    blocks.push(Block::Paragraph(Role::Body, made));
    let caveats = diff.caveats.iter();
    blocks.extend(caveats.map(|caveat| Block::Warning(caveat.clone(), String::new())));
    let picture = first_picture(diff).map(|figure| Block::Picture(Box::new(figure.clone())));
    let no_files = &[Medium::Markdown, Medium::Terminal];
    blocks.push(Block::Except(no_files, picture.into_iter().collect()));
    let sentences = diff.sentences().into_iter();
    let items: Vec<(Text, Vec<Block>)> = sentences.map(|text| (text.into(), Vec::new())).collect();
    blocks.push(Block::List(List {
        items,
        at_once: Some(AT_ONCE),
    }));
    let notes = diff.notes.iter();
    blocks.extend(notes.map(|note| Block::paragraph(Role::Fine, note)));
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// The ratios shown with the answer, if there is a single part.
fn first_picture(diff: &Diff) -> Option<&Figure> {
    match diff.parts.as_slice() {
        [only] => only.figures.first(),
        _ => None,
    }
}

fn runs(diff: &Diff) -> Option<Section> {
    let mut blocks = vec![Block::Table(of_facts("The two runs", &diff.side()))];
    blocks.extend(only("Parts", &diff.only_in));
    Section::of("runs", "The two runs", blocks)
}

/// Facts about both runs, with differences marked.
fn of_facts(caption: &str, facts: &[Fact]) -> Table {
    let row = |fact: &Fact| {
        let tone = if fact.differs { Tone::Bad } else { Tone::Plain };
        let cells = [&fact.a, &fact.b].map(Cell::plain).into_iter();
        let word = Cell::plain(fact.word()).toned(tone);
        Row::of(&fact.name, cells.chain([word]).collect())
    };
    let columns = ["", "A", "B", ""].map(Column::text).to_vec();
    Table::of(caption, columns, facts.iter().map(row).collect())
}

fn only(what: &str, only: &[Vec<String>; 2]) -> Vec<Block> {
    let both = HEADINGS.iter().zip(only);
    let both = both.filter(|(_, only)| !only.is_empty());
    both.map(|(name, only)| {
        let text = format!("{what} only in {name}: {}.", list(only));
        Block::paragraph(Role::Fine, text)
    })
    .collect()
}

/// The sections of a part. Its first `first` figures are shown elsewhere.
fn of_part(part: &Part, first: usize) -> Vec<Section> {
    let mut made = vec![Block::Table(of_facts("Settings and machines", &part.facts))];
    made.extend(only("Servers and numbers of clients", &part.only_in));
    let made = Section::of("conditions", "Settings and machines", made);
    [
        limits(&part.limits),
        comparison(part),
        figures(part, first.min(part.figures.len())),
        made.map(|made| made.except(&[Medium::Terminal])),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn limits(limits: &[LimitDiff]) -> Option<Section> {
    let unit = limits.first()?.unit;
    let row = |limit: &LimitDiff| {
        let [a, b, ratio, verdict] = limit.cells();
        let why = limit.why.as_deref().unwrap_or_default();
        let verdict = Cell::plain(verdict).toned(tone(limit.verdict)).with(why);
        let cells = [a, b, ratio].map(Cell::plain).into_iter();
        Row::of(&limit.server, cells.chain([verdict]).collect())
    };
    let [a, b, ratio] = ["A", "B", "Ratio"].map(Column::number);
    let server = Column::text(format!("Server, {unit}"));
    let columns = vec![server, a, b, ratio, Column::text("B is")];
    let table = Table::of("Limits of both", columns, limits.iter().map(row).collect());
    let hint = "The highest value that passed. One limit is higher than the other if it passed a value that failed in the other run. The ratio has no interval, because a limit comes from one search.";
    let blocks = vec![Block::paragraph(Role::Hint, hint), Block::Table(table)];
    Section::of("limits", "Limits", blocks)
}

fn comparison(part: &Part) -> Option<Section> {
    let mut blocks = vec![Block::paragraph(Role::Hint, HINT)];
    for server in &part.servers {
        let own = || {
            part.pairs
                .iter()
                .filter(|compared| compared.server == *server)
        };
        let pairs: Vec<_> = own().map(|compared| &compared.pair).collect();
        blocks.extend(tables(&pairs, HEADINGS));
        let more = own().map(|compared| (compared.pair.clients, compared.more.as_slice()));
        let more = table(&format!("More metrics of {server}"), HEADINGS, more);
        let summary = more.caption.as_str().into();
        blocks.push(Block::Fold(summary, vec![Block::Table(more)]));
    }
    Section::of("comparison", "Comparison", blocks)
}

/// All figures but the first `first`.
fn figures(part: &Part, first: usize) -> Option<Section> {
    let figures = Figures {
        key: part
            .servers
            .iter()
            .map(|name| (places(name, &part.servers).to_vec(), name.clone()))
            .collect(),
        figures: part.figures[first..].to_vec(),
    };
    let blocks = vec![Block::Figures(figures)];
    Some(Section::of("figures", "Figures", blocks)?.except(&[Medium::Markdown, Medium::Terminal]))
}

fn repeat(diff: &Diff) -> Option<Section> {
    let both = [("A", &diff.a), ("B", &diff.b)];
    let mut blocks: Vec<Block> = both
        .into_iter()
        .flat_map(|(name, side)| {
            let command = facts::command_line(&side.arguments);
            [Block::Heading(name.into()), Block::Code(command)]
        })
        .collect();
    let source = "This page was made from both records.";
    blocks.push(Block::paragraph(Role::Hint, source));
    Some(Section::of("repeat", "How to repeat", blocks)?.except(&[Medium::Terminal]))
}
