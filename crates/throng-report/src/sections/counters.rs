//! Counted events of both sides, one row per event: totals, and values per request.

use crate::Report;
use crate::document::{self, Block, Cell, Column, Role, Table, Tone};
use crate::summary::Row;
use throng_record::Purpose;
use throng_record::format::{ABSENT, counted};
use throng_record::metrics::{Absence, Better, METRICS, Metric, Subject};

/// A note above the tables.
const NOTE: &str = "Totals from separate trials, after all clients connected until their last replies. Small print: per request. \
    Best and worst of a row are marked by that, among servers that served all clients.";

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let tables = tables(report).into_iter();
    let folded =
        tables.map(|(summary, table)| Block::Fold(summary.into(), vec![Block::Table(table)]));
    let note = Block::paragraph(Role::Hint, NOTE);
    std::iter::once(note).chain(folded).collect()
}

/// The tables, each with its subject, the largest number of clients first; empty if nothing was counted.
fn tables(report: &Report<'_>) -> Vec<(String, Table)> {
    let sides = [
        (Subject::LoadGenerator, "clients"),
        (Subject::Server, "server"),
    ];
    let is_counted = |clients: &u32| {
        let mut rows = report.summary.rows_at(*clients);
        rows.any(|row| row.value("counted_requests").is_some())
    };
    let loads = report
        .summary
        .clients
        .iter()
        .rev()
        .filter(|clients| is_counted(clients));
    loads
        .flat_map(|clients| sides.map(|(subject, side)| of(report, *clients, subject, side)))
        .collect()
}

fn of(report: &Report<'_>, clients: u32, subject: Subject, side: &str) -> (String, Table) {
    let rows: Vec<&Row> = report.summary.rows_at(clients).collect();
    let of_side = |metric: &&Metric| {
        metric.purpose == Purpose::Profiled
            && (metric.subject == subject || metric.subject == Subject::Clients)
            && !metric.is_per_request()
            && metric.call().is_none()
    };
    let events = METRICS
        .iter()
        .filter(of_side)
        .filter_map(|metric| event(report, metric, &rows));
    let about = format!("{}: {side}", counted(clients, "client"));
    let mut columns = vec![Column::text("Event")];
    columns.extend(rows.iter().map(|row| Column::number(&row.server)));
    let table = Table::of(format!("Events, {about}"), columns, events.collect());
    let best_of = "its row, per request";
    (about, Table { best_of, ..table })
}

/// The counts of an event; `None` if no row has either a count or a reason for having none.
fn event(report: &Report<'_>, metric: &'static Metric, rows: &[&Row]) -> Option<document::Row> {
    let each = metric.per_request();
    let judged: Vec<Option<f64>> = rows
        .iter()
        .map(|row| row.value(each.unwrap_or(metric).name))
        .collect();
    let comparable = rows
        .iter()
        .zip(&judged)
        .map(|(row, value)| value.filter(|_| row.served_all));
    let marks = marks(metric.better, &comparable.collect::<Vec<_>>());
    let why = |row: &Row| {
        let trials = report.trials.iter();
        let own = trials.filter(|trial| trial.clients == row.clients && trial.server == row.server);
        let why = metric.why_absent(report.run, own)?;
        Some(format!("{}: {}", Absence::NotHere.text(), why.reason))
    };
    let whys: Vec<Option<String>> = rows.iter().map(|row| why(row)).collect();
    // The table says which side it is about.
    let of_server = metric
        .of_other_side()
        .filter(|_| metric.subject == Subject::LoadGenerator);
    let name = of_server.unwrap_or(metric).label.into();
    if rows.iter().all(|row| row.value(metric.name).is_none()) {
        whys.iter().flatten().next()?;
        if whys.iter().all(|reason| *reason == whys[0]) {
            let common = whys[0].clone().unwrap_or_default();
            return Some(document::Row {
                name,
                why: common,
                ..document::Row::default()
            });
        }
    }
    let cells =
        rows.iter()
            .zip(judged)
            .zip(marks)
            .zip(whys)
            .map(|(((row, judged), tone), reason)| {
                let detail = each.and_then(|each| Some(each.text(judged?)));
                let text = row.value(metric.name).map(|value| metric.text(value));
                Cell {
                    text: text.or(reason).unwrap_or_else(|| ABSENT.to_owned()),
                    detail: detail.unwrap_or_default(),
                    tone,
                    bar: None,
                }
            });
    Some(document::Row::of(name, cells.collect()))
}

/// Marks the best and the worst value, unless all are equal.
fn marks(better: Better, values: &[Option<f64>]) -> Vec<Tone> {
    let of = |pick: fn(f64, f64) -> f64| values.iter().flatten().copied().reduce(pick);
    let (best, worst) = match (better, of(f64::min), of(f64::max)) {
        (Better::Lower, Some(low), Some(high)) if low < high => (low, high),
        (Better::Higher, Some(low), Some(high)) if low < high => (high, low),
        _ => return vec![Tone::Plain; values.len()],
    };
    let is = |value: f64, other: f64| value.total_cmp(&other).is_eq();
    let mark = |value: &Option<f64>| match value {
        Some(value) if is(*value, best) => Tone::Best,
        Some(value) if is(*value, worst) => Tone::Worst,
        _ => Tone::Plain,
    };
    values.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logs, fixture};
    use throng_spec::registry::Unsupported;

    #[test]
    fn the_best_and_the_worst_of_a_row_are_marked_and_what_is_missing_has_its_reason() {
        let (run, mut trials) = fixture::record();
        for trial in &mut trials {
            let side = trial.client_side.as_mut().unwrap();
            let why = Unsupported {
                reason: "no such counter".to_owned(),
                remedy: "another CPU".to_owned(),
            };
            side.note_missing("counters", "stalled_cycles_backend", why);
        }
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let tables = tables(&report);
        assert_eq!(tables.len(), 2 * report.summary.clients.len());
        let row = |side: &str, title: &str| {
            let about = format!("1,000 clients: {side}");
            let (_, table) = tables.iter().find(|(found, _)| *found == about).unwrap();
            let mut rows = table.groups[0].rows.iter();
            rows.find(|row| row.name.words() == title).cloned()
        };
        let cells = |side, title| row(side, title).unwrap().cells;
        let marked = |side, tone| {
            let cells = cells(side, "System calls").into_iter();
            cells.filter(|cell| cell.tone == tone).count()
        };
        assert!(marked("server", Tone::Best) > 0 && marked("server", Tone::Worst) > 0);
        assert_eq!(marked("clients", Tone::Best), 0, "all alike");
        let missing = row("clients", "Back-end stalls").unwrap();
        assert_eq!(missing.why, "unavailable: no such counter");
        assert!(row("server", "Back-end stalls").is_none(), "nobody has it");
        let alone = &cells("server", "System calls")[0];
        assert_eq!(alone.tone, Tone::Plain, "it served one client");
        assert!(!cells("server", "Cycles")[0].detail.is_empty());
        assert!(cells("server", "Requests counted")[0].detail.is_empty());
    }

    #[test]
    fn nothing_counted_makes_no_table() {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.purpose.is_timed());
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        assert!(tables(&report).is_empty());
    }
}
