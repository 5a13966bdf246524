//! Figures of one value against the number of clients.

use super::{Axis, Failing, Figure, Kind, Point, Series, Source};
use crate::summary::Row;
use throng_record::format::{counted, list, whole};
use throng_record::metrics::{Better, Metric, Quantity, named};
use throng_spec::registry::Info;

/// Addition to the caption of lines of throughput.
pub(crate) const FALLING: &str = "A falling line: throughput drops as clients are added.";
/// Addition to the caption of lines of CPU per request.
pub(crate) const RISING: &str = "A rising line: each request costs more as clients are added.";

/// The parts of a figure against the number of clients.
pub(crate) struct AgainstClients {
    id: &'static str,
    title: &'static str,
    caption: String,
    /// Addition to the caption of lines, with several numbers of clients.
    of_lines: &'static str,
    y: Axis,
    /// The metric; `None` for the share of clients that failed to connect.
    metric: Option<&'static Metric>,
    better: Better,
    failure: Failing,
}

impl AgainstClients {
    /// A metric of the catalogue. Its axis has the same name as its column in tables; its caption says which direction
    /// is better, then the `note`.
    pub(crate) fn of_metric(info: Info, name: &str, note: &str, of_lines: &'static str) -> Self {
        let metric = named(name).expect("figures show metrics of the catalogue");
        let (unit, _) = metric.axis_unit(f64::INFINITY);
        let better = match metric.better {
            Better::Higher => "Higher is better.",
            Better::Lower => "Lower is better.",
            Better::Neutral => "",
        };
        Self {
            id: info.name,
            title: info.summary,
            caption: [better, note].join(" ").trim().to_owned(),
            of_lines,
            y: Axis::of_metric(metric, unit),
            metric: Some(metric),
            better: metric.better,
            failure: Failing::UNSERVED,
        }
    }

    /// Lines against the number of clients, or bars if there is only one number of clients.
    pub(crate) fn build(self, source: &Source<'_>) -> Option<Figure> {
        let summary = source.summary;
        let series = source.each_server(|name| {
            let rows = summary.rows.iter().filter(|row| row.server == name);
            self.points(rows)
        });
        self.figure(series, &summary.clients)
    }

    /// The points of these rows.
    pub(crate) fn points<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Vec<Point> {
        rows.filter_map(|row| self.point(row)).collect()
    }

    fn point(&self, row: &Row) -> Option<Point> {
        let value = match self.metric {
            Some(metric) => {
                let (_, factor) = metric.axis_unit(f64::INFINITY);
                row.quantity(metric.name)?.times(1.0 / factor)
            }
            None => kept_out(row)?,
        };
        let drawable = |number: f64| number.is_finite() && (number > 0.0 || !self.y.log);
        drawable(value.value).then(|| Point {
            failed: !row.served_all,
            ..Point::of(f64::from(row.clients), value, drawable)
        })
    }

    /// A figure of these series, at these numbers of clients; `None` if every point failed.
    pub(crate) fn figure(self, series: Vec<Series>, clients: &[u32]) -> Option<Figure> {
        let (kind, of_lines) = match clients {
            [_] => (Kind::Bars, ""),
            _ => (Kind::Lines, self.of_lines),
        };
        let axes = (Axis::logarithmic("clients", None), self.y);
        let mut figure = Figure {
            better: self.better,
            failure: self.failure,
            metric: self.metric,
            ..Figure::new(self.id, self.title, kind, axes, series)?
        };
        let mut points = figure.series.iter().flat_map(|one| &one.points);
        points.find(|point| figure.has_value(point))?;
        let mut sentences = vec![self.caption, of_lines.to_owned(), figure.estimator()];
        sentences.retain(|sentence| !sentence.is_empty());
        figure.caption = sentences.join(" ");
        let most = *clients.last()?;
        figure.alternative = format!(
            "{}, {}. With {}: {}.",
            figure.title,
            figure.y.title(),
            counted(most, "client"),
            figure.words_from(most.into())
        );
        Some(figure)
    }
}

/// Clients that failed to connect.
pub(super) fn connect_failures(info: Info, source: &Source<'_>) -> Option<Figure> {
    let rows = || source.summary.rows.iter();
    let failed = |row: &Row| kept_out(row).is_some_and(|share| share.value > 0.0);
    if !rows().any(failed) {
        return None;
    }
    let mut queues: Vec<f64> = rows()
        .filter(|row| row.completion.is_some())
        .filter_map(|row| row.value("accept_backlog"))
        .collect();
    queues.sort_unstable_by(f64::total_cmp);
    queues.dedup();
    let mut caption = "Clients that could not connect, or never left the accept queue.".to_owned();
    if !queues.is_empty() {
        let rooms: Vec<String> = queues.into_iter().map(whole).collect();
        caption += &format!(" It holds {}.", list(&rooms));
    }
    AgainstClients {
        id: info.name,
        title: info.summary,
        caption,
        of_lines: "",
        y: Axis::linear("of all clients", Some("%")),
        metric: None,
        better: Better::Lower,
        failure: Failing {
            has_value: true,
            ..Failing::UNSERVED
        },
    }
    .build(source)
}

/// Clients that failed to connect, or were never accepted, in percent of all clients over all trials.
fn kept_out(row: &Row) -> Option<Quantity> {
    let jobs = row.completion.as_ref()?;
    let clients = f64::from(row.clients) * f64::from(row.trials_ok);
    let failed = jobs.connect_failures.values().sum::<u64>() + jobs.never_accepted;
    (clients > 0.0).then(|| Quantity::bare(100.0 * failed as f64 / clients))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::fixture;
    use crate::figures::tests::figure_of;
    use crate::summary::Summary;

    #[test]
    fn rejected_clients_are_a_share_of_all() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source::of(&summary);
        let figure = figure_of("connect-failures", &source).unwrap();
        assert!(figure.caption.ends_with("It holds 5."));
        let ends: Vec<(&str, f64)> = figure
            .series
            .iter()
            .map(|series| (series.name.as_str(), series.points.last().unwrap().y))
            .collect();
        // Ten refused and five never accepted, out of a thousand.
        assert!(ends.contains(&("fork", 1.5)), "{ends:?}");
        assert!(ends.contains(&("epoll", 0.0)), "{ends:?}");
    }
}
