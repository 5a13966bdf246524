//! What metrics are measured in: how their values are written, and how users write them.

use serde::Serialize;

use crate::report::format::{
    bytes, hundredths, index, number, time, unit_of_bytes, unit_of_time, whole,
};

/// What a value is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Times a second.
    PerSecond,
    /// Microseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// A number of things.
    Count,
    /// A mean number of things: for each reply, for each flow.
    Mean,
    /// From -1 or 0 to 1.
    Index,
    /// Hundredths; of CPU time, 100 is one CPU.
    Percent,
    /// Of two numbers.
    Ratio,
}

/// How sizes may be written.
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

impl Unit {
    /// In a word; empty where a plain number needs none.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "a second",
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::Count => "count",
            Self::Mean => "mean",
            Self::Index => "index",
            Self::Percent => "%",
            Self::Ratio => "ratio",
        }
    }

    /// A value as a reader wants it.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::Ratio => number(value),
            Self::Time => time(value),
            Self::Bytes => bytes(value),
            Self::BytesPerSecond => format!("{}/s", bytes(value)),
            Self::Count => whole(value),
            Self::Mean => hundredths(value),
            Self::Index => index(value),
            Self::Percent => format!("{} %", number(value)),
        }
    }

    /// The unit that suits a value, and how many of the metric's own it is; no word where a plain number
    /// needs none.
    pub fn fitting(self, value: f64) -> (String, f64) {
        let (name, factor) = match self {
            Self::Time => unit_of_time(value),
            Self::Bytes | Self::BytesPerSecond => unit_of_bytes(value),
            Self::Percent => ("%", 1.0),
            Self::PerSecond | Self::Count | Self::Mean | Self::Index | Self::Ratio => ("", 1.0),
        };
        let each = if self == Self::BytesPerSecond {
            "/s"
        } else {
            ""
        };
        (format!("{name}{each}"), factor)
    }

    /// Reads a value with its unit.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        let sign = usize::from(text.starts_with('-'));
        let end = text[sign..]
            .find(|c: char| !c.is_ascii_digit() && !"._".contains(c))
            .map_or(text.len(), |end| sign + end);
        let (digits, unit) = (text[..end].replace('_', ""), text[end..].trim());
        let Ok(number) = digits.parse::<f64>() else {
            return Err(match text {
                "" => "a value is missing".to_owned(),
                text => format!("`{text}` is no value; it begins with a number"),
            });
        };
        let units = self.written();
        let per_second = unit.strip_suffix("/s");
        let unit = match (self, per_second) {
            (Self::BytesPerSecond, Some(size)) => size,
            _ => unit,
        };
        let found = units.iter().find(|(name, _)| *name == unit);
        found.map(|(_, factor)| number * factor).ok_or_else(|| {
            let suffix = if self == Self::BytesPerSecond {
                "/s"
            } else {
                ""
            };
            let names: Vec<String> = units
                .iter()
                .map(|(name, _)| format!("{name}{suffix}"))
                .collect();
            let names = names.join(", ");
            match unit {
                _ if self.is_plain() => {
                    format!("`{text}` has a unit, but this is a plain number")
                }
                "" => format!("`{text}` needs a unit: {names}"),
                unit => format!("`{unit}` is no unit of it; there are: {names}"),
            }
        })
    }

    /// Whether its values are written without one.
    fn is_plain(self) -> bool {
        self.written() == [("", 1.0)]
    }

    /// The units in which users may write it, and what each is in its own.
    fn written(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Time => &[
                ("ns", 1e-3),
                ("us", 1.0),
                ("µs", 1.0),
                ("ms", 1e3),
                ("s", 1e6),
            ],
            Self::Bytes | Self::BytesPerSecond => SIZES,
            Self::Percent => &[("%", 1.0), ("", 1.0)],
            Self::PerSecond | Self::Count | Self::Mean | Self::Index | Self::Ratio => &[("", 1.0)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_and_read_in_the_unit() {
        for (unit, text, value) in [
            (Unit::Percent, "71.9 %", 71.9),
            (Unit::Percent, "140", 140.0),
            (Unit::BytesPerSecond, "2 KiB/s", 2048.0),
            (Unit::Index, "-0.5", -0.5),
            (Unit::Ratio, "0.42", 0.42),
            (Unit::Time, "18.5ms", 18_500.0),
        ] {
            let read = unit.parse(text).unwrap();
            assert!((read - value).abs() < 1e-9, "{text}");
        }
        assert_eq!(Unit::Percent.text(71.94), "71.9 %");
        assert_eq!(Unit::BytesPerSecond.text(2048.0), "2.00 KiB/s");
        assert!(
            Unit::BytesPerSecond
                .parse("3")
                .unwrap_err()
                .contains("kB/s")
        );
        assert!(Unit::Ratio.parse("3 %").unwrap_err().contains("plain"));
        assert!(Unit::Index.parse("-").unwrap_err().contains("no value"));
    }
}
