//! When clients send: the rate of an open loop, and the think time of a closed loop.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::{NumberOrText, as_text, deserialize_number, read_time, schema_of, write_time};

/// Maximum requests per second: one per nanosecond.
const HIGHEST_PER_S: f64 = 1e9;
/// Minimum requests per second: one per 1000 s.
const LOWEST_PER_S: f64 = 1e-3;

/// Requests per second of all clients: `1000`, or `0..1000` for a rising rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateRange {
    /// At the start of the schedule.
    pub from_per_s: f64,
    /// At the end of the ramp; the same for a constant rate.
    pub to_per_s: f64,
}

impl RateRange {
    /// A constant rate.
    pub fn constant(per_s: f64) -> Self {
        Self {
            from_per_s: per_s,
            to_per_s: per_s,
        }
    }

    /// With both ends changed, except that a start of 0 stays 0.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self {
            from_per_s: if self.from_per_s > 0.0 {
                change(self.from_per_s)
            } else {
                0.0
            },
            to_per_s: change(self.to_per_s),
        }
    }

    /// Whether it rises.
    pub fn rises(self) -> bool {
        self.from_per_s < self.to_per_s
    }

    fn new(from_per_s: f64, to_per_s: f64) -> Result<Self, String> {
        let within = |per_s: &f64| (LOWEST_PER_S..=HIGHEST_PER_S).contains(per_s);
        // It may start at 0.
        let begins = from_per_s == 0.0 || within(&from_per_s);
        if !begins || !within(&to_per_s) {
            return Err(format!(
                "a rate must be from {LOWEST_PER_S} to {HIGHEST_PER_S} requests/s"
            ));
        }
        if from_per_s > to_per_s {
            return Err(format!(
                "a rate cannot fall; write {to_per_s}..{from_per_s}"
            ));
        }
        Ok(Self {
            from_per_s,
            to_per_s,
        })
    }
}

impl FromStr for RateRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            super::number(part).map_err(|_| {
                format!("`{text}` is not a rate; write it like 1000, 10k, 1e6 or 0..1000")
            })
        };
        let bare = text.strip_suffix("/s").unwrap_or(text);
        let Some((from, to)) = bare.split_once("..") else {
            let per_s = number(bare)?;
            return Self::new(per_s, per_s);
        };
        Self::new(number(from)?, number(to)?)
    }
}

impl fmt::Display for RateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rises() {
            write!(f, "{}..", self.from_per_s)?;
        }
        self.to_per_s.fmt(f)
    }
}

impl Serialize for RateRange {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.rises() {
            to.collect_str(self)
        } else if self.to_per_s.fract() == 0.0 {
            to.serialize_u64(self.to_per_s as u64)
        } else {
            to.serialize_f64(self.to_per_s)
        }
    }
}

impl<'de> Deserialize<'de> for RateRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        deserialize_number(from, "a rate, like 1000 or \"0..1000\"", str::parse)
    }
}

schema_of!(RateRange, NumberOrText);

/// Parses a constant rate.
///
/// # Errors
/// When it is not one.
pub fn per_second(text: &str) -> Result<f64, String> {
    let range: RateRange = text.parse()?;
    if range.rises() {
        return Err("the rate is constant; write a single number".to_owned());
    }
    Ok(range.to_per_s)
}

/// Inter-arrival distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Constant intervals.
    Constant,
    /// Poisson: independent arrivals, like those of many users.
    Poisson,
    /// Bursts of this many requests, at the same mean rate.
    Burst(u32),
}

impl FromStr for Spacing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("burst:")) {
            ("constant", _) => Ok(Self::Constant),
            ("poisson", _) => Ok(Self::Poisson),
            (_, Some(size)) => super::at_least_one(size)
                .map(Self::Burst)
                .map_err(|why| format!("size of a burst: {why}")),
            _ => Err(format!(
                "`{text}` is not a distribution; expected constant, poisson or burst:N"
            )),
        }
    }
}

impl fmt::Display for Spacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Poisson => f.write_str("poisson"),
            Self::Burst(size) => write!(f, "burst:{size}"),
        }
    }
}

/// A random time hardly ever exceeds this multiple of its mean: once in 22,000.
pub const LONG_BY_CHANCE: f64 = 10.0;

/// Think time of a client in a closed loop: constant (`20ms`), uniform (`10ms..30ms`), or exponential (`exp:20ms`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Think {
    /// None.
    #[default]
    None,
    /// Constant.
    Fixed(Duration),
    /// Uniform from the first to the second.
    Uniform(Duration, Duration),
    /// Exponential with this mean.
    Exponential(Duration),
}

impl Think {
    /// A time that clients hardly ever exceed.
    pub fn longest(&self) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::Fixed(time) | Self::Uniform(_, time) => time,
            Self::Exponential(mean) => mean.mul_f64(LONG_BY_CHANCE),
        }
    }

    /// The longest time in its text.
    pub fn named(&self) -> Duration {
        match *self {
            Self::Exponential(mean) => mean,
            _ => self.longest(),
        }
    }

    /// With every time changed.
    #[must_use]
    pub fn map(self, change: impl Fn(Duration) -> Duration) -> Self {
        match self {
            Self::None => Self::None,
            Self::Fixed(time) => Self::Fixed(change(time)),
            Self::Uniform(shortest, longest) => Self::Uniform(change(shortest), change(longest)),
            Self::Exponential(mean) => Self::Exponential(change(mean)),
        }
    }
}

