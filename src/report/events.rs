//! The table of the events that were counted on both sides, one row an event: totals of the counted
//! part, with what comes of it on one reply.

use super::Report;
use super::costs::NOT_HERE;
use super::format::ABSENT;
use super::metrics::{Better, METRICS, Metric, Subject};
use super::summary::Row;
use crate::record::{Purpose, Trial};

/// What the tables are.
pub(super) const NOTE: &str = "From when the clients were let go until their last replies, in trials of their own; \
    small print is for one reply. By that the best and the worst of a row are marked, among servers that served \
    all clients, since different numbers of requests are answered in the same time.";

/// Both sides' events with one number of clients.
pub(super) struct Events<'a> {
    pub(super) clients: u32,
    pub(super) side: &'static str,
    pub(super) servers: Vec<&'a str>,
    pub(super) rows: Vec<EventRow>,
}

/// One event on one side.
pub(super) struct EventRow {
    pub(super) title: &'static str,
    pub(super) note: &'static str,
    /// One a server.
    pub(super) cells: Vec<Cell>,
}

impl EventRow {
    /// What all cells say alike: why nobody has a value.
    pub(super) fn for_all(&self) -> Option<&str> {
        let first = self.cells.first()?.text.as_str();
        let alike = self.cells.iter().all(|cell| cell.text == first);
        (alike && first.starts_with(NOT_HERE)).then_some(first)
    }
}

/// What one server has.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) detail: String,
    pub(super) mark: Mark,
}

/// Whether a value is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Best,
    Worst,
    None,
}

/// The tables of a report, the largest number of clients first; none where nothing was counted.
pub(super) fn tables<'a>(report: &'a Report<'_>) -> Vec<Events<'a>> {
    let sides = [
        (Subject::LoadGenerator, "clients"),
        (Subject::Server, "server"),
    ];
    let counted = |clients: &u32| {
        let mut rows = report.summary.rows_at(*clients);
        rows.any(|row| row.counted.is_some())
    };
    let crowds = report
        .summary
        .clients
        .iter()
        .rev()
        .filter(|clients| counted(clients));
    crowds
        .flat_map(|clients| sides.map(|(subject, side)| of(report, *clients, subject, side)))
        .collect()
}

fn of<'a>(
    report: &'a Report<'_>,
    clients: u32,
    subject: Subject,
    side: &'static str,
) -> Events<'a> {
    let rows: Vec<&Row> = report.summary.rows_at(clients).collect();
    let servers: Vec<Server<'_>> = rows
        .iter()
        .map(|row| Server {
            trials: report
                .trials
                .iter()
                .filter(|trial| trial.clients == clients && trial.server == row.server)
                .collect(),
            served_all: row.served_all,
        })
        .collect();
    let of_side = |metric: &&Metric| {
        metric.purpose == Purpose::Counted
            && (metric.subject == subject || metric.subject == Subject::Clients)
            && !metric.name.ends_with(EACH)
    };
    let events = METRICS.iter().filter(of_side).map(|metric| EventRow {
        title: metric
            .title
            .split_once(": ")
            .map_or(metric.title, |(_, title)| title),
        note: metric.help,
        cells: cells(report, metric, &servers),
    });
    Events {
        clients,
        side,
        servers: rows.iter().map(|row| row.server.as_str()).collect(),
        rows: events
            .filter(|row| row.cells.iter().any(|cell| cell.text != ABSENT))
            .collect(),
    }
}

/// One server with one number of clients.
struct Server<'a> {
    trials: Vec<&'a Trial>,
    served_all: bool,
}

/// How the names of metrics end that are for one reply.
const EACH: &str = "_per_reply";

