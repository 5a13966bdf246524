//! Published and measured values side by side.

use crate::document::{Block, Cell, Column, Group, Medium, Role, Row, Section, Table};
use crate::study::published;
use crate::study::{PartReport, StudyReport};
use throng_record::format::counted;

/// Servers side by side in a terminal.
const IN_TERMINAL: usize = 4;

pub(super) fn section(report: &StudyReport<'_>) -> Option<Section> {
    let source = report.study.source.iter();
    let source = source.map(|source| format!("Published: {source}. "));
    let hint = "Each cell: published / measured here, with the 95 % interval (the range of fewer than 6 trials).";
    let mut blocks = vec![Block::paragraph(
        Role::Hint,
        source.collect::<String>() + hint,
    )];
    let figures = report.published_figures();
    for (index, part) in report.parts.iter().enumerate() {
        if part.published.rows.is_empty() {
            continue;
        }
        blocks.push(Block::Heading(part.record.title.as_str().into()));
        let drawn = figures.iter().filter(|(of_part, _)| *of_part == index);
        blocks.extend(drawn.map(|(_, figure)| Block::Picture(Box::new(figure.clone()))));
        blocks.extend(tables(part));
        let notes = (1..).zip(part.published.footnotes());
        blocks.extend(
            notes.map(|(place, note)| Block::paragraph(Role::Fine, format!("[{place}] {note}."))),
        );
    }
    Section::of("published", "Published and measured", blocks)
}

/// The table of a part; a terminal has no room for many servers side by side.
fn tables(part: &PartReport<'_>) -> [Block; 2] {
    let all: Vec<usize> = (0..part.published.servers.len()).collect();
    let whole = vec![Block::Table(table(part, &all))];
    let narrow = all
        .chunks(IN_TERMINAL)
        .map(|some| Block::Table(table(part, some)));
    [
        Block::Except(&[Medium::Terminal], whole),
        Block::Except(&[Medium::Html, Medium::Markdown], narrow.collect()),
    ]
}

/// A row for each number of clients, a column for each of the servers with these indices, grouped by publication.
fn table(part: &PartReport<'_>, servers: &[usize]) -> Table {
    let footnotes = part.published.footnotes();
    let row = |row: &published::Row| {
        let shown = servers.iter().map(|index| &row.cells[*index]);
        let cells = shown.map(|cell| match &cell.published {
            Some(_) => Cell::plain(cell.side_by_side(&footnotes)).with(&cell.interval_text),
            None => Cell::plain(String::new()),
        });
        let clients = row.clients.map(|clients| counted(clients, "client"));
        let name = clients.unwrap_or_else(|| "all".to_owned());
        Row::of(name, cells.collect())
    };
    let groups = part.published.groups().map(|group| Group {
        title: group.heading(),
        rows: group.rows.iter().map(row).collect(),
    });
    let names = servers.iter().map(|index| &part.published.servers[*index]);
    let columns = names.map(Column::number);
    Table {
        caption: format!("Published and measured, {}", part.record.title),
        columns: std::iter::once(Column::text("")).chain(columns).collect(),
        groups: groups.collect(),
        best_of: "",
    }
}
