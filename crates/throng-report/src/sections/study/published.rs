//! Published and measured values side by side.

use crate::document::{Block, Cell, Column, Group, Role, Row, Section, Table, Text};
use crate::study::published;
use crate::study::{PartReport, StudyReport};
use throng_record::format::{ABSENT, whole};

pub(super) fn section(report: &StudyReport<'_>) -> Option<Section> {
    let source = report.study.source.iter();
    let source = source.map(|source| format!("Published: {source}. "));
    let hint = "Measured on this machine: medians over trials or slices, with 95 % intervals (the range of fewer than 6). Ratio: measured over published.";
    let mut blocks = vec![Block::paragraph(
        Role::Hint,
        source.collect::<String>() + hint,
    )];
    let parts = report.parts.iter();
    for part in parts.filter(|part| !part.published.rows.is_empty()) {
        blocks.push(Block::Heading(part.record.title.as_str().into()));
        blocks.push(Block::Table(table(part)));
        let notes = (1..).zip(part.published.footnotes());
        blocks.extend(
            notes.map(|(place, note)| Block::paragraph(Role::Fine, format!("[{place}] {note}."))),
        );
    }
    Section::of("published", "Published and measured", blocks)
}

/// A row for each server and number of clients, grouped by publication.
fn table(part: &PartReport<'_>) -> Table {
    let footnotes = part.published.footnotes();
    let row = |row: &published::Row, cell: &published::Cell| {
        let measured = Cell::plain(cell.measured_in_table(&footnotes)).with(&cell.interval_text);
        let clients = row
            .clients
            .map_or_else(|| ABSENT.to_owned(), |clients| whole(f64::from(clients)));
        Row::of(
            name(part, &cell.server),
            vec![
                Cell::plain(clients),
                Cell::plain(cell.published_in_table(&footnotes)),
                measured,
                Cell::plain(cell.ratio_text().unwrap_or_default()),
            ],
        )
    };
    let groups = part.published.groups().map(|group| Group {
        title: group.heading(),
        rows: group
            .rows
            .iter()
            .flat_map(|of_all| {
                let cells = of_all.cells.iter();
                let published = cells.filter(|cell| cell.published.is_some());
                published.map(|cell| row(of_all, cell))
            })
            .collect(),
    });
    Table {
        caption: format!("Published and measured, {}", part.record.title),
        columns: vec![
            Column::text("Server"),
            Column::number("Clients"),
            Column::number("Published"),
            Column::number("Measured"),
            Column::number("Ratio"),
        ],
        groups: groups.collect(),
        best_of: "",
    }
}

/// The name of a server, without a colour if the server was not run here.
fn name(part: &PartReport<'_>, server: &str) -> Text {
    let report = part.report.as_ref();
    match report.filter(|report| report.run.servers.iter().any(|own| own.name == server)) {
        Some(report) => super::super::server(report, server),
        None => server.into(),
    }
}
