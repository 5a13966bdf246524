//! The response time of each server at parts of the rate that it reached, at the largest number of
//! clients tried so.

use super::{Axis, Figure, FigureKind, Kind, Point, Series, Source, Trace};
use throng_record::format::{counted, number};
use throng_registry::{Entry, Info};

/// See the module.
pub(super) struct Below;

impl Entry for Below {
    fn info(&self) -> Info {
        Info {
            name: "below-maximum",
            summary: "Response time below the maximum",
        }
    }
}

impl FigureKind for Below {
    fn build(&self, source: &Source<'_>) -> Option<Figure> {
        let summary = source.summary;
        let tried = summary.rows.iter().filter(|row| !row.below.is_empty());
        let clients = tried.map(|row| row.clients).max()?;
        let servers = summary.servers.iter().enumerate();
        let series: Vec<Series> = servers
            .map(|(place, name)| Series {
                name: name.clone(),
                place,
                points: summary
                    .rows_at(clients)
                    .filter(|row| row.server == *name)
                    .flat_map(|row| row.below.iter().map(move |share| (row, share)))
                    .filter_map(|(row, share)| {
                        let p99_us = share.metrics.value("response_p99_us")?;
                        Some(Point {
                            x: f64::from(share.percent),
                            y: p99_us / 1e3,
                            low: None,
                            high: None,
                            partial: !share.kept || !row.served_all,
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
        let values: Vec<String> = series
            .iter()
            .filter_map(|series| Some((&series.name, series.points.last()?)))
            .filter(|(_, point)| point.x >= greatest)
            .map(|(name, point)| format!("{name} {}", number(point.y)))
            .collect();
        let crowd = counted(clients, "client");
        let mut caption = format!(
            "Lower is better. With {crowd}, from when a request was due to its whole reply; one request in \
             a hundred took longer. Each server at parts of the rate that it reached itself, one trial each."
        );
        if points().any(|point| point.partial) {
            caption.push_str(if single { " Pale" } else { " Hollow" });
            caption.push_str(": the rate was not kept, or not all clients were served.");
        }
        Some(Figure {
            id: self.info().name,
            title: "Response time below the maximum, 99th percentile".to_owned(),
            caption,
            alternative: format!(
                "99th percentile of the response time with {crowd}, in ms. At {greatest} % of the rate \
                 reached: {}.",
                values.join(", ")
            ),
            x: Axis {
                from_zero: false,
                ..Axis::linear("% of the rate reached", None)
            },
            y: if single {
                Axis::linear("time", Some("ms"))
            } else {
                Axis::logarithmic("time", Some("ms"))
            },
            kind: if single { Kind::Bars } else { Kind::Lines },
            series,
            parts: Vec::new(),
            maps: Vec::new(),
        })
    }
}
