//! Figures as data: what to plot. Each file builds one from a record; the renderers in [`super::render`] draw them.
//!
//! To add a figure: a file here, its `mod` line and its line in [`FIGURES`].

mod against_clients;
mod at_load;
#[cfg(test)]
mod captions;
mod completion;
mod fairness;
mod heat;
mod limit;
mod memory;
mod of_metric;
mod over_time;
mod overview;
mod percentiles;
mod ranked;
mod scalability;
mod syscalls;

use serde::Serialize;

use super::clients::ClientLog;
use super::comparison::Comparison;
use super::grade::Grade;
use super::limit::Limits;
use super::series::TimeSeries;
use super::summary::Summary;
pub(crate) use against_clients::AgainstClients;
pub(crate) use of_metric::MetricFigure;
pub(crate) use overview::ranked_of;
pub use ranked::{Grouped, Rank, Ranked, Standing};
use throng_record::Trial;
use throng_record::metrics::Better;
use throng_registry::Entry;
use throng_stats::median;

/// Every figure, in the order in which they are shown: first what answers, at last the details, which a page
/// shows on demand.
pub const FIGURES: &[&dyn FigureKind] = &[
    &limit::Search,
    &overview::Ratios,
    &overview::Overview,
    &limit::AgainstTried::SERVED,
    &limit::AgainstTried::P99,
    &MetricFigure::COMPLETION,
    &completion::ConnectFailures,
    &scalability::Throughput,
    &MetricFigure::CPU,
    &MetricFigure::P99,
    &percentiles::Percentiles,
    &at_load::AtLoad,
    &fairness::Fairness,
    &memory::Marginal,
    &syscalls::ByName,
    &MetricFigure::FLOW_THROUGHPUT,
    &heat::Heat,
    &over_time::OverTime::RATE,
    &over_time::OverTime::SERVER_CPU,
    &over_time::OverTime::CLIENT_CPU,
    &over_time::OverTime::MEMORY,
    &over_time::OverTime::SERVED,
    &over_time::OverTime::ESTABLISHED,
    &MetricFigure::FIRST_ANSWER,
    &MetricFigure::FLOW_TIME,
    &MetricFigure::MEMORY,
    &MetricFigure::INSTRUCTIONS,
];

/// A kind of figure.
pub trait FigureKind: Entry + Sync {
    /// The figure, or `None` when the record lacks what it shows.
    fn build(&self, source: &Source<'_>) -> Option<Figure>;
}

/// The input of figures.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The numbers.
    pub summary: &'a Summary,
    /// The clients of one trial of each server, at the largest number of clients.
    pub clients: &'a [ClientLog],
    /// Time series of these trials.
    pub series: &'a [TimeSeries],
    pub trials: &'a [Trial],
    /// Of all servers, by whose places each has its look; else those of the numbers.
    pub servers: &'a [String],
    /// The result of a search for limits.
    pub limits: Option<&'a Limits>,
    /// The servers compared, where that was asked for.
    pub comparison: Option<&'a Comparison>,
    /// The grade of the run; none: no ranking.
    pub grade: Option<&'a Grade>,
}

impl<'a> Source<'a> {
    /// The numbers alone.
    #[cfg(test)]
    fn of(summary: &'a Summary) -> Self {
        Self::of_servers(summary, &summary.servers)
    }

    /// The numbers alone, among these servers.
    pub(crate) fn of_servers(summary: &'a Summary, servers: &'a [String]) -> Self {
        Self {
            summary,
            servers,
            clients: &[],
            series: &[],
            trials: &[],
            limits: None,
            comparison: None,
            grade: None,
        }
    }
}

impl Source<'_> {
    /// The place of a server, which gives it its look.
    fn place(&self, server: &str) -> Option<usize> {
        self.servers.iter().position(|name| name == server)
    }
}

/// A plot as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Stable name; also that of its files.
    pub id: &'static str,
    /// A short title.
    pub title: String,
    /// The caption: what to see, in one line.
    pub caption: String,
    /// Alternative text.
    pub alternative: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    pub kind: Kind,
    /// One a server.
    pub series: Vec<Series>,
    /// The parts of stacked bars, from the bottom; otherwise empty.
    pub parts: Vec<String>,
    /// Heat maps, one per server; otherwise empty.
    pub maps: Vec<HeatMap>,
    /// Rankings, side by side; otherwise empty.
    pub ranked: Vec<Ranked>,
    /// Which end of the vertical axis is good.
    pub better: Better,
    /// Its place in a report.
    pub part: Part,
}

/// The place of a figure in a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Part of the answer.
    Answer,
    /// It is shown with the others.
    #[default]
    Main,
    /// It is shown on demand.
    Detail,
}

/// The kind of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Points joined by lines.
    Lines,
    /// Many points, of which only the lines between them are drawn: something over time.
    Course,
    /// A dot a series, below each other: there is a single number of clients.
    Bars,
    /// Dots below each other, in groups: see [`Figure::ranked`].
    Ranked,
    /// One bar a series, lying, made of its points: the x of a point is its place in
    /// [`Figure::parts`].
    Stacked,
    /// A map a server: how values are divided at each time.
    Heat,
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// Its name.
    pub label: &'static str,
    /// Its unit, where it has one.
    pub unit: Option<&'static str>,
    /// Logarithmic.
    pub log: bool,
    /// Starts at 0 when it is not logarithmic.
    pub from_zero: bool,
}

/// The points of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name of the server.
    pub name: String,
    /// Its place among the servers, which gives it its look.
    pub place: usize,
    /// In order of x.
    pub points: Vec<Point>,
    /// The drawing of its points in [`Kind::Lines`] and [`Kind::Course`].
    pub trace: Trace,
}

