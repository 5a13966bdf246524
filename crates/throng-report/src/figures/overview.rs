//! The figure of the answer: servers ranked, or ratios around 1.

use super::{Axis, Figure, Grouped, OfSection, Point, Rank, Ranked, Source, percentiles};
use crate::answer::{Standings, standings};
use crate::comparison::{Pair, PairMetric};
use crate::summary::Row;
use throng_record::format::{ABSENT, capitalized, counted, hundredths, list, number, whole};
use throng_record::metrics::{Better, Metric, Quantity, named};
use throng_spec::registry::Info;
use throng_stats::{MARGIN, Verdict};

/// Times in order of preference; the first one with a value is shown.
const TIMES: [&str; 3] = ["response_p99_us", "latency_p99_us", "job_p99_us"];
/// The number of measures shown for one pair, and the measures shown for several pairs.
const OF_ONE: usize = 9;
const OF_SEVERAL: [&str; 4] = [
    "requests_per_s",
    "server_cpu_us_per_request",
    "completion_s",
    "latency_p99_us",
];
/// Maximum number of rows; of more, a table is clearer.
const MOST_ROWS: usize = 40;

/// Servers ranked by cost per request and by latency.
pub(super) fn overview(info: Info, source: &Source<'_>) -> Option<Figure> {
    let summary = source.summary;
    let clients = *summary.clients.last()?;
    let has_times = || percentiles::figure(info, source).is_some();
    let leads_with_times = source.is_of_one() && has_times();
    if leads_with_times || source.limits.is_some() || ratios(info, source).is_some() {
        return None;
    }
    let standings = standings(summary, source.comparison, clients)?;
    let time = TIMES.into_iter().find_map(|name| {
        let metric = named(name)?;
        let mut rows = summary.rows_at(clients);
        rows.any(|row| row.value(name).is_some()).then_some(metric)
    });
    let metrics = [Some(standings.metric), time];
    let ranked: Vec<Ranked> = metrics
        .into_iter()
        .flatten()
        .filter_map(|metric| ranked(source, metric, &standings))
        .collect();
    ranked.first()?;
    let mut figure = Figure {
        ranked,
        better: standings.metric.better,
        section: OfSection::Answer,
        ..Figure::empty(
            info.name,
            format!("All servers with {}", counted(clients, "client")),
        )
    };
    figure.alternative = format!(
        "{}. {}: {}.",
        figure.title,
        standings.metric.label,
        list(&figure.ranked_words())
    );
    figure.caption = figure.estimator();
    if standings.groups.iter().any(|group| group.tied) {
        figure.caption += " Blue: ties with the best.";
    }
    Some(figure)
}

fn ranked(source: &Source<'_>, metric: &'static Metric, all: &Standings<'_>) -> Option<Ranked> {
    let decides = metric.name == all.metric.name;
    let groups = all.groups.iter().map(|group| {
        (
            group.title.clone(),
            group.tied && decides,
            group.rows.clone(),
        )
    });
    ranked_of(source, metric, groups.collect(), decides)
}

/// Rows in groups, ranked by a metric. Each group has a title, and whether its servers tie. The deciding metric also
/// names servers that did not serve all clients.
pub(crate) fn ranked_of(
    source: &Source<'_>,
    metric: &'static Metric,
    groups: Vec<(String, bool, Vec<&Row>)>,
    decides: bool,
) -> Option<Ranked> {
    let rows = groups.iter().flat_map(|(.., rows)| rows);
    let values = rows
        .filter(|row| row.served_all)
        .filter_map(|row| row.value(metric.name));
    let (unit, factor) = metric.axis_unit(values.fold(0.0, f64::max));
    let axis = Axis::of_metric(metric, unit);
    let end = match metric.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neutral => "",
    };
    // In the unit of the axis.
    let text = |value: f64| match unit {
        Some(unit) => format!("{} {unit}", number(value / factor)),
        None => metric.text(value),
    };
    let rank = |row: &&Row| {
        let quantity = row
            .quantity(metric.name)
            .filter(|found| found.value > 0.0)
            .filter(|_| row.served_all);
        Rank {
            point: quantity.map(|found| point(found.times(1.0 / factor))),
            text: match (quantity, row.served_short_in_words("–")) {
                (Some(found), _) => text(found.value),
                (None, Some(served)) if decides => {
                    format!("{served} of {}", whole(f64::from(row.clients)))
                }
                (None, _) => ABSENT.to_owned(),
            },
            failed: !row.served_all,
            ..Rank::of(&row.server, source.place(&row.server))
        }
    };
    let grouped: Vec<Grouped> = groups
        .into_iter()
        .map(|(title, tied, tied_rows)| Grouped {
            // The verdicts are about the deciding metric; a blank heading keeps the rows aligned with those of that
            // metric.
            title: if decides || title.is_empty() {
                title
            } else {
                "\u{a0}".to_owned()
            },
            is_tied: tied,
            rows: tied_rows.iter().map(rank).collect(),
        })
        .collect();
    let found = Ranked {
        title: match unit {
            Some(unit) => format!("{}, {unit} ({end})", capitalized(&metric.noun())),
            None => format!("{} ({end})", capitalized(&metric.noun())),
        },
        axis,
        level: None,
        band: None,
        groups: grouped,
    };
    let is_there = found.rows().any(|row| row.point.is_some());
    is_there.then_some(found)
}

