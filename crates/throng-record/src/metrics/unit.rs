//! Units of metrics: how values are formatted, and how users write them.

use serde::Serialize;

use crate::format::{bytes, hundredths, index, number, time, unit_of_bytes, unit_of_time, whole};

/// A unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Times per second.
    PerSecond,
    /// A time.
    Nanoseconds,
    /// A time.
    Microseconds,
    /// A time.
    Milliseconds,
    /// A time.
    Seconds,
    Bytes,
    BytesPerSecond,
    /// A count.
    Count,
    /// A number of clients, out of all clients.
    Clients,
    /// A mean count: per request, per flow.
    Mean,
    /// From -1 or 0 to 1.
    Index,
    /// Percent; of CPU time, 100 is one CPU.
    Percent,
    /// A ratio.
    Ratio,
}

/// Units of sizes.
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
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per second",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::Count => "count",
            Self::Clients => "clients",
            Self::Mean => "mean",
            Self::Index => "index",
            Self::Percent => "%",
            Self::Ratio => "ratio",
        }
    }

    /// The suffix of metrics' names; empty if none.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::PerSecond => "_per_s",
            Self::Nanoseconds => "_ns",
            Self::Microseconds => "_us",
            Self::Milliseconds => "_ms",
            Self::Seconds => "_s",
            Self::Bytes => "_bytes",
            Self::BytesPerSecond => "_bytes_per_s",
            Self::Percent => "_percent",
            Self::Count | Self::Clients | Self::Mean | Self::Index | Self::Ratio => "",
        }
    }

    /// For a time, the number of microseconds.
    pub fn microseconds(self) -> Option<f64> {
        match self {
            Self::Nanoseconds => Some(1e-3),
            Self::Microseconds => Some(1.0),
            Self::Milliseconds => Some(1e3),
            Self::Seconds => Some(1e6),
            _ => None,
        }
    }

    /// A value for readers.
    pub fn text(self, value: f64) -> String {
        if let Some(microseconds) = self.microseconds() {
            return time(value * microseconds);
        }
        match self {
            Self::Bytes => bytes(value),
            Self::BytesPerSecond => format!("{}/s", bytes(value)),
            Self::Count | Self::Clients => whole(value),
            Self::Mean => hundredths(value),
            Self::Index => index(value),
            Self::Percent => format!("{} %", number(value)),
            _ => number(value),
        }
    }

    /// A value in the unit that suits another one, without that unit.
    pub fn number_in_unit_of(self, value: f64, other: f64) -> String {
        let (_, factor) = self.fitting(other.abs());
        match self {
            Self::Count | Self::Clients => whole(value),
            Self::Mean => hundredths(value),
            Self::Index => index(value),
            _ => number(value / factor),
        }
    }

    /// The unit that suits a value, and its size in the metric's own unit; no name for plain numbers.
    pub fn fitting(self, value: f64) -> (String, f64) {
        if let Some(microseconds) = self.microseconds() {
            let (name, factor) = unit_of_time(value * microseconds);
            return (name.to_owned(), factor / microseconds);
        }
        match self {
            Self::Bytes | Self::BytesPerSecond => {
                let (name, factor) = unit_of_bytes(value);
                let each = if self == Self::Bytes { "" } else { "/s" };
                (format!("{name}{each}"), factor)
            }
            Self::Percent => ("%".to_owned(), 1.0),
            _ => (String::new(), 1.0),
        }
    }

    /// Parses a value with its unit.
    ///
    /// # Errors
    /// The error.
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
                text => format!("`{text}` is not a value; it must begin with a number"),
            });
        };
        let units = self.written();
        let of_rate = self == Self::BytesPerSecond;
        let unit = match unit.strip_suffix("/s") {
            Some(size) if of_rate => size,
            _ => unit,
        };
        let own = self.microseconds().unwrap_or(1.0);
        let found = units.iter().find(|(name, _)| *name == unit);
        found
            .map(|(_, factor)| number * factor / own)
            .ok_or_else(|| {
                let suffix = if of_rate { "/s" } else { "" };
                let names: Vec<String> = units
                    .iter()
                    .map(|(name, _)| format!("{name}{suffix}"))
                    .collect();
                let listed = names.join(", ");
                match unit {
                    _ if *units == [("", 1.0)] => {
                        format!("`{text}` has a unit, but the metric is a plain number")
                    }
                    "" => format!("`{text}` needs a unit: {listed}"),
                    unit => {
                        format!("`{unit}` is not a unit of this metric; expected one of: {listed}")
                    }
                }
            })
    }

    /// Converts a number from a study's unit `name`.
    ///
    /// # Errors
    /// When values cannot be in that unit.
    pub fn read(self, number: f64, name: &str) -> Result<f64, String> {
        let name = match name.trim() {
            "count" | "index" | "ratio" | "/s" | "1/s" => "",
            "bytes" => "B",
            "bytes/s" => "B/s",
            "KB" => "kB",
            "KB/s" => "kB/s",
            name => name,
        };
        self.parse(&format!("{number}{name}"))
    }

    /// The units for users, and their size in this one; for times, in microseconds.
    fn written(self) -> &'static [(&'static str, f64)] {
        match self {
            _ if self.microseconds().is_some() => &[
                ("ns", 1e-3),
                ("us", 1.0),
                ("µs", 1.0),
                ("ms", 1e3),
                ("s", 1e6),
            ],
            Self::Bytes | Self::BytesPerSecond => SIZES,
            Self::Percent => &[("%", 1.0), ("", 1.0)],
            _ => &[("", 1.0)],
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
            (Unit::Microseconds, "18.5ms", 18_500.0),
            (Unit::Seconds, "18.5ms", 0.0185),
            (Unit::Nanoseconds, "2us", 2000.0),
        ] {
            let read = unit.parse(text).unwrap();
            assert!((read - value).abs() < 1e-9, "{text}");
        }
        assert_eq!(Unit::Percent.text(71.94), "71.9 %");
        assert_eq!(Unit::Seconds.text(0.0185), "18.5 ms");
        assert_eq!(Unit::Milliseconds.fitting(0.5), ("µs".to_owned(), 1e-3));
        assert_eq!(Unit::BytesPerSecond.text(2048.0), "2.00 KiB/s");
        assert!(
            Unit::BytesPerSecond
                .parse("3")
                .unwrap_err()
                .contains("kB/s")
        );
        assert!(Unit::Ratio.parse("3 %").unwrap_err().contains("plain"));
        assert!(Unit::Index.parse("-").unwrap_err().contains("not a value"));
    }

    #[test]
    fn units_are_those_of_publications() {
        for (unit, name, expected) in [
            (Unit::Microseconds, "s", 1e6),
            (Unit::Bytes, "MB", 1e6),
            (Unit::Bytes, "KB", 1e3),
            (Unit::Bytes, "bytes", 1.0),
            (Unit::PerSecond, "/s", 1.0),
            (Unit::Count, "count", 1.0),
        ] {
            let factor = unit.read(1.0, name).unwrap();
            assert!((factor - expected).abs() < 1e-9, "{name}");
        }
        assert!(
            Unit::Microseconds
                .read(1.0, "MB")
                .unwrap_err()
                .contains("not a unit")
        );
    }
}