/// The distribution of one server's values over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// Name of the server.
    pub name: String,
    /// Its place among the servers.
    pub place: usize,
    /// The start of each column, and the end of the last one.
    pub columns: Vec<f64>,
    /// The start of each row, from below, and the end of the highest one.
    pub rows: Vec<f64>,
    /// For each column, how many of its values lie in each row, of all in it; nothing where it has none.
    pub shares: Vec<Vec<f64>>,
}

/// The drawing of the points of a series in [`Kind::Lines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trace {
    /// Markers joined by lines.
    Joined,
    /// Markers by themselves.
    Markers,
    /// A line without markers: a curve put through the markers of another series.
    Curve,
    /// A line without markers that shows where something is.
    Mark,
    /// The same all across, at the height of its points: what the others lie above or below.
    Level,
    /// Among [`Kind::Course`]: a dotted line, another view of what the series before it shows.
    Dotted,
}

impl Trace {
    /// Whether it is no measurement, but drawn in among them.
    pub(super) fn is_drawn_in(self) -> bool {
        [Self::Curve, Self::Mark, Self::Level].contains(&self)
    }
}

/// One point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Horizontal place.
    pub x: f64,
    /// Vertical place.
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Not all clients were served: drawn hollow.
    pub partial: bool,
}

impl Point {
    /// A value without an interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: None,
            high: None,
            partial: false,
        }
    }
}

impl Figure {
    /// One of these series, if there are any, without words.
    pub(crate) fn new(
        id: &'static str,
        title: impl Into<String>,
        kind: Kind,
        (x, y): (Axis, Axis),
        series: Vec<Series>,
    ) -> Option<Self> {
        (!series.is_empty()).then(|| Self {
            x,
            y,
            kind,
            series,
            ..Self::empty(id, title.into())
        })
    }

    /// An empty one: a ranking without rows.
    pub fn empty(id: &'static str, title: String) -> Self {
        Self {
            id,
            title,
            caption: String::new(),
            alternative: String::new(),
            x: Axis::linear("", None),
            y: Axis::linear("", None),
            kind: Kind::Ranked,
            series: Vec::new(),
            parts: Vec::new(),
            maps: Vec::new(),
            ranked: Vec::new(),
            better: Better::Neutral,
            part: Part::Main,
        }
    }

    /// The x positions of measurements, each once, ascending.
    pub(super) fn marked(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self
            .series
            .iter()
            .filter(|series| !series.trace.is_drawn_in())
            .flat_map(|series| series.points.iter().map(|point| point.x))
            .collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// Where the longest stacked bars are cut, because they would leave nothing of the others to be
    /// seen: none when all can be drawn to one scale.
    pub fn cut(&self) -> Option<f64> {
        let totals: Vec<f64> = self.series.iter().map(Series::total).collect();
        let most = 3.0 * median(&totals)?;
        let within = totals.iter().copied().filter(|total| *total <= most);
        let cut = 1.15 * within.fold(0.0, f64::max);
        totals
            .iter()
            .any(|total| *total > most && *total > cut)
            .then_some(cut)
    }
}

impl Series {
    /// Of all its points.
    pub fn total(&self) -> f64 {
        self.points.iter().map(|point| point.y).sum()
    }
}

impl Axis {
    /// The time of a trial.
    const OF_A_TRIAL: Self = Self {
        from_zero: false,
        ..Self::linear("time since the measurement began", Some("s"))
    };

    /// Linear, from 0.
    pub(crate) const fn linear(label: &'static str, unit: Option<&'static str>) -> Self {
        Self {
            label,
            unit,
            log: false,
            from_zero: true,
        }
    }

    pub(crate) const fn logarithmic(label: &'static str, unit: Option<&'static str>) -> Self {
        Self {
            label,
            unit,
            log: true,
            from_zero: false,
        }
    }

    /// "memory (MiB)".
    pub fn title(&self) -> String {
        self.unit.map_or_else(
            || self.label.to_owned(),
            |unit| format!("{} ({unit})", self.label),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn an_empty_record_has_no_figures() {
        let (run, _) = fixture::record();
        let empty = Summary::of(&run, &[]).unwrap();
        let source = Source::of(&empty);
        assert!(FIGURES.iter().all(|kind| kind.build(&source).is_none()));
    }

    #[test]
    fn bars_are_cut_where_one_would_leave_nothing_of_the_others() {
        let bars = |totals: &[f64]| {
            let (run, trials) = fixture::record();
            let summary = Summary::of(&run, &trials).unwrap();
            let source = Source::of(&summary);
            let mut figure = syscalls::ByName.build(&source).unwrap();
            figure.series.truncate(totals.len());
            for (series, total) in figure.series.iter_mut().zip(totals) {
                series.points = vec![Point {
                    y: *total,
                    ..series.points[0]
                }];
            }
            figure.cut()
        };
        assert_eq!(bars(&[2.0, 2.0, 3.0]), None);
        let cut = bars(&[2.0, 2.0, 3.0, 50.0]).unwrap();
        assert!(cut > 3.0 && cut < 5.0, "{cut}");
        assert_eq!(bars(&[0.04, 2.0]), None);
    }

    #[test]
    fn one_number_of_clients_gives_bars() {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.clients == 100);
        let summary = Summary::of(&run, &trials).unwrap();
        let figure = MetricFigure::REQUESTS.build(&Source::of(&summary));
        assert_eq!(figure.unwrap().kind, Kind::Bars);
    }
}
