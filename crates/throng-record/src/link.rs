//! A simulated link between clients and servers.

use serde::{Deserialize, Serialize};

use super::format::time;

/// A link, equal in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bits per second, as on Ethernet; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
    /// Time that each packet takes, in addition; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<f64>,
    /// Percentage of packets that are lost; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_percent: Option<f64>,
}

impl Link {
    /// Whether it needs a network of its own: loss alone does not.
    pub fn is_shaped(&self) -> bool {
        self.rate_bits_per_s.is_some() || self.delay_s.is_some()
    }

    /// "1 Gbit/s, 20 ms of delay and 1 % loss, each way".
    pub fn words(&self) -> String {
        let rate = self.rate_bits_per_s.map(rate);
        let delay = self.delay_s.map(|s| format!("{} of delay", time(s * 1e6)));
        let loss = self.loss_percent.map(|percent| format!("{percent} % loss"));
        let parts: Vec<String> = [rate, delay, loss].into_iter().flatten().collect();
        format!("{}, each way", parts.join(", "))
    }
}

/// "100 Mbit/s".
fn rate(bits_per_s: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1000, "kbit")];
    let unit = UNITS
        .iter()
        .find(|(size, _)| bits_per_s.is_multiple_of(*size));
    unit.map_or_else(
        || format!("{bits_per_s} bit/s"),
        |(size, unit)| format!("{} {unit}/s", bits_per_s / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_described_by_what_it_limits() {
        let link = Link {
            rate_bits_per_s: Some(100_000_000),
            delay_s: Some(0.02),
            loss_percent: Some(0.1),
        };
        let words = "100 Mbit/s, 20.0 ms of delay, 0.1 % loss, each way";
        assert_eq!(link.words(), words);
        let lossy = Link {
            loss_percent: Some(1.0),
            ..Link::default()
        };
        assert!(!lossy.is_shaped() && link.is_shaped());
        assert_eq!(lossy.words(), "1 % loss, each way");
    }
}
