//! Where an axis has its marks: round numbers, or decades, or the numbers of clients tried.

use throng_record::format::{number, whole};

/// What a letter takes of the length of an axis, at most.
const LETTER: f64 = 0.016;

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

/// Marks where there are points, rising, on an axis that they fill. Where they lie close, only those have a
/// text whose neighbours leave it room; the first and the last one before all others.
pub(super) fn at_values(values: &[f64], log: bool) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = values
        .iter()
        .map(|at| Tick {
            at: *at,
            text: plain(*at),
        })
        .collect();
    let [first, .., last] = ticks.as_slice() else {
        return ticks;
    };
    let measure = |at: f64| if log { at.ln() } else { at };
    let span = measure(last.at) - measure(first.at);
    let half = |tick: &Tick| (tick.text.chars().count() + 1) as f64 * LETTER * span / 2.0;
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
    fn texts_of_close_marks_do_not_run_into_one_another() {
        let crowds = [8.0, 32.0, 64.0, 128.0, 1024.0];
        assert_eq!(
            texts(&at_values(&crowds, true)),
            ["8", "32", "64", "128", "1,024"]
        );
        let search = [256.0, 512.0, 1024.0, 1216.0, 1232.0, 1240.0, 1280.0, 2048.0];
        assert_eq!(
            texts(&at_values(&search, true)),
            ["256", "512", "1,024", "", "", "", "1,280", "2,048"]
        );
        assert_eq!(texts(&at_values(&[5.0], true)), ["5"]);
        assert_eq!(texts(&at_values(&[5.0, 6.0], true)), ["5", "6"]);
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
