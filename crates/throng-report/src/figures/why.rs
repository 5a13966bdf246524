//! The difference of two servers' CPU time per request, by part: what adds, what saves, what is unexplained.

use super::{Axis, Figure, Grouped, OfSection, Point, Rank, Ranked, Source};
use crate::why::{Difference, Why};
use throng_record::format::{counted, list, number, unit_of_time};
use throng_spec::registry::Info;

/// Most parts, and most functions, with a row of their own.
const MOST_PARTS: usize = 10;
const MOST_FUNCTIONS: usize = 6;

/// The figure of the largest number of clients, and of the first pair, which the answer is about.
pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    let pictures: Vec<&Why> = source.why.iter().filter(|why| why.cpu.is_some()).collect();
    let clients = pictures.first()?.clients;
    let of_clients = pictures.iter().filter(|why| why.clients == clients);
    let ranked: Vec<Ranked> = of_clients.filter_map(|why| ranked(why)).collect();
    let words: Vec<String> = ranked
        .iter()
        .flat_map(Ranked::rows)
        .map(|row| format!("{} {}", row.name, row.text))
        .collect();
    let title = format!(
        "Why: CPU time per request by part, {}",
        counted(clients, "client")
    );
    let mut figure = Figure {
        ranked,
        section: OfSection::Why,
        ..Figure::empty(info.name, title)
    };
    figure.alternative = format!("{}: {}.", figure.title, list(&words));
    let caption = "Right of the line: more than the reference. Green: less, red: more, grey: not shown to differ. \
        Means of turns that are not timed; the 99 % intervals hold together.";
    caption.clone_into(&mut figure.caption);
    Some(figure)
}

fn ranked(why: &Why) -> Option<Ranked> {
    let cpu = why.cpu?;
    let (unit, factor) = unit_of_time(cpu.difference().abs().max(cpu.reference / 10.0));
    let row = |one: &Difference| rank(&one.name, one, factor);
    let beyond: f64 = why
        .parts
        .iter()
        .skip(MOST_PARTS)
        .map(|part| part.difference.value)
        .sum();
    let without_interval = |name: &str, value: f64| Rank {
        name: name.to_owned(),
        place: None,
        point: Some(Point::new(0.0, value / factor)),
        published: None,
        text: signed(value / factor),
        failed: false,
        better: None,
    };
    let mut parts = vec![without_interval("all", cpu.difference())];
    parts.extend(why.parts.iter().take(MOST_PARTS).map(row));
    parts.push(without_interval("other parts", why.other_parts_us + beyond));
    if let Some(unexplained) = why.unexplained_us {
        parts.push(without_interval("unexplained", unexplained));
    }
    let functions = why.functions.iter().filter(|one| one.is_shown);
    let functions: Vec<Rank> = functions.take(MOST_FUNCTIONS).map(row).collect();
    let mut groups = vec![Grouped::apart(parts)];
    if !functions.is_empty() {
        groups.push(Grouped {
            title: "Functions of its own code".to_owned(),
            ..Grouped::apart(functions)
        });
    }
    Some(Ranked {
        title: format!("{} minus {}, {unit} per request", why.server, why.reference),
        axis: Axis::linear("CPU time per request", Some(unit)),
        level: Some(0.0),
        band: None,
        groups,
    })
}

fn rank(name: &str, one: &Difference, factor: f64) -> Rank {
    let span = one.difference;
    Rank {
        name: name.to_owned(),
        place: None,
        point: Some(Point {
            low: Some(span.low / factor),
            high: Some(span.high / factor),
            ..Point::new(0.0, span.value / factor)
        }),
        published: None,
        text: signed(span.value / factor),
        failed: false,
        better: one.is_shown.then_some(span.value < 0.0),
    }
}

/// A difference with its sign.
fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", number(value)).replace('-', "−")
}
