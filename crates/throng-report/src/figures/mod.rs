//! Figures as data: what to plot. Each file builds one from a record; the renderers in [`super::render`] draw them.
//!
//! To add a figure: add a function that builds it and its entry in [`FIGURES`].

mod against_clients;
mod at_load;
#[cfg(test)]
mod captions;
mod fairness;
mod limit;
mod memory;
mod over_time;
mod overview;
mod percentiles;
mod ranked;
mod syscalls;
mod why;

use serde::Serialize;

use super::comparison::Comparison;
use super::grade::Grade;
use super::limit::Limits;
use super::palette;
use super::summary::{Row, Summary};
use super::trial_files::ClientLog;
use super::why::Why;
pub(crate) use against_clients::{AgainstClients, FALLING, RISING};
pub(crate) use overview::{Wording, of_pairs, ranked_of};
pub use percentiles::of_latencies;
pub use ranked::{Grouped, Rank, Ranked};
use throng_record::Trial;
use throng_record::format::{ABSENT, number, valued};
use throng_record::metrics::{Better, Metric, Quantity, named};
use throng_spec::registry::{Entry, Info};
use throng_stats::median;

/// Every figure, in display order: first those that answer the question.
pub const FIGURES: &[&FigureKind] = &[
    &kind("search", "Search for the limit", limit::search),
    &kind("ratios", "Ratios to the reference", overview::ratios),
    &kind(
        "why",
        "Difference of CPU time per request, by part",
        why::figure,
    ),
    &kind(
        "why-memory",
        "Difference of memory per client, by part",
        why::of_memory,
    ),
    &kind(
        "threads",
        "Where threads spend their time",
        syscalls::of_threads,
    ),
    &kind(
        "overview",
        "Servers ranked by cost and latency",
        overview::overview,
    ),
    &kind("limit-served", "Served up to the limit", limit::served),
    &kind("limit-p99", "p99 latency up to the limit", limit::p99),
    &kind("completion", "Completion time", |info, source| {
        let note = "Time until the last client finished.";
        AgainstClients::of_metric(info, "completion_s", note, "").build(source)
    }),
    &kind(
        "connect-failures",
        "Clients that failed to connect",
        against_clients::connect_failures,
    ),
    &kind("latency-over-time", "Latency over time", over_time::figure),
    &kind("throughput", "Requests per second", |info, source| {
        AgainstClients::of_metric(info, "requests_per_s", "", FALLING).build(source)
    }),
    &kind(
        "cpu-per-request",
        "Server CPU per request",
        |info, source| {
            AgainstClients::of_metric(info, "server_cpu_us_per_request", "", RISING).build(source)
        },
    ),
    &kind("latency-p99", "p99 latency", |info, source| {
        let note = "One request in 100 took longer.";
        AgainstClients::of_metric(info, "latency_p99_us", note, "").build(source)
    }),
    &kind(
        "latency-percentiles",
        "Latency by percentile",
        percentiles::figure,
    ),
    &kind(
        "latency-at-load",
        "Response time below the maximum rate",
        at_load::figure,
    ),
    &kind(
        "fairness",
        "Replies per client, fewest first",
        fairness::figure,
    ),
    &kind(
        "fairness-order",
        "Replies per client, in order of connection",
        fairness::in_order,
    ),
    &kind(
        "memory-per-client",
        "Memory per additional client",
        memory::figure,
    ),
    &kind(
        "syscalls",
        "System calls per request, by name",
        syscalls::figure,
    ),
    &kind(
        "flow-throughput",
        "Throughput per flow, from captured packets",
        |info, source| {
            AgainstClients::of_metric(info, "flow_throughput_bytes_per_s", "", "").build(source)
        },
    ),
];

