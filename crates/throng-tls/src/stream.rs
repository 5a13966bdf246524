//! A session over a blocking socket.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::fault::{Fault, Kind};
use crate::session::{Session, SessionEvent};

/// Bytes per read.
const INPUT_BYTES: usize = 32 * 1024;
/// Bytes per encrypted write.
const PIECE: usize = 64 * 1024;

/// A TLS connection as a stream of bytes. Clones share a connection: one may write while the other reads.
pub struct Stream {
    socket: TcpStream,
    session: Arc<Mutex<Session>>,
    /// Received plaintext, and how much of it was already taken.
    plaintext: Vec<u8>,
    taken: usize,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// Performs the TLS handshake over `socket`, a connection to server number `server` of `client`.
    ///
    /// # Errors
    /// When the handshake fails, or takes longer than `timeout`.
    pub fn handshake(
        client: &Client,
        server: u64,
        socket: TcpStream,
        timeout: Duration,
    ) -> Result<Self, Fault> {
        let deadline = Instant::now() + timeout;
        let mut session = client.sessions(0).begin(0, server)?;
        let mut input = vec![0; INPUT_BYTES];
        let mut plaintext = Vec::new();
        let closed = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Fault::timeout(timeout.as_secs_f64()),
            _ => Fault::closed(),
        };
        while !session.is_open() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Fault::timeout(timeout.as_secs_f64()));
            }
            let limited = socket.set_read_timeout(Some(left));
            limited
                .and_then(|()| socket.set_write_timeout(Some(left)))
                .and_then(|()| (&socket).write_all(&std::mem::take(session.outgoing())))
                .map_err(closed)?;
            let count = match (&socket).read(&mut input) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(closed)?,
            };
            if count == 0 {
                return Err(Fault::closed());
            }
            let received = session.receive(&mut input[..count], &mut |event| {
                keep(&event, &mut plaintext)
            });
            if received.is_err() || (session.has_ended() && !session.is_open()) {
                // To inform the server.
                let _ = (&socket).write_all(session.outgoing());
            }
            received?;
            if session.has_ended() && !session.is_open() {
                return Err(Fault::closed());
            }
        }
        (&socket)
            .write_all(&std::mem::take(session.outgoing()))
            .map_err(closed)?;
        Ok(Self {
            socket,
            session: Arc::new(Mutex::new(session)),
            plaintext,
            taken: 0,
        })
    }

    /// A second handle to the same connection, without the plaintext of this one.
    ///
    /// # Errors
    /// When the socket cannot be cloned.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            session: Arc::clone(&self.session),
            plaintext: Vec::new(),
            taken: 0,
        })
    }

    /// The socket, whose timeouts are those of this connection.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Closes the connection for writing, or in both directions.
    ///
    /// # Errors
    /// Errors of shutdown(2).
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let mut last = Vec::new();
        self.session().close(&mut last);
        // A peer that does not accept it is gone.
        let _ = (&self.socket).write_all(&last);
        self.socket.shutdown(how)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps plaintext.
fn keep(event: &SessionEvent<'_>, plaintext: &mut Vec<u8>) -> bool {
    if let SessionEvent::Plaintext(bytes) = event {
        plaintext.extend_from_slice(bytes);
    }
    true
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut input = vec![0; INPUT_BYTES];
        while self.taken == self.plaintext.len() {
            self.plaintext.clear();
            self.taken = 0;
            if self.session().has_ended() {
                return Ok(0);
            }
            let count = self.socket.read(&mut input)?;
            if count == 0 {
                let why = "TLS ended without close_notify, so something may be missing";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
            }
            let mut plaintext = std::mem::take(&mut self.plaintext);
            let received = self.session().receive(&mut input[..count], &mut |event| {
                keep(&event, &mut plaintext)
            });
            self.plaintext = plaintext;
            received.map_err(io::Error::other)?;
        }
        let rest = &self.plaintext[self.taken..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        Ok(count)
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let piece = &buffer[..buffer.len().min(PIECE)];
        if piece.is_empty() {
            return Ok(0);
        }
        let mut sealed = Vec::new();
        let result = self.session().seal(piece, &mut sealed);
        result.map_err(io::Error::other)?;
        self.socket.write_all(&sealed)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a server speaks TLS, with any certificate; false if it is unreachable.
pub fn speaks_tls(address: SocketAddr, timeout: Duration) -> bool {
    let Ok(client) = Client::of_anything(address.to_string()) else {
        return false;
    };
    let Ok(socket) = TcpStream::connect_timeout(&address, timeout) else {
        return false;
    };
    match Stream::handshake(&client, 0, socket, timeout) {
        Ok(_) => true,
        Err(fault) => matches!(fault.kind, Kind::Alert | Kind::Incompatible),
    }
}
