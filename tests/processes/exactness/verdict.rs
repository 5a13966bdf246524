//! Whether what both sides have counted is the same.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::draw::Drawn;
use super::fault::Fault;
use super::stranger::{Strange, Way};
use crate::support::ledger::{Both, Counted, Ledger};

/// The result of a trial.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Clients with the same counts on both sides.
    pub(crate) agreed: u64,
    /// The others, each with the counts of both sides.
    pub(crate) cut: Vec<String>,
    pub(crate) strangers: u64,
}

/// Bytes of the answer to a close frame, for which no client waits.
const CLOSE_FRAME: u64 = 4;

/// Ends of a connection that a fault brings about.
const CUTS: [&str; 6] = [
    "reset",
    "cut",
    "drained",
    "idle-timeout",
    "process-died",
    "protocol-error",
];

pub(crate) fn judge(
    drawn: &Drawn,
    reported: &Value,
    counts: &Value,
    (clients_csv, server_csv): (&str, &str),
    strangers: &[Strange],
) -> anyhow::Result<Verdict> {
    let mut ledger = Ledger::read(clients_csv, server_csv)?;
    let mut verdict = Verdict {
        connections: number(counts, "accepted")?,
        requests: number(counts, "requests")?,
        bytes: number(counts, "bytes_in")? + number(counts, "bytes_out")?,
        ..Verdict::default()
    };
    server_adds_up(&ledger, counts)?;
    clients_add_up(&ledger, reported)?;
    if drawn.protocol == "websocket" {
        for client in ledger.clients.values_mut() {
            let ends = client.counted.outcomes.get("server-closed");
            let unread = ends.map_or(0, |ends| ends * CLOSE_FRAME);
            client.counted.bytes_out = client.counted.bytes_out.saturating_sub(unread);
        }
    }
    for (address, client) in &ledger.clients {
        if client.agree() {
            verdict.agreed += 1;
            continue;
        }
        ensure!(
            drawn.fault.cuts(),
            "nothing was to cut a client, but of {address}: {client}"
        );
        // Who is interrupted before its first reply counts as never served, without an error.
        let left_waiting =
            drawn.fault == Fault::Interrupted && client.reported.replies < client.reported.requests;
        ensure!(
            left_waiting || has_been_cut(client),
            "{address} agrees not, and was not cut: {client}"
        );
        ensure!(is_possible(client), "{address} cannot be: {client}");
        verdict.cut.push(format!("{address}: {client}"));
    }
    if drawn.fault == Fault::None {
        let (clients, errors) = (number(reported, "clients")?, &reported["errors"]);
        ensure!(
            errors.as_object().is_some_and(serde_json::Map::is_empty),
            "clients had errors: {errors}"
        );
        ensure!(
            clients == ledger.clients.len() as u64,
            "{} clients are in the file",
            ledger.clients.len()
        );
        ensure!(
            ledger.others.is_empty(),
            "connections from elsewhere: {:?}",
            ledger.others
        );
    }
    if drawn.fault == Fault::FewMayBe {
        // Rejected clients are counted, and every client was either accepted or rejected.
        let refused: u64 = sum_of(&counts["refused"]);
        let (connections, accepted) = (
            number(reported, "connections")?,
            number(counts, "accepted")?,
        );
        ensure!(
            connections == accepted + refused,
            "{connections} came, {accepted} were let in, {refused} not"
        );
    }
    verdict.strangers = ledger.others.len() as u64;
    if drawn.fault == Fault::Strangers {
        strangers_add_up(&ledger, strangers)?;
    }
    Ok(verdict)
}

