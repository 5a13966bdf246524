//! `http`: every client gets the right reply, whatever another sends.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::client::{FULL, Pace};
use super::process::peak_memory;
use super::{Case, SIZE, Settings, Subject, serves_several};

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "pipelined_in_any_pieces",
        applies: speaks_http,
        run: pipelined_in_any_pieces,
    },
    &Case {
        name: "faults_are_reported",
        applies: speaks_http,
        run: faults_are_reported,
    },
    &Case {
        name: "asks_and_never_reads",
        applies: speaks_http,
        run: asks_and_never_reads,
    },
    &Case {
        name: "a_slow_reader_is_not_idle",
        applies: hands_over_whole_replies,
        run: a_slow_reader_is_not_idle,
    },
];

fn speaks_http(subject: &Subject) -> bool {
    subject.speaks("http")
}

/// Whether it waits in one call until a whole reply has left: a thread's send(), a task's write.
fn hands_over_whole_replies(subject: &Subject) -> bool {
    speaks_http(subject) && ["thread", "tokio"].contains(&subject.model.info.name)
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

/// The head of a reply with so many bytes.
fn head(connection: &str, bytes: usize) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nServer: throng\r\nContent-Type: text/plain\r\n{connection}\
         Content-Length: {bytes}\r\n\r\n"
    )
    .into_bytes()
}

fn fault(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nServer: throng\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        .into_bytes()
}

/// GET, HEAD, refused POST with a body, and a last one that closes, in one piece and byte by byte.
fn pipelined_in_any_pieces(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start(1)?;
    let wire = [
        GET,
        b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n\
          POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /\
          GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n\
          GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ]
    .concat();
    let refused = b"HTTP/1.1 405 Method Not Allowed\r\nServer: throng\r\nAllow: GET, HEAD\r\n\
                    Content-Length: 0\r\n\r\n";
    let text = first_byte(subject)?;
    let expected = [
        &head("", 1)[..],
        &text,
        &head("", 1),
        refused,
        &head("Connection: keep-alive\r\n", 1),
        &text,
        &head("Connection: close\r\n", 1),
        &text,
    ]
    .concat();
    for piece in [wire.len(), 1] {
        let mut client = subject.client(&server, 0)?;
        for piece in wire.chunks(piece) {
            client.send_bytes(piece)?;
        }
        client.expect(&expected)?;
        client.expect_close()?;
    }
    subject.check(&server.stop()?, 2, 10)
}

/// The text that throng's servers serve begins like this; the client half checks the rest.
fn first_byte(subject: &Subject) -> anyhow::Result<Vec<u8>> {
    let mut requester = subject.protocol.requester(&Settings::of_size(1), 0);
    for byte in b' '..=b'~' {
        requester.request(&mut Vec::new());
        let reply = [head("", 1), vec![byte]].concat();
        if requester.receive(&reply).is_ok() {
            return Ok(vec![byte]);
        }
        requester = subject.protocol.requester(&Settings::of_size(1), 0);
    }
    anyhow::bail!("no first byte is right")
}

/// The reply names the error, also to clients that keep sending, and is not lost to a reset.
fn faults_are_reported(subject: &Subject) -> anyhow::Result<()> {
    let server = subject.start(SIZE)?;
    let large = [b"GET / HTTP/1.1\r\nX: ", &[b'x'; 9000][..]].concat();
    let many = [b"GET / HTTP/1.1\r\n", &b"X: y\r\n".repeat(70)[..]].concat();
    let cases = [
        (&b"\x16\x03\x01\x02\x00\x01\x00"[..], "400 Bad Request"), // TLS
        (b"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"PRI * HTTP/2.0\r\n\r\n", "505 HTTP Version Not Supported"),
        (&large, "431 Request Header Fields Too Large"),
        (&many, "431 Request Header Fields Too Large"),
    ];
    for (wire, status) in cases {
        let mut client = subject.client(&server, 0)?;
        client.send_bytes(wire)?;
        client.expect(&fault(status)).context(status)?;
        let noise = 1_000_000;
        ensure!(
            client.flood(noise, Duration::from_secs(10))? >= noise,
            "it takes what comes after a fault"
        );
        client.half_close()?;
        client.expect_close().context(status)?;
    }
    let mut hasty = subject.client(&server, 0)?;
    hasty.send_bytes(cases[0].0)?;
    hasty.expect(&fault(cases[0].1))?;
    hasty.vanish_at_once()?;
    subject.client(&server, 1)?.converse(3, FULL)?;
    let counts = server.stop()?;
    let faulty = cases.len() + 1;
    ensure!(
        counts["outcomes"]["protocol-error"] == faulty,
        "it counted {counts}"
    );
    subject.check_with_silent(&counts, 1, 3, faulty as u64)
}

/// Requests, and no wish to read the replies: the server reads on only while they leave.
fn asks_and_never_reads(subject: &Subject) -> anyhow::Result<()> {
    const MOST_GROWTH: u64 = 16 << 20;
    const LARGE: usize = 10_000_000;
    let server = subject.start(LARGE)?;
    subject.wait_for_workers(&server)?;
    subject
        .client_asking(&server, 0, LARGE)?
        .converse(1, FULL)?;
    let before = peak_memory(server.pid())?;
    let mut greedy = subject.client(&server, 1)?;
    greedy.send_bytes(&GET.repeat(1000))?;
    let slowly = Pace {
        write_bytes: usize::MAX,
        read_bytes: 100_000,
    };
    if serves_several(subject) {
        let mut other = subject.client_asking(&server, 2, LARGE)?;
        other.converse(1, slowly).context("a client beside it")?;
    }
    let growth = peak_memory(server.pid())?.saturating_sub(before);
    ensure!(
        growth < MOST_GROWTH,
        "replies of 10 GB are due, and memory grew by {growth} bytes"
    );
    greedy.vanish()?;
    subject
        .client_asking(&server, 3, LARGE)?
        .converse(1, FULL)
        .context("a client after it")?;
    server.stop()?;
    Ok(())
}

/// A reply that takes its client twice the idle timeout, and longer: all that time something of it moves.
fn a_slow_reader_is_not_idle(subject: &Subject) -> anyhow::Result<()> {
    const LARGE: usize = 40_000_000;
    const PIECES: usize = 50;
    const IDLE: Duration = Duration::from_millis(1500);
    let server = subject.start_with(LARGE, &["--idle-timeout", "1500ms"])?;
    let mut client = subject.client_asking(&server, 0, LARGE)?;
    client.ask(1)?;
    client.send()?;
    let began = Instant::now();
    let (mut received, mut last) = (0, began);
    while received < LARGE {
        // At most as fast as to be through in twice the timeout.
        let due = Duration::from_secs(3) * (received / (LARGE / PIECES)) as u32 / PIECES as u32;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let taken = client.take(LARGE / PIECES);
        if last.elapsed() >= IDLE {
            println!("not tried: this machine is so busy that the client stood still itself");
            return Ok(());
        }
        last = Instant::now();
        received += taken.with_context(|| format!("after {received} of {LARGE} bytes"))?;
    }
    drop(client);
    let counts = server.stop()?;
    ensure!(
        counts["outcomes"]["idle-timeout"].is_null(),
        "it counted {counts}"
    );
    Ok(())
}
