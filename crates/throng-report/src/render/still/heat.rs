//! Heat maps of several servers, one below the other.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{BOTTOM, Canvas, Drawn, INK, LEFT, QUIET, Scale, TOP};
use crate::figures::{Axis, Figure, HeatMap};
use crate::palette::{HEAT, Rgb};
use throng_record::format::number;

/// Where maps end on the right; they need no key beside them.
const END: i32 = 970;
/// Where they begin: to their left are their names.
const FOOT: i32 = LEFT + 122;
/// Room between two of them, and above the first, where its highest value stands.
const GAP: i32 = 6;

impl<B: DrawingBackend> Canvas<B> {
    /// The whole picture.
    pub(super) fn heat(&self, figure: &Figure) -> Drawn<B> {
        self.title(figure)?;
        let edges = figure.maps.iter().flat_map(|map| &map.columns);
        let longest = edges.copied().fold(0.0, f64::max);
        let mut across = Scale::of(
            &Axis {
                from_zero: true,
                ..figure.x.clone()
            },
            &[0.0, longest],
            FOOT,
            END,
        );
        across.high = longest;
        let count = i32::try_from(figure.maps.len().max(1)).unwrap_or(i32::MAX);
        let step = ((BOTTOM - TOP) / count).min(150);
        for (place, map) in (0..).zip(&figure.maps) {
            let top = TOP + step * place + GAP;
            self.map(map, figure.y.unit, &across, (top, TOP + step * (place + 1)))?;
        }
        let foot = TOP + step * count;
        let below = (HPos::Center, VPos::Top);
        for tick in across.ticks.iter().filter(|tick| tick.at <= longest) {
            let at = (across.pixel(tick.at), foot + 9);
            self.text(&tick.text, at, 15, QUIET, below)?;
        }
        let centre = (i32::midpoint(FOOT, END), foot + 34);
        self.text(&figure.x.title(), centre, 16, INK, below)
    }

    /// One server's, between `top` and `foot`: its name, its cells, and the ends of its axis.
    fn map(
        &self,
        map: &HeatMap,
        unit: Option<&str>,
        across: &Scale,
        (top, foot): (i32, i32),
    ) -> Drawn<B> {
        let name: String = map.name.chars().take(16).collect();
        let left = (HPos::Left, VPos::Center);
        let middle = i32::midpoint(top, foot);
        self.text(&name, (LEFT - 60, middle), 15, INK, left)?;
        let (Some(low), Some(high)) = (map.rows.first(), map.rows.last()) else {
            return Ok(());
        };
        let upwards = Scale {
            log: true,
            low: *low,
            high: *high,
            from: foot,
            to: top,
            ticks: Vec::new(),
        };
        for (row, edge) in map.rows.windows(2).enumerate() {
            let (lower, upper) = (upwards.pixel(edge[0]), upwards.pixel(edge[1]));
            for (from, to, colour) in runs(map, row) {
                let (red, green, blue) = colour;
                let corners = [
                    (across.pixel(map.columns[from]), upper),
                    (across.pixel(map.columns[to]), lower),
                ];
                let fill = RGBColor(red, green, blue).filled();
                self.area.draw(&Rectangle::new(corners, fill))?;
            }
        }
        let frame = [(FOOT, top), (END, foot)];
        self.area
            .draw(&Rectangle::new(frame, QUIET.mix(0.5).stroke_width(1)))?;
        let unit = unit.unwrap_or_default();
        // Both ends where there is room for both.
        let ends = [(high, top, VPos::Top), (low, foot, VPos::Bottom)];
        let shown = if foot - top >= 28 {
            &ends[..]
        } else {
            &ends[..1]
        };
        for (value, y, anchor) in shown {
            let text = format!("{} {unit}", number(**value));
            let at = (FOOT - 6, *y);
            self.text(&text, at, 11, QUIET, (HPos::Right, *anchor))?;
        }
        Ok(())
    }
}

/// Cells of a row beside each other that look alike, as one: the columns from which and to which they go.
fn runs(map: &HeatMap, row: usize) -> Vec<(usize, usize, Rgb)> {
    let mut runs: Vec<(usize, usize, Rgb)> = Vec::new();
    for (place, column) in map.shares.iter().enumerate() {
        let share = column.get(row).copied().unwrap_or(0.0);
        let above = HEAT.iter().find(|(least, ..)| share <= *least);
        let Some((_, colour, _)) = above.or(HEAT.last()).filter(|_| share > 0.0) else {
            continue;
        };
        match runs.last_mut() {
            Some((_, to, before)) if *to == place && before == colour => *to += 1,
            _ => runs.push((place, place + 1, *colour)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_look_alike_are_one() {
        let map = HeatMap {
            name: "epoll".to_owned(),
            place: 0,
            columns: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
            rows: vec![1.0, 2.0],
            shares: vec![vec![0.5], vec![0.6], vec![], vec![0.5], vec![0.02]],
        };
        let ends: Vec<(usize, usize)> = runs(&map, 0).iter().map(|run| (run.0, run.1)).collect();
        assert_eq!(ends, [(0, 2), (3, 4), (4, 5)]);
        assert!(runs(&map, 1).is_empty());
    }
}
