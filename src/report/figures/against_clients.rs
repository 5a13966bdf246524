//! Figures of one value against the number of clients.

use super::{Axis, Figure, Kind, Point, Series, Trace};
use crate::report::format::{counted, number};
use crate::report::summary::{Quantity, Row, Summary};

/// What a figure against the number of clients is made of.
pub(super) struct AgainstClients {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) caption: &'static str,
    pub(super) y: Axis,
    pub(super) value: fn(&Row) -> Option<Quantity>,
}

impl AgainstClients {
    /// Lines against the number of clients, or bars when there is one number only.
    pub(super) fn build(self, summary: &Summary) -> Option<Figure> {
        let servers = summary.servers.iter().enumerate();
        let series = servers.filter_map(|(place, name)| {
            let rows = summary.rows.iter().filter(|row| row.server == *name);
            self.series(name.clone(), place, rows)
        });
        let series = series.collect();
        self.figure(series, &summary.clients)
    }

    /// The points of a server in these rows.
    pub(super) fn series<'a>(
        &self,
        name: String,
        place: usize,
        rows: impl Iterator<Item = &'a Row>,
    ) -> Option<Series> {
        let points: Vec<Point> = rows.filter_map(|row| self.point(row)).collect();
        (!points.is_empty()).then_some(Series {
            name,
            place,
            points,
            trace: Trace::Joined,
        })
    }

    /// Of these series, at these numbers of clients.
    pub(super) fn figure(self, series: Vec<Series>, clients: &[u32]) -> Option<Figure> {
        if series.is_empty() {
            return None;
        }
        let single = clients.len() == 1;
        let hollow = series
            .iter()
            .flat_map(|series| &series.points)
            .any(|point| point.partial);
        let mut caption = self.caption.to_owned();
        if series
            .iter()
            .flat_map(|series| &series.points)
            .any(|point| point.low.is_some())
        {
            caption.push_str(" Median over trials with its 95 % interval.");
        }
        if hollow {
            let look = if single { "Pale" } else { "Hollow" };
            caption.push_str(&[" ", look, ": not all clients were served."].concat());
        }
        let mut figure = Figure {
            id: self.id,
            title: self.title.to_owned(),
            caption,
            alternative: String::new(),
            x: Axis::logarithmic("clients", None),
            y: self.y,
            kind: if single { Kind::Bars } else { Kind::Lines },
            series,
            parts: Vec::new(),
            maps: Vec::new(),
        };
        if single {
            figure.y.log = false;
            figure.y.from_zero = true;
        }
        figure.alternative = alternative(&figure, *clients.last()?);
        Some(figure)
    }

    fn point(&self, row: &Row) -> Option<Point> {
        let value = (self.value)(row)?;
        let drawable = |value: f64| value.is_finite() && (value > 0.0 || !self.y.log);
        drawable(value.median).then(|| Point {
            x: f64::from(row.clients),
            y: value.median,
            low: value.low.filter(|low| drawable(*low)),
            high: value.high.filter(|high| drawable(*high)),
            partial: !row.served_all,
        })
    }
}

/// The values at the largest number of clients, in words.
fn alternative(figure: &Figure, clients: u32) -> String {
    let values: Vec<String> = figure
        .series
        .iter()
        .filter_map(|series| Some((&series.name, series.points.last()?)))
        .filter(|(_, point)| point.x >= f64::from(clients))
        .map(|(name, point)| format!("{name} {}", number(point.y)))
        .collect();
    format!(
        "{}, {}. With {}: {}.",
        figure.title,
        figure.y.title(),
        counted(clients, "client"),
        values.join(", ")
    )
}
