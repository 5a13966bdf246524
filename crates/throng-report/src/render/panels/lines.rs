//! Lines: a few servers share a picture; many get one picture each.

use super::super::scale::{SMALL, Scale, cut, width};
use super::super::scene::{Anchor, At, Ink, Scene};
use super::{FULL, Group, NARROW, WIDE, valued};
use crate::figures::{Figure, Kind, Point, Series, Trace};
use crate::palette::{Marker, look};
use throng_record::metrics::Better;

/// Height of a picture that stands by itself, and of one of many small pictures.
const TALL: f64 = 300.0;
const LOW: f64 = 150.0;
/// Maximum number of points of a line; of more, the lowest and highest of each stretch are kept.
const PLACES: usize = 140;
/// Horizontal distance between servers at the same number of clients.
const ASIDE: f64 = 5.0;
/// Distance of a failure without a value from the end of the axis.
const EDGE: f64 = 6.0;
/// Height of a line of text.
const STEP: f64 = 15.0;
/// Maximum width of the name of a server at the end of its line.
const NAME: f64 = 112.0;

/// Both axes of a picture, around the area of the data.
struct Axes {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Scale,
    y: Scale,
}

impl Axes {
    fn of(figure: &Figure, size: (f64, f64), top: f64, below: f64, right: f64) -> Self {
        let bottom = size.1 - below;
        let y = Scale::upwards(figure, (top, bottom));
        let left = y.room() + 10.0;
        let right = size.0 - right;
        Self {
            x: Scale::across(figure, (left, right)),
            y,
            left,
            right,
            top,
            bottom,
        }
    }

    /// The position of a point. A failure without a value is at the worst end of the axis.
    fn at(&self, figure: &Figure, point: &Point) -> At {
        let y = if figure.has_value(point) {
            self.y.place(point.y)
        } else if figure.better == Better::Higher {
            self.bottom - EDGE
        } else {
            self.top + EDGE
        };
        (self.x.place(point.x), y)
    }

    /// Draws the grid, the marks and the baseline.
    fn draw(&self, scene: &mut Scene, figure: &Figure) {
        let &Self {
            left,
            right,
            top,
            bottom,
            ..
        } = self;
        for tick in &self.y.ticks {
            let y = self.y.place(tick.at);
            scene.line(vec![(left, y), (right, y)], 1.0, Ink::Grid);
            let at = (left - 6.0, y + 0.35 * SMALL);
            scene.text(&tick.text, at, SMALL, Anchor::End, Ink::Quiet);
        }
        for tick in &self.x.ticks {
            let x = self.x.place(tick.at);
            scene.line(vec![(x, bottom), (x, bottom + 4.0)], 1.0, Ink::Axis);
            // Keep the text of the first and last mark within the picture.
            let half = width(&tick.text, SMALL) / 2.0;
            let middle = x.clamp(half, (scene.width - half).max(half));
            let at = (middle, bottom + 5.0 + SMALL);
            scene.text(&tick.text, at, SMALL, Anchor::Middle, Ink::Quiet);
        }
        scene.line(vec![(left, bottom), (right, bottom)], 1.0, Ink::Axis);
        for level in figure.series.iter().filter(|one| one.trace == Trace::Level) {
            if let Some(point) = level.points.first() {
                let y = self.y.place(point.y);
                scene.lines(vec![(left, y), (right, y)], 1.2, Ink::Quiet, true);
                if !level.name.is_empty() {
                    // Above the line, or below it if there is no room above.
                    let is_high = y - 4.0 - SMALL < top;
                    let at = (left + 4.0, if is_high { y + SMALL + 2.0 } else { y - 4.0 });
                    scene.text(&level.name, at, SMALL, Anchor::Start, Ink::Quiet);
                }
            }
        }
    }

