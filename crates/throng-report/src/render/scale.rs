//! Maps values to positions along an axis, with its marks.

use crate::figures::{Axis, Figure, Kind};
use throng_record::format::{number, whole};

/// Font size on axes.
pub(super) const SMALL: f64 = 11.0;
/// With at most this many x positions, each gets its own mark.
const MOST_MARKED: usize = 10;

/// A range of values at a range of positions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    pub(super) log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Scale {
    /// The horizontal axis of lines. If there are few measurements, the marks are at their positions.
    pub(super) fn across(figure: &Figure, (from, to): (f64, f64)) -> Self {
        let points = figure.series.iter().flat_map(|series| &series.points);
        let values: Vec<f64> = points
            .flat_map(|point| [Some(point.x), point.cell.map(|(until, _)| until)])
            .flatten()
            .collect();
        let mut scale = Self::of(&figure.x, &values, (from, to));
        let marked = figure.marked();
        let letter = 0.64 * SMALL / (to - from).abs();
        let within = |at: &f64| (scale.low..=scale.high).contains(at);
        let named: Vec<f64> = figure
            .x
            .named
            .iter()
            .map(|(at, _)| *at)
            .filter(within)
            .collect();
        if !named.is_empty() {
            scale.ticks = at_values(&named, &figure.x, letter);
        } else if figure.kind == Kind::Lines && marked.len() <= MOST_MARKED {
            scale.ticks = at_values(&marked, &figure.x, letter);
        }
        scale
    }

    /// The vertical axis of lines.
    pub(super) fn upwards(figure: &Figure, (top, bottom): (f64, f64)) -> Self {
        let points = figure
            .series
            .iter()
            .flat_map(|series| &series.points)
            .filter(|point| figure.has_value(point));
        let values: Vec<f64> = points
            .flat_map(|point| [Some(point.y), point.low, point.high])
            .flatten()
            .collect();
        Self::of(&figure.y, &values, (bottom, top))
    }

    /// An axis for these values.
    pub(super) fn of(axis: &Axis, values: &[f64], (from, to): (f64, f64)) -> Self {
        let drawable = values.iter().filter(|value| !axis.log || **value > 0.0);
        let lowest = drawable.clone().copied().fold(f64::INFINITY, f64::min);
        let highest = drawable.copied().fold(f64::NEG_INFINITY, f64::max);
        let (least, most) = if lowest <= highest {
            (lowest, highest)
        } else {
            (1.0, 2.0)
        };
        let (low, high) = if axis.log {
            let margin = (most / least).powf(0.04).max(1.05);
            (least / margin, most * margin)
        } else {
            let bottom = if axis.from_zero {
                least.min(0.0)
            } else {
                least
            };
            let margin = ((most - bottom) * 0.05).max(most.abs() * 0.005).max(1e-9);
            let below = if axis.from_zero { 0.0 } else { margin };
            (bottom - below, most + margin)
        };
        let mut scale = Self {
            log: axis.log,
            low,
            high: axis.most.map_or(high, |possible| high.min(possible)),
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
        let room = |tick: &Tick| {
            if upright {
                1.7 * SMALL
            } else {
                width(&tick.text, SMALL) + 8.0
            }
        };
        let fits = |ticks: &&Vec<Tick>| {
            ticks.len() > 1
                && ticks.windows(2).all(|pair| {
                    let apart = (self.place(pair[1].at) - self.place(pair[0].at)).abs();
                    apart >= f64::midpoint(room(&pair[0]), room(&pair[1]))
                })
        };
        let choices: Vec<Vec<Tick>> = if self.log {
            logarithmic(self.low, self.high)
        } else {
            let counts = (1..=8).rev();
            counts
                .map(|count| linear(self.low, self.high, count))
                .collect()
        };
        let found = choices.iter().find(fits);
        found.or(choices.last()).cloned().unwrap_or_default()
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // Not a number if all values are equal.
        let within = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        self.from + within * (self.to - self.from)
    }

    /// The width of the widest mark.
    pub(super) fn room(&self) -> f64 {
        let widths = self.ticks.iter().map(|tick| width(&tick.text, SMALL));
        widths.fold(0.0, f64::max)
    }
}

/// A mark on an axis: its position, and its text if it has one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) text: String,
}

/// Marks at 1, 2 or 5 times a power of ten, about `count` of them, from `low` to `high`.
fn linear(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let rough = (high - low).max(f64::MIN_POSITIVE) / count.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    (first..=last.min(first + 100))
        .map(|place| {
            let at = place as f64 * step;
            let text = if decimals == 0 {
                short(at)
            } else {
                format!("{at:.decimals$}")
            };
            Tick { at, text }
        })
        .collect()
}

