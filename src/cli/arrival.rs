//! On the command line: how requests come due, and how long clients think.

use std::time::Duration;

use super::values::{at_least_one, duration, positive_duration};
use crate::load::arrival::{Spacing, Think};

/// Most requests a second that can be asked for: one a nanosecond.
const HIGHEST_PER_S: f64 = 1e9;
/// Fewest, one in 1000 s.
const LOWEST_PER_S: f64 = 1e-3;

/// Requests a second, when the schedule begins and once the rate has risen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateRange {
    pub(super) from_per_s: f64,
    pub(super) to_per_s: f64,
}

/// `1000`, or `0..1000` for a rate that rises.
pub(super) fn rate(text: &str) -> Result<RateRange, String> {
    let number = |part: &str| {
        let per_s = part.trim().parse::<f64>();
        per_s.map_err(|_| format!("`{text}` is no rate; write it like 1000, or 0..1000"))
    };
    let within = |per_s: f64| {
        if (LOWEST_PER_S..=HIGHEST_PER_S).contains(&per_s) {
            Ok(per_s)
        } else {
            Err(format!(
                "a rate must be from {LOWEST_PER_S} to {HIGHEST_PER_S} requests a second"
            ))
        }
    };
    let Some((from, to)) = text.split_once("..") else {
        let per_s = within(number(text)?)?;
        return Ok(RateRange {
            from_per_s: per_s,
            to_per_s: per_s,
        });
    };
    // It may begin with nothing at all.
    let from_per_s = match number(from)? {
        0.0 => 0.0,
        per_s => within(per_s)?,
    };
    let to_per_s = within(number(to)?)?;
    if from_per_s > to_per_s {
        return Err(format!(
            "a rate rises; write it like {to_per_s}..{from_per_s}"
        ));
    }
    Ok(RateRange {
        from_per_s,
        to_per_s,
    })
}

/// `constant`, `poisson` or `burst:N`.
pub(super) fn spacing(text: &str) -> Result<Spacing, String> {
    match (text, text.strip_prefix("burst:")) {
        ("constant", _) => Ok(Spacing::Constant),
        ("poisson", _) => Ok(Spacing::Poisson),
        (_, Some(size)) => at_least_one(size)
            .map(Spacing::Burst)
            .map_err(|why| format!("size of a burst: {why}")),
        _ => Err(format!(
            "`{text}` is no way to arrive; there are: constant, poisson, burst:N"
        )),
    }
}

/// A time such as `20ms`, a range of times such as `10ms..30ms`, or `exp:20ms`, exponentially
/// distributed with this mean.
pub(super) fn think(text: &str) -> Result<Think, String> {
    if let Some(mean) = text.strip_prefix("exp:") {
        return positive_duration(mean).map(Think::Exponential);
    }
    match text.split_once("..") {
        Some((shortest, longest)) => {
            let (shortest, longest) = (duration(shortest)?, duration(longest)?);
            if shortest > longest {
                return Err("the shorter time comes first, like 10ms..30ms".to_owned());
            }
            Ok(Think::Uniform(shortest, longest))
        }
        None => Ok(match duration(text)? {
            Duration::ZERO => Think::None,
            time => Think::Fixed(time),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_wrong_rate_is_told_why() {
        for (text, why) in [
            ("", "is no rate"),
            ("fast", "is no rate"),
            ("10/s", "is no rate"),
            ("..", "is no rate"),
            ("1..", "is no rate"),
            ("..5", "is no rate"),
            ("1..2..3", "is no rate"),
            ("0", "from 0.001 to 1000000000"),
            ("-0", "from 0.001"),
            ("-5", "from 0.001"),
            ("-5..5", "from 0.001"),
            ("0..0", "from 0.001"),
            ("1e-4", "from 0.001"),
            ("1000000001", "from 0.001"),
            ("1..2e9", "from 0.001"),
            ("NaN", "from 0.001"),
            ("nan..1", "from 0.001"),
            ("inf", "from 0.001"),
            ("1..inf", "from 0.001"),
            ("10..5", "write it like 5..10"),
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
            ("", "there are: constant, poisson, burst:N"),
            ("Poisson", "there are"),
            ("burst", "there are"),
            ("burst:", "size of a burst"),
            ("burst:0", "at least 1"),
            ("burst:-1", "no whole number"),
            ("burst:1.5", "no whole number"),
            ("burst:4294967296", "no whole number"),
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
        assert_eq!(think("10ms..1s"), Ok(Think::Uniform(ms(10), ms(1000))));
        assert_eq!(think("0s..1s"), Ok(Think::Uniform(ms(0), ms(1000))));
        assert_eq!(think("exp:50ms"), Ok(Think::Exponential(ms(50))));
        for (text, why) in [
            ("", "is no time"),
            ("10", "is no time"),
            ("-1s", "negative"),
            ("inf", "is no time"),
            ("1s..", "is no time"),
            ("..1s", "is no time"),
            ("2s..1s", "the shorter time comes first"),
            ("exp:", "is no time"),
            ("exp:0s", "longer than 0"),
            ("exp:NaN", "is no time"),
            ("exp:1s..2s", "is no time"),
        ] {
            let error = think(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
