//! Whether clients that were connected early get more replies.

use serde::{Deserialize, Serialize};

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
        window: Option<Correlation>,
        /// With replies during their lives.
        life: Option<Correlation>,
    },
    /// Some parts had too many clients to merge.
    Unknown,
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
            let found = throng_stats::rank_correlation(&pairs)?;
            Some(Correlation {
                coefficient: found.coefficient,
                low: found.interval.map(|interval| interval.low),
                high: found.interval.map(|interval| interval.high),
            })
        };
        Self::Known {
            window: of(|client| client.window_replies),
            life: of(|client| client.replies),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(clients: impl Iterator<Item = (i64, u64)>) -> Option<Correlation> {
        let clients = clients.map(|(connected_ns, window_replies)| ServedClient {
            connected_ns,
            window_replies,
            replies: window_replies,
        });
        let mut clients: Vec<ServedClient> = clients.collect();
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
        let found = window(clients.clone()).unwrap();
        assert!((found.coefficient - 1.0).abs() < 1e-9);
        assert!(found.low > Some(0.9) && found.high <= Some(1.0));
        let alike = window(clients.map(|(connected_at, _)| (connected_at, 50)));
        assert_eq!(alike, None, "all got the same");
    }
}
