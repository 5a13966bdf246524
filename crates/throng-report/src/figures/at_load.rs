//! The response time of each server at percentages of its maximum rate, for the largest number of clients measured
//! this way.

use super::{Axis, Failing, Figure, Kind, Point, Source};
use throng_record::format::counted;
use throng_record::metrics::Better;
use throng_spec::registry::Info;

pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    let summary = source.summary;
    let tried = summary.rows.iter().filter(|row| !row.at_load.is_empty());
    let clients = tried.map(|row| row.clients).max()?;
    let series = source.each_server(|name| {
        let own = summary.rows_at(clients).filter(|row| row.server == name);
        let shares = own.flat_map(|row| row.at_load.iter().map(move |share| (row, share)));
        shares
            .filter_map(|(row, share)| {
                let p99_us = share.metrics.value("response_p99_us")?;
                Some(Point {
                    failed: !share.kept || !row.served_all,
                    ..Point::new(f64::from(share.percent), p99_us / 1e3)
                })
            })
            .collect()
    });
    let x = Axis {
        from_zero: false,
        ..Axis::linear("% of the maximum rate", None)
    };
    let y = Axis::logarithmic("response time", Some("ms"));
    let title = "p99 response time below the maximum rate";
    let mut figure = Figure {
        caption:
            "From when a request was due to its reply, at shares of each server's own maximum rate."
                .to_owned(),
        better: Better::Lower,
        failure: Failing {
            words: "did not sustain the rate",
            has_value: false,
        },
        ..Figure::new(info.name, title, Kind::Lines, (x, y), series)?
    };
    let percents = figure.marked();
    if percents.len() == 1 {
        figure.kind = Kind::Bars;
        figure.y = Axis::linear("response time", Some("ms"));
    }
    let greatest = *percents.last()?;
    figure.alternative = format!(
        "p99 response time in ms with {}, at {greatest} % of the maximum rate: {}.",
        counted(clients, "client"),
        figure.words_from(greatest)
    );
    Some(figure)
}
