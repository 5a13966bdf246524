//! What each client got at the largest number of clients, in order of connection: its replies, and
//! beside them how long it waited for the first one, so that waiting to be accepted is distinguished from
//! unequal service.

use std::fmt::Write as _;

use super::{Axis, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use crate::clients::{ClientLog, ClientRow};
use crate::summary::has_jobs;
use throng_record::format::{counted, list, whole};
use throng_registry::{Entry, Info};

/// One value of each client.
pub(super) struct PerClient {
    info: Info,
    caption: &'static str,
    y: Axis,
    value: fn(&ClientRow) -> Option<f64>,
}

impl PerClient {
    /// Replies in the steady part.
    pub(super) const REPLIES: Self = Self {
        info: Info {
            name: "per-client",
            summary: "Replies to each client",
        },
        caption: "A level band is even service; points far below it are clients that starve, and those that got nothing are not drawn.",
        y: Axis::logarithmic("replies in the steady part", None),
        value: |row| Some(row.window_replies? as f64),
    };

    /// Wait for the first reply.
    pub(super) const FIRST_ANSWER: Self = Self {
        info: Info {
            name: "first-answer-per-client",
            summary: "Wait of each client for its first answer",
        },
        caption: "From connect() to the first reply: waiting to be accepted is in it, and in no other time. Who waited long here and is level with others in replies was only late; who is below them is served worse.",
        y: Axis::logarithmic("wait", Some("ms")),
        value: |row| Some(row.first_answer_us? / 1e3),
    };

    fn points(&self, log: &ClientLog) -> Vec<Point> {
        log.rows
            .iter()
            .filter_map(|row| {
                let value = (self.value)(row).filter(|value| *value > 0.0)?;
                Some(Point::new(row.place as f64, value))
            })
            .collect()
    }
}

/// How many clients there are: "10 clients", or "epoll with 100 clients and thread with 1,000 clients" where
/// each server is shown at its own limit. None where there is no server.
fn crowds(logs: &[ClientLog]) -> Option<String> {
    let first = logs.first()?.clients;
    if logs.iter().all(|log| log.clients == first) {
        return Some(counted(first, "client"));
    }
    let each = |log: &ClientLog| format!("{} with {}", log.server, counted(log.clients, "client"));
    Some(list(&logs.iter().map(each).collect::<Vec<_>>()))
}

impl Entry for PerClient {
    fn info(&self) -> Info {
        self.info
    }
}

impl FigureKind for PerClient {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        if has_jobs(&source.summary.rows) {
            return None; // each got what it came for
        }
        let series: Vec<Series> = source
            .clients
            .iter()
            .filter_map(|log| {
                Some(Series {
                    name: log.server.clone(),
                    place: source.place(&log.server)?,
                    points: self.points(log),
                    trace: Trace::Markers,
                })
            })
            .filter(|series| !series.points.is_empty())
            .collect();
        let shown: usize = source.clients.iter().map(|log| log.rows.len()).sum();
        let total: usize = source.clients.iter().map(|log| log.total).sum();
        let mut caption = format!(
            "One point a client in order of connection, {}, one trial of each server. {}",
            crowds(source.clients)?,
            self.caption
        );
        if shown < total {
            let _ = write!(
                caption,
                " {} of {} clients are drawn, evenly spaced.",
                whole(shown as f64),
                whole(total as f64)
            );
        }
        let Info { name, summary } = self.info;
        let x = Axis {
            from_zero: false,
            ..Axis::linear("client, in order of connection", None)
        };
        Some(Figure {
            alternative: format!("{summary}, one point a client in order of connection."),
            caption,
            ..Figure::new(name, summary, Kind::Points, (x, self.y.clone()), series)?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_at_limits_of_their_own_are_named_with_them() {
        let log = |server: &str, clients| ClientLog {
            server: server.to_owned(),
            clients,
            round: 0,
            total: 0,
            rows: Vec::new(),
        };
        assert_eq!(crowds(&[]), None);
        let same = [log("epoll", 10), log("thread", 10)];
        assert_eq!(crowds(&same).as_deref(), Some("10 clients"));
        let own = [log("epoll", 100), log("thread", 1000)];
        assert_eq!(
            crowds(&own).as_deref(),
            Some("epoll with 100 clients and thread with 1,000 clients")
        );
    }
}
