//! Published and measured values side by side.

use crate::document::{Block, Cell, Column, Group, Medium, Role, Row, Section, Table, Text};
use crate::study::published;
use crate::study::{PartReport, StudyReport};
use throng_record::format::counted;

pub(super) fn section(report: &StudyReport<'_>) -> Option<Section> {
    let source = report
        .study
        .source
        .iter()
        .map(|source| format!("Published: {source}. "));
    let hint = "Each cell: published / measured here, with the 95 % interval (the range of fewer than 6 trials).";
    let mut blocks = vec![Block::paragraph(
        Role::Hint,
        source.collect::<String>() + hint,
    )];
    let figures = report.published_figures();
    for (index, parts) in published::together(&report.parts).enumerate() {
        let first = &parts[0];
        if first.published.rows.is_empty() {
            continue;
        }
        blocks.push(Block::Heading(published::title(parts).into()));
        let drawn = figures.iter().filter(|(of_parts, _)| *of_parts == index);
        blocks.extend(drawn.map(|(_, figure)| Block::Picture(Box::new(figure.clone()))));
        blocks.push(Block::Table(table(parts)));
        let notes = (1..).zip(published::footnotes(
            parts.iter().map(|part| &part.published),
        ));
        blocks.extend(
            notes.map(|(place, note)| Block::paragraph(Role::Fine, format!("[{place}] {note}."))),
        );
    }
    let section = Section::of("published", "Published and measured", blocks)?;
    Some(section.except(&[Medium::Terminal]))
}

/// A row for each number of clients, or for each of several parts, a column for each server, grouped by publication.
fn table(parts: &[PartReport<'_>]) -> Table {
    let footnotes = published::footnotes(parts.iter().map(|part| &part.published));
    let row = |part: &PartReport<'_>, row: &published::Row| {
        let cells = row.cells.iter().map(|cell| match &cell.published {
            Some(_) => Cell::plain(cell.side_by_side(&footnotes)).with(&cell.interval_text),
            None => Cell::plain(String::new()),
        });
        let clients = row.clients.map(|clients| counted(clients, "client"));
        let name = match parts {
            [_] => clients.unwrap_or_else(|| "all".to_owned()),
            _ => part.record.title.clone(),
        };
        Row::of(name, cells.collect())
    };
    let mut groups: Vec<Group> = Vec::new();
    for (place, group) in parts[0].published.groups().enumerate() {
        let here = parts
            .iter()
            .filter_map(|part| Some((part, part.published.groups().nth(place)?)));
        groups.push(Group {
            title: group.heading(),
            rows: here
                .flat_map(|(part, of_part)| {
                    of_part.rows.iter().map(move |values| row(part, values))
                })
                .collect(),
        });
    }
    // Several values with a row each: the rows are the values.
    if groups.len() > 1 && groups.iter().all(|group| group.rows.len() == 1) {
        let named = |group: Group| {
            let name = Text::from(group.title);
            let rows = group.rows.into_iter();
            rows.map(move |made| Row {
                name: name.clone(),
                ..made
            })
        };
        groups = vec![Group {
            title: String::new(),
            rows: groups.into_iter().flat_map(named).collect(),
        }];
    }
    let columns = parts[0].published.servers.iter().map(Column::number);
    Table {
        caption: format!("Published and measured, {}", published::title(parts)),
        columns: std::iter::once(Column::text("")).chain(columns).collect(),
        groups,
        ..Table::default()
    }
}