/// A server's totals are those of its connections, each of which has ended.
fn server_adds_up(ledger: &Ledger, counts: &Value) -> anyhow::Result<()> {
    let of_clients = ledger.clients.values().map(|client| &client.counted);
    let all: Vec<&Counted> = of_clients.chain(ledger.others.values()).collect();
    let sum = |value: fn(&Counted) -> u64| all.iter().map(|counted| value(counted)).sum::<u64>();
    for (name, rows) in [
        ("accepted", sum(|counted| counted.connections)),
        ("requests", sum(|counted| counted.requests)),
        ("bytes_in", sum(|counted| counted.bytes_in)),
        ("bytes_out", sum(|counted| counted.bytes_out)),
    ] {
        let total = number(counts, name)?;
        ensure!(
            total == rows,
            "of {name} the server has {total} in all, and {rows} in its rows"
        );
    }
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for counted in all {
        for (outcome, connections) in &counted.outcomes {
            *outcomes.entry(outcome.clone()).or_default() += connections;
        }
    }
    let reported: BTreeMap<String, u64> = serde_json::from_value(counts["outcomes"].clone())?;
    ensure!(reported == outcomes, "the rows end as {outcomes:?}");
    ensure!(
        !reported.contains_key("open"),
        "at the end nothing is open: {reported:?}"
    );
    Ok(())
}

/// A load's totals are those of its clients.
fn clients_add_up(ledger: &Ledger, reported: &Value) -> anyhow::Result<()> {
    let sum = |value: fn(&Both) -> u64| ledger.clients.values().map(value).sum::<u64>();
    for (name, rows) in [
        ("connections", sum(|client| client.reported.connections)),
        ("requests", sum(|client| client.reported.requests)),
        ("verified", sum(|client| client.reported.replies)),
    ] {
        let total = number(reported, name)?;
        ensure!(
            total == rows,
            "of {name} the load has {total} in all, and {rows} in its rows"
        );
    }
    let errors = sum(|client| client.reported.errors);
    let total = sum_of(&reported["errors"]);
    ensure!(
        errors <= total,
        "{total} errors in all, and {errors} of clients with an address"
    );
    Ok(())
}

/// Whether either side reports an irregular end of a connection of this client.
fn has_been_cut(client: &Both) -> bool {
    let outcomes = &client.counted.outcomes;
    client.reported.errors > 0 || CUTS.iter().any(|cut| outcomes.contains_key(*cut))
        // It was connected as its kernel has it, and never accepted.
        || client.counted.connections < client.reported.connections
}

fn is_possible(client: &Both) -> bool {
    // What a process had sent when it was killed it may not have written down yet.
    let killed = client.counted.outcomes.contains_key("process-died");
    let unreported =
        client.counted.connections <= client.reported.connections + client.reported.errors;
    unreported && (killed || client.is_possible())
}

/// The server knows each of them, and all bytes of those that ended in order.
fn strangers_add_up(ledger: &Ledger, strangers: &[Strange]) -> anyhow::Result<()> {
    // A port may have been given to another one after a reset.
    let mut by_address: BTreeMap<SocketAddr, Vec<&Strange>> = BTreeMap::new();
    for strange in strangers {
        by_address.entry(strange.address).or_default().push(strange);
    }
    for (address, strange) in by_address {
        // A client that vanished at once may have been gone before accept(), and then has no address there.
        let vanished = strange
            .iter()
            .any(|one| matches!(one.way, Way::HalfReset | Way::Unread | Way::Garbage));
        let Some(counted) = ledger.others.get(&address) else {
            ensure!(vanished, "the server does not know of {strange:?}");
            continue;
        };
        let (sent, received) = strange
            .iter()
            .fold((0, 0), |sum, one| (sum.0 + one.sent, sum.1 + one.received));
        let exact = strange.iter().all(|one| one.in_order);
        let fits = if exact {
            counted.bytes_in == sent && counted.bytes_out == received
        } else {
            counted.bytes_in <= sent && (counted.bytes_out >= received)
        };
        ensure!(fits, "of {strange:?} the server says {counted:?}");
    }
    Ok(())
}

/// A load's result without its long parts.
pub(crate) fn brief(reported: &Value) -> String {
    let names = [
        "connections",
        "requests",
        "verified",
        "served",
        "never_served",
        "errors",
        "rejected",
        "stopped_by",
    ];
    names
        .iter()
        .map(|name| format!("{name} {} ", reported[name]))
        .collect()
}

fn sum_of(counts: &Value) -> u64 {
    let counts = counts.as_object().into_iter().flatten();
    counts.filter_map(|(_, count)| count.as_u64()).sum()
}

fn number(value: &Value, name: &str) -> anyhow::Result<u64> {
    value[name]
        .as_u64()
        .with_context(|| format!("{name} is {}", value[name]))
}
