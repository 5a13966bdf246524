//! Positions of axis marks: round numbers, decades, or the measured numbers of clients.

use throng_record::format::{number, whole};

/// A mark on an axis: its position, and its text if it has one.
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
pub(super) fn logarithmic(low: f64, high: f64) -> Vec<Vec<Tick>> {
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
        choices.splice(
            0..0,
            short
                .into_iter()
                .filter(|marks| marks.first().is_some_and(|mark| mark.at > 0.0)),
        );
    }
    choices
}

/// Marks at `values`, which are ascending and fill the axis. If marks are close together, only those with enough room
/// get a text; the first and the last one have priority. A letter takes the share `letter` of the length of the axis.
pub(super) fn at_values(values: &[f64], log: bool, letter: f64) -> Vec<Tick> {
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
            let text = format!("{:.2}", value / factor);
            let text = text.trim_end_matches('0').trim_end_matches('.');
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
        let at_values = |values: &[f64]| at_values(values, true, 0.016);
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