/// A kind of figure.
pub struct FigureKind {
    info: Info,
    make: fn(Info, &Source<'_>) -> Option<Figure>,
}

const fn kind(
    name: &'static str,
    summary: &'static str,
    make: fn(Info, &Source<'_>) -> Option<Figure>,
) -> FigureKind {
    let info = Info { name, summary };
    FigureKind { info, make }
}

impl FigureKind {
    /// The figure, or `None` if the record lacks what it shows.
    pub(crate) fn build(&self, source: &Source<'_>) -> Option<Figure> {
        (self.make)(self.info, source)
    }
}

impl Entry for FigureKind {
    fn info(&self) -> Info {
        self.info
    }
}

/// The input from which figures are built.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The numbers.
    pub summary: &'a Summary,
    /// The clients of one trial per server, at the largest number of clients.
    pub clients: &'a [ClientLog],
    pub trials: &'a [Trial],
    /// All servers of the document, which share its colours and markers.
    pub servers: &'a [String],
    /// The result of a search for limits.
    pub limits: Option<&'a Limits>,
    /// Why servers differ.
    pub why: &'a [Why],
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

    /// Only the numbers, in a document of these `servers`.
    pub(crate) fn of_servers(summary: &'a Summary, servers: &'a [String]) -> Self {
        Self {
            summary,
            servers,
            clients: &[],
            trials: &[],
            limits: None,
            comparison: None,
            why: &[],
            grade: None,
        }
    }
}

impl Source<'_> {
    /// Whether there is a single server, which is compared with nothing: its times say more than a ranking.
    fn is_of_one(&self) -> bool {
        let is_compared = self.comparison.is_some_and(|all| !all.pairs.is_empty());
        self.summary.servers.len() == 1 && !is_compared
    }

    /// The place of a server in the palette.
    fn place(&self, server: &str) -> usize {
        palette::place(server, self.servers)
    }

    fn row(&self, server: &str, clients: u32) -> Option<&Row> {
        let mut rows = self.summary.rows_at(clients);
        rows.find(|row| row.server == server)
    }

    /// A row of a ranking, without a point.
    fn rank(&self, server: &str, text: String) -> Rank {
        Rank {
            text,
            ..Rank::of(server, self.place(server))
        }
    }

    /// A series of a server; `None` without points.
    fn series(&self, server: &str, points: Vec<Point>) -> Option<Series> {
        (!points.is_empty()).then(|| Series {
            name: server.to_owned(),
            place: self.place(server),
            points,
            trace: Trace::Joined,
        })
    }

    /// A series for each server that has points.
    fn each_server(&self, points: impl Fn(&str) -> Vec<Point>) -> Vec<Series> {
        let servers = self.summary.servers.iter();
        let series = servers.filter_map(|server| self.series(server, points(server)));
        series.collect()
    }

    /// A curve of a server with this number of clients. Its points fail if the server left any of its clients unserved.
    fn curve(&self, server: &str, clients: u32, mut points: Vec<Point>) -> Option<Series> {
        let row = self.row(server, clients);
        let failed = row.is_some_and(|row| !row.served_all);
        for point in &mut points {
            point.failed = failed;
        }
        self.series(server, points)
    }

    /// These metrics as the tables show them, for servers with their numbers of clients.
    fn numbers<'s>(&self, names: &[&str], shown: impl Iterator<Item = (&'s str, u32)>) -> Numbers {
        let rows: Vec<&Row> = shown
            .filter_map(|(server, clients)| self.row(server, clients))
            .collect();
        let candidates = names.iter().filter_map(|name| named(name));
        let known = |metric: &&Metric| rows.iter().any(|row| row.value(metric.name).is_some());
        let metrics: Vec<&Metric> = candidates.filter(known).collect();
        let cell = |row: &Row, metric: &Metric| {
            let Some(quantity) = row.quantity(metric.name) else {
                return ABSENT.to_owned();
            };
            let range = metric
                .range(quantity)
                .map_or_else(String::new, |range| format!(" ({range})"));
            metric.text(quantity.value) + &range
        };
        let line = |row: &&Row| {
            let cells = metrics.iter().map(|metric| cell(row, metric));
            let place = self.place(&row.server);
            (row.server.clone(), place, cells.collect())
        };
        Numbers {
            heads: metrics.iter().map(|metric| metric.label).collect(),
            rows: rows.iter().map(line).collect(),
        }
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
    /// Rankings, side by side; otherwise empty.
    pub ranked: Vec<Ranked>,
    /// The numbers of a [`Kind::Course`]; otherwise empty.
    pub numbers: Numbers,
    /// The meaning of a failed point.
    pub failure: Failing,
    /// Which direction of the vertical axis is better.
    pub better: Better,
    /// The section of a report that shows it.
    pub section: OfSection,
    /// The metric, if it shows one against the number of clients.
    #[serde(skip)]
    pub metric: Option<&'static Metric>,
}

