//! The trials and the result of each search for a limit.

use crate::Report;
use crate::document::{Block, Cell, Column, Medium, Role, Row, Table, Tone};
use crate::limit::{self, Limits, SearchTrial, ServerLimit};
use throng_record::Find;
use throng_record::format::whole;

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let Some(limits) = &report.limits else {
        return Vec::new();
    };
    let mut blocks = vec![Block::paragraph(
        Role::Hint,
        "The limit lies between the highest value that passed and the lowest that failed; both were confirmed in more trials.",
    )];
    if limits.servers.len() > 1 {
        blocks.push(Block::Table(overview(report, limits)));
    }
    let mut each = Vec::new();
    let tried = limits.servers.iter();
    for server in tried.filter(|server| !server.tries.is_empty()) {
        let name = super::server(report, &server.server);
        each.push(Block::Heading(name.plain(format!(": {}", server.text()))));
        each.push(Block::Table(tries(limits, server)));
    }
    // A terminal has a line for each trial already.
    blocks.push(Block::Except(&[Medium::Terminal], each));
    blocks
}

fn overview(report: &Report<'_>, limits: &Limits) -> Table {
    let row = |server: &ServerLimit| {
        let cells = vec![Cell::plain(server.text()), Cell::plain(server.cause_text())];
        Row::of(super::server(report, &server.server), cells)
    };
    let columns = vec![
        Column::text("Server"),
        Column::number(format!("Limit, {}", limits.unit())),
        Column::text("Cause").dropped(1),
    ];
    let rows = limits.servers.iter().map(row).collect();
    Table::of("Limits of all servers", columns, rows)
}

fn tries(limits: &Limits, server: &ServerLimit) -> Table {
    let columns = limit::columns(&server.tries);
    let row = |one: &SearchTrial| {
        let tone = if one.passed { Tone::Good } else { Tone::Bad };
        let verdict = Cell::plain(one.verdict()).toned(tone);
        let cells = columns.iter().map(|metric| Cell::plain(one.text(metric)));
        let why = one.reasons.join("; ");
        Row::of(
            whole(one.value as f64),
            cells.chain([verdict.with(why)]).collect(),
        )
    };
    let mut headings = vec![Column::number(match limits.find {
        Find::Clients => "Clients",
        Find::Rate => "Requests per second",
        Find::Sessions => "Sessions per second",
    })];
    // If there is no room, the columns on the right are dropped first.
    let numbers = (1..).zip(&columns);
    headings.extend(numbers.map(|(drop, metric)| Column::number(metric.label).dropped(drop)));
    headings.push(Column::text("Verdict"));
    let caption = format!("Trials of {}", server.server);
    Table::of(caption, headings, server.tries.iter().map(row).collect())
}
