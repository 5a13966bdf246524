//! The test cases of a study: expected and seen, for each server.

use super::claims::summary;
use crate::document::{
    Block, Cell, Column, Kind, NOT_IN_TERMINAL, Role, Row, Section, Style, Table, Text, Tone,
};
use crate::glance;
use crate::study::StudyReport;
use crate::study::cases::{Case, CaseResult};
use throng_record::format::ABSENT;

pub(super) fn section(report: &StudyReport<'_>, cases: &[Case<'_>]) -> Option<Section> {
    let mut blocks = vec![
        Block::paragraph(Role::Lead, glance::sentence(report)),
        Block::Table(table(report, cases)),
    ];
    blocks.extend(summary(report));
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// A row per case and a column per server.
fn table(report: &StudyReport<'_>, cases: &[Case<'_>]) -> Table {
    let servers = report.servers.iter().map(Column::text);
    let expected = Column {
        drop: NOT_IN_TERMINAL,
        ..Column::text("Expected")
    };
    let columns = [Column::text("Case"), expected].into_iter().chain(servers);
    let rows = cases.iter().map(|case| row(report, case));
    Table::of("Expected and seen", columns.collect(), rows.collect())
}

fn row(report: &StudyReport<'_>, case: &Case<'_>) -> Row {
    if let Some(why) = case.skipped {
        return Row {
            name: case.title.into(),
            why: format!("not run on this machine: {why}"),
            ..Row::default()
        };
    }
    let of_server = |server: &String| {
        let mut results = case.servers.iter();
        results
            .find(|result| result.server == server)
            .map_or_else(|| Cell::plain(ABSENT).toned(Tone::Quiet), cell)
    };
    let servers = report.servers.iter().map(of_server);
    let expected = Cell::plain(&case.expected);
    let page = Style::Link(format!("{}/report.html", case.part));
    Row::of(
        Text::default().then(case.title, page),
        std::iter::once(expected).chain(servers).collect(),
    )
}

fn cell(result: &CaseResult<'_>) -> Cell {
    let (word, tone) = if result.as_expected {
        ("as expected", Tone::Good)
    } else {
        ("not as expected", Tone::Bad)
    };
    Cell {
        detail: result.seen.clone(),
        ..Cell::plain(word).toned(tone)
    }
}