fn cells(report: &Report<'_>, metric: &Metric, servers: &[Server<'_>]) -> Vec<Cell> {
    let name = [metric.name, EACH].concat();
    let each = METRICS.iter().find(|other| other.name == name);
    let value = |metric: &Metric, server: &Server<'_>| {
        let over = metric.over(server.trials.iter().copied(), report.run.seed);
        over.map(|value| value.median)
    };
    let judged: Vec<Option<f64>> = servers
        .iter()
        .map(|server| value(each.unwrap_or(metric), server))
        .collect();
    let comparable = servers.iter().zip(&judged);
    let comparable = comparable.map(|(server, value)| value.filter(|_| server.served_all));
    let marks = marks(metric.better, &comparable.collect::<Vec<_>>());
    let cells = servers.iter().zip(judged).zip(marks);
    cells
        .map(|((server, judged), mark)| {
            let absent = || match metric.why_absent(report.run, server.trials.iter().copied()) {
                Some(why) => [NOT_HERE, ": ", &why.reason].concat(),
                None => ABSENT.to_owned(),
            };
            let detail = each.and_then(|each| Some(each.unit.text(judged?)));
            Cell {
                text: value(metric, server).map_or_else(absent, |value| metric.unit.text(value)),
                detail: detail.unwrap_or_default(),
                mark,
            }
        })
        .collect()
}

/// The best and the worst of some values, unless all are alike.
fn marks(better: Better, values: &[Option<f64>]) -> Vec<Mark> {
    let of = |pick: fn(f64, f64) -> f64| values.iter().flatten().copied().reduce(pick);
    let (best, worst) = match (better, of(f64::min), of(f64::max)) {
        (Better::Lower, Some(low), Some(high)) if low < high => (low, high),
        (Better::Higher, Some(low), Some(high)) if low < high => (high, low),
        _ => return vec![Mark::None; values.len()],
    };
    let is = |value: f64, other: f64| value.total_cmp(&other).is_eq();
    let mark = |value: &Option<f64>| match value {
        Some(value) if is(*value, best) => Mark::Best,
        Some(value) if is(*value, worst) => Mark::Worst,
        _ => Mark::None,
    };
    values.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Unsupported;
    use crate::report::{Logs, fixture};

    #[test]
    fn the_best_and_the_worst_of_a_row_are_marked_and_what_is_missing_has_its_reason() {
        let (run, mut trials) = fixture::record();
        for trial in &mut trials {
            let side = trial.client_side.as_mut().unwrap();
            let why = Unsupported {
                reason: "no such counter".to_owned(),
                remedy: "another CPU".to_owned(),
            };
            let name = "counters: stalled_cycles_backend".to_owned();
            side.unavailable.insert(name, why);
        }
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let tables = tables(&report);
        assert_eq!(tables.len(), 2 * report.summary.clients.len());
        let row = |side: &str, title: &str| {
            let table = tables.iter().find(|table| table.side == side).unwrap();
            assert_eq!(table.clients, 1000);
            table.rows.iter().find(|row| row.title == title).unwrap()
        };
        let marked =
            |row: &EventRow, mark| row.cells.iter().filter(|cell| cell.mark == mark).count();
        let calls = row("server", "system calls");
        assert!(marked(calls, Mark::Best) > 0 && marked(calls, Mark::Worst) > 0);
        assert_eq!(
            marked(row("clients", "system calls"), Mark::Best),
            0,
            "all alike"
        );
        let missing = &row("clients", "stalled, back").cells[0];
        assert_eq!(missing.text, "not here: no such counter");
        let of_server = tables.iter().find(|table| table.side == "server").unwrap();
        assert!(
            of_server
                .rows
                .iter()
                .all(|row| row.title != "stalled, back"),
            "nobody has it"
        );
        let alone = &row("server", "system calls").cells[0];
        assert_eq!(alone.mark, Mark::None, "it served one client");
        assert!(!row("server", "cycles").cells[0].detail.is_empty());
        assert!(row("server", "Replies counted").cells[0].detail.is_empty());
    }

    #[test]
    fn nothing_counted_makes_no_table() {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.purpose.is_timed());
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        assert!(tables(&report).is_empty());
    }
}
