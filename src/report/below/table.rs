//! What is shown of each part of the maximum, as text: one table for each number of clients.

use super::Share;
use crate::report::format::{ABSENT, number, or_absent, time};
use crate::report::summary::{Row, Summary};

/// What the tables show.
pub(in crate::report) const NOTE: &str = "Response time from when a request was due, at parts of the rate \
    that each server itself reached, in an open loop with random (Poisson) arrivals; one trial each. \
    Requests that waited for a client to be free count with their wait. Beside it the service time at \
    full speed (100 %), which says how long the queue was.";

/// Waiting for a client is told from this share of requests on.
const WAITED: f64 = 0.01;

/// The servers that were tried below their maximum.
pub(in crate::report) struct Table {
    /// Titles of the columns after the server's name.
    pub(in crate::report) titles: Vec<String>,
    /// The numbers of clients, rising, each with its servers.
    pub(in crate::report) groups: Vec<(u32, Vec<Line>)>,
}

/// A server with its cells.
pub(in crate::report) type Line = (String, Vec<Cell>);

/// A figure, and what is to be known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct Cell {
    pub(in crate::report) text: String,
    /// Small print; empty where there is none.
    pub(in crate::report) detail: String,
    /// Whether it is not what its column says: the rate was not kept.
    pub(in crate::report) not_kept: bool,
}

impl Table {
    /// The table, or `None` of a run that tried nothing below its maximum.
    pub(in crate::report) fn of(summary: &Summary) -> Option<Self> {
        let shares = summary.rows.iter().flat_map(|row| &row.below);
        let mut percents: Vec<u32> = shares.map(|share| share.percent).collect();
        percents.sort_unstable();
        percents.dedup();
        if percents.is_empty() {
            return None;
        }
        let of_percent = |percent| [format!("p50 at {percent} %"), format!("p99 at {percent} %")];
        let mut titles: Vec<String> = percents.iter().flat_map(of_percent).collect();
        titles.extend(["Service p99 at 100 %", "Replies/s at 100 %"].map(str::to_owned));
        let groups = summary.clients.iter().filter_map(|clients| {
            let rows = summary.rows_at(*clients);
            let tried = rows.filter(|row| !row.below.is_empty());
            let lines: Vec<Line> = tried.map(|row| line(row, &percents)).collect();
            (!lines.is_empty()).then_some((*clients, lines))
        });
        Some(Self {
            groups: groups.collect(),
            titles,
        })
    }
}

fn line(row: &Row, percents: &[u32]) -> Line {
    let mut cells: Vec<Cell> = percents
        .iter()
        .flat_map(|percent| {
            let share = row.below.iter().find(|share| share.percent == *percent);
            share.map_or_else(|| [plain(ABSENT), plain(ABSENT)], both)
        })
        .collect();
    cells.extend(full_speed(row));
    (row.server.clone(), cells)
}

/// Median and 99th percentile of the response time.
fn both(share: &Share) -> [Cell; 2] {
    if share.failure.is_some() {
        return [plain("failed"), plain("failed")];
    }
    let times = share.response_time;
    let p50 = plain(&or_absent(times.map(|times| times.p50_us), time));
    let mut p99 = plain(&or_absent(times.and_then(|times| times.p99_us), time));
    p99.not_kept = !share.kept && share.response_time.is_some();
    p99.detail = match (share.kept, share.rate_reached_per_s, share.rate_asked_per_s) {
        (false, Some(reached), Some(asked)) => {
            format!("not kept: {} of {}/s", number(reached), number(asked))
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

/// The 99th percentile of the service time, and the rate that the parts are of.
fn full_speed(row: &Row) -> [Cell; 2] {
    let p99 = row.service_time.and_then(|times| times.p99_us);
    let rate = row.replies_per_s.map(|rate| rate.median);
    let detail = if row.client_limited() {
        "the clients' limit"
    } else {
        ""
    };
    [
        plain(&or_absent(p99, time)),
        Cell {
            detail: detail.to_owned(),
            ..plain(&or_absent(rate, number))
        },
    ]
}

fn plain(text: &str) -> Cell {
    Cell {
        text: text.to_owned(),
        detail: String::new(),
        not_kept: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Purpose, Trial};
    use crate::report::fixture;

    fn line_of(server: &str, change: impl Fn(&mut Trial)) -> Vec<Cell> {
        let (run, mut trials) = fixture::below();
        let below = trials
            .iter_mut()
            .filter(|trial| trial.purpose == Purpose::Below);
        below.for_each(change);
        let table = Table::of(&Summary::of(&run, &trials).unwrap()).unwrap();
        let titles = "p50 at 50 %, p99 at 50 %, p50 at 80 %, p99 at 80 %, \
                      Service p99 at 100 %, Replies/s at 100 %";
        assert_eq!(table.titles.join(", "), titles);
        let (_, lines) = table.groups.last().unwrap();
        let line = lines.iter().find(|(name, _)| name == server);
        line.unwrap().1.clone()
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
        assert!(cells[1].detail.starts_with("not kept: "), "{cells:?}");
        assert!(cells[1].not_kept && !cells[4].not_kept);
    }

    #[test]
    fn what_failed_is_not_absent() {
        let cells = line_of("epoll", |trial| {
            trial.failure = Some(fixture::failure());
            trial.load = None;
        });
        assert_eq!(cells[0], plain("failed"));
        assert_ne!(cells[4].text, ABSENT, "full speed was measured");
    }

    #[test]
    fn there_is_none_of_a_run_without() {
        let (run, trials) = fixture::record();
        assert!(Table::of(&Summary::of(&run, &trials).unwrap()).is_none());
    }
}
