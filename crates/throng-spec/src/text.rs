//! Text of a load's values: the same on the command line, in study files and in records.

use std::fmt::{self, Display};
use std::str::FromStr as _;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

/// The longest time: ten years.
const LONGEST: Duration = Duration::from_hours(24 * 3650);

/// Parses a time such as `10s`, `1m 30s` or `250ms`.
///
/// # Errors
/// When it is invalid.
pub fn read_time(text: &str) -> Result<Duration, String> {
    let time = jiff::SignedDuration::from_str(text).map_err(|_| {
        if text.parse::<f64>().is_ok_and(f64::is_finite) {
            format!("`{text}` needs a unit, like {text}s or {text}ms")
        } else {
            format!("`{text}` is not a time; write it like 10s, 250ms or 1m30s")
        }
    })?;
    match Duration::try_from(time) {
        Ok(time) if time <= LONGEST => Ok(time),
        Ok(_) => Err(format!("`{text}` is longer than ten years")),
        Err(_) => Err(format!("`{text}` must not be negative")),
    }
}

/// Writes a time as a whole number of the largest possible unit: `90s`, `250ms`.
pub fn write_time(time: Duration) -> String {
    let nanoseconds = time.as_nanos();
    for (unit, length) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)] {
        if nanoseconds.is_multiple_of(length) {
            return format!("{}{unit}", nanoseconds / length);
        }
    }
    format!("{nanoseconds}ns")
}

/// Serde for times.
pub(super) mod time {
    use super::{Deserializer, Duration, Serializer, read_time, write_time};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&write_time(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        super::deserialize(from, "a time, like \"10s\" or \"250ms\"", read_time)
    }
}

/// Serde for optional times.
pub mod optional_time {
    use super::{Deserializer, Duration, Serializer, time};

    /// Serialises one.
    pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => time::serialize(time, to),
            None => to.serialize_none(),
        }
    }

    /// Deserialises one.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        time::deserialize(from).map(Some)
    }
}

/// Deserialises a value from its text; `expected` describes it if there is no text.
pub(super) fn deserialize<'de, T, D: Deserializer<'de>>(
    from: D,
    expected: &'static str,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    from.deserialize_any(Reader {
        expected,
        read,
        takes_numbers: false,
    })
}

/// The same for a value that may also be a number, which is read like its text.
pub(super) fn deserialize_number<'de, T, D: Deserializer<'de>>(
    from: D,
    expected: &'static str,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    from.deserialize_any(Reader {
        expected,
        read,
        takes_numbers: true,
    })
}

struct Reader<T> {
    expected: &'static str,
    read: fn(&str) -> Result<T, String>,
    takes_numbers: bool,
}

impl<T> Reader<T> {
    fn number<E: Error>(self, number: impl Display, unexpected: Unexpected<'_>) -> Result<T, E> {
        if self.takes_numbers {
            self.visit_str(&number.to_string())
        } else {
            Err(E::invalid_type(unexpected, &self))
        }
    }
}

impl<T> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.number(number, Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.number(number, Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.number(number, Unexpected::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(E::custom)
    }
}

/// Serialises a value as text.
pub(super) fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// A schema like that of another type.
macro_rules! schema_of {
    ($type:ty, $shape:ty) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$shape>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$shape>::json_schema(generator)
            }
        }
    };
}
pub(super) use schema_of;

/// The schema of numbers that may be text.
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "it only has a schema")]
pub(super) enum NumberOrText {
    Number(f64),
    Text(String),
}

/// Serde for a type with a text form.
macro_rules! as_text {
    ($type:ty, $expected:literal) => {
        $crate::text::schema_of!($type, String);

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $crate::text::serialize(self, to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::text::deserialize(from, $expected, |text| text.parse())
            }
        }
    };
}
pub(super) use as_text;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_have_units() {
        for (text, milliseconds) in [
            ("250ms", 250),
            ("1m30s", 90_000),
            ("1m 30s", 90_000),
            ("0s", 0),
        ] {
            assert_eq!(read_time(text), Ok(Duration::from_millis(milliseconds)));
        }
        for (text, why) in [
            ("", "not a time"),
            ("10", "`10` needs a unit, like 10s or 10ms"),
            ("0.5", "`0.5` needs a unit"),
            ("soon", "not a time"),
            ("-1s", "negative"),
            ("88000h", "longer than ten years"),
        ] {
            assert!(read_time(text).unwrap_err().contains(why), "{text}");
        }
        for (text, written) in [
            ("90s", "90s"),
            ("1500us", "1500us"),
            ("0.5s", "500ms"),
            ("0ms", "0s"),
            ("1ns", "1ns"),
        ] {
            assert_eq!(write_time(read_time(text).unwrap()), written);
        }
    }

    proptest! {
        #[test]
        fn written_text_is_read_back(seconds in 0..LONGEST.as_secs(), nanoseconds in 0..1_000_000_000_u32) {
            let time = Duration::new(seconds, nanoseconds);
            prop_assert_eq!(read_time(&write_time(time)), Ok(time));
        }
    }
}
