//! Other clients during a load, each with one connection and a misbehaviour of its own.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use socket2::{Domain, Socket, Type};
use throng::protocol::{PROTOCOLS, Protocol, Settings};

use super::draw::Drawn;

/// One client's report on its connection.
#[derive(Debug)]
pub(crate) struct Strange {
    pub(crate) way: Way,
    pub(crate) address: SocketAddr,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Whether it parted in order, so that nothing can have been lost.
    pub(crate) in_order: bool,
}

/// Their behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Send and receive in small pieces, with small buffers.
    Slow,
    /// Connect, and leave.
    Silent,
    /// Leave in the middle of a request.
    Half,
    /// Vanish in the middle of a request: the server gets a reset.
    HalfReset,
    /// Send a request, and vanish without reading.
    Unread,
    /// Send invalid bytes, read the reply, and vanish.
    Garbage,
}

const WAYS: [Way; 6] = [
    Way::Slow,
    Way::Silent,
    Way::Half,
    Way::HalfReset,
    Way::Unread,
    Way::Garbage,
];
/// Longest that one waits for a server.
const TIMEOUT: Duration = Duration::from_mins(3);
/// And that one waits who expects nothing.
const MOMENT: Duration = Duration::from_millis(30);

/// Some come, one after the other.
pub(crate) fn come(
    drawn: &Drawn,
    server: SocketAddr,
    random: &mut Rng,
) -> anyhow::Result<Vec<Strange>> {
    let protocol = PROTOCOLS
        .iter()
        .find(|protocol| protocol.name() == drawn.protocol);
    let protocol = *protocol.context("it was drawn from them")?;
    let count = 2 + random.u32(..5);
    (0..count)
        .map(|_| {
            let way = WAYS[random.usize(..WAYS.len())];
            visit(way, protocol, drawn.size, server, random)
                .with_context(|| format!("a stranger, {way:?}"))
        })
        .collect()
}

fn visit(
    way: Way,
    protocol: &dyn Protocol,
    size: usize,
    server: SocketAddr,
    random: &mut Rng,
) -> anyhow::Result<Strange> {
    let mut stream = connect(server, way == Way::Slow)?;
    let mut strange = Strange {
        way,
        address: stream.local_addr()?,
        sent: 0,
        received: 0,
        in_order: false,
    };
    let settings = Settings::of_size(size);
    let mut request = Vec::new();
    protocol
        .requester(&settings, random.u64(..100))
        .request(&mut request);
    match way {
        Way::Silent => request.clear(),
        Way::Half | Way::HalfReset => request.truncate(random.usize(..request.len())),
        Way::Garbage => {
            request = (0..=random.usize(..5000)).map(|_| random.u8(..)).collect();
        }
        Way::Slow | Way::Unread => {}
    }
    let piece = match way {
        Way::Slow => 1 + random.usize(..3000),
        _ => request.len().max(1),
    };
    for piece in request.chunks(piece) {
        // A sender of garbage may have been closed already, and knows how much has left by then.
        match stream.write(piece) {
            Ok(count) => strange.sent += count as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) if way == Way::Garbage => break,
            Err(error) => return Err(error).context("cannot send"),
        }
    }
    match way {
        Way::Slow | Way::Silent | Way::Half => {
            stream.shutdown(Shutdown::Write)?;
            strange.received = receive(&mut stream, piece, TIMEOUT)?;
            strange.in_order = strange.sent == request.len() as u64;
        }
        Way::Garbage | Way::HalfReset | Way::Unread => {
            if way == Way::Garbage {
                strange.received = receive(&mut stream, 4096, MOMENT).unwrap_or(0);
            }
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        }
    }
    Ok(strange)
}

/// Reads to the end, or until nothing arrives for this long; returns the bytes.
fn receive(stream: &mut TcpStream, piece: usize, timeout: Duration) -> anyhow::Result<u64> {
    stream.set_read_timeout(Some(timeout))?;
    let (mut input, mut received) = (vec![0; piece], 0);
    loop {
        match stream.read(&mut input) {
            Ok(0) => return Ok(received),
            Ok(count) => received += count as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if timeout == MOMENT && error.kind() == ErrorKind::WouldBlock => {
                return Ok(received);
            }
            Err(error) => return Err(error).with_context(|| format!("after {received} bytes")),
        }
    }
}

fn connect(server: SocketAddr, small: bool) -> anyhow::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if small {
        socket.set_recv_buffer_size(4096)?;
        socket.set_send_buffer_size(4096)?;
    }
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 23, 0, 1), 0)).into())?;
    socket.connect_timeout(&server.into(), TIMEOUT)?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket.into())
}
