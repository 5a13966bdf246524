//! The memory that each additional client takes.

use super::overview::of_rows;
use super::{Axis, Figure, FigureKind, Grouped, Point, Rank, Ranked, Source};
use crate::summary::Row;
use throng_record::format::{counted, list, number};
use throng_record::metrics::Better;
use throng_spec::registry::{Entry, Info};

/// The growth of a server's memory from few to many clients, divided by the number of additional clients.
pub(super) struct Marginal;

const PSS: &str = "server_pss_bytes";

impl Entry for Marginal {
    fn info(&self) -> Info {
        Info {
            name: "memory-per-client",
            summary: "Memory per additional client",
        }
    }
}

/// KiB per additional client, from rows with an ascending number of clients.
fn marginal(rows: &[&Row]) -> Option<f64> {
    let known = |row: &&&Row| row.served_all && row.value(PSS).is_some();
    let (first, last) = (rows.iter().find(known)?, rows.iter().rfind(known)?);
    let clients = f64::from(last.clients) - f64::from(first.clients);
    (clients > 0.0).then_some((last.value(PSS)? - first.value(PSS)?) / clients / 1024.0)
}

impl FigureKind for Marginal {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let summary = source.summary;
        let (first, last) = (*summary.clients.first()?, *summary.clients.last()?);
        let mut rows: Vec<(f64, Rank)> = Vec::new();
        for server in &summary.servers {
            let own = summary.rows.iter().filter(|row| row.server == *server);
            let mut own: Vec<&Row> = own.collect();
            own.sort_by_key(|row| row.clients);
            let Some(kib) = marginal(&own) else {
                continue;
            };
            let rank = Rank {
                name: server.clone(),
                place: Some(source.place(server)),
                point: Some(Point::new(0.0, kib)),
                text: format!("{} KiB", number(kib)),
                failed: false,
                better: None,
            };
            rows.push((kib, rank));
        }
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
        let words: Vec<String> = rows
            .iter()
            .map(|(_, row)| format!("{} {}", row.name, row.text))
            .collect();
        if rows.len() < 2 {
            return None;
        }
        let log = rows.iter().all(|(kib, _)| *kib > 0.0);
        let label = "memory per additional client";
        let ranked = Ranked {
            title: "KiB per additional client (lower is better)".to_owned(),
            axis: if log {
                Axis::logarithmic(label, Some("KiB"))
            } else {
                Axis::linear(label, Some("KiB"))
            },
            level: None,
            band: None,
            groups: vec![Grouped::apart(
                rows.into_iter().map(|(_, row)| row).collect(),
            )],
        };
        let title = self.info().summary.to_owned();
        Some(Figure {
            caption: format!(
                "Growth of the server's memory from {} to {}, per client.",
                whole(first),
                counted(last, "client")
            ),
            alternative: format!("{title}: {}.", list(&words)),
            better: Better::Lower,
            answers: false,
            ..of_rows(self.info().name, title, ranked)
        })
    }
}

fn whole(clients: u32) -> String {
    throng_record::format::whole(f64::from(clients))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::summary::Summary;

    #[test]
    fn it_is_the_slope_between_the_fewest_and_the_most_clients() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let of = |server: &str, clients: u32| {
            let mut rows = summary.rows_at(clients);
            rows.find(|row| row.server == server)
                .unwrap()
                .value(PSS)
                .unwrap()
        };
        let figure = Marginal.build(&Source::of(&summary)).unwrap();
        let thread = figure.ranked[0]
            .rows()
            .find(|row| row.name == "thread")
            .unwrap();
        let wanted = (of("thread", 1000) - of("thread", 10)) / 990.0 / 1024.0;
        assert!((thread.point.unwrap().y - wanted).abs() < 1e-9);
    }
}
