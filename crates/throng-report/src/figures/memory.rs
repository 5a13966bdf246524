//! The memory that each additional client takes.

use super::overview::of_rows;
use super::{Axis, Figure, OfSection, Point, Rank, Ranked, Source};
use crate::summary::Row;
use throng_record::format::{counted, list, number, whole};
use throng_record::metrics::Better;
use throng_spec::registry::Info;

const PSS: &str = "server_pss_bytes";

/// KiB per additional client, from rows with an ascending number of clients.
fn marginal(rows: &[&Row]) -> Option<f64> {
    let known = |row: &&&Row| row.served_all && row.value(PSS).is_some();
    let (first, last) = (rows.iter().find(known)?, rows.iter().rfind(known)?);
    let clients = f64::from(last.clients) - f64::from(first.clients);
    (clients > 0.0).then_some((last.value(PSS)? - first.value(PSS)?) / clients / 1024.0)
}

/// The growth of each server's memory from few to many clients, divided by the number of additional clients.
pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    let summary = source.summary;
    let (first, last) = (*summary.clients.first()?, *summary.clients.last()?);
    let servers = summary.servers.iter();
    let mut all: Vec<(&String, f64)> = servers
        .filter_map(|server| {
            let mut own: Vec<&Row> = summary
                .rows
                .iter()
                .filter(|row| row.server == *server)
                .collect();
            own.sort_by_key(|row| row.clients);
            Some((server, marginal(&own)?))
        })
        .collect();
    if all.len() < 2 {
        return None;
    }
    all.sort_by(|one, other| one.1.total_cmp(&other.1));
    let label = "memory per additional client";
    let axis = if all.iter().all(|(_, kib)| *kib > 0.0) {
        Axis::logarithmic(label, Some("KiB"))
    } else {
        Axis::linear(label, Some("KiB"))
    };
    let rank = |(server, kib): &(&String, f64)| Rank {
        point: Some(Point::new(0.0, *kib)),
        ..source.rank(server, format!("{} KiB", number(*kib)))
    };
    let rows = all.iter().map(rank).collect();
    let title = "KiB per additional client (lower is better)".to_owned();
    let figure = of_rows(info, info.summary.to_owned(), Ranked::of(title, axis, rows));
    Some(Figure {
        caption: format!(
            "Growth of the server's memory from {} to {}, per client.",
            whole(first.into()),
            counted(last, "client")
        ),
        alternative: format!("{}: {}.", info.summary, list(&figure.ranked_words())),
        better: Better::Lower,
        section: OfSection::Figures,
        ..figure
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::figure_of;
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
        let figure = figure_of("memory-per-client", &Source::of(&summary)).unwrap();
        let thread = figure.ranked[0]
            .rows()
            .find(|row| row.name == "thread")
            .unwrap();
        let wanted = (of("thread", 1000) - of("thread", 10)) / 990.0 / 1024.0;
        assert!((thread.point.unwrap().y - wanted).abs() < 1e-9);
    }
}
