//! Two runs in one plot, and the ratio of one to the other.

use crate::comparison::Pair;
use crate::figures::{
    AgainstClients, Axis, FALLING, Figure, Kind, Point, RISING, Series, Trace, Wording, of_pairs,
};
use crate::palette;
use crate::summary::Summary;
use throng_record::format::{counted, number};
use throng_spec::registry::Info;
use throng_stats::MARGIN;

/// More servers share a panel for each metric.
const MOST_PANELS: usize = 3;

/// The places of a server that both runs have, with the same look: for the later run, whose lines are solid, then for
/// the earlier run, whose lines are dotted.
pub(crate) fn places(server: &str, among: &[String]) -> [usize; 2] {
    let later = palette::place(server, among);
    [later, palette::earlier(later)]
}

/// Every figure with data, for the servers that both runs have.
pub(crate) fn figures(servers: &[String], pairs: &[Pair], [a, b]: [&Summary; 2]) -> Vec<Figure> {
    let of_runs = Info {
        name: "ratios-of-runs",
        summary: "Each server, B over A",
    };
    let wording = Wording {
        apart: MOST_PANELS,
        of_pair: |pair| format!("{}, B over A", pair.server),
        to: "A",
    };
    let all: Vec<&Pair> = pairs.iter().collect();
    let place = |server: &str| palette::place(server, servers);
    let at_most = of_pairs(of_runs, &all, &wording, place).map(|figure| Figure {
        caption: format!(
            "1 is equal; the band is ±{:.0} %. Green is better in B, red is worse, grey is not significant, given the number of \
             comparisons.",
            100.0 * MARGIN
        ),
        ..figure
    });
    let titles = [
        (
            "ratios-rate",
            "Requests per second, B over A",
            "requests_per_s",
        ),
        (
            "ratios-cpu",
            "CPU per request, B over A",
            "server_cpu_us_per_request",
        ),
        (
            "ratios-completion",
            "Completion time, B over A",
            "completion_s",
        ),
    ];
    let against_clients = titles.iter().filter_map(|(id, title, metric)| {
        against_clients(id, title, ratios(metric, servers, pairs))
    });
    let curve = |name, summary, metric, of_lines| {
        let info = Info { name, summary };
        let curve = AgainstClients::of_metric(info, metric, "A is dotted.", of_lines);
        both(curve, servers, [a, b])
    };
    let curves = [
        curve(
            "both-rates",
            "Requests per second, both runs",
            "requests_per_s",
            FALLING,
        ),
        curve(
            "both-cpu",
            "Server CPU per request, both runs",
            "server_cpu_us_per_request",
            RISING,
        ),
    ]
    .into_iter()
    .flatten();
    at_most
        .into_iter()
        .chain(against_clients)
        .chain(curves)
        .collect()
}

/// The ratio of each server by one metric, for each number of clients.
fn ratios(metric: &str, servers: &[String], pairs: &[Pair]) -> Vec<Series> {
    let point = |pair: &Pair| {
        let ratio = pair.by(metric)?.ratio?;
        Some(Point {
            low: ratio.low,
            high: ratio.high,
            ..Point::new(f64::from(pair.clients), ratio.value)
        })
    };
    let of_server = |server: &String| {
        let own = pairs.iter().filter(|pair| pair.server == *server);
        let mut points: Vec<Point> = own.filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        (!points.is_empty()).then(|| Series {
            name: server.clone(),
            place: palette::place(server, servers),
            points,
            trace: Trace::Joined,
        })
    };
    servers.iter().filter_map(of_server).collect()
}

/// The smallest and largest x value of these series.
fn ends(series: &[Series]) -> Option<(f64, f64)> {
    let places = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| point.x)
    };
    Some((
        places().min_by(f64::total_cmp)?,
        places().max_by(f64::total_cmp)?,
    ))
}

/// The ratios against the number of clients, if there are several numbers, with a line at 1, where both runs are equal.
/// Twice and half are at the same distance from it.
fn against_clients(id: &'static str, title: &str, mut series: Vec<Series>) -> Option<Figure> {
    let (least, most) = ends(&series)?;
    if least >= most {
        return None;
    }
    let values: Vec<String> = series
        .iter()
        .filter_map(|series| Some((&series.name, series.points.last()?)))
        .map(|(name, point)| {
            let clients = counted(point.x as u32, "client");
            format!("{name} {} with {clients}", number(point.y))
        })
        .collect();
    series.push(Series {
        name: "1: equal".to_owned(),
        place: 0,
        points: vec![Point::new(least, 1.0), Point::new(most, 1.0)],
        trace: Trace::Level,
    });
    let axes = (
        Axis::logarithmic("clients", None),
        Axis::logarithmic("ratio", None),
    );
    let title = format!("{title}, against clients");
    Some(Figure {
        alternative: format!("{title}: {}.", values.join(", ")),
        caption: "At 1 both runs are equal. If an interval includes 1, the difference is not significant."
            .to_owned(),
        ..Figure::new(id, title, Kind::Lines, axes, series)?
    })
}

/// A curve per server and run; `None` for a single number of clients, which the tables show as well.
fn both(curve: AgainstClients, servers: &[String], [a, b]: [&Summary; 2]) -> Option<Figure> {
    let mut series = Vec::new();
    let mut clients: Vec<u32> = Vec::new();
    for server in servers {
        let [later, earlier] = places(server, servers);
        for (summary, run, place) in [(b, "B", later), (a, "A", earlier)] {
            let rows = || summary.rows.iter().filter(|row| row.server == *server);
            clients.extend(rows().map(|row| row.clients));
            let points = curve.points(rows());
            series.extend((!points.is_empty()).then(|| Series {
                name: format!("{server} in {run}"),
                place,
                points,
                // It shares a picture with the later run.
                trace: if run == "A" {
                    Trace::Dotted
                } else {
                    Trace::Joined
                },
            }));
        }
    }
    clients.sort_unstable();
    clients.dedup();
    if clients.len() < 2 {
        return None;
    }
    curve.figure(series, &clients)
}
