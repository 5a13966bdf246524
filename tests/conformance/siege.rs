//! Malicious clients. Meanwhile, others are served if the model has room by its design; afterwards a newcomer is
//! served, every connection is accounted for, and no resource is leaked.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::Pid;
use serde_json::Value;

use super::client::{Client, FULL};
use super::process::{children, eventually, peak_memory};
use super::{
    Case, SIZE, Settings, Subject, has_a_hidden_pool, has_worker_processes, serves_several,
};
use crate::support::server::Server;
use crate::support::sockets::connections;

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "many_slow_clients",
        applies: is_plain,
        run: many_slow_clients,
    },
    &Case {
        name: "many_clients_that_never_read",
        applies: is_plain,
        run: many_clients_that_never_read,
    },
    &Case {
        name: "storm_of_resets",
        applies: is_plain,
        run: storm_of_resets,
    },
    &Case {
        name: "a_protocol_violation_costs_one_connection",
        applies: may_be_broken,
        run: a_protocol_violation_costs_one_connection,
    },
];

/// Clients of a case; more than the workers of a server.
const CLIENTS: u64 = 12;

/// The most operations of a client, on average.
const OPERATIONS: usize = 12;
const WORKERS: u64 = 8;

/// Once a model is enough where the protocol does not matter.
fn is_plain(subject: &Subject) -> bool {
    subject.speaks("echo")
}

/// Whether the protocol has invalid input. In the others, every input is a request.
fn may_be_broken(subject: &Subject) -> bool {
    subject.speaks("http") || subject.speaks("top")
}

/// Whether all its workers are blocked by clients that stay.
fn is_filled_by_clients(subject: &Subject) -> bool {
    let limit = subject.model.card.limit;
    !serves_several(subject) || limit.contains("(--workers)")
}

/// The resources of a server, with its children.
#[derive(Debug, Clone, Copy)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    children: usize,
    memory: u64,
}

/// A server, its resources before the clients connected, and how many other clients connected.
struct Siege<'a> {
    subject: &'a Subject,
    server: Server,
    at_rest: Holdings,
    served: u64,
}

impl<'a> Siege<'a> {
    fn begin(subject: &'a Subject) -> anyhow::Result<Self> {
        let server = subject.start(SIZE)?;
        subject.wait_for_workers(&server)?;
        // By then it has made what it makes for its first client.
        subject.client(&server, 0)?.converse(1, FULL)?;
        is_empty(&server)?;
        // A child that only its first client had may still be on its way out.
        let workers = if has_worker_processes(subject) {
            WORKERS as usize
        } else {
            0
        };
        eventually("its first client is gone", || {
            Ok(children(server.pid())?.len() == workers)
        })?;
        let at_rest = holdings(server.pid())?;
        Ok(Self {
            subject,
            server,
            at_rest,
            served: 1,
        })
    }

    /// One who behaves.
    fn serve_one(&mut self) -> anyhow::Result<()> {
        self.served += 1;
        self.subject
            .client(&self.server, self.served)?
            .converse(1, FULL)
    }

    /// After all have left. This many were malicious, and memory may have grown by this much.
    fn end(mut self, came: u64, most_growth: u64) -> anyhow::Result<Value> {
        self.serve_one().context("a newcomer after them")?;
        is_empty(&self.server)?;
        let at_rest = self.at_rest;
        let mut now = at_rest;
        // The C library keeps the threads of its pool. On busy CPUs a thread whose operation has ended is not idle at
        // once, so that the next operation starts another one: at most one for each.
        let kept = if has_a_hidden_pool(self.subject) {
            OPERATIONS * CLIENTS as usize
        } else {
            0
        };
        eventually("it holds no more than before", || {
            now = holdings(self.server.pid())?;
            Ok(now.descriptors <= at_rest.descriptors
                && now.threads <= at_rest.threads + kept
                && now.children <= at_rest.children)
        })
        .with_context(|| format!("{at_rest:?} before and {now:?} now"))?;
        let growth = now.memory.saturating_sub(at_rest.memory);
        ensure!(
            growth <= most_growth,
            "memory grew by {growth} bytes, and {most_growth} are allowed"
        );
        let counts = self.server.stop()?;
        let ended: u64 = counts["outcomes"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|end| end.1.as_u64())
            .sum();
        let came = came + self.served;
        ensure!(
            counts["accepted"] == came && ended == came && counts["outcomes"]["open"].is_null(),
            "{came} came, and it counted {counts}"
        );
        Ok(counts)
    }
}

/// Waits until it has closed all connections.
fn is_empty(server: &Server) -> anyhow::Result<()> {
    eventually("it has closed every connection", || {
        Ok(connections(server.address().port())? == 0)
    })
}

fn holdings(server: Pid) -> anyhow::Result<Holdings> {
    let children = children(server)?;
    let count = |pid: Pid, what: &str| {
        std::fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count)
    };
    let all = || children.iter().copied().chain([server]);
    Ok(Holdings {
        descriptors: all().map(|pid| count(pid, "fd")).sum(),
        threads: all().map(|pid| count(pid, "task")).sum(),
        children: children.len(),
        memory: peak_memory(server)?,
    })
}