/// Metrics of servers. The points of a curve are no sample of a metric, so no number comes from them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Numbers {
    /// The labels of the metrics.
    pub heads: Vec<&'static str>,
    /// Each server with its place in the palette and its values.
    pub rows: Vec<(String, usize, Vec<String>)>,
}

/// The section of a report that shows a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfSection {
    Answer,
    /// Why servers differ.
    Why,
    Figures,
}

/// The meaning of a failed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Failing {
    pub words: &'static str,
    /// Whether its value counts all the same. Otherwise it is drawn at the worst end of the axis.
    pub has_value: bool,
}

impl Failing {
    /// A server left clients unserved: what it did for the others compares with nothing.
    pub(crate) const UNSERVED: Self = Self {
        words: "did not serve every client",
        has_value: false,
    };
}

/// The mark of a failure.
pub const FAILED: &str = "✖";

/// The kind of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Points joined by lines.
    Lines,
    /// Many points, with only the lines between them drawn.
    Course,
    /// Many points by themselves, in a picture of its own for each series.
    Dots,
    /// Cells of a grid in a picture of its own for each series: see [`Point::cell`].
    Heat,
    /// One dot per series, one below the other: for a single number of clients.
    Bars,
    /// Dots one below the other, in groups: see [`Figure::ranked`].
    Ranked,
    /// One horizontal bar per series, stacked from its points: the x of a point is its index in [`Figure::parts`].
    Stacked,
}

impl Kind {
    /// Whether its series have many points, which are no samples of a metric.
    pub(super) fn has_many(self) -> bool {
        [Self::Course, Self::Dots, Self::Heat].contains(&self)
    }
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// Its name.
    pub label: &'static str,
    /// Its unit, if it has one.
    pub unit: Option<&'static str>,
    /// Logarithmic.
    pub log: bool,
    /// Starts at 0, unless it is logarithmic.
    pub from_zero: bool,
    /// The highest possible value, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// Positions with names, in order; they are marked instead of round numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<(f64, String)>,
}

/// The points of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name of the server.
    pub name: String,
    /// Place of the server in the palette, which sets its colour and marker.
    pub place: usize,
    /// The points in order of x.
    pub points: Vec<Point>,
    /// How its points are drawn in [`Kind::Lines`] and [`Kind::Course`].
    pub trace: Trace,
}

/// How the points of a series are drawn in [`Kind::Lines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trace {
    /// Markers joined by lines.
    Joined,
    /// A line without markers that marks a position.
    Mark,
    /// A horizontal line across the figure, at the height of its points: a reference level.
    Level,
    /// In [`Kind::Course`]: a dotted line, another view of the series before it.
    Dotted,
    /// Crosses: published values of the server.
    Published,
}

impl Trace {
    /// Whether it is not a measurement, but drawn in addition to the measurements.
    pub(super) fn is_drawn_in(self) -> bool {
        [Self::Mark, Self::Level, Self::Published].contains(&self)
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
    /// Whether it failed, as [`Figure::failure`] says.
    pub failed: bool,
    /// The measured value that it shows, for the caption.
    #[serde(skip)]
    pub shows: Option<Quantity>,
    /// In [`Kind::Heat`]: where the cell ends that begins at `x` and reaches from `low` to `high`, and its share of what
    /// its column counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<(f64, f64)>,
}

impl Point {
    /// A value without an interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: None,
            high: None,
            failed: false,
            shows: None,
            cell: None,
        }
    }

    /// Its value on this axis with its interval: "1,230 per second (1,200 to 1,260)".
    pub(crate) fn text(&self, y: &Axis) -> String {
        let value = valued(self.y, y.unit);
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{value} ({} to {})", number(low), number(high)),
            _ => value,
        }
    }

    /// A measured value with its interval, as far as an axis can show them.
    pub(crate) fn of(x: f64, shown: Quantity, is_drawable: impl Fn(f64) -> bool) -> Self {
        Self {
            low: shown.low.filter(|end| is_drawable(*end)),
            high: shown.high.filter(|end| is_drawable(*end)),
            shows: Some(shown),
            ..Self::new(x, shown.value)
        }
    }
}

