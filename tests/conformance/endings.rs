//! The end of a server: answers that are due still go out, and nothing is left behind.

use anyhow::{Context as _, ensure};

use super::client::{Client, FULL, Pace};
use super::process::{children, parent_of};
use super::{Case, SIZE, Settings, Subject, always, serves_several};

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "stops_idle",
        applies: always,
        run: stops_idle,
    },
    &Case {
        name: "stops_with_a_reply_due",
        applies: always,
        run: stops_with_a_reply_due,
    },
    &Case {
        name: "counts_are_whole_at_the_end",
        applies: serves_several,
        run: counts_are_whole_at_the_end,
    },
    &Case {
        name: "stops_though_a_client_never_reads",
        applies: always,
        run: stops_though_a_client_never_reads,
    },
];

fn stops_idle(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start(SIZE)?;
    let children = children(server.pid())?;
    subject.check(&server.stop()?, 0, 0)?;
    ensure!(
        children.iter().all(|child| parent_of(*child).is_none()),
        "a child outlived it"
    );
    Ok(())
}

/// SIGTERM comes while most of a reply has not left: it leaves, whole, and the end follows it.
fn stops_with_a_reply_due(subject: &Subject) -> anyhow::Result<()> {
    const LARGE: usize = 200_000;
    let server = subject.start(LARGE)?;
    let several = serves_several(subject);
    let mut idle = several
        .then(|| subject.client_asking(&server, 1, LARGE))
        .transpose()?;
    if let Some(idle) = &mut idle {
        idle.converse(1, FULL)?;
    }
    let settings = Settings::of_size(LARGE);
    let mut due =
        Client::connect_with_buffers(server.address(), subject.protocol, settings, 16_384)?;
    due.ask(1)?;
    let request_bytes = due.unsent_bytes();
    due.send()?;
    due.wait_until_arrived()?;
    // What waits to be accepted is reset when the server stops listening.
    due.wait_until_read(request_bytes)?;
    let children = children(server.pid())?;
    server.terminate()?;
    let slowly = Pace {
        write_bytes: 1,
        read_bytes: 3000,
    };
    due.receive(1, slowly).context("the reply that was due")?;
    due.expect_close().context("after the reply that was due")?;
    if let Some(idle) = &mut idle {
        idle.expect_close().context("a client without a request")?;
    }
    drop((due, idle));
    let counts = server.counts()?;
    ensure!(
        children.iter().all(|child| parent_of(*child).is_none()),
        "a child outlived it"
    );
    let clients = if several { 2 } else { 1 };
    subject.check(&counts, clients, clients)
}

/// All connections end at the same moment, the last one of all being the server's end.
fn counts_are_whole_at_the_end(subject: &Subject) -> anyhow::Result<()> {
    let number_of_clients = subject.some(100);
    let server = subject.start_with(SIZE, &[])?;
    let connect = |number| subject.client(&server, number);
    let mut clients = (0..number_of_clients)
        .map(connect)
        .collect::<anyhow::Result<Vec<_>>>()?;
    for client in &mut clients {
        client.converse(1, FULL)?;
    }
    let counts = server.stop()?;
    subject.check(&counts, number_of_clients, number_of_clients)?;
    let ended: u64 = counts["outcomes"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, clients)| clients.as_u64())
        .sum();
    ensure!(
        ended == number_of_clients && counts["outcomes"]["open"].is_null(),
        "it counted {counts}"
    );
    Ok(())
}

/// No client can prevent its end.
fn stops_though_a_client_never_reads(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start_with(SIZE, &["--workers", "8", "--drain", "200ms"])?;
    let mut flooding = subject.client(&server, 0)?;
    flooding.flood(50_000_000, std::time::Duration::from_millis(300))?;
    let counts = server.stop()?;
    ensure!(
        counts["accepted"] == 1,
        "1 client came, but it counted {counts}"
    );
    drop(flooding);
    Ok(())
}
