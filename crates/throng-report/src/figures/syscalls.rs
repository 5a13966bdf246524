//! Stacked bars of a server's system calls: per reply by name, and where its threads spend their time.

use std::collections::BTreeMap;

use super::{Axis, Figure, Kind, OfSection, Point, Source};
use crate::columns::calls;
use crate::palette::{Role, role};
use crate::summary::Row;
use crate::why::IDLE;
use throng_record::format::counted;
use throng_record::metrics::Better;
use throng_spec::registry::Info;

/// Maximum number of calls drawn by name; the rest are drawn as one part.
const MOST_PARTS: usize = 13;
/// The name of that part.
const REST: &str = "other calls";
/// A call that every server makes less often than this per reply belongs to the rest.
const LEAST: f64 = 0.004;

pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    let summary = source.summary;
    let with_calls = |row: &&Row| !calls(row).is_empty();
    let shown = |clients: &u32| summary.rows_at(*clients).any(|row| with_calls(&row));
    let clients = summary.clients.iter().copied().rev().find(shown)?;
    let rows = summary.rows_at(clients).filter(with_calls);
    let bars: Vec<Bar<'_>> = rows
        .map(|row| Bar {
            server: &row.server,
            calls: calls(row),
            failed: !row.served_all,
        })
        .collect();
    let caption = format!(
        "{}, counted in separate trials.",
        counted(clients, "client")
    );
    let axis = Axis::linear("system calls per request", None);
    let figure = stacked(
        info,
        source,
        "System calls per request",
        axis,
        caption,
        &bars,
    )?;
    Some(Figure {
        better: Better::Lower,
        ..figure
    })
}

/// What the threads of both servers do, in the turns that are not timed: of the first pair that was watched.
pub(super) fn of_threads(info: Info, source: &Source<'_>) -> Option<Figure> {
    let why = source.why.first()?;
    let sides = [
        (&why.reference, &why.threads[0]),
        (&why.server, &why.threads[1]),
    ];
    let bars = sides.map(|(server, threads)| {
        let all: f64 = threads.values().sum();
        let shares = threads
            .iter()
            .map(|(name, count)| (name.as_str(), count / all * 100.0));
        Bar {
            server,
            calls: shares.collect(),
            failed: false,
        }
    });
    if bars.iter().any(|bar| bar.calls.is_empty()) {
        return None;
    }
    let idle = if why.threads.iter().any(|threads| threads.contains_key(IDLE)) {
        " An idle thread used less than a tenth of the mean CPU time."
    } else {
        ""
    };
    let caption = format!(
        "Shares of the time of all threads, {}, in turns that are not timed.{idle}",
        counted(why.clients, "client")
    );
    let axis = Axis::linear("time of all threads", Some("%"));
    let figure = stacked(info, source, info.summary, axis, caption, &bars)?;
    Some(Figure {
        section: OfSection::Why,
        ..figure
    })
}

/// A server's values by name.
struct Bar<'a> {
    server: &'a str,
    calls: Vec<(&'a str, f64)>,
    failed: bool,
}

