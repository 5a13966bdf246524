//! Right before fast: a server answers a few cases correctly before it is timed.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::protocol::{Protocol, Settings};

/// Longest wait for any one reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests sent one after the other without waiting.
const BURST: u32 = 3;

/// Asks one connection after the other and checks every byte of the answers.
///
/// # Errors
/// Names the case that went wrong.
pub(super) fn verify(
    target: SocketAddr,
    protocol: &dyn Protocol,
    settings: Settings,
) -> anyhow::Result<()> {
    let mut requester = protocol.requester(&settings, 0);
    let mut request = Vec::new();
    requester.request(&mut request);

    let mut stream = connect(target).context("a single request")?;
    stream.write_all(&request)?;
    expect(&mut stream, requester.as_mut(), 1).context("a single request")?;

    request.clear();
    requester.request(&mut request);
    let pieces = request.chunks(request.len().div_ceil(4).max(1));
    for piece in pieces {
        stream.write_all(piece)?;
        std::thread::sleep(Duration::from_micros(200));
    }
    expect(&mut stream, requester.as_mut(), 1).context("a request in pieces")?;

    request.clear();
    for _ in 0..BURST {
        requester.request(&mut request);
    }
    stream.write_all(&request)?;
    expect(&mut stream, requester.as_mut(), BURST).context("several requests at once")?;

    request.clear();
    requester.request(&mut request);
    stream.write_all(&request)?;
    stream.shutdown(Shutdown::Write)?;
    expect(&mut stream, requester.as_mut(), 1).context("a request before half-close")?;
    match stream.read(&mut [0; 1]) {
        Ok(0) => Ok(()),
        Ok(_) => bail!("after half-close: more came back than was asked for"),
        Err(error) => Err(error).context("after half-close: the server did not close in order"),
    }
}

fn connect(target: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn expect(
    stream: &mut TcpStream,
    requester: &mut dyn crate::protocol::Requester,
    replies: u32,
) -> anyhow::Result<()> {
    let mut input = vec![0; 64 * 1024];
    let mut completed = 0;
    while completed < replies {
        match stream.read(&mut input) {
            Ok(0) => bail!("the server closed the connection before its reply was whole"),
            Ok(count) => completed += requester.receive(&input[..count])?.completed,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                bail!("no whole reply within {} s", PATIENCE.as_secs())
            }
            Err(error) => return Err(error).context("no whole reply"),
        }
    }
    Ok(())
}
