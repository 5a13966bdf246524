//! The counts of both sides of a load, client by client: the rows of its clients and the rows of its server.
//!
//! Each client has a source address of its own, so that the server's rows identify the client of each connection,
//! however often it reconnects.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, ensure};

/// A client's counts over all its connections.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) replies: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) errors: u64,
    /// The first error.
    pub(crate) error: String,
}

/// The server's counts of the connections from one address.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// How they ended.
    pub(crate) outcomes: BTreeMap<String, u64>,
}

/// Both sides of one client.
#[derive(Debug, Default, Clone)]
pub(crate) struct Both {
    pub(crate) reported: Reported,
    pub(crate) counted: Counted,
}

/// Both sides of all clients, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) clients: BTreeMap<IpAddr, Both>,
    /// Connections from elsewhere.
    pub(crate) others: BTreeMap<SocketAddr, Counted>,
}

impl Ledger {
    /// Combines the two CSV files of a load. A client that was never connected has no address, and nothing to account
    /// for.
    pub(crate) fn read(clients: &str, server: &str) -> anyhow::Result<Self> {
        let mut ledger = Self::default();
        for row in rows(clients)? {
            let Some(source) = row.get("source").filter(|source| !source.is_empty()) else {
                ensure!(
                    row["connections"] == "0",
                    "a client without an address: {row:?}"
                );
                continue;
            };
            let source: SocketAddr = source
                .parse()
                .with_context(|| format!("the source in {row:?}"))?;
            let count = |name: &str| number(&row, name);
            let reported = Reported {
                connections: count("connections")?,
                requests: count("requests")?,
                replies: count("replies")?,
                sent: count("bytes_sent")?,
                received: count("bytes_received")?,
                errors: count("errors")?,
                error: row["error"].to_owned(),
            };
            let before = ledger.clients.insert(
                source.ip(),
                Both {
                    reported,
                    ..Both::default()
                },
            );
            ensure!(before.is_none(), "two clients come from {}", source.ip());
        }
        for row in rows(server)? {
            let address: SocketAddr = row["address"]
                .parse()
                .with_context(|| format!("the address in {row:?}"))?;
            let counted = match ledger.clients.get_mut(&address.ip()) {
                Some(client) => &mut client.counted,
                None => ledger.others.entry(address).or_default(),
            };
            counted.connections += 1;
            counted.requests += number(&row, "requests")?;
            counted.bytes_in += number(&row, "bytes_in")?;
            counted.bytes_out += number(&row, "bytes_out")?;
            *counted
                .outcomes
                .entry(row["outcome"].to_owned())
                .or_default() += 1;
        }
        Ok(ledger)
    }
}

impl Both {
    /// Whether both sides counted the same.
    pub(crate) fn agree(&self) -> bool {
        let (reported, counted) = (&self.reported, &self.counted);
        reported.connections == counted.connections
            && reported.requests == counted.requests
            && reported.replies == counted.requests
            && reported.sent == counted.bytes_in
            && reported.received == counted.bytes_out
    }

    /// Whether their counts are possible if a connection was cut: neither side received anything that was not sent,
    /// and no reply came without a request.
    pub(crate) fn is_possible(&self) -> bool {
        let (reported, counted) = (&self.reported, &self.counted);
        reported.replies <= counted.requests
            && counted.requests <= reported.requests
            && counted.bytes_in <= reported.sent
            && reported.received <= counted.bytes_out
    }
}

impl fmt::Display for Both {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reported, counted) = (&self.reported, &self.counted);
        write!(
            f,
            "connections {}/{}, requests {}/{}, replies {}, bytes {}/{} in, {}/{} out, {} errors{}, {:?}",
            reported.connections,
            counted.connections,
            reported.requests,
            counted.requests,
            reported.replies,
            reported.sent,
            counted.bytes_in,
            reported.received,
            counted.bytes_out,
            reported.errors,
            if reported.error.is_empty() {
                String::new()
            } else {
                format!(" ({})", reported.error)
            },
            counted.outcomes
        )
    }
}

/// The rows of a CSV file, by column.
fn rows(csv: &str) -> anyhow::Result<Vec<BTreeMap<&str, &str>>> {
    let mut lines = csv.lines();
    let header = lines.next().context("a CSV file without a header")?;
    Ok(lines
        .map(|line| header.split(',').zip(line.split(',')).collect())
        .collect())
}

fn number(row: &BTreeMap<&str, &str>, name: &str) -> anyhow::Result<u64> {
    let value = row.get(name).copied().unwrap_or_default();
    value
        .parse()
        .with_context(|| format!("{name} is `{value}` in {row:?}"))
}
