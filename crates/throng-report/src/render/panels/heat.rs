//! Distributions over time: a heat map per server, with the median as a line.

use super::super::scale::{SMALL, Scale};
use super::super::scene::{Anchor, At, Ink, Scene, Shape, cut};
use super::{NARROW, lines, titled, valued};
use crate::figures::{Axis, Figure, HeatMap};
use crate::palette::HEAT;

const LOW: f64 = 150.0;
const TOP: f64 = 25.0;
const BELOW: f64 = 21.0;

pub(super) fn panel(figure: &Figure, map: &HeatMap) -> Scene {
    let mut scene = Scene::new(NARROW, LOW);
    let size = SMALL + 2.0;
    lines::heading(
        &mut scene,
        cut(&titled(&map.name, map.failed), size, NARROW - 26.0),
        map.place,
        size,
    );
    let seen = figure.maps.iter().flat_map(|map| &map.rows);
    let seen: Vec<f64> = seen.copied().collect();
    let upwards = Scale::of(&figure.y, &seen, (LOW - BELOW, TOP));
    let longest = figure.maps.iter().flat_map(|map| &map.columns);
    let longest = longest.copied().fold(0.0, f64::max);
    let axis = Axis {
        from_zero: true,
        ..figure.x.clone()
    };
    let left = upwards.room() + 10.0;
    let across = Scale::of(&axis, &[0.0, longest], (left, NARROW - 10.0));
    for tick in &upwards.ticks {
        let y = upwards.place(tick.at);
        scene.line(vec![(left, y), (NARROW - 10.0, y)], 1.0, Ink::Grid);
        let at = (left - 6.0, y + 0.35 * SMALL);
        scene.text(&tick.text, at, SMALL, Anchor::End, Ink::Quiet);
    }
    for tick in across.ticks.iter().filter(|tick| tick.at <= longest) {
        let at = (across.place(tick.at), LOW - BELOW + 5.0 + SMALL);
        scene.text(&tick.text, at, SMALL, Anchor::Middle, Ink::Quiet);
    }
    for (step, boxes) in cells(map, &across, &upwards).into_iter().enumerate() {
        if !boxes.is_empty() {
            scene.draw(Shape::Boxes(boxes), Ink::Heat(step));
        }
    }
    let foot = LOW - BELOW;
    scene.line(vec![(left, foot), (NARROW - 10.0, foot)], 1.0, Ink::Axis);
    let middles: Vec<(f64, f64)> = medians(map);
    let places = middles
        .iter()
        .map(|(x, y)| (across.place(*x), upwards.place(*y)));
    let line = scene.line(places.collect(), 1.0, Ink::Text);
    line.opacity = 0.0;
    line.tip = format!("{}, median", map.name);
    line.values = middles
        .iter()
        .map(|(_, y)| valued(*y, figure.y.unit))
        .collect();
    scene.across = Some(across.back());
    scene.words = ("at ".to_owned(), " s".to_owned());
    scene.server = Some(map.place);
    scene.name = format!("{}: {}", map.name, figure.title);
    scene
}

/// The boxes of each colour step. Adjacent cells of the same colour are merged.
fn cells(map: &HeatMap, across: &Scale, upwards: &Scale) -> Vec<Vec<(At, At)>> {
    let mut boxes = vec![Vec::new(); HEAT.len()];
    for (row, edge) in map.rows.windows(2).enumerate() {
        let (lower, upper) = (upwards.place(edge[0]), upwards.place(edge[1]));
        for (from, to, step) in runs(map, row) {
            let left = across.place(map.columns[from]);
            let right = across.place(map.columns[to]);
            boxes[step].push(((left, upper), (right, lower)));
        }
    }
    boxes
}

/// Adjacent cells of the same colour in a row, merged: first column, end column and colour step.
fn runs(map: &HeatMap, row: usize) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (place, column) in map.shares.iter().enumerate() {
        let share = column.get(row).copied().unwrap_or(0.0);
        if share <= 0.0 {
            continue;
        }
        let above = HEAT.iter().position(|(least, ..)| share <= *least);
        let step = above.unwrap_or(HEAT.len() - 1);
        match runs.last_mut() {
            Some((_, to, before)) if *to == place && *before == step => *to += 1,
            _ => runs.push((place, place + 1, step)),
        }
    }
    runs
}

/// The middle of each column that has values, with its median.
fn medians(map: &HeatMap) -> Vec<(f64, f64)> {
    let middle = |(place, shares): (usize, &Vec<f64>)| {
        let mut sum = 0.0;
        let row = shares.iter().position(|share| {
            sum += share;
            sum >= 0.5
        })?;
        let edges = (map.rows.get(row)?, map.rows.get(row + 1)?);
        let ends = (map.columns.get(place)?, map.columns.get(place + 1)?);
        Some((f64::midpoint(*ends.0, *ends.1), (edges.0 * edges.1).sqrt()))
    };
    map.shares.iter().enumerate().filter_map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_look_alike_are_one_and_a_column_has_its_own_median() {
        let map = HeatMap {
            name: "epoll".to_owned(),
            place: 0,
            failed: false,
            columns: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
            rows: vec![1.0, 4.0, 16.0],
            shares: vec![
                vec![0.5, 0.5],
                vec![0.6, 0.4],
                vec![],
                vec![0.5],
                vec![0.02, 0.98],
            ],
        };
        let ends: Vec<(usize, usize)> = runs(&map, 0).iter().map(|run| (run.0, run.1)).collect();
        assert_eq!(ends, [(0, 2), (3, 4), (4, 5)]);
        assert_eq!(
            medians(&map),
            [(0.5, 2.0), (1.5, 2.0), (3.5, 2.0), (4.5, 8.0)]
        );
    }
}
