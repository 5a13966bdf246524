//! The time of a request from its number: the inverse of the integrated rate.

use super::Rate;

/// The rate at which requests are due.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// `units` requests are due per `nanoseconds`: a floating-point rate as an exact fraction.
    Measure {
        nanoseconds: u128,
        units: u128,
        per_s: f64,
    },
    /// A ramp, then constant.
    Ramp {
        from_per_s: f64,
        to_per_s: f64,
        rise_s: f64,
    },
}

impl Pace {
    pub(super) fn new(rate: &Rate) -> Self {
        let &Rate {
            from_per_s,
            to_per_s,
            rise,
            ..
        } = rate;
        if from_per_s - to_per_s != 0.0 && !rise.is_zero() {
            return Self::Ramp {
                from_per_s,
                to_per_s,
                rise_s: rise.as_secs_f64(),
            };
        }
        let (mut units, mut nanoseconds) = (to_per_s, 1_000_000_000);
        // A rate has at most 53 bits, so this ends before its lowest bit is lost. Less than one request in 10,000
        // years counts as no requests.
        while units.fract() != 0.0 && nanoseconds < 1 << 120 {
            units *= 2.0;
            nanoseconds *= 2;
        }
        Self::Measure {
            nanoseconds,
            units: units as u128,
            per_s: to_per_s,
        }
    }

    /// When a request is due.
    pub(super) fn due(&self, number: u64) -> u64 {
        match *self {
            // The product fits whenever the quotient does: times have 64 bits, units 53.
            Self::Measure {
                nanoseconds, units, ..
            } => u128::from(number)
                .checked_mul(nanoseconds)
                .and_then(|product| product.checked_div(units))
                .and_then(|time| u64::try_from(time).ok())
                .unwrap_or(u64::MAX),
            Self::Ramp { .. } => self.due_at(number as f64),
        }
    }

    /// When a position between two requests is reached. It takes few operations on 53 bits, so it is within a
    /// nanosecond for two weeks.
    pub(super) fn due_at(&self, place: f64) -> u64 {
        let time = match *self {
            Self::Measure { per_s, .. } => place * 1e9 / per_s,
            Self::Ramp {
                from_per_s,
                to_per_s,
                rise_s,
            } => {
                let while_rising = f64::midpoint(from_per_s, to_per_s) * rise_s;
                if place == 0.0 {
                    0.0
                } else if place < while_rising {
                    // The root of a quadratic equation, in the form without cancellation.
                    let slope = (to_per_s - from_per_s) / rise_s;
                    let root = (from_per_s.powi(2) + 2.0 * place * slope).max(0.0).sqrt();
                    2.0 * place / (from_per_s + root) * 1e9
                } else if to_per_s > 0.0 {
                    rise_s * 1e9 + (place - while_rising) * 1e9 / to_per_s
                } else {
                    f64::INFINITY
                }
            }
        };
        // Values that are too large become `u64::MAX`.
        time.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::arrival::Spacing;

    const SECOND: u64 = 1_000_000_000;

    fn pace(from_per_s: f64, to_per_s: f64, rise_s: u64) -> Pace {
        Pace::new(&Rate {
            from_per_s,
            to_per_s,
            rise: Duration::from_secs(rise_s),
            spacing: Spacing::Constant,
        })
    }

    #[test]
    fn a_constant_rate_is_kept_exactly_for_as_long_as_one_likes() {
        let day = 86_400;
        for (per_s, number, time) in [
            (1e6, 0, 0),
            (1e6, 1, 1000),
            (3.0, 1, 333_333_333),
            (3.0, 2, 666_666_666),
            (3.0, 3, SECOND),
            (0.5, 1, 2 * SECOND),
            (1e9, 7, 7),
            (1e6, day * 1_000_000 + 1, day * SECOND + 1000),
            (999_983.0, 365 * day * 999_983, 365 * day * SECOND),
        ] {
            assert_eq!(
                pace(per_s, per_s, 0).due(number),
                time,
                "{number} at {per_s}"
            );
        }
        // A tenth is stored as slightly more.
        let early = day * SECOND - pace(0.1, 0.1, 0).due(day / 10);
        assert_eq!(early, 1);
        assert_eq!(pace(0.0, 0.0, 0).due(0), u64::MAX);
        assert_eq!(pace(1e-300, 1e-300, 0).due(1), u64::MAX);
        assert_eq!(pace(1.0, 1.0, 0).due(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_ramp_is_the_root_of_what_is_due_and_then_a_line() {
        let minute = 60 * SECOND;
        for (pace, number, time) in [
            // 50 t² up to 5000 after 10 s.
            (pace(0.0, 1000.0, 10), 0, 0),
            (pace(0.0, 1000.0, 10), 50, SECOND),
            (pace(0.0, 1000.0, 10), 200, 2 * SECOND),
            (pace(0.0, 1000.0, 10), 5000, 10 * SECOND),
            (pace(0.0, 1000.0, 10), 5001, 10 * SECOND + 1_000_000),
            (pace(0.0, 1000.0, 10), 3_600_000 - 5000, 3600 * SECOND),
            // 100 t + 10 t².
            (pace(100.0, 300.0, 10), 110, SECOND),
            (pace(100.0, 300.0, 10), 2000, 10 * SECOND),
            (pace(100.0, 300.0, 10), 2300, 11 * SECOND),
            // 100 t - 5 t².
            (pace(100.0, 0.0, 10), 95, SECOND),
            (pace(100.0, 0.0, 10), 320, 4 * SECOND),
            (pace(100.0, 0.0, 10), 500, u64::MAX),
            // No rate at first, then none at all.
            (pace(0.0, 1000.0, 0), 1000, SECOND),
            // An hour of a million per second.
            (pace(0.0, 1e6, 60), 30_000_000, minute),
            (pace(0.0, 1e6, 60), 3_570_000_000, 60 * minute),
            (pace(0.0, 1e6, 60), 3_570_000_001, 60 * minute + 1000),
        ] {
            assert_eq!(pace.due(number), time, "{number} of {pace:?}");
        }
    }

    #[test]
    fn pauses_come_between_requests() {
        for pace in [pace(1000.0, 1000.0, 0), pace(0.0, 2000.0, 3)] {
            for number in [1, 10, 2999, 3000, 1_000_000] {
                let between = pace.due_at(number as f64 + 0.5);
                assert!(pace.due(number) < between && between < pace.due(number + 1));
            }
        }
    }
}
