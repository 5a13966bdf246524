//! What each client got at the largest number of clients, in order of connection.

use std::fmt::Write as _;

use super::{Axis, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use crate::registry::{Entry, Info};
use crate::report::clients::ClientLog;
use crate::report::completion::has_jobs;
use crate::report::format::{counted, whole};

/// See the module.
pub(super) struct PerClient;

impl Entry for PerClient {
    fn info(&self) -> Info {
        Info {
            name: "per-client",
            summary: "Replies to each client",
        }
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
                let place = source
                    .summary
                    .servers
                    .iter()
                    .position(|name| *name == log.server)?;
                Some(Series {
                    name: log.server.clone(),
                    place,
                    points: points(log),
                    trace: Trace::Markers,
                })
            })
            .filter(|series| !series.points.is_empty())
            .collect();
        let clients = source.clients.first()?.clients;
        let shown: usize = source.clients.iter().map(|log| log.rows.len()).sum();
        let total: usize = source.clients.iter().map(|log| log.total).sum();
        let mut caption = format!(
            "One point a client in order of connection, {}, one trial of each server. A level band is even service; points far below it are clients that starve, and those that got nothing are not drawn.",
            counted(clients, "client")
        );
        if shown < total {
            let _ = write!(
                caption,
                " {} of {} clients are drawn, evenly spaced.",
                whole(shown as f64),
                whole(total as f64)
            );
        }
        (!series.is_empty()).then(|| Figure {
            id: self.info().name,
            title: self.info().summary.to_owned(),
            alternative: format!(
                "{}, one point a client in order of connection.",
                self.info().summary
            ),
            caption,
            x: Axis {
                from_zero: false,
                ..Axis::linear("client, in order of connection", None)
            },
            y: Axis::logarithmic("replies in the steady part", None),
            kind: Kind::Points,
            series,
            parts: Vec::new(),
        })
    }
}

fn points(log: &ClientLog) -> Vec<Point> {
    log.rows
        .iter()
        .filter_map(|row| {
            let replies = row.window_replies.filter(|&replies| replies > 0)?;
            Some(Point {
                x: row.place as f64,
                y: replies as f64,
                low: None,
                high: None,
                partial: false,
            })
        })
        .collect()
}
