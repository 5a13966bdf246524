//! Horizontal stacked bars, one per server, with totals.

use super::super::scale::{SMALL, Scale, cut, width};
use super::super::scene::{Anchor, Ink, Scene};
use super::{WIDE, titled};
use crate::figures::{Axis, Figure, Series};
use crate::palette::shades;
use throng_record::format::{hundredths, number};

/// Distance from one bar to the next.
const STEP: f64 = 20.0;
const SIZE: f64 = 12.0;
/// Maximum width of names, and width of totals.
const NAMES: f64 = 120.0;
const TOTALS: f64 = 56.0;
const LINE: f64 = 17.0;

pub(super) fn panel(figure: &Figure) -> Scene {
    let names = figure
        .series
        .iter()
        .map(|one| width(&one.name, SIZE))
        .fold(0.0, f64::max)
        .min(NAMES);
    let (left, right) = (names + 10.0, WIDE - TOTALS);
    let key = key(figure);
    let top = 8.0 + LINE * key.last().map_or(0.0, |(_, row)| (row + 1) as f64);
    let foot = top + STEP * figure.series.len() as f64;
    let mut scene = Scene::new(WIDE, foot + 40.0);
    let shades = shades(&figure.parts);
    for (((x, row), part), shade) in key.into_iter().zip(&figure.parts).zip(&shades) {
        let y = 2.0 + LINE * row as f64;
        scene.boxed((x, y + 1.0), (x + 10.0, y + 11.0), Ink::Part(*shade));
        let at = (x + 14.0, y + 10.0);
        scene.text(part, at, SMALL, Anchor::Start, Ink::Text);
    }
    let totals = figure.series.iter().map(Series::total);
    let most = figure.cut().unwrap_or_else(|| totals.fold(0.0, f64::max));
    let axis = Axis {
        log: false,
        from_zero: true,
        ..figure.y.clone()
    };
    let scale = Scale::of(&axis, &[0.0, most], (left, right));
    for tick in &scale.ticks {
        let x = scale.place(tick.at);
        scene.line(vec![(x, top), (x, foot)], 1.0, Ink::Grid);
        let at = (x, foot + 4.0 + SMALL);
        scene.text(&tick.text, at, SMALL, Anchor::Middle, Ink::Quiet);
    }
    for (place, series) in figure.series.iter().enumerate() {
        let first = scene.items.len();
        bar(
            &mut scene,
            figure,
            series,
            &scale,
            (top + STEP * place as f64, most),
        );
        for item in &mut scene.items[first..] {
            item.server = Some(series.place);
        }
    }
    scene.line(vec![(left, top), (left, foot)], 1.0, Ink::Axis);
    let at = (f64::midpoint(left, right), foot + 34.0);
    scene.text(figure.y.title(), at, SMALL + 1.0, Anchor::Middle, Ink::Text);
    scene.name.clone_from(&figure.title);
    scene
}

/// The position of each part of the key: x and line.
fn key(figure: &Figure) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (0.0, 0);
    let mut places = Vec::new();
    for part in &figure.parts {
        let room = width(part, SMALL) + 28.0;
        if x + room > WIDE {
            (x, row) = (0.0, row + 1);
        }
        places.push((x, row));
        x += room;
    }
    places
}

fn bar(
    scene: &mut Scene,
    figure: &Figure,
    series: &Series,
    scale: &Scale,
    (top, most): (f64, f64),
) {
    let base = top + STEP / 2.0 + 0.36 * SIZE;
    let left = scale.place(0.0);
    let name = cut(&series.name, SIZE, left - 8.0);
    scene.text(name, (left - 7.0, base), SIZE, Anchor::End, Ink::Text);
    let shades = shades(&figure.parts);
    let mut sum = 0.0;
    for point in &series.points {
        let (from, to) = (scale.place(sum), scale.place((sum + point.y).min(most)));
        sum += point.y;
        let (Some(part), Some(shade)) = (
            figure.parts.get(point.x as usize),
            shades.get(point.x as usize),
        ) else {
            continue;
        };
        if to - from < 0.05 {
            continue;
        }
        // Let the page show through as a thin line between parts, if there is room.
        let gap = if to - from > 2.0 { 0.6 } else { 0.0 };
        let corner = (to - gap, top + STEP - 3.0);
        let drawn = scene.boxed((from, top + 3.0), corner, Ink::Part(*shade));
        drawn.opacity = if point.failed { 0.45 } else { 1.0 };
        drawn.tip = format!("{}: {part} {} per request", series.name, number(point.y));
    }
    let cut = if sum > most { "… " } else { "" };
    let at = (scale.place(sum.min(most)) + 5.0, base);
    let failed = series.points.iter().any(|point| point.failed);
    let total = titled(&format!("{cut}{}", hundredths(sum)), failed);
    scene.text(total, at, SMALL, Anchor::Start, Ink::Quiet);
}