impl Figure {
    /// What its points and their intervals are, as a sentence of the caption; empty without intervals.
    pub(crate) fn estimator(&self) -> String {
        let of_series = self.series.iter().flat_map(|series| &series.points);
        let ranked = self.ranked.iter().flat_map(Ranked::rows);
        let points = of_series.chain(ranked.filter_map(|row| row.point.as_ref()));
        let with_values = points.filter(|point| !point.failed);
        Quantity::estimator(with_values.filter_map(|point| point.shows))
    }

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
            ranked: Vec::new(),
            numbers: Numbers::default(),
            failure: Failing::UNSERVED,
            better: Better::Neutral,
            section: OfSection::Figures,
            metric: None,
        }
    }

    /// The meaning of the mark of a failure, if there is any: "✖ did not serve every client."
    pub fn legend(&self) -> Option<String> {
        let mut points = self.series.iter().flat_map(|series| &series.points);
        let mut rows = self.ranked.iter().flat_map(Ranked::rows);
        let any = points.any(|point| point.failed) || rows.any(|row| row.failed);
        any.then(|| format!("{FAILED} {}.", self.failure.words))
    }

    /// The caption with the legend.
    pub fn full_caption(&self) -> String {
        let legend = self.legend().unwrap_or_default();
        format!("{} {legend}", self.caption).trim().to_owned()
    }

    /// Whether the value of a point is drawn.
    pub(super) fn has_value(&self, point: &Point) -> bool {
        !point.failed || self.failure.has_value || self.kind.has_many()
    }

    /// A point in words: its value, or its failure.
    pub(super) fn in_words(&self, name: &str, point: &Point) -> String {
        if self.has_value(point) {
            format!("{name} {}", number(point.y))
        } else {
            format!("{name} {}", self.failure.words)
        }
    }

    /// The last point of each series, in words, if it is at `x` or beyond.
    fn words_from(&self, x: f64) -> String {
        let series = self.series.iter();
        let measured = series.filter(|series| series.trace != Trace::Published);
        let last = measured.filter_map(|one| Some((&one.name, one.points.last()?)));
        let words: Vec<String> = last
            .filter(|(_, point)| point.x >= x)
            .map(|(name, point)| self.in_words(name, point))
            .collect();
        words.join(", ")
    }

    /// The rows of its first ranking, in words.
    fn ranked_words(&self) -> Vec<String> {
        let rows = self.ranked.iter().take(1).flat_map(Ranked::rows);
        let known = rows.filter(|row| row.point.is_some() || row.failed);
        known
            .map(|row| format!("{} {}", row.name, row.text))
            .collect()
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

impl Ranked {
    /// Rows in this order, without verdicts.
    fn of(title: String, axis: Axis, rows: Vec<Rank>) -> Self {
        Self {
            title,
            axis,
            level: None,
            band: None,
            groups: vec![Grouped::apart(rows)],
        }
    }
}

impl Series {
    /// The sum over all its points.
    pub fn total(&self) -> f64 {
        self.points.iter().map(|point| point.y).sum()
    }
}

impl Axis {
    /// A linear axis that starts at 0.
    pub const fn linear(label: &'static str, unit: Option<&'static str>) -> Self {
        Self {
            label,
            unit,
            log: false,
            from_zero: true,
            most: None,
            named: Vec::new(),
        }
    }

    /// A logarithmic axis for values of a metric, in this unit.
    pub(crate) fn of_metric(metric: &Metric, unit: Option<&'static str>) -> Self {
        Self {
            most: metric.greatest(),
            ..Self::logarithmic(metric.label, unit)
        }
    }

    pub(crate) const fn logarithmic(label: &'static str, unit: Option<&'static str>) -> Self {
        Self {
            label,
            unit,
            log: true,
            from_zero: false,
            most: None,
            named: Vec::new(),
        }
    }

    /// The name of a position, if it has one.
    pub(crate) fn name(&self, at: f64) -> Option<&String> {
        let mut named = self.named.iter();
        let is_near = |place: f64| (place - at).abs() <= 1e-9 * place.abs();
        named.find_map(|(place, name)| is_near(*place).then_some(name))
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

    /// The figure with this name.
    pub(super) fn figure_of(name: &str, source: &Source<'_>) -> Option<Figure> {
        let found = FIGURES.iter().find(|kind| kind.info.name == name);
        found.unwrap().build(source)
    }

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
            let mut figure = figure_of("syscalls", &source).unwrap();
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
    fn a_server_that_left_clients_unserved_is_drawn_as_a_failure_in_every_figure() {
        let (run, trials) = crate::completion::fixture::record();
        let report = crate::Report::of(&run, &trials, &fixture::logs(&run)).unwrap();
        let mut drawn = 0;
        for figure in &report.figures {
            let is_fork = |name: &str| name == "fork";
            let mut series = figure.series.iter().filter(|series| is_fork(&series.name));
            let mut rows = figure.ranked.iter().flat_map(Ranked::rows);
            let failed = series.any(|one| one.points.last().is_some_and(|point| point.failed))
                || rows.any(|row| is_fork(&row.name) && row.failed && row.point.is_none());
            if failed {
                drawn += 1;
                assert!(
                    figure
                        .full_caption()
                        .contains("✖ did not serve every client.")
                );
                let svg = crate::render::still::svg(figure);
                assert!(
                    svg.contains("✖ did not serve every client."),
                    "{}",
                    figure.id
                );
            } else {
                assert!(figure.id == "memory-per-client", "{}", figure.id);
            }
        }
        assert!(drawn > 5, "{drawn}");
        let completion = report
            .figures
            .iter()
            .find(|one| one.id == "completion")
            .unwrap();
        assert!(
            completion
                .alternative
                .contains("fork did not serve every client"),
            "{}",
            completion.alternative
        );
    }

    #[test]
    fn numbers_below_a_curve_are_metrics_and_no_sample_of_its_points() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source {
            trials: &trials,
            ..Source::of(&summary)
        };
        let figure = figure_of("latency-percentiles", &source).unwrap();
        assert_eq!(figure.numbers.heads[..3], ["p50", "p90", "p99"]);
        let row = source.row("epoll", 1000).unwrap();
        let p50 = named("latency_p50_us").unwrap();
        let p50 = p50.text(row.value(p50.name).unwrap());
        let mut rows = figure.numbers.rows.iter();
        let own = rows.find(|(name, ..)| name == "epoll").unwrap();
        assert!(own.2[0].starts_with(&p50), "{own:?}");
    }

    #[test]
    fn values_beside_an_axis_are_in_its_unit() {
        let (run, trials) = fixture::record();
        let report = crate::Report::of(&run, &trials, &crate::Logs::default()).unwrap();
        let ranked = report.figures.iter().flat_map(|figure| &figure.ranked);
        let mut seen = 0;
        for ranked in ranked {
            for row in ranked.rows() {
                let (Some(point), Some(unit)) = (row.point, ranked.axis.unit) else {
                    continue;
                };
                assert_eq!(row.text, format!("{} {unit}", number(point.y)));
                seen += 1;
            }
        }
        assert!(seen > 5, "{seen}");
    }

    #[test]
    fn one_number_of_clients_gives_bars() {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.clients == 100);
        let summary = Summary::of(&run, &trials).unwrap();
        let figure = figure_of("throughput", &Source::of(&summary));
        assert_eq!(figure.unwrap().kind, Kind::Bars);
    }
}
