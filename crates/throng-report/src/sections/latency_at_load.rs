//! Response times at percentages of each server's maximum rate: one table per number of clients.

use crate::Report;
use crate::at_load::Share;
use crate::document::{self, Block, Cell, Column, Role, Table};
use crate::summary::{Row, Summary};
use throng_record::format::{ABSENT, counted, number, or_absent, time};
use throng_record::metrics::named;

/// A note above the tables.
const NOTE: &str = "Response time from when a request was due, at shares of each server's own maximum rate: open loop, Poisson \
    arrivals, one trial each. It includes the wait for a free client. The last columns are the latency and rate at full \
    speed.";

/// Waiting for a client is shown from this share of requests on.
const WAITED: f64 = 0.01;

/// Marks a time that was measured while the rate was not kept.
const NOT_KEPT: char = '!';

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let table = table(&report.summary, |name| super::server(report, name));
    let mut blocks = vec![Block::paragraph(Role::Hint, NOTE)];
    blocks.extend(table.map(Block::Table));
    let mut shares = report.summary.rows.iter().flat_map(|row| &row.at_load);
    if shares.any(is_not_kept) {
        let note = format!("{NOT_KEPT} The server did not sustain this rate.");
        blocks.push(Block::paragraph(Role::Fine, note));
    }
    blocks
}

/// Whether there is a time, but the rate was not kept.
fn is_not_kept(share: &Share) -> bool {
    !share.kept && share.failure.is_none() && share.metrics.value("response_p50_us").is_some()
}

/// The table; `None` for a run that tried nothing below its maximum rate.
fn table(summary: &Summary, name: impl Fn(&str) -> document::Text) -> Option<Table> {
    let shares = summary.rows.iter().flat_map(|row| &row.at_load);
    let mut percents: Vec<u32> = shares.map(|share| share.percent).collect();
    percents.sort_unstable();
    percents.dedup();
    if percents.is_empty() {
        return None;
    }
    let at = |metric, percent: u32| {
        let label = named(metric).map_or(metric, |metric| metric.label);
        Column::number(format!("{label} at {percent} %"))
    };
    let mut columns = vec![Column::text("Server")];
    for percent in &percents {
        columns.push(at("response_p50_us", *percent).dropped(1));
        columns.push(at("response_p99_us", *percent));
    }
    columns.push(at("latency_p99_us", 100));
    columns.push(at("requests_per_s", 100).dropped(2));
    let groups = summary.clients.iter().rev().map(|clients| {
        let tried = summary
            .rows_at(*clients)
            .filter(|row| !row.at_load.is_empty());
        let rows = tried.map(|row| document::Row::of(name(&row.server), line(row, &percents)));
        (counted(*clients, "client"), rows.collect())
    });
    let caption = "Response times at shares of each server's own maximum rate";
    Some(Table::in_groups(caption, columns, groups))
}

fn line(row: &Row, percents: &[u32]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = percents
        .iter()
        .flat_map(|percent| {
            let share = row.at_load.iter().find(|share| share.percent == *percent);
            share.map_or_else(|| [Cell::plain(ABSENT), Cell::plain(ABSENT)], both)
        })
        .collect();
    cells.extend(full_speed(row));
    cells
}

/// Median and 99th percentile of the response time.
fn both(share: &Share) -> [Cell; 2] {
    if share.failure.is_some() {
        return [Cell::plain("failed"), Cell::plain("failed")];
    }
    let value = |metric| share.metrics.value(metric);
    let p50 = Cell::plain(or_absent(value("response_p50_us"), time));
    let mut p99 = Cell::plain(or_absent(value("response_p99_us"), time));
    if is_not_kept(share) {
        p99.text.push(NOT_KEPT);
    }
    let reached = share.rate_reached_per_s();
    p99.detail = match (share.kept, reached, share.rate_asked_per_s) {
        (false, Some(reached), Some(asked)) => {
            format!("reached {} of {}/s", number(reached), number(asked))
        }
        _ => share
            .waited_share
            .filter(|waited| *waited >= WAITED)
            .map_or_else(String::new, |waited| {
                format!("{:.0} % waited for a client", waited * 100.0)
            }),
    };
    [p50, p99]
}

/// The 99th percentile of the latency, and the rate that the shares refer to.
fn full_speed(row: &Row) -> [Cell; 2] {
    let p99 = row.value("latency_p99_us");
    let rate = row.value("requests_per_s");
    let detail = if row.client_limited() {
        "limited by the clients"
    } else {
        ""
    };
    [
        Cell::plain(or_absent(p99, time)),
        Cell::plain(or_absent(rate, number)).with(detail),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use throng_record::{Purpose, Trial};

    fn line_of(server: &str, change: impl Fn(&mut Trial)) -> Vec<Cell> {
        let (run, mut trials) = fixture::at_load();
        let at_load = trials
            .iter_mut()
            .filter(|trial| trial.purpose == Purpose::AtLoad);
        at_load.for_each(change);
        let table = table(&Summary::of(&run, &trials).unwrap(), |name| name.into()).unwrap();
        let titles: Vec<&str> = table.columns.iter().map(|column| &*column.title).collect();
        let expected = "Server, Response p50 at 50 %, Response p99 at 50 %, Response p50 at 80 %, \
                        Response p99 at 80 %, p99 at 100 %, Requests/s at 100 %";
        assert_eq!(titles.join(", "), expected);
        let mut rows = table.groups[0].rows.iter();
        let found = rows.find(|row| row.name.words() == server);
        found.unwrap().cells.clone()
    }

    #[test]
    fn a_line_says_who_waited_and_what_was_not_kept() {
        let cells = line_of("epoll", |_| ());
        assert_eq!(cells.len(), 6);
        assert_eq!(cells[1].detail, "");
        assert!(
            cells[3].detail.contains("% waited for a client"),
            "{cells:?}"
        );
        let cells = line_of("epoll", |trial| {
            if let Some(load) = &mut trial.load {
                load.window.replies /= 2;
            }
        });
        assert!(cells[1].detail.starts_with("reached "), "{cells:?}");
        assert!(cells[1].text.ends_with(NOT_KEPT) && !cells[4].text.ends_with(NOT_KEPT));
    }

    #[test]
    fn failed_loads_are_not_shown_as_absent() {
        let cells = line_of("epoll", |trial| {
            trial.failure = Some(fixture::failure());
            trial.load = None;
        });
        assert_eq!(cells[0], Cell::plain("failed"));
        assert_ne!(cells[4].text, ABSENT, "full speed was measured");
    }

    #[test]
    fn there_is_none_of_a_run_without() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        assert!(table(&summary, |name| name.into()).is_none());
    }
}