    /// Sets the inverse of the x axis, and the texts around an x value.
    fn set_words(&self, scene: &mut Scene, figure: &Figure) {
        scene.across = Some(self.x.clone());
        scene.words = match (figure.kind, figure.x.unit) {
            (Kind::Course, None) if !figure.x.named.is_empty() => {
                ("one request in ".to_owned(), String::new())
            }
            (Kind::Course, Some(unit)) => ("at ".to_owned(), format!(" {unit}")),
            (Kind::Course, None) => ("at ".to_owned(), String::new()),
            _ => (String::new(), format!(" {}", figure.x.label)),
        };
    }

    /// Draws the cells of a series, the darker the larger their share of their column.
    fn cells(&self, scene: &mut Scene, series: &Series) {
        let mut shades = SHADES.map(|(_, opacity)| (opacity, Vec::new()));
        for point in &series.points {
            let (Some(low), Some(high), Some((until, part))) = (point.low, point.high, point.cell)
            else {
                continue;
            };
            let Some(shade) = SHADES.iter().position(|(least, _)| part >= *least) else {
                continue;
            };
            let from = (self.x.place(point.x), self.y.place(high));
            let to = (self.x.place(until), self.y.place(low));
            shades[shade].1.push((from, to));
        }
        for (opacity, boxes) in shades {
            if !boxes.is_empty() {
                let item = scene.boxes(boxes, Ink::Server(series.place));
                item.server = Some(series.place);
                item.opacity = opacity;
            }
        }
    }

    /// Draws a series, shifted by `aside` if it shares the picture with others.
    fn series(&self, scene: &mut Scene, figure: &Figure, series: &Series, aside: Option<f64>) {
        let ink = Ink::Server(series.place);
        if series.trace == Trace::Published {
            for point in &series.points {
                let (x, y) = self.at(figure, point);
                let words = tip(figure, &format!("{}, published", series.name), point);
                for item in scene.cross((x + aside.unwrap_or(0.0), y), ink) {
                    item.server = Some(series.place);
                    item.tip.clone_from(&words);
                }
            }
            return;
        }
        match figure.kind {
            Kind::Dots => {
                let places = series.points.iter().map(|point| self.at(figure, point));
                scene.dots(places, ink).server = Some(series.place);
                return;
            }
            Kind::Heat if series.trace == Trace::Joined => return self.cells(scene, series),
            _ => {}
        }
        let thin = series.trace.is_drawn_in() || series.trace == Trace::Dotted;
        let shown = match figure.kind {
            Kind::Course => thinned(&series.points),
            _ => series.points.clone(),
        };
        let at = |point: &Point| {
            let (x, y) = self.at(figure, point);
            (x + aside.unwrap_or(0.0), y)
        };
        let has_markers = figure.kind == Kind::Lines && !series.trace.is_drawn_in();
        let wide = if thin { 1.2 } else { 1.8 };
        for part in joined(&shown) {
            // In its own picture it can be recognised without dashes.
            let is_dashed = aside.is_some() && look(series.place).dashed;
            let dashed = is_dashed || matches!(series.trace, Trace::Dotted | Trace::Mark);
            let line = scene.lines(part.iter().map(at).collect(), wide, ink, dashed);
            line.server = Some(series.place);
            if figure.kind == Kind::Course {
                let values = part.iter().map(|point| valued(point.y, figure.y.unit));
                line.values = values.collect();
                line.tip.clone_from(&series.name);
            }
        }
        if let (Trace::Mark, [bottom, ..]) = (series.trace, series.points.as_slice())
            && !series.name.is_empty()
        {
            // Left of the line, if it is in the right half.
            let (x, y) = at(bottom);
            let (shift, anchor) = if x > f64::midpoint(self.left, self.right) {
                (-5.0, Anchor::End)
            } else {
                (5.0, Anchor::Start)
            };
            scene.text(&series.name, (x + shift, y), SMALL, anchor, Ink::Text);
        }
        if !has_markers {
            return;
        }
        for point in &shown {
            let (x, y) = at(point);
            let interval = figure.has_value(point).then_some((point.low, point.high));
            if let Some((Some(low), Some(high))) = interval {
                let ends = vec![(x, self.y.place(low)), (x, self.y.place(high))];
                let shape = scene.line(ends, 1.2, ink);
                shape.server = Some(series.place);
            }
            let shape = if point.failed {
                Marker::Saltire
            } else {
                look(series.place).marker
            };
            let marker = scene.marker((x, y), shape, ink);
            marker.server = Some(series.place);
            marker.tip = tip(figure, &series.name, point);
        }
    }
}

