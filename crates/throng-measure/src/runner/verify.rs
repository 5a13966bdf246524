//! Checks that a server replies correctly to a few cases before it is timed.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::wire::Wire;
use throng_protocol::{
    Dialogue, Replies, ReplyCounts, Requester, Settings, Statuses, WireProtocol, explained,
    status_in_words,
};
use throng_spec::Endpoint;
use throng_tls::Client;

/// Time limit for any one reply.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a close that a server announced, and may leave to its clients (RFC 9112, section 9.6).
const PATIENCE: Duration = Duration::from_millis(100);

/// Number of requests sent in a row without waiting for replies.
const BURST: u32 = 3;

/// The tests that a server must pass before it is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// For built-in servers: several requests at once, replies after half-close.
    All,
    /// For the load: whole and split requests, one after another.
    OneByOne,
    /// The same, and several requests at once.
    Pipelined,
    /// Whole and split requests, each on its own connection.
    OneEach,
}

/// Tests a server on one connection after another, encrypted if `tls` is given, and checks the replies: every byte if
/// the content is known, otherwise form, length and status.
///
/// # Errors
/// Names the failed case.
pub(crate) fn verify(
    target: &Endpoint,
    tls: Option<&Client>,
    dialogue: &dyn Dialogue,
    settings: Settings,
    rigour: Strictness,
) -> anyhow::Result<()> {
    let talk = |number| VerifyingClient {
        target,
        tls,
        closes: dialogue.closes(),
        has_handshake: dialogue.has_handshake(),
        wire_protocol: dialogue.wire_protocol(),
        requester: dialogue.requester(&settings, number),
        stream: None,
    };
    let mut first: VerifyingClient<'_> = talk(0);
    first
        .exchange(1, Pace::AtOnce)
        .context("a single request")?;
    if rigour == Strictness::OneEach {
        first.stream = None;
    }
    first
        .exchange(1, Pace::Split)
        .context("a request in pieces")?;
    if dialogue.closes() {
        let mut others: Vec<VerifyingClient<'_>> =
            (1..=BURST).map(|number| talk(number.into())).collect();
        for other in &mut others {
            other.ask().context("several clients at once")?;
        }
        for other in &mut others {
            other.receive(1).context("several clients at once")?;
        }
    } else if matches!(rigour, Strictness::All | Strictness::Pipelined) {
        first
            .exchange(BURST, Pace::AtOnce)
            .context("several requests at once")?;
    }
    if rigour == Strictness::All {
        first
            .exchange(1, Pace::Last)
            .context("a request before half-close")?;
        first.expect_close(true).context("after half-close")?;
    }
    check_statuses(&*first.requester, settings.expected)
}

/// Rejects a server if no reply had an expected status: otherwise its failures would be timed.
fn check_statuses(requester: &dyn Requester, expected: Statuses) -> anyhow::Result<()> {
    let mut counts = ReplyCounts::default();
    requester.counts(&mut counts);
    // Some requests have their own expected statuses.
    if counts.statuses.is_empty() || counts.statuses != counts.unexpected {
        return Ok(());
    }
    let statuses: Vec<String> = counts
        .statuses
        .keys()
        .map(|status| status_in_words(*status))
        .collect();
    bail!(
        "all responses were {} instead of {expected}: check --path and the server's log; --expect-status \
         accepts other HTTP statuses",
        statuses.join(" or ")
    )
}

/// How a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    AtOnce,
    Split,
    /// Whole, with no request after it.
    Last,
}

/// One client, over as many connections as the protocol needs.
struct VerifyingClient<'a> {
    target: &'a Endpoint,
    tls: Option<&'a Client>,
    closes: bool,
    has_handshake: bool,
    wire_protocol: Option<WireProtocol>,
    requester: Box<dyn Requester>,
    stream: Option<Wire>,
}

