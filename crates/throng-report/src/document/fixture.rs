//! A document for the tests of the writers.

use super::{
    Block, Cell, Column, Document, Group, Kind, List, Medium, Role, Row, Section, Style, Table,
    Text, Tone,
};

/// A document with a block of every kind, each containing `text`.
pub(super) fn sample(text: &str) -> Document {
    let cell = || Cell {
        bar: Some(0.5),
        ..Cell::plain(text).with(text).toned(Tone::Best)
    };
    let table = Table {
        caption: text.to_owned(),
        columns: vec![
            Column::text(text),
            Column {
                note: text.to_owned(),
                ..Column::number(text)
            },
        ],
        groups: vec![Group {
            title: text.to_owned(),
            rows: vec![
                Row {
                    flags: vec![text.to_owned()],
                    is_quiet: true,
                    ..Row::of(Text::default().then(text, Style::Server(1)), vec![cell()])
                },
                Row {
                    why: text.to_owned(),
                    ..Row::of(text, Vec::new())
                },
            ],
        }],
        best_of: "its group",
        key: "-: not measured.".to_owned(),
    };
    let all = Text::default()
        .plain(text)
        .strong(text)
        .toned(text, Tone::Bad)
        .then(text, Style::Code)
        .then(text, Style::Server(0))
        .then(text, Style::Link(text.to_owned()));
    let blocks = vec![
        Block::Heading(all.clone()),
        Block::Paragraph(Role::Lead, all.clone()),
        Block::Paragraph(Role::Fine, all.clone()),
        Block::List(List {
            items: vec![(all.clone(), vec![Block::paragraph(Role::Body, text)]); 3],
            at_once: Some(2),
        }),
        Block::Table(table),
        Block::Warning(text.to_owned(), text.to_owned()),
        Block::Code(text.to_owned()),
        Block::Fold(all.clone(), vec![Block::paragraph(Role::Hint, text)]),
        Block::Facts(vec![(all.clone(), all.clone())]),
        Block::Except(
            &[Medium::Terminal],
            vec![Block::paragraph(Role::Body, text)],
        ),
    ];
    let plain = Section::of("anchor", text, blocks).expect("it has blocks");
    let part = Section {
        kind: Kind::Part,
        sections: vec![plain.clone()],
        title: format!("{text}, a part"),
        ..Section::of(text, text, vec![Block::paragraph(Role::Body, text)]).expect("one")
    };
    Document {
        title: text.to_owned(),
        question: text.to_owned(),
        tagline: "a test",
        badges: vec![all],
        sections: vec![plain, part],
        version: text.to_owned(),
    }
}
