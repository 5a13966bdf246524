//! The trials and the result of each search for a limit.

use crate::Report;
use crate::document::{Block, Cell, Column, Medium, Role, Row, Table, Tone};
use crate::limit::{self, Limits, SearchTrial, ServerLimit};
use throng_record::Find;
use throng_record::format::{or_absent, time, whole};
use throng_record::metrics::Metric;

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

pub(super) fn overview(report: &Report<'_>, limits: &Limits) -> Table {
    let row = |server: &ServerLimit| {
        let at_limit = server.around().into_iter().rfind(|one| one.passed);
        let p99_us = at_limit.and_then(SearchTrial::p99_us);
        let cells = vec![
            Cell::plain(server.text()),
            Cell::plain(or_absent(p99_us, time)),
            Cell::plain(server.cause_text()),
        ];
        Row::of(super::server(report, &server.server), cells)
    };
    let columns = vec![
        Column::text("Server"),
        Column::number(format!("Most {}", limits.unit())),
        Column::number("p99 there"),
        Column::text("Cause"),
    ];
    let rows = limits.best_first().into_iter().map(row).collect();
    Table::of("Limits of all servers", columns, rows)
}

/// The metrics of the trials around the limit, by name.
const OF_ANSWER: [&str; 5] = [
    "requests_per_s",
    "latency_p99_us",
    "response_p99_us",
    "server_cpu_percent",
    "errors",
];

/// The trials around the limit of the only server, with the most important metrics.
pub(super) fn around(report: &Report<'_>) -> Option<Block> {
    let limits = report.limits.as_ref()?;
    let [only] = limits.servers.as_slice() else {
        return None;
    };
    let mut columns = limit::columns(&only.tries);
    columns.retain(|metric| OF_ANSWER.contains(&metric.name));
    let caption = format!("Around the limit of {}", only.server);
    let times = |one: &SearchTrial| {
        let (word, tried) = if one.passed {
            ("passed", only.passed)
        } else {
            ("failed", only.failed)
        };
        let of_value = tried.filter(|tried| tried.value == one.value);
        of_value.map_or_else(
            || word.to_owned(),
            |confirmed| format!("{word} {0} of {0}", confirmed.times),
        )
    };
    let rows = only.around().into_iter().map(|one| (one, times(one)));
    Some(Block::Table(table(caption, limits, &columns, rows)))
}

fn tries(limits: &Limits, server: &ServerLimit) -> Table {
    let columns = limit::columns(&server.tries);
    let caption = format!("Trials of {}", server.server);
    let rows = server.tries.iter().map(|one| (one, one.verdict()));
    table(caption, limits, &columns, rows)
}

fn table<'t>(
    caption: String,
    limits: &Limits,
    columns: &[&Metric],
    tries: impl Iterator<Item = (&'t SearchTrial, String)>,
) -> Table {
    let row = |(one, words): (&SearchTrial, String)| {
        let tone = if one.passed { Tone::Good } else { Tone::Bad };
        let verdict = Cell::plain(words).toned(tone);
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
    let numbers = (1..).zip(columns);
    headings.extend(numbers.map(|(drop, metric)| Column::number(metric.label).dropped(drop)));
    headings.push(Column::text("Verdict"));
    Table::of(caption, headings, tries.map(row).collect())
}
