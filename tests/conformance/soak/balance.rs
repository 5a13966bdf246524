//! Whether clients, server and record have counted the same.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use throng::record::{self, Load, Trial};
use throng::spec::ServerCounts;

use super::{Soak, read};
use crate::support::ledger::{Both, Ledger};

/// The counts.
pub(crate) struct Balance {
    pub(crate) accepted: u64,
    requests: u64,
    bytes: u64,
    /// Clients that had no reply to their last request: see [`check`].
    unanswered: u64,
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (requests, bytes, accepted) = (self.requests, self.bytes, self.accepted);
        write!(
            f,
            "{requests} requests and {bytes} bytes over {accepted} connections, all accounted for"
        )?;
        if self.unanswered > 0 {
            write!(f, "; {} clients still waited at the end", self.unanswered)?;
        }
        Ok(())
    }
}

/// Compares clients, server and record.
///
/// `iterative` has one client at a time, and all others wait in the accept queue. So at the end each of them has sent a
/// request and waits for the accepted one, which sends no more and stays until the load ends: they go unanswered, and
/// it is random how many of their requests the server still sees, at most one each. In a short run on a busy machine
/// not all have had their turn.
pub(crate) fn check(record: &Path, model: &str, soak: Soak) -> anyhow::Result<Balance> {
    let clients = soak.clients;
    let trials = record::read_trials(record)?;
    let [trial] = &trials[..] else {
        anyhow::bail!("one trial is to be there, not {}", trials.len());
    };
    ensure!(trial.failure.is_none(), "it failed: {:?}", trial.failure);
    let load = trial.load.as_ref().context("a load")?;
    let counts = trial.server_counts.as_ref().context("counts")?;
    let one_at_a_time = model == "iterative";
    let some = one_at_a_time && soak.is_a_glance();
    let unanswered = served(load, counts, one_at_a_time, !some)?;

    let ledger = ledger_of(record, trial)?;
    ensure!(
        ledger.clients.len() == clients as usize,
        "{} clients in the file",
        ledger.clients.len()
    );
    let sum = |value: fn(&Both) -> u64| ledger.clients.values().map(value).sum::<u64>();
    let by_clients = [
        sum(|client| client.reported.connections),
        sum(|client| client.reported.requests),
        sum(|client| client.reported.replies),
    ];
    let by_record = [load.connections, load.requests, load.verified];
    ensure!(
        by_clients == by_record,
        "clients {by_clients:?}, record {by_record:?}"
    );

    // One that verified the server was there before them.
    let others: Vec<_> = ledger.others.values().collect();
    let [verification] = others[..] else {
        anyhow::bail!("connections from elsewhere: {others:?}");
    };
    let by_server = [
        counts.accepted - verification.connections,
        counts.requests - verification.requests,
        counts.bytes_in - verification.bytes_in,
        counts.bytes_out - verification.bytes_out,
    ];
    let ended: u64 = counts.outcomes.values().sum();
    ensure!(
        ended == counts.accepted,
        "{} were accepted, and {:?}",
        counts.accepted,
        counts.outcomes
    );
    let sent = sum(|client| client.reported.sent);
    let seen = [
        load.connections,
        load.verified,
        sent,
        sum(|client| client.reported.received),
    ];
    if !one_at_a_time {
        ensure!(
            load.requests == load.verified,
            "{} of {} were answered",
            load.verified,
            load.requests
        );
        ensure!(by_server == seen, "clients {seen:?}, server {by_server:?}");
    }
    // Beyond so many connections the server has totals only.
    if counts.unlogged == 0 {
        let of_rows = [
            sum(|client| client.counted.connections),
            sum(|client| client.counted.requests),
            sum(|client| client.counted.bytes_in),
            sum(|client| client.counted.bytes_out),
        ];
        ensure!(
            of_rows == by_server,
            "totals {by_server:?}, rows {of_rows:?}"
        );
        each_agrees(&ledger, one_at_a_time)?;
    }
    Ok(Balance {
        accepted: counts.accepted,
        requests: counts.requests,
        bytes: counts.bytes_in + counts.bytes_out,
        unanswered,
    })
}

/// No client failed or was refused, and `all` clients were served. How many still waited at the end.
fn served(
    load: &Load,
    counts: &ServerCounts,
    one_at_a_time: bool,
    all: bool,
) -> anyhow::Result<u64> {
    let Load {
        served, clients, ..
    } = *load;
    ensure!(
        served + load.never_served == clients && (served == clients || !all),
        "served {served} of {clients}"
    );
    let unanswered: u64 = load.errors.values().sum();
    let only_unanswered = load.errors.keys().all(|kind| kind == "unanswered");
    ensure!(
        load.errors.is_empty() || (one_at_a_time && only_unanswered && unanswered < clients.into()),
        "clients had errors: {:?}",
        load.errors
    );
    ensure!(
        counts.refused.is_empty(),
        "the server refused clients: {:?}",
        counts.refused
    );
    Ok(unanswered)
}

/// Both sides have the same counts for each client.
fn each_agrees(ledger: &Ledger, one_at_a_time: bool) -> anyhow::Result<()> {
    for (address, client) in &ledger.clients {
        let reported = &client.reported;
        // One that was never served has no error: it counts as never served.
        let waited = one_at_a_time
            && (reported.errors == 1 || reported.replies == 0)
            && reported.requests == reported.replies + 1;
        ensure!(
            client.agree() || (waited && client.is_possible()),
            "{address}: {client}"
        );
    }
    Ok(())
}

fn ledger_of(record: &Path, trial: &Trial) -> anyhow::Result<Ledger> {
    let file = |part: &str| read(record, &format!("{part}/{}.csv", trial.file_stem()));
    let ledger = Ledger::read(&file("clients")?, &file("server")?)?;
    let lines = read(record, "trials.jsonl")?;
    let written: Value = serde_json::from_str(lines.trim_end()).context("a line a trial")?;
    ensure!(
        written == serde_json::to_value(trial)?,
        "what was read is what was written"
    );
    Ok(ledger)
}