/// Some send nothing at all, others a byte now and then.
fn many_slow_clients(subject: &Subject) -> anyhow::Result<()> {
    const ROUNDS: usize = 12;
    let mut siege = Siege::begin(subject)?;
    let mut request = Vec::new();
    subject
        .protocol
        .requester(&Settings::of_size(SIZE), 0)
        .request(&mut request);
    let connect = |number| subject.client(&siege.server, number);
    let mut slow = (0..CLIENTS)
        .map(connect)
        .collect::<anyhow::Result<Vec<Client>>>()?;
    let mut waiting = None;
    if is_filled_by_clients(subject) {
        let mut client = connect(CLIENTS)?;
        client.ask(1)?;
        client.send()?;
        waiting = Some(client);
    }
    for round in 0..ROUNDS {
        for client in slow.iter_mut().step_by(2) {
            client.send_bytes(&request[round..=round])?;
        }
        match &waiting {
            Some(waiting) => ensure!(
                !waiting.has_news(Duration::ZERO)?,
                "one was served for whom there is no room"
            ),
            None => siege
                .serve_one()
                .with_context(|| format!("beside them, round {round}"))?,
        }
    }
    drop(slow);
    if let Some(mut waiting) = waiting {
        waiting
            .receive(1, FULL)
            .context("who waited until they had gone")?;
        siege.served += 1;
    }
    siege.end(CLIENTS, CLIENTS << 20)?;
    Ok(())
}

/// All send and send and read nothing; each costs the server no more than what it holds back of one.
fn many_clients_that_never_read(subject: &Subject) -> anyhow::Result<()> {
    // More than the kernel buffers for both sockets in both directions.
    const NOISE_BYTES: usize = 100_000_000;
    // Replies that wait, those that the kernel has, and buffers that workers and the allocator keep for reuse.
    const MOST_A_CLIENT: u64 = 4 << 20;
    let mut siege = Siege::begin(subject)?;
    let connect = |number| subject.client(&siege.server, number);
    let mut clients = (0..CLIENTS)
        .map(connect)
        .collect::<anyhow::Result<Vec<Client>>>()?;
    let flooded: anyhow::Result<Vec<usize>> = std::thread::scope(|scope| {
        let flood =
            |client| scope.spawn(|| Client::flood(client, NOISE_BYTES, Duration::from_millis(100)));
        let floods: Vec<_> = clients.iter_mut().map(flood).collect();
        floods
            .into_iter()
            .map(|flood| flood.join().expect("it does not panic"))
            .collect()
    });
    let flooded = flooded?;
    ensure!(
        flooded.iter().all(|&taken| taken < NOISE_BYTES),
        "it took {flooded:?} bytes, without end"
    );
    if !is_filled_by_clients(subject) {
        siege.serve_one().context("beside them")?;
    }
    drop(clients);
    siege.end(CLIENTS, CLIENTS * MOST_A_CLIENT)?;
    Ok(())
}

/// They vanish at every point: connected, in the middle of a request, with the reply unread, and after it.
fn storm_of_resets(subject: &Subject) -> anyhow::Result<()> {
    const VANISHING: u64 = 200;
    let mut siege = Siege::begin(subject)?;
    for number in 0..VANISHING {
        let mut client = subject.client(&siege.server, number)?;
        match number % 4 {
            0 => {}
            1 => client.begin_to_send(SIZE / 2)?,
            2 => {
                client.ask(1)?;
                client.send()?;
            }
            _ => client.converse(1, FULL)?,
        }
        client.vanish_at_once()?;
        if number % 20 == 0 {
            siege.serve_one().context("among them")?;
        }
    }
    let counts = siege.end(VANISHING, CLIENTS << 20)?;
    ensure!(
        counts["outcomes"]["reset"] == VANISHING,
        "{VANISHING} vanished, and it counted {counts}"
    );
    Ok(())
}

/// Noise, and messages far beyond the allowed length. Their senders are closed, others are served on.
fn a_protocol_violation_costs_one_connection(subject: &Subject) -> anyhow::Result<()> {
    let mut siege = Siege::begin(subject)?;
    let noise: Vec<u8> = (0..10_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80)
        .collect();
    let printed = [
        &noise[..],
        b"\r\n\r\n\0\0\0\0",
        &vec![b'x'; 300_000],
        &vec![0; 20_000],
        b"GET\n\n",
        b"top",
    ];
    let mut broken = 0;
    for wire in printed {
        let mut client = subject.client(&siege.server, 1)?;
        // Before all of it has left it may have been closed, with a reset for the rest.
        let whole = client.send_bytes(wire).is_ok();
        if wire == b"top" {
            ensure!(whole, "half a word is no fault yet");
        } else {
            broken += 1;
            eventually("its sender is closed", || client.has_news(Duration::ZERO))?;
        }
        drop(client);
        siege
            .serve_one()
            .with_context(|| format!("after `{}`", wire[..wire.len().min(20)].escape_ascii()))?;
    }
    let counts = siege.end(printed.len() as u64, 4 << 20)?;
    ensure!(
        counts["outcomes"]["protocol-error"] == broken,
        "{broken} broke the protocol, and it counted {counts}"
    );
    Ok(())
}
