//! A published value, formatted like the measured values, with all its digits.

use throng_record::format::grouped;
use throng_record::metrics::Unit;

/// A published figure as tables show it.
#[derive(Debug, PartialEq)]
pub(super) struct PublishedCell {
    /// The value with thousands separators, in the unit that suits it.
    pub(super) text: String,
    /// Whether that unit differs from the published one.
    pub(super) is_converted: bool,
}

impl PublishedCell {
    /// `number` in the unit that the study calls `name`; `None` if this metric cannot have that unit.
    pub(super) fn of(unit: Unit, number: f64, name: &str) -> Option<Self> {
        let own = unit.read(number, name).ok()?;
        let one = unit.read(1.0, name).ok()?;
        let (fitting, factor) = unit.fitting(own.abs());
        let times = one / factor;
        let is_converted = (times - 1.0).abs() > 1e-9;
        let digits = if is_converted {
            multiplied(number, times)
        } else {
            number.to_string()
        };
        let text = format!("{} {fitting}", grouped(&digits));
        Some(Self {
            text: text.trim_end().to_owned(),
            is_converted,
        })
    }
}

/// `number` times `times`, with the significant digits of `number` and as many more as it takes to recover `number`
/// from the product.
fn multiplied(number: f64, times: f64) -> String {
    /// Additional digits for units of 1024 instead of 1000.
    const MORE: usize = 3;
    let written = number.abs().to_string();
    let decimals = written.split_once('.').map_or(0, |(_, after)| after.len());
    let digits = written.chars().filter(char::is_ascii_digit);
    let significant = digits.skip_while(|digit| *digit == '0').count();
    let product = number * times;
    let before_point = match product.abs() {
        0.0 => 1,
        size => size.log10().floor() as i64 + 1,
    };
    let least = (significant as i64 - before_point).max(0) as usize;
    let tells = |text: &String| {
        let back = text
            .parse()
            .map_or(f64::NAN, |reported: f64| reported / times);
        format!("{back:.decimals$}") == format!("{number:.decimals$}")
    };
    let mut texts = (least..=least + MORE).map(|decimals| format!("{product:.decimals$}"));
    let reported = texts.find(tells);
    reported.unwrap_or_else(|| product.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_keep_their_digits_in_the_unit_that_suits() {
        for (unit, number, name, text, is_converted) in [
            (Unit::Count, 1000.0, "count", "1,000", false),
            (Unit::PerSecond, 11936.0, "/s", "11,936", false),
            (Unit::PerSecond, 333.16, "/s", "333.16", false),
            (Unit::Percent, 140.1, "%", "140.1 %", false),
            (Unit::Index, 0.98, "index", "0.98", false),
            (Unit::Microseconds, 49350.0, "us", "49.350 ms", true),
            (Unit::Microseconds, 72_094_851.0, "us", "72.094851 s", true),
            (Unit::Microseconds, 7.0, "us", "7 µs", false),
            (Unit::Microseconds, 300.1546, "s", "300.1546 s", false),
            (Unit::Microseconds, 0.5, "s", "500 ms", true),
            (Unit::Microseconds, 0.0, "ms", "0 µs", true),
            // In units of 1024: 1.66 MB are 1.583 MiB, and 1.58 MiB are 1.66 MB.
            (Unit::Bytes, 1.66, "MB", "1.58 MiB", true),
            (Unit::Bytes, 1.4, "MB", "1.3 MiB", true),
            (Unit::Bytes, 2.0, "KiB", "2 KiB", false),
            (Unit::BytesPerSecond, 1.5, "MB/s", "1.4 MiB/s", true),
        ] {
            let given = PublishedCell::of(unit, number, name).unwrap();
            assert_eq!(
                (given.text.as_str(), given.is_converted),
                (text, is_converted)
            );
        }
        assert_eq!(PublishedCell::of(Unit::Microseconds, 1.0, "MB"), None);
    }

    #[test]
    fn a_figure_is_described_by_its_alternative() {
        for hundredths in 1..2000 {
            let number = f64::from(hundredths) / 100.0;
            let text = multiplied(number, 1e6 / 1_048_576.0);
            let back = text.parse::<f64>().unwrap() * 1.048_576;
            let written = number.to_string();
            let decimals = written.split_once('.').map_or(0, |(_, after)| after.len());
            assert_eq!(format!("{back:.decimals$}"), written, "{text}");
        }
    }
}