/// A cell with at least this share of its column has this opacity.
const SHADES: [(f64, f64); 5] = [
    (0.3, 0.95),
    (0.1, 0.65),
    (0.03, 0.4),
    (0.01, 0.24),
    (0.0, 0.12),
];

/// The stretches of points that did not fail: a failure ends a line.
fn joined(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    let parts = points.split(|point| point.failed);
    parts.filter(|part| !part.is_empty())
}

/// "epoll, 1,000 clients: 123,000 per second (120,000 to 125,000)".
fn tip(figure: &Figure, name: &str, point: &Point) -> String {
    let position = match figure.x.name(point.x) {
        Some(named) => named.clone(),
        None => format!("{} {}", valued(point.x, figure.x.unit), figure.x.label),
    };
    if !figure.has_value(point) {
        return format!("{name}, {position}: {}", figure.failure.words);
    }
    format!("{name}, {position}: {}", point.text(&figure.y))
}

/// All servers in one picture.
pub(super) fn together(figure: &Figure, groups: &[Group<'_>]) -> Scene {
    let size = if figure.kind == Kind::Heat {
        (FULL, TALL)
    } else {
        (WIDE, TALL)
    };
    let mut scene = Scene::new(size.0, size.1);
    let names = groups
        .iter()
        .map(|group| width(&group.title(figure), SMALL + 1.0));
    let name = names.fold(0.0, f64::max).min(NAME);
    // A single server needs no label: the figure is about it.
    let room = if groups.len() > 1 { name + 26.0 } else { 14.0 };
    let axes = Axes::of(figure, size, 26.0, 40.0, room);
    let log = |log| if log { ", logarithmic" } else { "" };
    let title = format!("{}{}", figure.y.title(), log(figure.y.log));
    scene.text(title, (2.0, 13.0), SMALL + 1.0, Anchor::Start, Ink::Text);
    axes.draw(&mut scene, figure);
    axes.set_words(&mut scene, figure);
    let across = format!("{}{}", figure.x.title(), log(figure.x.log));
    let middle = f64::midpoint(axes.left, axes.right);
    let at = (middle, TALL - 5.0);
    scene.text(across, at, SMALL + 1.0, Anchor::Middle, Ink::Text);
    let intervals = groups
        .iter()
        .flat_map(|group| &group.series)
        .flat_map(|series| &series.points)
        .any(|point| point.low.is_some());
    let central = (groups.len() as f64 - 1.0) / 2.0;
    for (number, group) in groups.iter().enumerate() {
        let aside = if intervals && figure.kind == Kind::Lines {
            (number as f64 - central) * ASIDE
        } else {
            0.0
        };
        for series in &group.series {
            axes.series(&mut scene, figure, series, Some(aside));
        }
    }
    if groups.len() > 1 {
        labels(&mut scene, figure, &axes, groups, name);
    }
    scene.name.clone_from(&figure.title);
    scene
}

/// The name of each server at the end of its line, without overlaps.
fn labels(scene: &mut Scene, figure: &Figure, axes: &Axes, groups: &[Group<'_>], room: f64) {
    let end = |group: &Group<'_>| Some(axes.at(figure, group.measured()?.points.last()?));
    let mut ends: Vec<(At, &Group<'_>)> = groups
        .iter()
        .filter_map(|group| Some((end(group)?, group)))
        .collect();
    ends.sort_by(|one, other| one.0.1.total_cmp(&other.0.1));
    let (top, bottom) = (axes.top, axes.bottom);
    let mut heights: Vec<f64> = ends
        .iter()
        .map(|((_, y), _)| y.clamp(top, bottom))
        .collect();
    for place in 1..heights.len() {
        heights[place] = heights[place].max(heights[place - 1] + STEP);
    }
    // Push them up from below again, if the lowest would be too low.
    let mut most = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - STEP;
    }
    let right = axes.right;
    for (((x, y), group), height) in ends.into_iter().zip(heights) {
        let ink = Ink::Server(group.place);
        let line = scene.line(vec![(x + 6.0, y), (right + 12.0, height)], 0.7, ink);
        line.server = Some(group.place);
        line.opacity = 0.6;
        let name = cut(&group.title(figure), SMALL + 1.0, room);
        let at = (right + 16.0, height + 0.35 * SMALL);
        let label = scene.text(name, at, SMALL + 1.0, Anchor::Start, Ink::Text);
        label.server = Some(group.place);
    }
}

/// The size of one of several pictures.
fn size_of_one(figure: &Figure) -> (f64, f64) {
    if figure.kind == Kind::Heat {
        (FULL, LOW)
    } else {
        (NARROW, LOW)
    }
}

/// Both axes of one of several pictures.
fn small(figure: &Figure) -> Axes {
    Axes::of(figure, size_of_one(figure), 25.0, 21.0, 10.0)
}

/// The axes and the lines of all servers, drawn behind each picture.
pub(super) fn behind(figure: &Figure, groups: &[Group<'_>]) -> Scene {
    let mut scene = Scene::new(NARROW, LOW);
    let axes = small(figure);
    axes.draw(&mut scene, figure);
    for group in groups {
        let Some(series) = group.measured() else {
            continue;
        };
        let shown = match figure.kind {
            Kind::Course => {
                let thinned = thinned(&series.points);
                thinned.into_iter().step_by(3).collect()
            }
            _ => series.points.clone(),
        };
        for part in joined(&shown) {
            let places = part.iter().map(|point| axes.at(figure, point)).collect();
            let line = scene.line(places, 1.0, Ink::Others);
            line.server = Some(group.place);
        }
    }
    scene
}

/// A picture for each server.
pub(super) fn each(figure: &Figure, groups: &[Group<'_>]) -> Vec<Scene> {
    let picture = |group: &Group<'_>| {
        let (wide, tall) = size_of_one(figure);
        let mut scene = Scene::new(wide, tall);
        let axes = small(figure);
        if figure.kind != Kind::Lines && figure.kind != Kind::Course {
            // There are no axes behind it.
            axes.draw(&mut scene, figure);
        }
        let size = SMALL + 2.0;
        let name = cut(&group.title(figure), size, wide - 26.0);
        heading(&mut scene, name, group.place, size);
        axes.set_words(&mut scene, figure);
        for series in &group.series {
            axes.series(&mut scene, figure, series, None);
        }
        scene.server = Some(group.place);
        scene.name = format!("{}: {}", group.name, figure.title);
        scene
    };
    groups.iter().map(picture).collect()
}

/// The name of a server, preceded by its marker.
pub(super) fn heading(scene: &mut Scene, name: String, place: usize, size: f64) {
    scene.marker((8.0, 11.0), look(place).marker, Ink::Server(place));
    scene.bold(name, (18.0, 11.0 + 0.36 * size), size);
}

/// At most [`PLACES`] points: the lowest and the highest of each stretch.
fn thinned(points: &[Point]) -> Vec<Point> {
    if points.len() <= PLACES {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for part in points.chunks(points.len().div_ceil(PLACES / 2)) {
        let by = |one: &&Point, other: &&Point| one.y.total_cmp(&other.y);
        let mut ends: Vec<Point> = [part.iter().min_by(by), part.iter().max_by(by)]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        ends.sort_by(|one, other| one.x.total_cmp(&other.x));
        ends.dedup();
        kept.extend(ends);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_what_stands_out() {
        let mut points: Vec<Point> = (0..4000).map(|x| Point::new(f64::from(x), 1.0)).collect();
        points[1234].y = 9.0;
        points[2345].y = -9.0;
        let kept = thinned(&points);
        assert!(kept.len() <= PLACES && kept.len() > PLACES / 4);
        assert!(kept.contains(&points[1234]) && kept.contains(&points[2345]));
        assert!(kept.is_sorted_by(|one, other| one.x < other.x));
    }
}
