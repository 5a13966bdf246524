//! Whether clients that were connected early get more replies.

use serde::{Deserialize, Serialize};

use super::TENTHS;
use crate::Correlation;

/// A served client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedClient {
    /// When it was connected.
    pub connected_ns: i64,
    pub window_replies: u64,
    /// Replies over its life.
    pub replies: u64,
}

/// Whether clients that connected early got more replies; this needs all clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum EarlyBias {
    /// Not computed yet: the clients, in the order in which they were connected.
    Clients(Vec<ServedClient>),
    /// Computed from all clients.
    Known {
        /// With replies in the window.
        window: Bias,
        /// With replies during their lives.
        life: Bias,
    },
    /// Some parts had too many clients to merge.
    Unknown,
}

/// How connecting early goes with more replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bias {
    pub correlation: Option<Correlation>,
    /// Replies to the first tenth of the clients, over those to the last; from 10 clients.
    pub early_over_late: Option<f64>,
}

impl Default for EarlyBias {
    fn default() -> Self {
        Self::Clients(Vec::new())
    }
}

impl EarlyBias {
    /// Merges the clients of another part.
    pub fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, Self::Clients(more)) if more.is_empty() => {}
            (Self::Clients(clients), _) if clients.is_empty() => self.clone_from(other),
            (Self::Clients(clients), Self::Clients(more)) => {
                clients.extend(more);
                clients.sort(); // two sorted runs, which `sort` merges
            }
            _ => *self = Self::Unknown,
        }
    }

    /// Shifts all times by `by_ns` nanoseconds.
    pub fn shift(&mut self, by_ns: i64) {
        if let Self::Clients(clients) = self {
            for client in clients {
                client.connected_ns = client.connected_ns.saturating_add(by_ns);
            }
        }
    }

    /// The result, once all clients are included.
    #[must_use]
    pub fn finished(&self) -> Self {
        let Self::Clients(clients) = self else {
            return self.clone();
        };
        let of = |replies: fn(&ServedClient) -> u64| {
            // Negated, so that early is large, and relative to the first one, since a float cannot represent a clock's
            // nanoseconds exactly.
            let first = clients.first().map_or(0, |client| client.connected_ns);
            let pairs: Vec<(f64, f64)> = clients
                .iter()
                .map(|client| {
                    let after = client.connected_ns.saturating_sub(first);
                    (-(after as f64), replies(client) as f64)
                })
                .collect();
            let found = throng_stats::rank_correlation(&pairs);
            Bias {
                correlation: found.map(|found| Correlation {
                    coefficient: found.coefficient,
                    low: found.interval.map(|interval| interval.low),
                    high: found.interval.map(|interval| interval.high),
                }),
                early_over_late: early_over_late(clients, replies),
            }
        };
        Self::Known {
            window: of(|client| client.window_replies),
            life: of(|client| client.replies),
        }
    }
}

/// Replies to the first tenth of these clients, over those to the last; `None` if either is empty.
fn early_over_late(clients: &[ServedClient], replies: fn(&ServedClient) -> u64) -> Option<f64> {
    // Clients that were connected at the same time have no order, so each counts with their mean.
    let of_tenth = |groups: &mut dyn Iterator<Item = &[ServedClient]>| {
        let (mut sum, mut left) = (0.0, clients.len() / TENTHS);
        while left > 0
            && let Some(group) = groups.next()
        {
            let taken = group.len().min(left);
            let all: u64 = group.iter().map(replies).sum();
            sum += all as f64 * taken as f64 / group.len() as f64;
            left -= taken;
        }
        sum
    };
    let groups = || clients.chunk_by(|one, next| one.connected_ns == next.connected_ns);
    let late = of_tenth(&mut groups().rev());
    (late > 0.0).then(|| of_tenth(&mut groups()) / late)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(clients: impl Iterator<Item = (i64, u64)>) -> Bias {
        let mut clients: Vec<ServedClient> = clients
            .map(|(connected_ns, window_replies)| ServedClient {
                connected_ns,
                window_replies,
                replies: window_replies,
            })
            .collect();
        clients.sort();
        match EarlyBias::Clients(clients).finished() {
            EarlyBias::Known { window, .. } => window,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn early_clients_that_get_more_show_as_a_positive_bias() {
        // Client 7 was the last to be connected, regardless of its number.
        let clients = (0..20).map(|number| match number {
            7 => (900, 10),
            _ => (number, 100 - number as u64),
        });
        let bias = window(clients.clone());
        let found = bias.correlation.unwrap();
        assert!((found.coefficient - 1.0).abs() < 1e-9);
        assert!(found.low > Some(0.9) && found.high <= Some(1.0));
        // The first two clients have 100 and 99, the last two 81 and 10.
        assert_eq!(bias.early_over_late, Some(199.0 / 91.0));
        let alike = window(clients.map(|(connected_at, _)| (connected_at, 50)));
        assert_eq!(alike.correlation, None, "all got the same");
        assert_eq!(alike.early_over_late, Some(1.0));
    }

    #[test]
    fn clients_that_were_connected_at_once_are_neither_early_nor_late() {
        let bias = window((0..30).map(|number| (7, number)));
        assert_eq!(bias.early_over_late, Some(1.0));
        let few = window((0..9).map(|number| (number, 5)));
        assert_eq!(few.early_over_late, None, "a tenth of them is nobody");
    }
}