/// Several ways to mark powers of ten, densest first: every power with its multiples by 2 and 5, every power, every
/// second one and every third one. On a span too short for these, linear marks come first. Empty if the range has no
/// logarithm.
fn logarithmic(low: f64, high: f64) -> Vec<Vec<Tick>> {
    if low <= 0.0 || !high.is_finite() {
        return Vec::new();
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let marks = |factors: &[f64], every: u32| -> Vec<Tick> {
        (first..=last)
            .filter(|power| power.unsigned_abs().is_multiple_of(every))
            .flat_map(|power| factors.iter().map(move |factor| (*factor, power)))
            // Division keeps 0.001 exact.
            .map(|(factor, power)| {
                if power < 0 {
                    factor / 10_f64.powi(-power)
                } else {
                    factor * 10_f64.powi(power)
                }
            })
            .filter(|at| (low * 0.999..=high * 1.001).contains(at))
            .map(|at| Tick {
                at,
                text: plain(at),
            })
            .collect()
    };
    let mut choices = vec![
        marks(&[1.0, 2.0, 5.0], 1),
        marks(&[1.0], 1),
        marks(&[1.0], 2),
        marks(&[1.0], 3),
    ];
    if choices[0].len() < 4 && high / low < 30.0 {
        // Too short for powers of ten.
        let short = [5, 4, 3, 2].map(|count| linear(low, high, count));
        let first_power = choices[0].first().map_or(f64::INFINITY, |mark| mark.at);
        let begins = |ticks: &Vec<Tick>| {
            let lowest = ticks.first().map(|mark| mark.at);
            lowest.is_some_and(|at| at > 0.0 && at <= first_power)
        };
        choices.splice(0..0, short.into_iter().filter(begins));
    }
    choices
}

/// Marks at `values`, which are ascending and fill the axis. If marks are close together, only those with enough room
/// get a text; the first and the last one have priority. A letter takes the share `letter` of the length of the axis.
fn at_values(values: &[f64], axis: &Axis, letter: f64) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = values
        .iter()
        .map(|at| Tick {
            at: *at,
            text: axis.name(*at).cloned().unwrap_or_else(|| plain(*at)),
        })
        .collect();
    let [first, .., last] = ticks.as_slice() else {
        return ticks;
    };
    let measure = |at: f64| if axis.log { at.ln() } else { at };
    let span = measure(last.at) - measure(first.at);
    let half = |tick: &Tick| (tick.text.chars().count() + 1) as f64 * letter * span / 2.0;
    let ends = |tick: &Tick| (measure(tick.at) - half(tick), measure(tick.at) + half(tick));
    let (last_begins, _) = ends(last);
    let mut taken = f64::NEG_INFINITY;
    let before = ticks.len() - 1;
    for tick in &mut ticks[..before] {
        let (begins, until) = ends(tick);
        let is_first = taken == f64::NEG_INFINITY;
        let has_room = begins >= taken && (until <= last_begins || is_first);
        if has_room {
            taken = until;
        } else {
            tick.text.clear();
        }
    }
    ticks
}

/// "1,000", "20k", "3M".
fn short(value: f64) -> String {
    for (factor, letter) in [(1e9_f64, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= factor.max(1e4) {
            let two_digits = format!("{:.2}", value / factor);
            let text = two_digits.trim_end_matches('0').trim_end_matches('.');
            return format!("{text}{letter}");
        }
    }
    whole(value)
}

/// "0.05", "5", "1,000", "20k".
fn plain(value: f64) -> String {
    if value >= 1.0 && value.fract().abs() < 1e-9 {
        return short(value);
    }
    let text = number(value);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The approximate width of a text; an overestimate rather than an underestimate.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let letters = text.chars().map(|c| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' | '(' | ')' | '/' => 0.36,
        'f' | 't' | 'r' | 'I' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.93,
        'A'..='Z' => 0.71,
        c if c.is_ascii() => 0.61,
        _ => 0.75,
    });
    letters.sum::<f64>() * size
}

/// The text, shortened with an ellipsis if it is wider than `room`.
pub(super) fn cut(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if width(&short, size) + size > room {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
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

    fn texts(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn linear_marks_are_round() {
        assert_eq!(
            texts(&linear(0.0, 230_000.0, 5)),
            ["0", "50k", "100k", "150k", "200k"]
        );
        assert_eq!(
            texts(&linear(0.9, 1.0, 5)),
            ["0.90", "0.92", "0.94", "0.96", "0.98", "1.00"]
        );
    }

    #[test]
    fn a_range_without_logarithm_has_no_marks() {
        assert!(logarithmic(0.0, 8.0).is_empty());
    }

    #[test]
    fn texts_of_close_marks_do_not_run_into_one_another() {
        let clients_axis = Axis::logarithmic("clients", None);
        let at_values = |values: &[f64]| at_values(values, &clients_axis, 0.016);
        let clients = [8.0, 32.0, 64.0, 128.0, 1024.0];
        assert_eq!(
            texts(&at_values(&clients)),
            ["8", "32", "64", "128", "1,024"]
        );
        let search = [256.0, 512.0, 1024.0, 1216.0, 1232.0, 1240.0, 1280.0, 2048.0];
        assert_eq!(
            texts(&at_values(&search)),
            ["256", "512", "1,024", "", "", "", "1,280", "2,048"]
        );
        assert_eq!(texts(&at_values(&[5.0])), ["5"]);
        assert_eq!(texts(&at_values(&[5.0, 6.0])), ["5", "6"]);
    }

    #[test]
    fn logarithmic_marks_follow_decades_as_dense_as_wanted() {
        let choices = logarithmic(0.04, 3.0);
        assert_eq!(texts(&choices[0]), ["0.05", "0.1", "0.2", "0.5", "1", "2"]);
        assert_eq!(texts(&choices[1]), ["0.1", "1"]);
        let choices = logarithmic(0.5, 20_000.0);
        assert_eq!(texts(&choices[1]), ["1", "10", "100", "1,000", "10k"]);
        assert_eq!(texts(&choices[2]), ["1", "100", "10k"]);
        assert_eq!(texts(&logarithmic(3.1, 4.4)[0]), ["3.5", "4.0"]);
        assert_eq!(texts(&logarithmic(0.4, 1.6)[0]), ["0.5", "1.0", "1.5"]);
    }

    #[test]
    fn large_numbers_are_short() {
        assert_eq!(short(9999.0), "9,999");
        assert_eq!(short(-12_500.0), "-12.5k");
        assert_eq!(short(3e6), "3M");
    }
}
