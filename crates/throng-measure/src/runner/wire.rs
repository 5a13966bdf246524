//! A connection to a server for verification, with or without TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::servers::stream::connect;
use throng_spec::{Endpoint, LoadSpec, Target};
use throng_tls::{Client, Stream, speaks_tls};

/// Time limit for finding out whether a server speaks TLS.
const QUICKLY: Duration = Duration::from_secs(1);

/// TLS as the load's clients use it, if they use it.
///
/// # Errors
/// Names the file that cannot be read, or what the machine lacks.
pub(crate) fn client(load: &LoadSpec, server: &Target) -> anyhow::Result<Option<Client>> {
    let client = |tls| Client::new(tls, load.alpn(), &[server.authority()]);
    load.tls.as_ref().map(client).transpose()
}

/// A note if the server speaks TLS but the load does not; otherwise empty.
pub(crate) fn other_protocol(load: &LoadSpec, server: &Endpoint) -> &'static str {
    let speaks = |address| speaks_tls(address, QUICKLY);
    if load.tls.is_none() && server.tcp().is_some_and(speaks) {
        "; the server speaks TLS: use --tls"
    } else {
        ""
    }
}

/// A stream of plaintext bytes, with or without TLS underneath.
pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<Stream>),
}

impl Wire {
    /// Connects, with a TLS handshake if `tls` is given; waits at most `timeout` for each step.
    pub(crate) fn connect(
        target: &Endpoint,
        tls: Option<&Client>,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let socket = connect(target, timeout)?;
        let wire = match tls {
            None => Self::Plain(socket),
            Some(client) => Self::Tls(Box::new(Stream::handshake(client, 0, socket, timeout)?)),
        };
        wire.set_read_timeout(timeout)?;
        wire.socket().set_write_timeout(Some(timeout))?;
        Ok(wire)
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.socket(),
        }
    }

    /// Limits each read.
    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket().set_read_timeout(Some(timeout))
    }

    /// A second handle of the same connection, to send and receive concurrently.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Plain(socket) => Self::Plain(socket.try_clone()?),
            Self::Tls(stream) => Self::Tls(Box::new(stream.try_clone()?)),
        })
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.shutdown(how),
            Self::Tls(stream) => stream.shutdown(how),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