impl VerifyingClient<'_> {
    /// Returns the bytes of `requests` requests, and a connection for them.
    fn prepare(&mut self, requests: u32) -> anyhow::Result<(Vec<u8>, Wire)> {
        let mut wire = Vec::new();
        for _ in 0..requests {
            self.requester.request(&mut wire);
        }
        let is_new = self.stream.is_none();
        let connected = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(Wire::connect(self.target, self.tls, TIMEOUT)?),
        };
        let mut stream = connected.try_clone()?;
        if is_new && self.has_handshake {
            send(&mut stream, &wire, Pace::AtOnce, self.closes)?;
            wire = self.receive_handshake().context("the opening handshake")?;
        }
        Ok((wire, stream))
    }

    /// Receives the server's half of a handshake; returns the bytes to send next.
    fn receive_handshake(&mut self) -> anyhow::Result<Vec<u8>> {
        let stream = self.stream.as_mut().context("there is no connection")?;
        let mut input = vec![0; 64 * 1024];
        let mut wire = Vec::new();
        while wire.is_empty() {
            match stream.read(&mut input) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => drop(checked(
                    &mut *self.requester,
                    &input[..count],
                    self.wire_protocol,
                )?),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    bail!("no complete reply within {} s", TIMEOUT.as_secs())
                }
                Err(error) => return Err(error.into()),
            }
            self.requester.append_pending(&mut wire);
        }
        Ok(wire)
    }

    /// Sends one request to a server with a short reply.
    fn ask(&mut self) -> anyhow::Result<()> {
        let (wire, mut stream) = self.prepare(1)?;
        send(&mut stream, &wire, Pace::AtOnce, self.closes)
    }

    /// Sends requests and receives the replies concurrently: a server stops reading while its output is not read.
    fn exchange(&mut self, requests: u32, pace: Pace) -> anyhow::Result<()> {
        let (wire, mut stream) = self.prepare(requests)?;
        let ender = stream.try_clone()?;
        let closes = self.closes;
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new();
            let sending = thread
                .spawn_scoped(scope, || send(&mut stream, &wire, pace, closes))
                .context("cannot start a thread")?;
            let received = self.receive(requests);
            if received.is_err() {
                // The remaining requests are no longer needed.
                let _ = ender.shutdown(Shutdown::Both);
            }
            let sent = sending.join().expect("sending does not panic");
            received.and(sent)
        })
    }

    /// Receives `replies` replies, or fewer if the server announces that it closes after one.
    fn receive(&mut self, replies: u32) -> anyhow::Result<()> {
        let stream = self.stream.as_mut().context("there is no connection")?;
        let mut input = vec![0; 64 * 1024];
        let mut completed = 0;
        while completed < replies {
            let received = match stream.read(&mut input) {
                Ok(0) => match self.requester.finish()? {
                    received if received.completed > 0 => received,
                    _ => bail!("the server closed the connection before its reply was complete"),
                },
                Ok(count) => checked(&mut *self.requester, &input[..count], self.wire_protocol)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    bail!("no complete reply within {} s", TIMEOUT.as_secs())
                }
                Err(error) => return Err(error).context("no complete reply"),
            };
            completed += received.completed;
            if received.close {
                return self.expect_close(self.closes);
            }
        }
        Ok(())
    }

    /// Expects the end of the stream, which the client may have to close. The next request needs a new connection.
    fn expect_close(&mut self, is_required: bool) -> anyhow::Result<()> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(()); // the end was received already
        };
        stream.set_read_timeout(if is_required { TIMEOUT } else { PATIENCE })?;
        match stream.read(&mut [0; 1]) {
            Ok(0) => Ok(()),
            Ok(_) => bail!("the server sent more than was requested"),
            Err(error) if error.kind() == ErrorKind::WouldBlock && !is_required => Ok(()),
            // The reply was complete, so TLS need not end in order.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
            Err(error) => Err(error).context("the server did not close the connection properly"),
        }
    }
}

/// Checks received bytes.
fn checked(
    requester: &mut dyn Requester,
    bytes: &[u8],
    own: Option<WireProtocol>,
) -> anyhow::Result<Replies> {
    let received = requester.receive(bytes);
    received.map_err(|wrong| anyhow::anyhow!(explained(&wrong, bytes, own)))
}

fn send(stream: &mut Wire, wire: &[u8], pace: Pace, closes: bool) -> anyhow::Result<()> {
    let piece = if pace == Pace::Split {
        wire.len().div_ceil(4).max(1)
    } else {
        wire.len()
    };
    for part in wire.chunks(piece) {
        match stream.write_all(part) {
            Ok(()) => {}
            // The server may already have rejected the request and closed; its reply then shows that.
            Err(_) if closes => break,
            Err(error) => return Err(error.into()),
        }
        if pace == Pace::Split {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    if pace == Pace::Last {
        match stream.shutdown(Shutdown::Write) {
            Err(error) if !closes => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use throng_protocol::PROTOCOLS;
    use throng_spec::registry;

    #[test]
    fn a_server_that_speaks_http_2_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let settings_frame = [0, 0, 0, 4, 0, 0, 0, 0, 0];
            stream.write_all(&settings_frame).unwrap();
            // The client closes.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let http = registry::find("protocol", PROTOCOLS, "http").unwrap();
        let settings = Settings::of_size(100);
        let wrong = verify(&target.into(), None, http, settings, Strictness::OneByOne);
        let wrong = format!("{:#}", wrong.unwrap_err());
        assert!(wrong.contains("this server speaks HTTP/2"), "{wrong}");
        server.join().unwrap();
    }

    #[test]
    fn replies_are_received_while_requests_larger_than_all_buffers_leave() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 64 * 1024];
            // It reads no more than it can write, like any server with bounded buffers.
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                stream.write_all(&buffer[..count]).unwrap();
            }
        });
        let echo = registry::find("protocol", PROTOCOLS, "echo").unwrap();
        let settings = Settings::of_size(16_000_000);
        verify(&target.into(), None, echo, settings, Strictness::All).unwrap();
        server.join().unwrap();
    }

    /// Regression test: such a server was rejected.
    #[test]
    fn a_server_may_leave_an_announced_close_to_its_clients() {
        const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut received = Vec::new();
                let mut byte = [0];
                while let Ok(1) = stream.read(&mut byte) {
                    received.push(byte[0]);
                    if received.ends_with(b"\r\n\r\n") {
                        stream.write_all(REPLY).unwrap();
                    }
                }
            }
        });
        let http = registry::find("protocol", PROTOCOLS, "http").unwrap();
        let settings = Settings::default();
        verify(&target.into(), None, http, settings, Strictness::OneByOne).unwrap();
    }
}
