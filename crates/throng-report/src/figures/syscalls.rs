//! The server's system calls per reply, by name.

use std::collections::BTreeMap;

use super::{Axis, Figure, Kind, Point, Source};
use crate::columns::calls;
use crate::palette::{Role, role};
use crate::summary::Row;
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
    let rows: Vec<&Row> = summary.rows_at(clients).filter(with_calls).collect();
    let parts = parts(&rows);
    let bars = rows
        .iter()
        .filter_map(|row| source.series(&row.server, points(row, &parts)));
    let axes = (
        Axis::linear("server", None),
        Axis::linear("system calls per request", None),
    );
    let title = "System calls per request";
    let mut figure = Figure {
        caption: format!(
            "{}, counted in separate trials.{}",
            counted(clients, "client"),
            colours(&parts)
        ),
        better: Better::Lower,
        ..Figure::new(info.name, title, Kind::Stacked, axes, bars.collect())?
    };
    figure.parts = parts;
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
fn parts(rows: &[&Row]) -> Vec<String> {
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        let calls = calls(row);
        let total: f64 = calls.iter().map(|(_, each)| each).sum();
        for (name, each) in calls.into_iter().filter(|(name, _)| *name != "other") {
            // As a share of the calls of its server, so that a server with many calls does not determine all names.
            let share = if each < LEAST { 0.0 } else { each / total };
            let most = largest.entry(name).or_default();
            *most = most.max(share);
        }
    }
    let mut names: Vec<(&str, f64)> = largest
        .into_iter()
        .filter(|(_, most)| *most > 0.0)
        .collect();
    names.sort_by(|one, other| other.1.total_cmp(&one.1));
    names.sort_by_key(|(name, _)| role(name) != Role::Wait);
    names.truncate(MOST_PARTS);
    let mut names: Vec<&str> = names.into_iter().map(|(name, _)| name).collect();
    names.sort_by_key(|name| role(name));
    names.push(REST);
    names.into_iter().map(str::to_owned).collect()
}

fn points(row: &Row, parts: &[String]) -> Vec<Point> {
    let mut values = vec![0.0; parts.len()];
    for (name, each) in calls(row) {
        let place = parts.iter().position(|part| part == name);
        values[place.unwrap_or(parts.len() - 1)] += each;
    }
    let point = |(place, value): (usize, f64)| Point {
        failed: !row.served_all,
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
