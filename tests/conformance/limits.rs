//! Limits that the user sets, and what several loops share or have each of their own.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use throng::measure::network::sock_diag::State;
use throng::serve::WorkerLayout;

use super::client::{Client, FULL, LIMIT};
use super::process::{eventually, sockets_of_all};
use super::{Case, SIZE, Subject, always, serves_several};
use crate::support::program::THRONG;
use crate::support::server::Server;
use crate::support::sockets::{connections, on};

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "most_clients_at_once",
        applies: serves_several,
        run: most_clients_at_once,
    },
    &Case {
        name: "idle_client_is_closed",
        applies: always,
        run: idle_client_is_closed,
    },
    &Case {
        name: "unfinished_request_is_cut",
        applies: always,
        run: unfinished_request_is_cut,
    },
    &Case {
        name: "client_that_takes_nothing_is_closed",
        applies: takes_noise,
        run: client_that_takes_nothing_is_closed,
    },
    &Case {
        name: "every_loop_serves",
        applies: deals_clients_out,
        run: every_loop_serves,
    },
    &Case {
        name: "own_descriptor_tables",
        applies: deals_clients_out,
        run: own_descriptor_tables,
    },
];

/// Whether a client that sends noise is kept. In `top` it is a fault for which the connection is
/// closed, and requests instead of noise would have the server look at processes for seconds.
fn takes_noise(subject: &Subject) -> bool {
    !subject.speaks("top")
}

/// Whether the kernel deals clients out to loops. From a shared queue, a single loop may take all.
fn deals_clients_out(subject: &Subject) -> bool {
    subject.model.worker_layout == WorkerLayout::Reactors && !subject.options.contains(&"shared")
}

/// With --max-clients, one more is rejected, and accepted after another has left.
fn most_clients_at_once(subject: &Subject) -> anyhow::Result<()> {
    const MOST: u64 = 5;
    let server = subject.start_with(SIZE, &["--workers", "8", "--max-clients", "5"])?;
    let closes = subject.protocol.closes();
    subject.wait_for_workers(&server)?;
    let at_rest = sockets_of_all(server.pid())?;
    let connect = |number| subject.client(&server, number);
    let mut inside = (0..MOST).map(connect).collect::<anyhow::Result<Vec<_>>>()?;
    if closes {
        // They would leave with their first reply.
        eventually("all are inside", || {
            Ok(sockets_of_all(server.pid())? >= at_rest + inside.len())
        })?;
    } else {
        for client in &mut inside {
            client.converse(1, FULL)?;
        }
    }
    let mut turned_away = connect(MOST)?;
    ensure!(
        turned_away.converse(1, FULL).is_err(),
        "a client too many was served"
    );
    let mut leaving = inside.swap_remove(0);
    leaving.half_close()?;
    leaving.expect_close()?;
    let mut newcomer = connect(MOST + 1)?;
    newcomer.converse(1, FULL).context("a newcomer")?;
    for client in &mut inside {
        client.converse(1, FULL).context("one of those inside")?;
    }
    drop((newcomer, inside));
    let counts = server.stop()?;
    ensure!(
        counts["refused"]["max-clients"] == 1,
        "1 was turned away, but it counted {counts}"
    );
    if closes {
        subject.check_with_silent(&counts, MOST, MOST, 1)
    } else {
        subject.check(&counts, MOST + 1, 2 * MOST)
    }
}

/// As [`--idle-timeout`](idle_client_is_closed) is reported.
const IDLE: Duration = Duration::from_millis(200);

/// With --idle-timeout, a silent client is closed; one that keeps sending is not.
fn idle_client_is_closed(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start_with(SIZE, &["--workers", "8", "--idle-timeout", "200ms"])?;
    let mut silent = subject.client(&server, 0)?;
    if !subject.protocol.closes() {
        silent.converse(1, FULL)?;
    }
    let mut talked = Instant::now();
    let mut talking = serves_several(subject)
        .then(|| subject.client(&server, 1))
        .transpose()?;
    // On a busy machine it has been silent for too long itself, at times.
    let mut paused = false;
    let deadline = Instant::now() + LIMIT;
    while !silent.has_news(IDLE / 20)? && Instant::now() < deadline {
        if let Some(client) = &mut talking {
            let begun = Instant::now();
            let talks = client.converse(1, FULL).context("a client that talks");
            paused |= talked.elapsed() >= IDLE;
            match talks {
                Err(error) if !paused => return Err(error),
                Err(_) => talking = None,
                Ok(()) => talked = begun,
            }
        }
    }
    silent.expect_close().context("a client that is silent")?;
    drop(talking);
    let counts = server.stop()?;
    paused |= talked.elapsed() >= IDLE;
    let closed = counts["outcomes"]["idle-timeout"].as_u64();
    ensure!(
        closed == Some(1) || (paused && closed == Some(2)),
        "1 client was silent, but it counted {counts}"
    );
    Ok(())
}

