//! Clients that misbehave, and what it costs the others: nothing.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::client::{FULL, Pace};
use super::process::{children, eventually, peak_memory, sockets};
use super::{
    Case, SIZE, Subject, always, forks_for_each_client, has_worker_processes, serves_several,
};
use crate::support::server::Server;
use crate::support::sockets::connections;

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "client_vanishes",
        applies: always,
        run: client_vanishes,
    },
    &Case {
        name: "client_says_nothing",
        applies: serves_several,
        run: client_says_nothing,
    },
    &Case {
        name: "client_never_reads",
        applies: always,
        run: client_never_reads,
    },
    &Case {
        name: "client_reads_slowly",
        applies: answers_at_length,
        run: client_reads_slowly,
    },
    &Case {
        name: "children_are_reaped",
        applies: forks_for_each_client,
        run: children_are_reaped,
    },
    &Case {
        name: "dead_worker_is_replaced",
        applies: has_worker_processes,
        run: dead_worker_is_replaced,
    },
];

/// A client resets its connection with answers unread.
fn client_vanishes(subject: &Subject) -> anyhow::Result<()> {
    const LARGE: usize = 200_000;
    let server = subject.start(LARGE)?;
    let several = serves_several(subject);
    subject.wait_for_workers(&server)?;
    // Sampled before any client: while a client leaves, a child without sockets may exist.
    let at_rest = sockets_of_tree(server.pid())?;
    let mut bystander = subject.client_asking(&server, 1, LARGE)?;
    bystander.converse(1, FULL)?;
    // Where the server closes after each reply, the bystander has left already.
    let with_one = if subject.protocol.closes() {
        // It may have opened more descriptors since it listens.
        eventually("the bystander has left", || {
            Ok(connections(server.address().port())? == 0)
        })?;
        at_rest.max(sockets_of_tree(server.pid())?) + 1
    } else {
        sockets_of_tree(server.pid())?
    };
    let mut bystander = several.then_some(bystander);
    for number in 2..6 {
        let mut vanishing = subject.client_asking(&server, number, LARGE)?;
        if subject.protocol.closes() {
            // With the whole request it would get the whole reply, and leave in order.
            vanishing.begin_to_send(LARGE / 2)?;
            vanishing.wait_until_arrived()?;
            vanishing.vanish_at_once()?;
        } else {
            vanishing.ask(1)?;
            vanishing.send()?;
            vanishing.vanish()?;
        }
        if let Some(bystander) = &mut bystander {
            bystander
                .converse(1, FULL)
                .context("a client that was there")?;
        }
    }
    subject
        .client_asking(&server, 7, LARGE)?
        .converse(2, FULL)
        .context("a client that came")?;
    drop(bystander);
    // Stopped earlier, it may take the end of the drain for that of a connection.
    eventually("it has seen every client leave", || {
        Ok(sockets_of_tree(server.pid())? < with_one)
    })?;
    let counts = server.stop()?;
    // The bystander sends one request before, and then one for each client that vanishes.
    let answered = if several { 7 } else { 3 };
    let came = 4 + subject.connections(2, answered);
    ensure!(
        counts["accepted"] == came,
        "{came} clients came, but it counted {counts}"
    );
    ensure!(
        counts["outcomes"]["reset"] == 4,
        "4 clients vanished, but it counted {counts}"
    );
    Ok(())
}

/// Sockets that a server with one client has open: where children come and go with their clients,
/// theirs, for the parent may not have closed its copy yet.
fn sockets_of_tree(server: Pid) -> anyhow::Result<usize> {
    let children = children(server)?;
    if children.is_empty() {
        return sockets(server);
    }
    Ok(children
        .into_iter()
        .map(|child| sockets(child).unwrap_or(0))
        .sum())
}

fn client_says_nothing(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start(SIZE)?;
    let silent = subject.client(&server, 0)?;
    let mut talking = subject.client(&server, 1)?;
    let requests = subject.some(20);
    for _ in 0..requests {
        talking.converse(1, FULL)?;
    }
    subject
        .client(&server, 2)?
        .converse(1, FULL)
        .context("a client that came later")?;
    drop((silent, talking));
    subject.check_with_silent(&server.stop()?, 2, requests + 1, 1)
}

