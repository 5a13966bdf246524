//! Figures as data: what to plot. Each file builds one from a record; the renderers in [`super::render`] draw them.
//!
//! To add a figure: add a file here, its `mod` line and its line in [`FIGURES`].

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

/// Every figure, in display order: first those that answer the question, last the details, which a page shows on
/// demand.
pub const FIGURES: &[&dyn FigureKind] = &[
    &limit::Search,
    &overview::Ratios,
    &overview::Overview,
    &limit::AgainstTried::SERVED,
    &limit::AgainstTried::P99,
    &MetricFigure::COMPLETION,
    &completion::ConnectFailures,
    &MetricFigure::REQUESTS,
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
    /// The figure, or `None` if the record lacks what it shows.
    fn build(&self, source: &Source<'_>) -> Option<Figure>;
}

/// The input from which figures are built.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The numbers.
    pub summary: &'a Summary,
    /// The clients of one trial per server, at the largest number of clients.
    pub clients: &'a [ClientLog],
    /// Time series of these trials.
    pub series: &'a [TimeSeries],
    pub trials: &'a [Trial],
    /// All servers; the index of a server in it sets its colour and marker. By default, the servers of the summary.
    pub servers: &'a [String],
    /// The result of a search for limits.
    pub limits: Option<&'a Limits>,
    /// The comparison of servers, if one was requested.
    pub comparison: Option<&'a Comparison>,
    /// The grade of the run; `None` for no ranking.
    pub grade: Option<&'a Grade>,
}

impl<'a> Source<'a> {
    /// Only the numbers.
    #[cfg(test)]
    fn of(summary: &'a Summary) -> Self {
        Self::of_servers(summary, &summary.servers)
    }

    /// Only the numbers, with colours and markers by the index in `servers`.
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
    /// The index of a server, which sets its colour and marker.
    fn place(&self, server: &str) -> Option<usize> {
        self.servers.iter().position(|name| name == server)
    }
}

/// A plot as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Stable name, also used for its files.
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
    /// One series per server.
    pub series: Vec<Series>,
    /// The parts of stacked bars, from the bottom; otherwise empty.
    pub parts: Vec<String>,
    /// Heat maps, one per server; otherwise empty.
    pub maps: Vec<HeatMap>,
    /// Rankings, side by side; otherwise empty.
    pub ranked: Vec<Ranked>,
    /// Which direction of the vertical axis is better.
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
    /// Shown with the other figures.
    #[default]
    Main,
    /// Shown on demand.
    Detail,
}

/// The kind of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Points joined by lines.
    Lines,
    /// Many points, with only the lines between them drawn: a quantity over time.
    Course,
    /// One dot per series, one below the other: for a single number of clients.
    Bars,
    /// Dots one below the other, in groups: see [`Figure::ranked`].
    Ranked,
    /// One horizontal bar per series, stacked from its points: the x of a point is its index in [`Figure::parts`].
    Stacked,
    /// One heat map per server: the distribution of values at each time.
    Heat,
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// Its name.
    pub label: &'static str,
    /// Its unit, if it has one.
    pub unit: Option<&'static str>,
    /// Logarithmic.
    pub log: bool,
    /// Starts at 0, unless it is logarithmic.
    pub from_zero: bool,
}

/// The points of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name of the server.
    pub name: String,
    /// Index of the server, which sets its colour and marker.
    pub place: usize,
    /// The points in order of x.
    pub points: Vec<Point>,
    /// How its points are drawn in [`Kind::Lines`] and [`Kind::Course`].
    pub trace: Trace,
}

/// The distribution of one server's values over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// Name of the server.
    pub name: String,
    /// Index of the server.
    pub place: usize,
    /// The start of each column, followed by the end of the last one.
    pub columns: Vec<f64>,
    /// The start of each row from the bottom up, followed by the end of the highest one.
    pub rows: Vec<f64>,
    /// For each column, the share of its values in each row; empty for a column without values.
    pub shares: Vec<Vec<f64>>,
}

/// How the points of a series are drawn in [`Kind::Lines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trace {
    /// Markers joined by lines.
    Joined,
    /// Markers without lines.
    Markers,
    /// A line without markers that marks a position.
    Mark,
    /// A horizontal line across the figure, at the height of its points: a reference level.
    Level,
    /// In [`Kind::Course`]: a dotted line, another view of the series before it.
    Dotted,
}

impl Trace {
    /// Whether it is not a measurement, but drawn in addition to the measurements.
    pub(super) fn is_drawn_in(self) -> bool {
        [Self::Mark, Self::Level].contains(&self)
    }
}

/// One point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Not all clients were served; drawn hollow.
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
    /// A figure of these series without caption or alternative text; `None` if there are no series.
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

    /// An empty figure: a ranking without rows.
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

    /// Where the longest stacked bars are cut, as they would dwarf the others; `None` if all fit one scale.
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
    /// The sum over all its points.
    pub fn total(&self) -> f64 {
        self.points.iter().map(|point| point.y).sum()
    }
}

impl Axis {
    /// The time within a trial.
    const OF_A_TRIAL: Self = Self {
        from_zero: false,
        ..Self::linear("time since the measurement began", Some("s"))
    };

    /// A linear axis that starts at 0.
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
