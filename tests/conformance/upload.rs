//! `upload`: sizes up to the limit and beyond, and clients that violate their announced length.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use throng::protocol::MAX_UPLOAD;

use super::client::{Client, FULL};
use super::process::{eventually, peak_memory, sockets_of_all};
use super::{Case, SIZE, Subject, serves_several};
use crate::support::sockets::connections;

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "nothing_and_the_most_can_be_uploaded",
        applies: uploads,
        run: nothing_and_the_most_can_be_uploaded,
    },
    &Case {
        name: "some_and_all_over_the_limit",
        applies: uploads_of_several,
        run: some_and_all_over_the_limit,
    },
    &Case {
        name: "continues_sending_after_the_refusal",
        applies: uploads,
        run: continues_sending_after_the_refusal,
    },
    &Case {
        name: "discarded_bytes_count_as_read",
        applies: uploads,
        run: discarded_bytes_count_as_read,
    },
    &Case {
        name: "half_an_upload",
        applies: uploads,
        run: half_an_upload,
    },
];

/// Far less than what is sent, and more than one more child process.
const MOST_GROWTH: u64 = 8 << 20;

fn uploads(subject: &Subject) -> bool {
    subject.speaks("upload")
}

fn uploads_of_several(subject: &Subject) -> bool {
    uploads(subject) && serves_several(subject)
}

fn nothing_and_the_most_can_be_uploaded(subject: &Subject) -> anyhow::Result<()> {
    let most = usize::try_from(MAX_UPLOAD)?;
    let server = subject.start(SIZE)?;
    subject.wait_for_workers(&server)?;
    subject.client_asking(&server, 0, 0)?.converse(1, FULL)?;
    let before = peak_memory(server.pid())?;
    let mut client = subject.client_asking(&server, 1, most)?;
    client.converse(1, FULL)?;
    ensure!(!client.was_refused(), "the limit itself is allowed");
    let mut client = subject.client_asking(&server, 1, most + 1)?;
    client.converse(1, FULL)?;
    ensure!(client.was_refused(), "a byte more is not");
    let growth = peak_memory(server.pid())?.saturating_sub(before);
    ensure!(
        growth < MOST_GROWTH,
        "uploads are kept nowhere, but memory grew by {growth} bytes"
    );
    let counts = server.stop()?;
    ensure!(
        counts["bytes_in"].as_u64() >= Some(MAX_UPLOAD + 8),
        "it counted {counts}"
    );
    subject.check(&counts, 3, 3)
}

/// Uploads within the limit are taken concurrently with others above it.
fn some_and_all_over_the_limit(subject: &Subject) -> anyhow::Result<()> {
    const CLIENTS: u64 = 8;
    let server = subject.start_with(SIZE, &["--workers", "8", "--max-upload", "1000"])?;
    for (round, over) in [[1, 0].repeat(4), vec![1; 8]].into_iter().enumerate() {
        let mut clients = over
            .iter()
            .map(|&over| subject.client_asking(&server, 0, 1000 + over * 500_000))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for client in &mut clients {
            client.ask(1)?;
        }
        for (number, (client, over)) in clients.iter_mut().zip(over).enumerate() {
            client
                .receive(1, FULL)
                .with_context(|| format!("client {number}, round {round}"))?;
            ensure!(client.was_refused() == (over == 1), "client {number}");
        }
    }
    subject.check(&server.stop()?, 2 * CLIENTS, 2 * CLIENTS)
}

/// An impossible length, and then unwanted bytes: the reply comes at once, the rest is discarded, and no connection is
/// reset at the end.
fn continues_sending_after_the_refusal(subject: &Subject) -> anyhow::Result<()> {
    const NOISE_BYTES: usize = 20_000_000;
    let server = subject.start(SIZE)?;
    subject.wait_for_workers(&server)?;
    subject.client(&server, 0)?.converse(1, FULL)?;
    let before = peak_memory(server.pid())?;
    let mut client = subject.client(&server, 1)?;
    client.send_bytes(&u64::MAX.to_be_bytes())?;
    client.expect(&[1, 0, 0, 0, 0, 0, 0, 0, 0])?;
    let taken = client.flood(NOISE_BYTES, Duration::from_secs(10))?;
    ensure!(
        taken >= NOISE_BYTES,
        "it took {taken} of {NOISE_BYTES} bytes"
    );
    client.half_close()?;
    client.expect_close()?;
    let growth = peak_memory(server.pid())?.saturating_sub(before);
    ensure!(
        growth < MOST_GROWTH,
        "what is thrown away is kept nowhere, but memory grew by {growth} bytes"
    );
    let counts = server.stop()?;
    subject.check(&counts, 2, 2)
}

/// Both sides count the same bytes, also of an upload that is declined while it comes.
fn discarded_bytes_count_as_read(subject: &Subject) -> anyhow::Result<()> {
    const MORE: usize = 500_000;
    let server = subject.start(SIZE)?;
    let mut client = subject.client(&server, 0)?;
    client.send_bytes(&u64::MAX.to_be_bytes())?;
    client.expect(&[1, 0, 0, 0, 0, 0, 0, 0, 0])?;
    client.send_bytes(&vec![7; MORE])?;
    client.half_close()?;
    client.expect_close()?;
    drop(client);
    eventually("it has read to the end", || {
        Ok(connections(server.address().port())? == 0)
    })?;
    let counts = server.stop()?;
    ensure!(counts["bytes_in"] == 8 + MORE, "it counted {counts}");
    Ok(())
}

/// Of two clients that stop in the middle, one leaves in order and one vanishes.
fn half_an_upload(subject: &Subject) -> anyhow::Result<()> {
    const LARGE: usize = 1_000_000;
    let server = subject.start(LARGE)?;
    subject.client(&server, 0)?.converse(1, FULL)?;
    let at_rest = sockets_of_all(server.pid())?;
    let stop_halfway = |number| -> anyhow::Result<Client> {
        let mut client = subject.client_asking(&server, number, LARGE)?;
        client.begin_to_send(LARGE / 2)?;
        client.wait_until_arrived()?;
        Ok(client)
    };
    let mut leaving = stop_halfway(1)?;
    leaving.half_close()?;
    leaving.expect_close()?;
    drop(leaving);
    stop_halfway(2)?.vanish_at_once()?;
    subject
        .client_asking(&server, 3, LARGE)?
        .converse(1, FULL)
        .context("a client after them")?;
    eventually("it has seen every client leave", || {
        Ok(sockets_of_all(server.pid())? <= at_rest)
    })?;
    let counts = server.stop()?;
    let outcome = |name: &str| counts["outcomes"][name].as_u64();
    ensure!(
        (outcome("client-closed"), outcome("reset")) == (Some(1), Some(1)),
        "it counted {counts}"
    );
    subject.check_with_silent(&counts, 2, 2, 2)
}
