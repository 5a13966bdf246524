//! One client at a time, in every awkward way of sending and receiving.

use anyhow::Context as _;

use super::client::{Client, FULL, Pace};
use super::{Case, SIZE, Settings, Subject, always};

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "one_byte_at_a_time",
        applies: always,
        run: one_byte_at_a_time,
    },
    &Case {
        name: "short_reads_and_writes",
        applies: always,
        run: short_reads_and_writes,
    },
    &Case {
        name: "half_close",
        applies: always,
        run: half_close,
    },
    &Case {
        name: "large_message",
        applies: always,
        run: large_message,
    },
    &Case {
        name: "several_requests_at_once",
        applies: always,
        run: several_requests_at_once,
    },
    &Case {
        name: "clients_one_after_the_other",
        applies: always,
        run: clients_one_after_the_other,
    },
];

fn one_byte_at_a_time(subject: &Subject) -> anyhow::Result<()> {
    const REQUESTS: u32 = 3;
    let server = subject.start(100)?;
    let mut client = subject.client_asking(&server, 1, 100)?;
    let pace = Pace {
        write_bytes: 1,
        read_bytes: 1,
    };
    client.converse(REQUESTS, pace)?;
    drop(client);
    subject.check(&server.stop()?, 1, REQUESTS.into())
}

/// Buffers far smaller than the message: neither side can write it at once.
fn short_reads_and_writes(subject: &Subject) -> anyhow::Result<()> {
    const LARGE: usize = 300_000;
    let server = subject.start(LARGE)?;
    let settings = Settings::of_size(LARGE);
    let mut client =
        Client::connect_with_buffers(server.address(), subject.protocol, settings, 4096)?;
    let pace = Pace {
        write_bytes: 1777,
        read_bytes: 555,
    };
    client.converse(1, pace)?;
    drop(client);
    subject.check(&server.stop()?, 1, 1)
}

/// The client shuts down its sending side, and still gets every reply.
fn half_close(subject: &Subject) -> anyhow::Result<()> {
    let requests = if subject.protocol.closes() { 1 } else { 5 };
    let server = subject.start(SIZE)?;
    let mut client = subject.client(&server, 2)?;
    client.ask(requests)?;
    client.half_close()?;
    client.receive(requests, FULL)?;
    client.expect_close()?;
    subject.check(&server.stop()?, 1, requests.into())
}

fn large_message(subject: &Subject) -> anyhow::Result<()> {
    const MEBIBYTE: usize = 1 << 20;
    let server = subject.start(MEBIBYTE)?;
    let mut client = subject.client_asking(&server, 3, MEBIBYTE)?;
    client.converse(1, FULL)?;
    client.converse(2, FULL)?;
    drop(client);
    subject.check(&server.stop()?, 1, 3)
}

fn several_requests_at_once(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start(SIZE)?;
    let mut client = subject.client(&server, 4)?;
    let requests = subject.some(50);
    client.converse(requests as u32, FULL)?;
    drop(client);
    subject.check(&server.stop()?, 1, requests)
}

fn clients_one_after_the_other(subject: &Subject) -> anyhow::Result<()> {
    let clients = subject.some(30);
    let server = subject.start(SIZE)?;
    for number in 0..clients {
        let mut client = subject.client(&server, number)?;
        client
            .converse(2, FULL)
            .with_context(|| format!("client {number}"))?;
    }
    subject.check(&server.stop()?, clients, 2 * clients)
}