/// A client sends and sends and reads nothing: the server must not keep it all in memory.
fn client_never_reads(subject: &Subject) -> anyhow::Result<()> {
    const NOISE_BYTES: usize = 100_000_000;
    const MOST_GROWTH: u64 = 64 << 20;
    let server = subject.start(SIZE)?;
    subject.client(&server, 0)?.converse(1, FULL)?;
    let before = peak_memory(server.pid())?;
    let mut flooding = subject.client(&server, 1)?;
    let taken = flooding.flood(NOISE_BYTES, Duration::from_millis(300))?;
    if serves_several(subject) {
        subject
            .client(&server, 2)?
            .converse(1, FULL)
            .context("a client beside it")?;
    }
    let growth = peak_memory(server.pid())?.saturating_sub(before);
    ensure!(
        growth < MOST_GROWTH,
        "{taken} bytes were taken and memory grew by {growth} bytes"
    );
    drop(flooding);
    subject
        .client(&server, 3)?
        .converse(1, FULL)
        .context("a client after it")?;
    server.stop()?;
    Ok(())
}

/// A client sends as fast as it can and reads slowly, so that the server always has answers that do
/// not leave at once.
fn client_reads_slowly(subject: &Subject) -> anyhow::Result<()> {
    const LARGE: usize = 1 << 20;
    const REQUESTS: u32 = 40;
    const MOST_GROWTH: u64 = 64 << 20;
    let server = subject.start(LARGE)?;
    let mut client = subject.client_asking(&server, 1, LARGE)?;
    client.converse(1, FULL)?;
    let before = peak_memory(server.pid())?;
    let slowly = Pace {
        write_bytes: LARGE,
        read_bytes: 16 * 1024,
    };
    client.converse(REQUESTS, slowly)?;
    let growth = peak_memory(server.pid())?.saturating_sub(before);
    ensure!(growth < MOST_GROWTH, "memory grew by {growth} bytes");
    drop(client);
    subject.check(&server.stop()?, 1, u64::from(REQUESTS) + 1)
}

/// Whether it answers more than a few bytes, over and over.
fn answers_at_length(subject: &Subject) -> bool {
    subject.speaks("echo") || subject.speaks("http")
}

fn children_are_reaped(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start(SIZE)?;
    let connect = |number| subject.client(&server, number);
    let mut clients = (0..20).map(connect).collect::<anyhow::Result<Vec<_>>>()?;
    eventually("a child for each of 20 clients", || {
        Ok(children(server.pid())?.len() == 20)
    })?;
    for client in &mut clients {
        client.converse(1, FULL)?;
    }
    drop(clients);
    no_children(&server)?;
    // A child that is killed costs its client, and is reaped like any other.
    let mut client = subject.client(&server, 0)?;
    let mut child = None;
    eventually("a client has a child", || {
        child = children(server.pid())?.first().copied();
        Ok(child.is_some())
    })?;
    kill_process(child.context("a client has a child")?, Signal::KILL)?;
    no_children(&server)?;
    client.expect_close()?;
    let counts = server.stop()?;
    ensure!(
        counts["outcomes"]["process-died"] == 1,
        "1 child was killed, but it counted {counts}"
    );
    subject.check_with_silent(&counts, 20, 20, 1)
}

fn no_children(server: &Server) -> anyhow::Result<()> {
    eventually("all children are gone, zombies too", || {
        Ok(children(server.pid())?.is_empty())
    })
}

fn dead_worker_is_replaced(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start_with(SIZE, &["--workers", "3"])?;
    // It listens a moment before it has all its children.
    let mut before = Vec::new();
    eventually("it has 3 children", || {
        before = children(server.pid())?;
        Ok(before.len() == 3)
    })?;
    let dead = before[0];
    kill_process(dead, Signal::KILL)?;
    eventually("another child takes the place of the dead one", || {
        let now = children(server.pid())?;
        Ok(now.len() == 3 && !now.contains(&dead))
    })?;
    let connect = |number| subject.client(&server, number);
    let mut clients = (0..3).map(connect).collect::<anyhow::Result<Vec<_>>>()?;
    for client in &mut clients {
        client
            .converse(1, FULL)
            .context("one of as many clients as there are workers")?;
    }
    drop(clients);
    subject.check(&server.stop()?, 3, 3)
}
