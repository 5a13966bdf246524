//! Many clients at once, up to and beyond what a server can take.

use std::process::Command;

use anyhow::{Context as _, ensure};
use rustix::process::{Resource, Signal, getrlimit, kill_process};
use serde_json::Value;

use super::client::{Client, FULL};
use super::{
    Case, SIZE, Subject, accepts_where_it_serves, has_a_hidden_pool, has_fixed_sets,
    holds_all_descriptors, serves_several,
};
use crate::support::program::THRONG;
use crate::support::server::Server;
use throng::serve::WorkerLayout;

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "many_clients_at_once",
        applies: serves_several,
        run: many_clients_at_once,
    },
    &Case {
        name: "descriptors_run_out",
        applies: holds_all_descriptors,
        run: descriptors_run_out,
    },
    &Case {
        name: "reset_clients_make_room",
        applies: accepts_where_it_serves,
        run: reset_clients_make_room,
    },
    &Case {
        name: "set_is_full",
        applies: has_fixed_sets,
        run: set_is_full,
    },
    &Case {
        name: "pool_is_full",
        applies: has_a_hidden_pool,
        run: pool_is_full,
    },
];

/// All connect before the first sends, and send before the first receives.
fn many_clients_at_once(subject: &Subject) -> anyhow::Result<()> {
    const ROUNDS: u64 = 3;
    let number_of_clients = subject.some(200);
    let server = subject.start_with(SIZE, &[])?; // with as many workers as it likes
    let connect = |number| subject.client(&server, number);
    let mut clients = (0..number_of_clients)
        .map(connect)
        .collect::<anyhow::Result<Vec<_>>>()?;
    for round in 0..ROUNDS {
        for client in &mut clients {
            client.ask(1)?;
            client.send()?;
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client
                .receive(1, FULL)
                .with_context(|| format!("client {number}, round {round}"))?;
        }
    }
    drop(clients);
    let counts = server.stop()?;
    // Where the server closes after each reply, the first may leave before the last is accepted.
    ensure!(
        counts["peak_open"] == number_of_clients || subject.protocol.closes(),
        "all were served at once, but it counted {counts}"
    );
    subject.check(&counts, number_of_clients, number_of_clients * ROUNDS)
}

/// Clients without a descriptor are rejected at once; the others are still served.
fn descriptors_run_out(subject: &Subject) -> anyhow::Result<()> {
    let size = SIZE.to_string();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh", THRONG, "serve"]);
    command.args(subject.arguments(&size));
    if subject.model.worker_layout == WorkerLayout::Reactors {
        // One per CPU may need all descriptors.
        command.args(["--workers", "2"]);
    }
    let server = Server::spawn(command)?;
    let counts = too_many_clients(subject, server, 300)?;
    ensure!(
        counts["refused"]["descriptors"] == counts["turned away"],
        "it counted {counts}"
    );
    Ok(())
}

/// Clients that vanished in the accept queue take no descriptor from those behind them.
fn reset_clients_make_room(subject: &Subject) -> anyhow::Result<()> {
    let size = SIZE.to_string();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 100; exec \"$@\"", "sh", THRONG, "serve"]);
    command.args(subject.arguments(&size));
    if subject.model.worker_layout == WorkerLayout::Reactors {
        command.args(["--workers", "1"]);
    }
    let server = Server::spawn(command)?;
    kill_process(server.pid(), Signal::STOP)?;
    for number in 0..200 {
        subject.client(&server, number)?.vanish_at_once()?;
    }
    let mut last = subject.client(&server, 200)?;
    kill_process(server.pid(), Signal::CONT)?;
    last.converse(1, FULL)
        .context("a client behind those that vanished")?;
    drop(last);
    server.stop()?;
    Ok(())
}

/// As with descriptors, but at the 1024th, which has no bit in the sets.
fn set_is_full(subject: &Subject) -> anyhow::Result<()> {
    const CLIENTS: u64 = 1100;
    if getrlimit(Resource::Nofile)
        .maximum
        .is_some_and(|limit| limit < CLIENTS + 50)
    {
        println!("not tried: {CLIENTS} clients need more descriptors than this machine allows");
        return Ok(());
    }
    let server = subject.start(SIZE)?;
    let counts = too_many_clients(subject, server, CLIENTS)?;
    ensure!(
        counts["refused"]["set-size"] == counts["turned away"],
        "it counted {counts}"
    );
    ensure!(
        counts["accepted"].as_u64() > Some(1000),
        "it counted {counts}"
    );
    Ok(())
}

/// As with descriptors, but at the threads that the C library may have for operations.
fn pool_is_full(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start_with(SIZE, &["--aio-threads", "20"])?;
    let counts = too_many_clients(subject, server, 50)?;
    // 20 connect and send twice, and a newcomer once.
    let accepted = subject.connections(21, 41);
    ensure!(
        counts["refused"]["pool-size"] == counts["turned away"] && counts["accepted"] == accepted,
        "it counted {counts}"
    );
    Ok(())
}

/// More clients than fit in: some are rejected, all others are served, also afterwards. Returns the server's counts and
/// "turned away", the number of clients that saw it.
pub(crate) fn too_many_clients(
    subject: &Subject,
    server: Server,
    all_clients: u64,
) -> anyhow::Result<Value> {
    let connect = |number| subject.client(&server, number);
    let clients = (0..all_clients)
        .map(connect)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut inside: Vec<Client> = Vec::new();
    for mut client in clients {
        if client.converse(1, FULL).is_ok() {
            inside.push(client);
        }
    }
    let admitted = inside.len() as u64;
    ensure!(
        0 < admitted && admitted < all_clients,
        "{admitted} of {all_clients} clients came in"
    );
    let again = admitted.min(50);
    for client in inside.iter_mut().take(again as usize) {
        client.converse(1, FULL).context("one of those inside")?;
    }
    // A place that becomes free is given to the next who comes.
    let first = inside.swap_remove(0);
    leave(first)?;
    subject
        .client(&server, 0)?
        .converse(1, FULL)
        .context("a newcomer once there is a place")?;
    drop(inside);
    let mut counts = server.stop()?;
    subject.check(&counts, admitted + 1, admitted + again + 1)?;
    counts["turned away"] = (all_clients - admitted).into();
    Ok(counts)
}

/// Leaves, and waits until the server has closed its side too.
fn leave(mut client: Client) -> anyhow::Result<()> {
    client.half_close()?;
    client.expect_close()
}
