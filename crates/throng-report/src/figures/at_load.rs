//! The response time of each server at percentages of its maximum rate, for the largest number of clients measured
//! this way.

use super::{Axis, Failing, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use throng_record::format::counted;
use throng_record::metrics::Better;
use throng_spec::registry::{Entry, Info};

pub(super) struct AtLoad;

impl Entry for AtLoad {
    fn info(&self) -> Info {
        Info {
            name: "latency-at-load",
            summary: "Response time below the maximum rate",
        }
    }
}

impl FigureKind for AtLoad {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let summary = source.summary;
        let tried = summary.rows.iter().filter(|row| !row.at_load.is_empty());
        let clients = tried.map(|row| row.clients).max()?;
        let servers = summary.servers.iter();
        let series: Vec<Series> = servers
            .map(|name| Series {
                name: name.clone(),
                place: source.place(name),
                points: summary
                    .rows_at(clients)
                    .filter(|row| row.server == *name)
                    .flat_map(|row| row.at_load.iter().map(move |share| (row, share)))
                    .filter_map(|(row, share)| {
                        let p99_us = share.metrics.value("response_p99_us")?;
                        Some(Point {
                            failed: !share.kept || !row.served_all,
                            ..Point::new(f64::from(share.percent), p99_us / 1e3)
                        })
                    })
                    .collect(),
                trace: Trace::Joined,
            })
            .filter(|series| !series.points.is_empty())
            .collect();
        let points = || series.iter().flat_map(|series| &series.points);
        let mut percents: Vec<f64> = points().map(|point| point.x).collect();
        percents.sort_unstable_by(f64::total_cmp);
        percents.dedup();
        let greatest = *percents.last()?;
        let single = percents.len() == 1;
        let clients = counted(clients, "client");
        let caption =
            "From when a request was due to its reply, at shares of each server's own maximum rate."
                .to_owned();
        let title = "p99 response time below the maximum rate";
        let x = Axis {
            from_zero: false,
            ..Axis::linear("% of the maximum rate", None)
        };
        let (kind, y) = if single {
            (Kind::Bars, Axis::linear("response time", Some("ms")))
        } else {
            (Kind::Lines, Axis::logarithmic("response time", Some("ms")))
        };
        let mut figure = Figure {
            caption,
            better: Better::Lower,
            failure: Failing {
                words: "did not sustain the rate",
                has_value: false,
            },
            ..Figure::new(self.info().name, title, kind, (x, y), series)?
        };
        let values: Vec<String> = figure
            .series
            .iter()
            .filter_map(|series| Some((&series.name, series.points.last()?)))
            .filter(|(_, point)| point.x >= greatest)
            .map(|(name, point)| figure.in_words(name, point))
            .collect();
        figure.alternative = format!(
            "p99 response time in ms with {clients}, at {greatest} % of the maximum rate: {}.",
            values.join(", ")
        );
        Some(figure)
    }
}