fn point(quantity: Quantity) -> Point {
    Point::of(0.0, quantity, |end| end.is_finite() && end > 0.0)
}

/// Servers compared with a reference.
pub(super) fn ratios(info: Info, source: &Source<'_>) -> Option<Figure> {
    let unusable = source.grade.is_some_and(|grade| !grade.is_usable());
    let comparison = source.comparison?.requested()?;
    let all: Vec<&Pair> = comparison.all_pairs().collect();
    let wording = Wording {
        apart: 1,
        of_pair: |pair| format!("Ratio of {} to {}", pair.server, pair.reference),
        to: &all.first()?.reference,
    };
    let figure = of_pairs(info, &all, &wording, |server| source.place(server))?;
    let margin = format!("{:.0} %", 100.0 * MARGIN);
    let verdicts = if unusable {
        "No verdicts: the run is unusable."
    } else {
        "Green is better, red is worse, grey is not significant. Ratios are over pairs close in time, not of the medians."
    };
    Some(Figure {
        caption: format!("1 is equal; the band is ±{margin}. {verdicts}"),
        section: OfSection::Answer,
        ..figure
    })
}

/// How a figure of ratios names its panels.
pub(crate) struct Wording<'a> {
    /// Up to this many pairs have a panel each; of more, each metric has one.
    pub(crate) apart: usize,
    /// The title of the panel of a pair.
    pub(crate) of_pair: fn(&Pair) -> String,
    /// What all ratios of a metric are to.
    pub(crate) to: &'a str,
}

/// The ratios of pairs with the most clients, without a caption.
pub(crate) fn of_pairs(
    info: Info,
    pairs: &[&Pair],
    wording: &Wording<'_>,
    place: impl Fn(&str) -> usize,
) -> Option<Figure> {
    let clients = pairs.iter().map(|pair| pair.clients).max()?;
    let largest = pairs.iter().filter(|pair| pair.clients == clients);
    let shown: Vec<&Pair> = largest.copied().collect();
    let ranked: Vec<Ranked> = if shown.len() <= wording.apart {
        let panel = |pair: &&Pair| {
            let with_ratio = pair.measures.iter().filter(|one| one.ratio.is_some());
            let rows = with_ratio
                .take(OF_ONE)
                .map(|one| rank(one.title, None, one));
            around_1((wording.of_pair)(pair), rows.collect())
        };
        shown.iter().filter_map(panel).collect()
    } else {
        let panel = |name: &&str| {
            let rows = shown.iter().take(MOST_ROWS).filter_map(|pair| {
                let measured = pair.by(name)?;
                Some(rank(&pair.server, Some(place(&pair.server)), measured))
            });
            let noun = capitalized(&named(name)?.noun());
            around_1(format!("{noun}, ratio to {}", wording.to), rows.collect())
        };
        let mut panels: Vec<Ranked> = OF_SEVERAL.iter().filter_map(panel).collect();
        // What differs comes before what is alike.
        panels.sort_by_key(|ranked| ranked.rows().all(|row| row.better.is_none()));
        panels.truncate(2);
        panels
    };
    ranked.first()?;
    let figure = Figure {
        ranked,
        ..Figure::empty(
            info.name,
            format!("Ratios with {}", counted(clients, "client")),
        )
    };
    Some(Figure {
        alternative: format!("{}: {}.", figure.title, list(&figure.ranked_words())),
        ..figure
    })
}

/// Ratios, with the margin within which two servers are equivalent.
fn around_1(title: String, rows: Vec<Rank>) -> Option<Ranked> {
    rows.iter().any(|row| row.point.is_some()).then(|| Ranked {
        title,
        axis: Axis::logarithmic("ratio", None),
        level: Some(1.0),
        band: Some((1.0 / (1.0 + MARGIN), 1.0 + MARGIN)),
        groups: vec![Grouped::apart(rows)],
    })
}

fn rank(name: &str, place: Option<usize>, measured: &PairMetric) -> Rank {
    let ratio = measured.ratio.filter(|ratio| ratio.value > 0.0);
    let better = match measured.verdict {
        Verdict::Better => Some(true),
        Verdict::Worse => Some(false),
        Verdict::Equivalent | Verdict::Inconclusive | Verdict::NotComparable => None,
    };
    let drawable = |end: &f64| end.is_finite() && *end > 0.0;
    let [.., verdict] = measured.cells();
    let text = match (measured.verdict.is_difference(), ratio) {
        (false, Some(found)) => format!("{}, {verdict}", hundredths(found.value)),
        _ => verdict,
    };
    Rank {
        name: name.to_owned(),
        place,
        point: ratio.map(|ratio| Point {
            low: ratio.low.filter(drawable),
            high: ratio.high.filter(drawable),
            ..Point::new(0.0, ratio.value)
        }),
        published: None,
        text,
        failed: false,
        better,
    }
}

/// A figure of the answer that ranks other values, such as limits.
pub(super) fn of_rows(info: Info, title: String, ranked: Ranked) -> Figure {
    Figure {
        ranked: vec![ranked],
        section: OfSection::Answer,
        ..Figure::empty(info.name, title)
    }
}
