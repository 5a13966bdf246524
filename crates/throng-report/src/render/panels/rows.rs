//! Dots with intervals, one per row, with name and value.

use super::super::scale::{SMALL, Scale, cut, width};
use super::super::scene::{Anchor, Ink, Scene};
use super::{WIDE, titled};
use crate::figures::{Figure, Rank, Ranked, Trace};
use crate::palette::look;
use throng_record::format::number;
use throng_record::metrics::Better;

/// Distance from one row to the next.
const STEP: f64 = 19.0;
/// Height of the heading of a group.
const HEADING: f64 = 20.0;
/// Font size in a row.
const SIZE: f64 = 12.0;
/// Maximum width of names and of values.
const NAMES: f64 = 170.0;
const VALUES: f64 = 150.0;
/// Space above and below the rows.
const TOP: f64 = 22.0;
const BELOW: f64 = 24.0;

pub(super) fn panel(ranked: &Ranked) -> Scene {
    let rows = || ranked.groups.iter().flat_map(|group| &group.rows);
    let widest = |text: fn(&Rank) -> String, most: f64| {
        let widths = rows().map(|row| width(&text(row), SIZE));
        widths.fold(0.0, f64::max).min(most)
    };
    let names = widest(|row| row.name.clone(), NAMES);
    let values = widest(|row| titled(&row.text, row.failed), VALUES);
    let headings = ranked.groups.iter().filter(|group| !group.title.is_empty());
    let height = TOP + STEP * rows().count() as f64 + HEADING * headings.count() as f64;
    let mut scene = Scene::new(WIDE, height + BELOW);
    scene.name.clone_from(&ranked.title);
    scene.bold(cut(&ranked.title, SIZE, WIDE), (0.0, 12.0), SIZE);
    let points = rows().filter_map(|row| row.point);
    let ends = points
        .flat_map(|point| [Some(point.y), point.low, point.high])
        .chain(rows().map(|row| row.published));
    let marked = ranked.band.map(|(low, high)| [Some(low), Some(high)]);
    let all = ends.chain(marked.into_iter().flatten());
    let seen: Vec<f64> = all.chain([ranked.level]).flatten().collect();
    let (left, right) = (names + 26.0, WIDE - values - 12.0);
    let scale = Scale::of(&ranked.axis, &seen, (left, right));
    if let Some((low, high)) = ranked.band {
        let (from, to) = (scale.place(low), scale.place(high));
        scene.boxed((from, TOP), (to, height), Ink::Band);
    }
    for tick in scale.ticks.iter().filter(|tick| !tick.text.is_empty()) {
        let x = scale.place(tick.at);
        scene.line(vec![(x, TOP), (x, height)], 1.0, Ink::Grid);
        let at = (x, height + 4.0 + SMALL);
        scene.text(&tick.text, at, SMALL, Anchor::Middle, Ink::Quiet);
    }
    if let Some(level) = ranked.level {
        let x = scale.place(level);
        scene.line(vec![(x, TOP), (x, height)], 1.4, Ink::Axis);
    }
    let mut down = TOP;
    for group in &ranked.groups {
        let tall = STEP * group.rows.len() as f64;
        if !group.title.is_empty() {
            let at = (0.0, down + HEADING - 6.0);
            scene.text(&group.title, at, SMALL, Anchor::Start, Ink::Quiet);
            down += HEADING;
        }
        if group.is_tied {
            scene.boxed((0.0, down), (WIDE, down + tall), Ink::Band);
        }
        for one in &group.rows {
            row(&mut scene, ranked, one, &scale, (down + STEP / 2.0, names));
            down += STEP;
        }
    }
    scene
}

fn row(scene: &mut Scene, ranked: &Ranked, row: &Rank, scale: &Scale, (y, names): (f64, f64)) {
    let ink = match (row.place, row.better) {
        (_, Some(true)) => Ink::Good,
        (_, Some(false)) => Ink::Bad,
        // If colours are verdicts, the colour of a server would be mistaken for one.
        (Some(place), None) if ranked.level.is_none() => Ink::Server(place),
        _ => Ink::Quiet,
    };
    let first = scene.items.len();
    let base = y + 0.36 * SIZE;
    let at = (names + 2.0, base);
    let name = cut(&row.name, SIZE, names);
    scene.text(name, at, SIZE, Anchor::End, Ink::Text);
    let text = cut(&titled(&row.text, row.failed), SIZE, VALUES);
    scene.text(text, (WIDE - 2.0, base), SIZE, Anchor::End, Ink::Text);
    if let Some(point) = row.point {
        if let (Some(low), Some(high)) = (point.low, point.high) {
            let ends = vec![(scale.place(low), y), (scale.place(high), y)];
            scene.line(ends, 2.2, ink);
        }
        let marker = look(row.place.unwrap_or(0)).marker;
        let drawn = scene.marker((scale.place(point.y), y), marker, ink);
        drawn.tip = format!("{}: {}", row.name, point.text(&ranked.axis));
    }
    if let Some(published) = row.published {
        scene.cross((scale.place(published), y), ink);
    }
    for item in &mut scene.items[first..] {
        item.server = row.place;
    }
}

/// The servers with a single number of clients, best value first.
pub(super) fn of_bars(figure: &Figure) -> Scene {
    let series = figure.series.iter();
    let mut rows: Vec<Rank> = series
        .filter(|one| !one.trace.is_drawn_in())
        .filter_map(|series| {
            let point = *series.points.first()?;
            let drawn = figure.has_value(&point).then_some(point);
            Some(Rank {
                point: drawn,
                text: drawn.map_or_else(String::new, |shown| number(shown.y)),
                failed: point.failed,
                ..Rank::of(&series.name, series.place)
            })
        })
        .collect();
    let value = |row: &Rank| row.point.map_or(0.0, |point| point.y);
    match figure.better {
        Better::Higher => rows.sort_by(|one, other| value(other).total_cmp(&value(one))),
        Better::Lower => rows.sort_by(|one, other| value(one).total_cmp(&value(other))),
        Better::Neutral => {}
    }
    rows.sort_by_key(|row| row.failed);
    let mut levels = figure
        .series
        .iter()
        .filter(|line| line.trace == Trace::Level);
    let log = if figure.y.log { ", logarithmic" } else { "" };
    let mut scene = panel(&Ranked {
        title: format!("{}{log}", figure.y.title()),
        axis: figure.y.clone(),
        level: levels
            .next()
            .and_then(|level| Some(level.points.first()?.y)),
        band: None,
        groups: vec![crate::figures::Grouped::apart(rows)],
    });
    scene.name.clone_from(&figure.title);
    scene
}
