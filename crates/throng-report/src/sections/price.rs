//! What requests cost at the price of a CPU, and how many clients fit into memory.

use crate::Report;
use crate::document::{Block, Cell, Column, Role, Row, Table};
use crate::summary;
use throng_record::format::{ABSENT, counted, number, whole};
use throng_record::metrics::{Quantity, named};

const CPU: &str = "server_cpu_us_per_request";
const MEMORY: &str = "memory_bytes_per_client";
const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;
const SECONDS_PER_HOUR: f64 = 3600.0;

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let Some(price) = report.run.settings.price_per_cpu_hour else {
        return Vec::new();
    };
    let note = format!(
        "An hour of one CPU costs {}. Only the CPU time of the servers counts, at full use of their CPUs; memory is that of the server \
         and of the kernel for both ends.",
        number(price)
    );
    let loads = report.summary.clients.iter().rev();
    let tables = loads.map(|clients| table(report, *clients, price));
    std::iter::once(Block::paragraph(Role::Hint, note))
        .chain(tables)
        .collect()
}

fn table(report: &Report<'_>, clients: u32, price: f64) -> Block {
    let columns = vec![
        Column::text("Server"),
        Column::number("CPU/request"),
        Column::number("Price of 1 M requests"),
        Column::number("Memory/client"),
        Column::number("Clients per GiB"),
    ];
    let rows = report.summary.rows_at(clients).map(|row| made(row, price));
    let about = format!("Price, {}", counted(clients, "client"));
    Block::Table(Table::of(about, columns, rows.collect()))
}

fn made(row: &summary::Row, price: f64) -> Row {
    // A microsecond per request is a second per million requests.
    let of_million = |cpu_us: f64| cpu_us / SECONDS_PER_HOUR * price;
    let fitting = |bytes: f64| BYTES_PER_GIB / bytes;
    let cells = vec![
        own(row, CPU),
        derived(row, CPU, of_million, number),
        own(row, MEMORY),
        derived(row, MEMORY, fitting, whole),
    ];
    Row::of(row.server.clone(), cells)
}

/// A metric as everywhere else.
fn own(row: &summary::Row, name: &str) -> Cell {
    let found = named(name).and_then(|metric| Some((metric, row.metrics.quantity(name)?)));
    found.map_or_else(
        || Cell::plain(ABSENT),
        |(metric, quantity)| {
            let range = metric.range(quantity).unwrap_or_default();
            Cell::plain(metric.text(quantity.value)).with(range)
        },
    )
}

/// A value that follows from a metric, with the ends of its interval.
fn derived(
    row: &summary::Row,
    name: &str,
    of: impl Fn(f64) -> f64,
    text: fn(f64) -> String,
) -> Cell {
    let Some(quantity) = row.metrics.quantity(name) else {
        return Cell::plain(ABSENT);
    };
    let Quantity { low, high, .. } = quantity;
    let mut ends = [low, high].map(|end| end.map(&of));
    if let [Some(first), Some(last)] = ends
        && first > last
    {
        ends.swap(0, 1);
    }
    let [low_end, high_end] = ends;
    let both = low_end.zip(high_end);
    let range = both.map(|(least, most)| format!("{}–{}", text(least), text(most)));
    Cell::plain(text(of(quantity.value))).with(range.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logs, fixture};

    #[test]
    fn a_million_requests_cost_their_cpu_time() {
        let (mut run, trials) = fixture::record();
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        assert_eq!(blocks(&report), []);
        run.settings.price_per_cpu_hour = Some(0.036);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let row = &report.summary.rows[0];
        let cpu_us = row.metrics.value(CPU).unwrap();
        let row = made(row, 0.036);
        // 0.00001 per second of CPU time.
        assert_eq!(row.cells[1].text, number(cpu_us / 1e5));
        assert_eq!(blocks(&report).len(), 1 + report.summary.clients.len());
    }
}
