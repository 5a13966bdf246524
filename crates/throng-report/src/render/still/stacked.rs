//! Lying bars made of parts, one for each server, with the total at their end.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{BOTTOM, Canvas, Drawn, GRID, INK, QUIET, RIGHT, Scale, TOP};
use crate::figures::{Axis, Figure, Series};
use crate::palette::shades;
use throng_record::format::hundredths;

/// Where bars begin, and where the longest may end.
const FOOT: i32 = 178;
const END: i32 = 742;
/// A bar with its gap, at most.
const WIDEST: i32 = 40;

impl<B: DrawingBackend> Canvas<B> {
    /// The whole picture.
    pub(super) fn stacked(&self, figure: &Figure) -> Drawn<B> {
        self.title(figure)?;
        let totals = figure.series.iter().map(Series::total);
        let longest = figure.cut().unwrap_or_else(|| totals.fold(0.0, f64::max));
        let axis = Axis {
            log: false,
            from_zero: true,
            ..figure.y.clone()
        };
        let across = Scale::of(&axis, &[0.0, longest], FOOT, END);
        let bars = i32::try_from(figure.series.len().max(1)).unwrap_or(i32::MAX);
        let step = ((BOTTOM - TOP) / bars).min(WIDEST);
        let foot = TOP + step * bars;
        for tick in &across.ticks {
            let x = across.pixel(tick.at);
            self.line([(x, TOP), (x, foot)], GRID.stroke_width(1))?;
            let below = (HPos::Center, VPos::Top);
            self.text(&tick.text, (x, foot + 9), 15, QUIET, below)?;
        }
        for (place, series) in (0..).zip(&figure.series) {
            let middle = TOP + step * place + step / 2;
            self.stack(figure, series, &across, (middle, (step * 36 / 100).max(2)))?;
        }
        self.line([(FOOT, TOP), (FOOT, foot)], QUIET.stroke_width(1))?;
        let centre = (i32::midpoint(FOOT, END), foot + 36);
        let below = (HPos::Center, VPos::Top);
        self.text(&figure.y.title(), centre, 16, INK, below)?;
        self.parts(figure)
    }

    /// One bar, its name and its total; `(middle, half)` is where it lies and half its width.
    fn stack(
        &self,
        figure: &Figure,
        series: &Series,
        across: &Scale,
        (middle, half): (i32, i32),
    ) -> Drawn<B> {
        let name: String = series.name.chars().take(20).collect();
        let left = (HPos::Right, VPos::Center);
        self.text(&name, (FOOT - 10, middle), 15, INK, left)?;
        let shades = shades(&figure.parts);
        let mut sum = 0.0;
        for point in &series.points {
            let (from, to) = (across.pixel(sum), across.pixel(sum + point.y));
            sum += point.y;
            let shade = shades.get(point.x as usize);
            let (red, green, blue) = shade.map_or((98, 106, 120), |shade| shade.0);
            let opacity = if point.partial { 0.45 } else { 1.0 };
            let fill = RGBColor(red, green, blue).mix(opacity).filled();
            // A line of the page between parts, where there is room for one.
            let gap = i32::from(to - from > 3);
            let corners = [(from, middle - half), (to - gap, middle + half)];
            self.area.draw(&Rectangle::new(corners, fill))?;
        }
        let end = across.pixel(sum);
        if figure.cut().is_some_and(|cut| sum > cut) {
            // A break near the end: the bar is longer than there is room for.
            let style = WHITE.stroke_width(3);
            for x in [end - 16, end - 9] {
                self.line([(x - 3, middle + half), (x + 3, middle - half)], style)?;
            }
        }
        let right = (HPos::Left, VPos::Center);
        self.text(&hundredths(sum), (end + 7, middle), 14, QUIET, right)
    }

    /// Which colour is what.
    fn parts(&self, figure: &Figure) -> Drawn<B> {
        for (row, (part, shade)) in (0..).zip(figure.parts.iter().zip(shades(&figure.parts))) {
            let y = TOP + 10 + row * 26;
            let (red, green, blue) = shade.0;
            let corners = [(RIGHT + 6, y - 7), (RIGHT + 20, y + 7)];
            let fill = RGBColor(red, green, blue).filled();
            self.area.draw(&Rectangle::new(corners, fill))?;
            let part: String = part.chars().take(20).collect();
            let style = (HPos::Left, VPos::Center);
            self.text(&part, (RIGHT + 29, y), 15, INK, style)?;
        }
        Ok(())
    }
}
