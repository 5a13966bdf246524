//! Throughput and cost of each server against the number of clients.

use crate::Report;
use crate::document::{Block, Cell, Column, Role, Row, Table, Text};
use crate::summary::Summary;
use crate::summary::scalability::{LeftOutReason, Scaling, percent, power, range};
use throng_record::format::{ABSENT, counted, list, whole};
use throng_stats::scalability::{Estimate, Residual};

/// The columns, with their meaning.
const COLUMNS: [(&str, &str); 4] = [
    (
        "CPU/request ∝ nᵉ",
        "exponent e of the growth of CPU per request with the number of clients n: 0 is constant, 1 is proportional (Theil–Sen estimate)",
    ),
    (
        "Fit error of CPU",
        "median distance of CPU per request from the fitted power; small print: the largest. If it is large, e only shows a trend",
    ),
    (
        "Peak",
        "number of clients with the highest throughput, if throughput is significantly lower with the most clients",
    ),
    (
        "Excluded",
        "numbers of clients whose throughput is excluded, and why; if the load generator was the limit, CPU time still counts",
    ),
];

/// The cells of a server; `None` without a value.
fn cells(one: &Scaling) -> [Option<Cell>; 4] {
    let growth = one.cpu_growth.as_ref();
    [
        growth.map(|growth| estimate(&growth.exponent, power)),
        growth.map(|growth| Cell::plain(percent(growth.typical_residual)).with(at(growth.worst()))),
        peak(one),
        left_out(one),
    ]
}

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let scaling = &report.summary.scaling;
    let all: Vec<[Option<Cell>; 4]> = scaling.iter().map(cells).collect();
    let is_shown = |index: &usize| all.iter().any(|cells| cells[*index].is_some());
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(is_shown).collect();
    if shown.is_empty() {
        return Vec::new();
    }
    let rows = scaling.iter().zip(&all).map(|(one, cells)| {
        let shown_cells = shown
            .iter()
            .map(|index| cells[*index].clone())
            .map(|cell| cell.unwrap_or_else(|| Cell::plain(ABSENT)));
        Row::of(super::server(report, &one.server), shown_cells.collect())
    });
    let mut columns = vec![Column::text("Server")];
    columns.extend(shown.iter().map(|index| Column {
        note: COLUMNS[*index].1.to_owned(),
        ..Column::number(COLUMNS[*index].0)
    }));
    let caption = "Throughput and CPU per request against the number of clients";
    let hint = "Against the number of clients n. Small print: 95 % interval over trials.";
    let missing = missing(&report.summary)
        .into_iter()
        .map(|(server, why)| Text::default().strong(server).plain(format!(": {why}")));
    vec![
        Block::paragraph(Role::Hint, hint),
        Block::Table(Table::of(caption, columns, rows.collect())),
        Block::list(missing),
    ]
}

/// Why servers lack an estimate, as (server, sentence).
fn missing(summary: &Summary) -> Vec<(&str, String)> {
    summary
        .scaling
        .iter()
        .filter_map(|one| {
            let no_peak = one.no_peak.as_ref();
            let peak = no_peak.map(|why| format!("no peak of throughput ({why})"));
            let growth = one
                .no_cpu_growth
                .as_ref()
                .map(|why| format!("no fit of CPU per request ({why})"));
            let both: Vec<String> = peak.into_iter().chain(growth).collect();
            (!both.is_empty()).then(|| (one.server.as_str(), list(&both)))
        })
        .collect()
}

/// A value with its interval.
fn estimate(value: &Estimate, text: fn(f64) -> String) -> Cell {
    Cell::plain(text(value.value)).with(range(value, text))
}

/// "37 (31–44)".
fn peak(one: &Scaling) -> Option<Cell> {
    if let Some(peak) = &one.peak_clients {
        return Some(estimate(peak, whole));
    }
    let most = whole(one.rate_up_to?.into());
    Some(Cell::plain(format!("none up to {most}")))
}

fn left_out(one: &Scaling) -> Option<Cell> {
    let kinds = [
        (LeftOutReason::NotServed, "not all served"),
        (LeftOutReason::Unsteady, "drifted"),
        (LeftOutReason::ClientLimited, "limited by the clients"),
        (LeftOutReason::Paced, "the load sets the pace"),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .filter_map(|(why, words)| {
            let clients: Vec<String> = one
                .left_out
                .get(why)?
                .iter()
                .map(|clients| whole((*clients).into()))
                .collect();
            Some(format!("{} ({words})", clients.join(", ")))
        })
        .collect();
    (!parts.is_empty()).then(|| Cell::plain(parts.join("; ")))
}

/// "−11 % at 20 clients".
fn at(worst: Option<Residual>) -> String {
    worst.map_or_else(String::new, |worst| {
        let sign = if worst.relative < 0.0 { '−' } else { '+' };
        format!(
            "{sign}{} at {}",
            percent(worst.relative.abs()),
            counted(worst.clients, "client")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_names_its_number_of_clients() {
        let worst = Residual {
            clients: 1,
            relative: -0.113,
        };
        assert_eq!(at(Some(worst)), "−11 % at 1 client");
    }
}
