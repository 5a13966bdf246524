//! Maps values to positions along an axis, with its marks.

use super::scene::{AxisScale, width};
use super::ticks::{self, Tick};
use crate::figures::{Axis, Figure, Kind};

/// Font size on axes.
pub(super) const SMALL: f64 = 11.0;
/// With at most this many x positions, each gets its own mark.
const MOST_MARKED: usize = 10;

#[derive(Debug, Clone)]
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    pub(super) ticks: Vec<Tick>,
}

/// A range of positions.
pub(super) type Span = (f64, f64);

impl Scale {
    /// The horizontal axis of lines. If there are few measurements, the marks are at their positions.
    pub(super) fn across(figure: &Figure, (from, to): Span) -> Self {
        let points = figure.series.iter().flat_map(|series| &series.points);
        let values: Vec<f64> = points.map(|point| point.x).collect();
        let mut scale = Self::of(&figure.x, &values, (from, to));
        let marked = figure.marked();
        if figure.kind == Kind::Lines && marked.len() <= MOST_MARKED {
            let letter = 0.64 * SMALL / (to - from).abs();
            scale.ticks = ticks::at_values(&marked, figure.x.log, letter);
        }
        scale
    }

    /// The vertical axis of lines.
    pub(super) fn upwards(figure: &Figure, (top, bottom): Span) -> Self {
        let points = figure.series.iter().flat_map(|series| &series.points);
        let points = points.filter(|point| figure.has_value(point));
        let values = points.flat_map(|point| [Some(point.y), point.low, point.high]);
        let values: Vec<f64> = values.flatten().collect();
        Self::of(&figure.y, &values, (bottom, top))
    }

    /// An axis for these values.
    pub(super) fn of(axis: &Axis, values: &[f64], (from, to): Span) -> Self {
        let drawable = values.iter().filter(|value| !axis.log || **value > 0.0);
        let low = drawable.clone().copied().fold(f64::INFINITY, f64::min);
        let high = drawable.copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (1.0, 2.0) };
        let (low, high) = if axis.log {
            let margin = (high / low).powf(0.04).max(1.05);
            (low / margin, high * margin)
        } else {
            let low = if axis.from_zero { low.min(0.0) } else { low };
            let margin = ((high - low) * 0.05).max(high.abs() * 0.005).max(1e-9);
            let below = if axis.from_zero { 0.0 } else { margin };
            (low - below, high + margin)
        };
        let mut scale = Self {
            log: axis.log,
            low,
            high,
            from,
            to,
            ticks: Vec::new(),
        };
        scale.ticks = scale.marks();
        scale
    }

    /// Marks at round numbers that fit into the available room.
    fn marks(&self) -> Vec<Tick> {
        let upright = self.to < self.from;
        let fits = |ticks: &Vec<Tick>| {
            let room = |tick: &Tick| {
                if upright {
                    1.7 * SMALL
                } else {
                    width(&tick.text, SMALL) + 8.0
                }
            };
            ticks.windows(2).all(|pair| {
                let apart = (self.place(pair[1].at) - self.place(pair[0].at)).abs();
                apart >= f64::midpoint(room(&pair[0]), room(&pair[1]))
            })
        };
        let choices: Vec<Vec<Tick>> = if self.log {
            ticks::logarithmic(self.low, self.high)
        } else {
            let counts = (1..=8).rev();
            counts
                .map(|count| ticks::linear(self.low, self.high, count))
                .collect()
        };
        let found = choices
            .iter()
            .find(|choice| choice.len() > 1 && fits(choice));
        found.or(choices.last()).cloned().unwrap_or_default()
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_nan() { 0.0 } else { share };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The width of the widest mark.
    pub(super) fn room(&self) -> f64 {
        let widths = self.ticks.iter().map(|tick| width(&tick.text, SMALL));
        widths.fold(0.0, f64::max)
    }

    pub(super) fn back(&self) -> AxisScale {
        AxisScale {
            values: (self.low, self.high),
            places: (self.from, self.to),
            log: self.log,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_values_have_places_within_their_span_and_marks_too(
            values in prop::collection::vec(prop_oneof![Just(0.0), 1e-9..1e-3, 0.5..2.0, 1.0..1e12, -1e6..1e6], 0..6),
            log: bool,
            from_zero: bool,
            upright: bool,
        ) {
            let axis = Axis {
                log,
                from_zero: from_zero && !log,
                ..Axis::linear("x", None)
            };
            let span = if upright { (150.0, 20.0) } else { (40.0, 220.0) };
            let scale = Scale::of(&axis, &values, span);
            let within = |place: f64| (span.0.min(span.1)..=span.0.max(span.1)).contains(&place);
            for value in values {
                prop_assert!(within(scale.place(value)));
            }
            for tick in &scale.ticks {
                prop_assert!(within(scale.place(tick.at)) && !tick.text.is_empty());
            }
            prop_assert!(scale.ticks.len() <= 12);
        }
    }
}
