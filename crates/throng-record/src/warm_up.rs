//! The warm-up of a server until it is level.

use serde::{Deserialize, Serialize};
use throng_stats::steadiness::Level;

use crate::format;

/// The warm-up of a server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// Its duration, from when every client had been served.
    pub took_s: f64,
    /// The value that was not level when it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<Unsettled>,
}

/// A value that was not level when a warm-up was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unsettled {
    /// The value.
    pub what: Settling,
    /// The change between the halves of the last values: 0.1 is 10 % more.
    pub change: f64,
}

/// A value that has to be level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Settling {
    /// Replies per second.
    Rate,
    /// The server's CPU time per request.
    CpuPerRequest,
}

impl WarmUp {
    /// A warm-up that ended now, by its rate and, if known, its CPU time per request.
    pub fn ended(took_s: f64, level: &Level) -> Self {
        let unsettled = level.unsettled().map(|unsettled| Unsettled {
            what: match unsettled.column {
                0 => Settling::Rate,
                _ => Settling::CpuPerRequest,
            },
            change: unsettled.change,
        });
        Self { took_s, unsettled }
    }

    /// The longer of two.
    #[must_use]
    pub fn longer(self, other: Self) -> Self {
        if other.took_s > self.took_s {
            other
        } else {
            self
        }
    }

    /// "its rate was still rising after 30.0 s of warm-up"; `None` if all was level.
    pub fn fault(&self) -> Option<String> {
        let unsettled = self.unsettled?;
        let what = match unsettled.what {
            Settling::Rate => "rate",
            Settling::CpuPerRequest => "CPU time per request",
        };
        let how = if unsettled.change < 0.0 {
            "falling"
        } else {
            "rising"
        };
        let took = format::time(self.took_s * 1e6);
        Some(format!(
            "its {what} was still {how} after {took} of warm-up"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_were_not_level_are_named_with_their_direction() {
        let fault = |row: fn(i32) -> [Option<f64>; 2]| {
            let mut level = Level::default();
            (0..60).for_each(|place| level.push(row(place)));
            WarmUp::ended(30.0, &level).fault()
        };
        assert_eq!(fault(|_| [Some(5.0), Some(5.0)]), None);
        assert_eq!(
            fault(|place| [Some(1.05_f64.powi(place)), Some(5.0)]).as_deref(),
            Some("its rate was still rising after 30.0 s of warm-up")
        );
        assert_eq!(
            fault(|place| [Some(5.0), Some(0.95_f64.powi(place))]).as_deref(),
            Some("its CPU time per request was still falling after 30.0 s of warm-up")
        );
    }
}
