//! The difference of two servers' CPU time per request, by part: what adds, what saves, what is unexplained.

use super::{Axis, Figure, Grouped, OfSection, Point, Rank, Ranked, Source};
use crate::why::{Difference, Why};
use throng_record::format::{counted, list, number, unit_of_bytes, unit_of_time};
use throng_spec::registry::Info;

/// Most parts, and most functions, with a row of their own.
const MOST_PARTS: usize = 10;
const MOST_FUNCTIONS: usize = 6;

/// The figure of the CPU time.
pub(super) fn figure(info: Info, source: &Source<'_>) -> Option<Figure> {
    let caption = "Right of the line: more than the reference. Green: less, red: more, grey: not shown to differ. \
        Means of turns that are not timed; the 99 % intervals hold together.";
    of_pairs(info, source, "CPU time per request", caption, of_cpu)
}

/// The figure of the memory of clients.
pub(super) fn of_memory(info: Info, source: &Source<'_>) -> Option<Figure> {
    let caption = "Right of the line: more than the reference. Green: less, red: more, grey: within the error of the \
        readings. The kernel's memory is that of both ends.";
    of_pairs(info, source, "memory per client", caption, of_clients)
}

/// A figure of the first number of clients, with all its pairs.
fn of_pairs(
    info: Info,
    source: &Source<'_>,
    quantity: &str,
    caption: &str,
    of: fn(&Why) -> Option<Ranked>,
) -> Option<Figure> {
    let pictures: Vec<(u32, Ranked)> = source
        .why
        .iter()
        .filter_map(|why| Some((why.clients, of(why)?)))
        .collect();
    let clients = pictures.first()?.0;
    let ranked: Vec<Ranked> = pictures
        .into_iter()
        .filter(|(number, _)| *number == clients)
        .map(|(_, ranked)| ranked)
        .collect();
    let words: Vec<String> = ranked
        .iter()
        .flat_map(Ranked::rows)
        .map(|row| format!("{} {}", row.name, row.text))
        .collect();
    let title = format!("Why: {quantity} by part, {}", counted(clients, "client"));
    let mut figure = Figure {
        ranked,
        section: OfSection::Why,
        ..Figure::empty(info.name, title)
    };
    figure.alternative = format!("{}: {}.", figure.title, list(&words));
    caption.clone_into(&mut figure.caption);
    Some(figure)
}

fn of_cpu(why: &Why) -> Option<Ranked> {
    let cpu = why.cpu?;
    let (unit, factor) = unit_of_time(cpu.difference().abs().max(cpu.reference / 10.0));
    let mut parts = bars(cpu.difference(), &why.parts, why.other_parts_us, factor);
    if let Some(unexplained) = why.unexplained_us {
        parts.push(without_interval("unexplained", unexplained, factor));
    }
    let functions: Vec<Rank> = why
        .functions
        .iter()
        .filter(|one| one.is_shown)
        .take(MOST_FUNCTIONS)
        .map(|one| rank(&one.name, one, factor))
        .collect();
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

fn of_clients(why: &Why) -> Option<Ranked> {
    let memory = why.memory.as_ref()?;
    let (unit, factor) = unit_of_bytes(memory.difference().abs().max(memory.reference / 10.0));
    let mut parts = bars(
        memory.difference(),
        &memory.parts,
        memory.other_parts,
        factor,
    );
    parts.push(without_interval("unexplained", memory.unexplained, factor));
    Some(Ranked {
        title: format!("{} minus {}, {unit} per client", why.server, why.reference),
        axis: Axis::linear("memory per client", Some(unit)),
        level: Some(0.0),
        band: None,
        groups: vec![Grouped::apart(parts)],
    })
}

/// The whole difference, the largest parts, and all others together.
fn bars(whole: f64, parts: &[Difference], others: f64, factor: f64) -> Vec<Rank> {
    let beyond: f64 = parts
        .iter()
        .skip(MOST_PARTS)
        .map(|part| part.difference.value)
        .sum();
    let mut bars = vec![without_interval("all", whole, factor)];
    let named = parts.iter().take(MOST_PARTS);
    bars.extend(named.map(|one| rank(&one.name, one, factor)));
    bars.push(without_interval("other parts", others + beyond, factor));
    bars
}

fn without_interval(name: &str, value: f64, factor: f64) -> Rank {
    Rank {
        name: name.to_owned(),
        place: None,
        point: Some(Point::new(0.0, value / factor)),
        published: None,
        text: signed(value / factor),
        failed: false,
        better: None,
    }
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
