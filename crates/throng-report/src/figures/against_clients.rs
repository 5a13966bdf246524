//! Figures of one value against the number of clients.

use super::{Axis, Failing, Figure, Kind, Point, Series, Source, Trace};
use crate::summary::Row;
use throng_record::format::counted;
use throng_record::metrics::{Better, Quantity};

/// The value of a row.
pub(crate) type Value<'a> = Box<dyn Fn(&Row) -> Option<Quantity> + 'a>;

/// The parts of a figure against the number of clients.
pub(crate) struct AgainstClients<'a> {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) caption: String,
    /// Addition to the caption of lines, with several numbers of clients.
    pub(crate) of_lines: &'static str,
    pub(crate) y: Axis,
    pub(crate) value: Value<'a>,
    pub(crate) better: Better,
    pub(crate) failure: Failing,
}

impl AgainstClients<'_> {
    /// Lines against the number of clients, or bars if there is only one number of clients.
    pub(crate) fn build(self, source: &Source<'_>) -> Option<Figure> {
        let summary = source.summary;
        let series = summary.servers.iter().filter_map(|name| {
            let rows = summary.rows.iter().filter(|row| row.server == *name);
            self.series(name.clone(), source.place(name), rows)
        });
        let series = series.collect();
        self.figure(series, &summary.clients)
    }

    /// The points of a server in these rows.
    pub(crate) fn series<'r>(
        &self,
        name: String,
        place: usize,
        rows: impl Iterator<Item = &'r Row>,
    ) -> Option<Series> {
        let points: Vec<Point> = rows.filter_map(|row| self.point(row)).collect();
        (!points.is_empty()).then_some(Series {
            name,
            place,
            points,
            trace: Trace::Joined,
        })
    }

    /// A figure of these series, at these numbers of clients; `None` if every point failed.
    pub(crate) fn figure(self, series: Vec<Series>, clients: &[u32]) -> Option<Figure> {
        let single = clients.len() == 1;
        let mut caption = self.caption;
        if !single && !self.of_lines.is_empty() {
            caption = format!("{caption} {}", self.of_lines);
        }
        let kind = if single { Kind::Bars } else { Kind::Lines };
        let axes = (Axis::logarithmic("clients", None), self.y);
        let better = self.better;
        let mut figure = Figure {
            caption,
            better,
            failure: self.failure,
            ..Figure::new(self.id, self.title, kind, axes, series)?
        };
        let mut points = figure.series.iter().flat_map(|series| &series.points);
        points.find(|point| figure.has_value(point))?;
        let sentences = [figure.caption.as_str(), &figure.estimator()].join(" ");
        sentences.trim().clone_into(&mut figure.caption);
        figure.alternative = alternative(&figure, *clients.last()?);
        Some(figure)
    }

    fn point(&self, row: &Row) -> Option<Point> {
        let value = (self.value)(row)?;
        let drawable = |value: f64| value.is_finite() && (value > 0.0 || !self.y.log);
        drawable(value.value).then(|| Point {
            failed: !row.served_all,
            ..Point::of(f64::from(row.clients), value, drawable)
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
        .map(|(name, point)| figure.in_words(name, point))
        .collect();
    format!(
        "{}, {}. With {}: {}.",
        figure.title,
        figure.y.title(),
        counted(clients, "client"),
        values.join(", ")
    )
}