fn stacked(
    info: Info,
    source: &Source<'_>,
    title: &str,
    values: Axis,
    caption: String,
    bars: &[Bar<'_>],
) -> Option<Figure> {
    let names = parts(bars);
    let series = bars
        .iter()
        .filter_map(|bar| source.series(bar.server, points(bar, &names)));
    let axes = (Axis::linear("server", None), values);
    let mut figure = Figure {
        caption: caption + &colours(&names),
        ..Figure::new(info.name, title, Kind::Stacked, axes, series.collect())?
    };
    figure.parts = names;
    if figure.cut().is_some() {
        figure.caption += " The longest bars are cut.";
    }
    figure.alternative = alternative(&figure);
    Some(figure)
}

/// The meaning of the colours.
fn colours(parts: &[String]) -> String {
    let roles = [
        (Role::Receive, "blue for receive"),
        (Role::Send, "green for send"),
        (Role::Wait, "orange for wait"),
    ];
    let drawn: Vec<&str> = roles
        .into_iter()
        .filter(|(meant, _)| parts.iter().any(|part| role(part) == *meant))
        .map(|(_, text)| text)
        .collect();
    if drawn.is_empty() {
        return String::new();
    }
    format!(" Colours: {}.", drawn.join(", "))
}

/// The calls that matter most to any server, sorted by role, then the rest. Calls that wait are chosen first, because
/// servers differ most in them.
fn parts(bars: &[Bar<'_>]) -> Vec<String> {
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for bar in bars {
        let total: f64 = bar.calls.iter().map(|(_, each)| each).sum();
        for &(name, each) in bar.calls.iter().filter(|(name, _)| *name != "other") {
            // As a share of the calls of its server, so that a server with many calls does not determine all names.
            let share = if each < LEAST { 0.0 } else { each / total };
            let most = largest.entry(name).or_default();
            *most = most.max(share);
        }
    }
    let mut chosen: Vec<(&str, f64)> = largest
        .into_iter()
        .filter(|(_, most)| *most > 0.0)
        .collect();
    chosen.sort_by(|one, other| other.1.total_cmp(&one.1));
    chosen.sort_by_key(|(name, _)| role(name) != Role::Wait);
    chosen.truncate(MOST_PARTS);
    let mut names: Vec<&str> = chosen.into_iter().map(|(name, _)| name).collect();
    names.sort_by_key(|name| role(name));
    names.push(REST);
    names.into_iter().map(str::to_owned).collect()
}

fn points(bar: &Bar<'_>, parts: &[String]) -> Vec<Point> {
    let mut values = vec![0.0; parts.len()];
    for &(name, each) in &bar.calls {
        let place = parts.iter().position(|part| part == name);
        values[place.unwrap_or(parts.len() - 1)] += each;
    }
    let point = |(place, value): (usize, f64)| Point {
        failed: bar.failed,
        ..Point::new(place as f64, value)
    };
    let drawn = values
        .into_iter()
        .enumerate()
        .filter(|(_, value)| *value > 0.0);
    drawn.map(point).collect()
}

fn alternative(figure: &Figure) -> String {
    let bars: Vec<String> = figure
        .series
        .iter()
        .map(|series| {
            let parts: Vec<String> = series
                .points
                .iter()
                .filter(|point| point.y >= 0.005)
                .map(|point| format!("{} {:.2}", figure.parts[point.x as usize], point.y))
                .collect();
            format!(
                "{} {:.2} ({})",
                series.name,
                series.total(),
                parts.join(", ")
            )
        })
        .collect();
    format!("{}: {}.", figure.title, bars.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::figure_of;
    use crate::fixture;
    use crate::summary::Summary;

    #[test]
    fn a_bar_is_made_of_all_calls_of_its_server() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source::of(&summary);
        let figure = figure_of("syscalls", &source).unwrap();
        assert_eq!(
            figure.parts,
            [
                "recvfrom",
                "sendto",
                "io_uring_enter",
                "epoll_pwait",
                "poll",
                "pselect6",
                REST
            ]
        );
        let total = |name: &str| {
            let series = figure.series.iter().find(|series| series.name == name);
            series.unwrap().total()
        };
        assert!((total("epoll") - 2.2).abs() < 1e-9);
        assert!((total("io-uring") - 0.04).abs() < 1e-9);
        assert!(
            figure
                .alternative
                .contains("poll 2.03 (recvfrom 1.00, sendto 1.00, poll 0.03)")
        );
    }

    #[test]
    fn unnamed_calls_belong_to_the_rest() {
        let (run, mut trials) = fixture::record();
        for trial in &mut trials {
            let metrics = &mut trial.server_side.as_mut().unwrap().metrics;
            if let Some(replies) = metrics.remove("syscalls_recvfrom") {
                metrics.insert("syscalls_other".to_owned(), replies);
            }
        }
        let summary = Summary::of(&run, &trials).unwrap();
        let source = Source::of(&summary);
        let figure = figure_of("syscalls", &source).unwrap();
        assert!(
            figure
                .alternative
                .contains("fork 2.00 (sendto 1.00, other calls 1.00)")
        );
    }
}