impl FromStr for Think {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(mean) = text.strip_prefix("exp:") {
            return match read_time(mean)? {
                Duration::ZERO => Err("must be longer than 0".to_owned()),
                mean => Ok(Self::Exponential(mean)),
            };
        }
        let (shortest, longest) = match text.split_once("..") {
            Some((shortest, longest)) => (read_time(shortest)?, read_time(longest)?),
            None => (read_time(text)?, read_time(text)?),
        };
        if shortest > longest {
            return Err("the shorter time must come first, like 10ms..30ms".to_owned());
        }
        Ok(match longest {
            Duration::ZERO => Self::None,
            time if time == shortest => Self::Fixed(time),
            _ => Self::Uniform(shortest, longest),
        })
    }
}

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => f.write_str("0s"),
            Self::Fixed(time) => f.write_str(&write_time(time)),
            Self::Uniform(shortest, longest) => {
                write!(f, "{}..{}", write_time(shortest), write_time(longest))
            }
            Self::Exponential(mean) => write!(f, "exp:{}", write_time(mean)),
        }
    }
}

as_text!(Spacing, "\"constant\", \"poisson\" or \"burst:N\"");
as_text!(
    Think,
    "a time, like \"20ms\", \"10ms..30ms\" or \"exp:20ms\""
);

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Result<RateRange, String> {
        text.parse()
    }

    fn spacing(text: &str) -> Result<Spacing, String> {
        text.parse()
    }

    fn think(text: &str) -> Result<Think, String> {
        text.parse()
    }

    fn range(from_per_s: f64, to_per_s: f64) -> RateRange {
        RateRange {
            from_per_s,
            to_per_s,
        }
    }

    #[test]
    fn a_rate_is_a_number_or_rises() {
        assert_eq!(rate("1000"), Ok(range(1000.0, 1000.0)));
        assert_eq!(rate("0.5"), Ok(range(0.5, 0.5)));
        assert_eq!(rate("1e9"), Ok(range(1e9, 1e9)));
        assert_eq!(rate("100..1e6"), Ok(range(100.0, 1e6)));
        assert_eq!(rate("0..10"), Ok(range(0.0, 10.0)));
        assert_eq!(rate("10..10"), Ok(range(10.0, 10.0)));
    }

    #[test]
    fn a_wrong_rate_is_given_the_reason() {
        for (text, why) in [
            ("", "is not a rate"),
            ("fast", "is not a rate"),
            ("10/m", "is not a rate"),
            ("..", "is not a rate"),
            ("1..", "is not a rate"),
            ("..5", "is not a rate"),
            ("1..2..3", "is not a rate"),
            ("0", "from 0.001 to 1000000000"),
            ("-0", "is not a rate"),
            ("-5", "is not a rate"),
            ("-5..5", "is not a rate"),
            ("0..0", "from 0.001"),
            ("1e-4", "is not a rate"),
            ("0.0001", "from 0.001"),
            ("1000000001", "from 0.001"),
            ("1..2e9", "from 0.001"),
            ("NaN", "is not a rate"),
            ("nan..1", "is not a rate"),
            ("inf", "is not a rate"),
            ("1..inf", "is not a rate"),
            ("10..5", "write 5..10"),
            ("5..0", "from 0.001"),
        ] {
            let error = rate(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn arrivals_have_names() {
        assert_eq!(spacing("constant"), Ok(Spacing::Constant));
        assert_eq!(spacing("poisson"), Ok(Spacing::Poisson));
        assert_eq!(spacing("burst:10"), Ok(Spacing::Burst(10)));
        for (text, why) in [
            ("", "expected constant, poisson or burst:N"),
            ("Poisson", "expected"),
            ("burst", "expected"),
            ("burst:", "size of a burst"),
            ("burst:0", "at least 1"),
            ("burst:-1", "at least 1"),
            ("burst:1.5", "is not a whole number"),
            ("burst:4294967296", "is more than"),
        ] {
            let error = spacing(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn clients_think_for_a_time_a_range_or_at_random() {
        let ms = Duration::from_millis;
        assert_eq!(think("0s"), Ok(Think::None));
        assert_eq!(think("20ms"), Ok(Think::Fixed(ms(20))));
        assert_eq!(think("10000us..10ms"), Ok(Think::Fixed(ms(10))));
        assert_eq!(think("10ms..1s"), Ok(Think::Uniform(ms(10), ms(1000))));
        assert_eq!(think("0s..1s"), Ok(Think::Uniform(ms(0), ms(1000))));
        assert_eq!(think("exp:50ms"), Ok(Think::Exponential(ms(50))));
        for (text, why) in [
            ("", "is not a time"),
            ("10", "needs a unit"),
            ("-1s", "negative"),
            ("inf", "is not a time"),
            ("1s..", "is not a time"),
            ("..1s", "is not a time"),
            ("2s..1s", "the shorter time must come first"),
            ("exp:", "is not a time"),
            ("exp:0s", "longer than 0"),
            ("exp:NaN", "is not a time"),
            ("exp:1s..2s", "is not a time"),
        ] {
            let error = think(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
