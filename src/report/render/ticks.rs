//! Where an axis has its marks: round numbers, or decades, or the numbers of clients tried.

use crate::report::format::{number, whole};

/// A mark on an axis: its place, and its text where it has one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) text: String,
}

/// Marks at 1, 2 or 5 times a power of ten, about `count` of them, from `low` to `high`.
pub(super) fn linear(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let rough = (high - low).max(f64::MIN_POSITIVE) / count.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    (first..=last.min(first + 100))
        .map(|place| {
            let at = place as f64 * step;
            let text = if decimals == 0 {
                whole(at)
            } else {
                format!("{at:.decimals$}")
            };
            Tick { at, text }
        })
        .collect()
}

/// Marks at each decade, and at 2 and 5 times it when there are few decades. On a span shorter
/// than those, linear marks; none when the range has no logarithm.
pub(super) fn logarithmic(low: f64, high: f64) -> Vec<Tick> {
    if low <= 0.0 || !high.is_finite() {
        return Vec::new();
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if high / low < 1500.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let ticks: Vec<Tick> = (first..=last)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .filter(|at| (low * 0.999..=high * 1.001).contains(at))
        .map(|at| Tick {
            at,
            text: plain(at),
        })
        .collect();
    if ticks.len() < 2 {
        linear(low, high, 5)
    } else {
        ticks
    }
}

/// Marks where there are points.
pub(super) fn at_values(values: &[f64]) -> Vec<Tick> {
    values
        .iter()
        .map(|at| Tick {
            at: *at,
            text: plain(*at),
        })
        .collect()
}

/// "0.05", "5", "1,000".
fn plain(value: f64) -> String {
    if value >= 1.0 && value.fract().abs() < 1e-9 {
        return whole(value);
    }
    let text = number(value);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn linear_marks_are_round() {
        assert_eq!(
            texts(&linear(0.0, 230_000.0, 5)),
            ["0", "50,000", "100,000", "150,000", "200,000"]
        );
        assert_eq!(
            texts(&linear(0.9, 1.0, 5)),
            ["0.90", "0.92", "0.94", "0.96", "0.98", "1.00"]
        );
    }

    #[test]
    fn a_range_without_logarithm_has_no_marks() {
        assert_eq!(logarithmic(0.0, 8.0), []);
    }

    #[test]
    fn logarithmic_marks_follow_decades() {
        assert_eq!(
            texts(&logarithmic(0.04, 3.0)),
            ["0.05", "0.1", "0.2", "0.5", "1", "2"]
        );
        assert_eq!(
            texts(&logarithmic(0.5, 20_000.0)),
            ["1", "10", "100", "1,000", "10,000"]
        );
    }
}