/// With --request-timeout, a request has to arrive whole in time; a client without a request may stay.
fn unfinished_request_is_cut(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start_with(SIZE, &["--workers", "8", "--request-timeout", "50ms"])?;
    let mut unfinished = subject.client(&server, 0)?;
    unfinished.begin_to_send(3)?;
    unfinished.wait_until_read(3)?;
    unfinished.has_news(LIMIT)?;
    eventually("the client that does not end its request is closed", || {
        Ok(connections(server.address().port())? == 0)
    })?;
    drop(unfinished);
    let counts = server.stop()?;
    let outcomes = &counts["outcomes"];
    ensure!(
        outcomes["request-timeout"] == 1,
        "1 request was cut, but it counted {counts}"
    );
    Ok(())
}

/// Taking no answers is being idle too, however much it sends.
fn client_that_takes_nothing_is_closed(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start_with(SIZE, &["--workers", "8", "--idle-timeout", "200ms"])?;
    let mut flooding = subject.client(&server, 0)?;
    if !subject.protocol.closes() {
        flooding.converse(1, FULL)?;
    }
    flooding.flood(50_000_000, Duration::from_millis(100))?;
    eventually("the client that takes nothing is closed", || {
        Ok(connections(server.address().port())? == 0)
    })?;
    // One that gets no CPU for as long is idle too.
    eventually("a client after it is served", || {
        Ok(subject.client(&server, 1)?.converse(1, FULL).is_ok())
    })?;
    drop(flooding);
    let counts = server.stop()?;
    ensure!(
        counts["outcomes"]["idle-timeout"].as_u64() >= Some(1),
        "it counted {counts}"
    );
    Ok(())
}

/// The kernel deals clients out to all loops, and the counts of each add up.
fn every_loop_serves(subject: &Subject) -> anyhow::Result<()> {
    const CLIENTS: u64 = 100;
    let server = subject.start_with(SIZE, &["--workers", "3"])?;
    serve_once(subject, &server, CLIENTS)?;
    let counts = server.stop()?;
    subject.check(&counts, CLIENTS, CLIENTS)?;
    let workers = counts["workers"].as_array().context("no workers")?;
    let clients = workers.iter().map(|worker| worker["clients"].as_u64());
    let requests = workers.iter().map(|worker| worker["requests"].as_u64());
    ensure!(
        workers.len() == 3
            && clients.sum::<Option<u64>>() == Some(CLIENTS)
            && requests.sum::<Option<u64>>() == Some(CLIENTS),
        "3 loops, but it counted {counts}"
    );
    Ok(())
}

/// With --own-descriptors, more clients come in than one table has descriptors.
fn own_descriptor_tables(subject: &Subject) -> anyhow::Result<()> {
    // More than one table holds. The kernel divides them by a hash, which is chance, and a loop turns away whom its
    // table has no room for, beyond 48: with 90 clients once in a hundred million times, with 120 once in 2500.
    const CLIENTS: u64 = 90;
    let size = SIZE.to_string();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh", THRONG, "serve"]);
    command.args(subject.arguments(&size));
    command.args(["--own-descriptors", "--workers", "4"]);
    let server = Server::spawn(command)?;
    // Who comes before all loops listen goes to those that do, which may be more than one table holds.
    eventually("all of its loops listen", || {
        let all = on(server.address().port())?;
        let listening = all
            .iter()
            .filter(|socket| socket.state == State::Listen as u8);
        Ok(listening.count() == 4)
    })?;
    let outcome = serve_once(subject, &server, CLIENTS);
    let counts = server.stop()?;
    outcome.with_context(|| format!("the server counted {counts}"))?;
    ensure!(
        counts["peak_open"] == CLIENTS || subject.protocol.closes(),
        "{CLIENTS} clients at once, but it counted {counts}"
    );
    subject.check(&counts, CLIENTS, CLIENTS)
}

/// This number of clients at once, each with one request.
fn serve_once(subject: &Subject, server: &Server, clients: u64) -> anyhow::Result<()> {
    let connect = |number| subject.client(server, number);
    let mut clients = (0..clients)
        .map(connect)
        .collect::<anyhow::Result<Vec<Client>>>()?;
    for client in &mut clients {
        client.converse(1, FULL)?;
    }
    Ok(())
}
