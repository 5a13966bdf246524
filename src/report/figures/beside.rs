//! Two runs in one plot, and the ratio of one to the other.

use super::{AgainstClients, Axis, Figure, Kind, Point, Series, Trace};
use crate::report::beside::Compared;
use crate::report::format::{counted, number};
use crate::report::metrics::{RATE, RATE_PER_CPU};
use crate::report::palette::LAP;
use crate::report::summary::Summary;

/// The places of a server that both runs have: in the later one, whose lines are whole, and in the earlier
/// one, whose lines have the same hue and are dashed.
pub(in crate::report) fn places(server: usize) -> [usize; 2] {
    let later = server / LAP * 2 * LAP + server % LAP;
    [later, later + LAP]
}

/// Every figure that there is data for, of the servers that both runs have.
pub(in crate::report) fn figures(
    servers: &[String],
    pairs: &[Compared],
    [a, b]: [&Summary; 2],
) -> Vec<Figure> {
    let ratios = [
        ("ratio-rate", "Replies a second, B over A", RATE.name),
        (
            "ratio-cpu",
            "Replies for a second of server CPU, B over A",
            RATE_PER_CPU.name,
        ),
        (
            "ratio-completion",
            "Until all are done, B over A",
            "completion",
        ),
    ];
    let ratios = ratios
        .into_iter()
        .filter_map(|(id, title, metric)| ratio(id, title, metric, servers, pairs));
    let curves = [
        AgainstClients {
            id: "both-rates",
            title: "Replies a second, both runs",
            caption: "Higher is better. A is dashed.",
            y: Axis::linear("replies", Some("per second")),
            value: |row| row.replies_per_s,
        },
        AgainstClients {
            id: "both-cpu",
            title: "Server CPU for one reply, both runs",
            caption: "Lower is better. A is dashed.",
            y: Axis::linear("CPU time a reply", Some("µs")),
            value: |row| row.server_side.cpu_us_per_reply,
        },
    ];
    let curves = curves
        .into_iter()
        .filter_map(|curve| both(curve, servers, [a, b]));
    ratios.chain(curves).collect()
}

/// The ratio of each server against the number of clients.
fn ratio(
    id: &'static str,
    title: &str,
    metric: &str,
    servers: &[String],
    pairs: &[Compared],
) -> Option<Figure> {
    let point = |compared: &Compared| {
        let mut measures = compared.pair.measures.iter();
        let ratio = measures.find(|one| one.name == metric)?.ratio?;
        Some(Point {
            x: f64::from(compared.pair.clients),
            y: ratio.estimate,
            low: Some(ratio.low),
            high: Some(ratio.high),
            partial: false,
        })
    };
    let of_server = |(place, server): (usize, &String)| {
        let own = pairs.iter().filter(|compared| compared.server == *server);
        let mut points: Vec<Point> = own.filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        (!points.is_empty()).then(|| Series {
            name: server.clone(),
            place: places(place)[0],
            points,
            trace: Trace::Joined,
        })
    };
    let mut series: Vec<Series> = servers.iter().enumerate().filter_map(of_server).collect();
    let told: Vec<String> = series
        .iter()
        .filter_map(|series| Some((&series.name, series.points.last()?)))
        .map(|(name, point)| {
            let clients = counted(point.x as u32, "client");
            format!("{name} {} with {clients}", number(point.y))
        })
        .collect();
    let places = || series.iter().flat_map(|series| &series.points).map(|p| p.x);
    let first = places().min_by(f64::total_cmp)?;
    let last = places().max_by(f64::total_cmp)?;
    let single = first >= last;
    let at = |x| Point {
        x,
        y: 1.0,
        low: None,
        high: None,
        partial: false,
    };
    series.push(Series {
        name: "alike".to_owned(),
        place: 0,
        points: vec![at(first), at(last)],
        trace: Trace::Level,
    });
    Some(Figure {
        id,
        title: title.to_owned(),
        caption: "Ratio of medians with its 95 % interval over trials. At 1 (dotted) both runs are alike; \
                  an interval that holds 1 tells nothing apart."
            .to_owned(),
        alternative: format!("{title}: {}.", told.join(", ")),
        x: Axis::logarithmic("clients", None),
        y: Axis {
            label: "ratio",
            unit: None,
            log: false,
            from_zero: single,
        },
        kind: if single { Kind::Bars } else { Kind::Lines },
        series,
        parts: Vec::new(),
        maps: Vec::new(),
    })
}

/// A curve of each server in each run; none where there is a single number of clients, which the tables
/// show as well.
fn both(curve: AgainstClients, servers: &[String], [a, b]: [&Summary; 2]) -> Option<Figure> {
    let mut series = Vec::new();
    let mut clients: Vec<u32> = Vec::new();
    for (place, server) in servers.iter().enumerate() {
        let [later, earlier] = places(place);
        for (summary, run, place) in [(b, "B", later), (a, "A", earlier)] {
            let rows = || summary.rows.iter().filter(|row| row.server == *server);
            clients.extend(rows().map(|row| row.clients));
            series.extend(curve.series(format!("{server} in {run}"), place, rows()));
        }
    }
    clients.sort_unstable();
    clients.dedup();
    if clients.len() < 2 {
        return None;
    }
    curve.figure(series, &clients)
}
