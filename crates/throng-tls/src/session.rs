//! One TLS connection of a client, without a socket.

use std::fmt;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedStatus,
};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};

use crate::fault::{Fault, Kind};

/// Bytes before the content of a record: its kind, a version and its length.
const HEADER: usize = 5;
/// Maximum plaintext of a record.
const RECORD: usize = 16 * 1024;
/// Maximum overhead of a record.
const OVERHEAD: usize = 64;

/// An event in the bytes from a server.
#[derive(Debug)]
pub enum SessionEvent<'a> {
    /// The handshake is complete, with these parameters. The first event, and only once.
    Opened(Negotiated<'a>),
    /// Bytes for the client.
    Plaintext(&'a [u8]),
}

/// The negotiated parameters.
pub struct Negotiated<'a>(&'a UnbufferedClientConnection);

impl fmt::Debug for Negotiated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// A client's side of a TLS connection.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one may be so whatever the others are"
)]
pub struct Session {
    connection: UnbufferedClientConnection,
    /// An incomplete record: usually none, so that an idle session has no buffer.
    kept: Vec<u8>,
    /// To be sent before anything else: handshake messages, alerts.
    out: Vec<u8>,
    is_open: bool,
    has_ended: bool,
    has_failed: bool,
    /// Whether some of the input was valid.
    has_understood: bool,
}

/// Whether the input may contain more events.
#[derive(PartialEq, Eq)]
enum Next {
    More,
    Enough,
}

impl Session {
    /// Begins a handshake, whose first message is [to be sent](Self::outgoing).
    pub(crate) fn begin(
        config: &Arc<ClientConfig>,
        server: ServerName<'static>,
    ) -> Result<Self, Fault> {
        let mut session = Self {
            connection: UnbufferedClientConnection::new(Arc::clone(config), server)?,
            kept: Vec::new(),
            out: Vec::new(),
            is_open: false,
            has_ended: false,
            has_failed: false,
            has_understood: false,
        };
        session.advance(&mut [], &mut |_| true)?;
        Ok(session)
    }

    /// Whether the handshake is complete.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the server has closed with close_notify.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Messages to be sent before the next encrypted bytes, which include them.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Processes received bytes, which are decrypted in place. `on_event` gets each event, and returns whether to
    /// continue.
    ///
    /// # Errors
    /// When they are invalid, or the server is not accepted. The alert for the server is in
    /// [`outgoing`](Self::outgoing).
    pub fn receive(
        &mut self,
        bytes: &mut [u8],
        on_event: &mut impl FnMut(SessionEvent<'_>) -> bool,
    ) -> Result<(), Fault> {
        if self.has_failed {
            return Ok(());
        }
        if self.is_open && self.kept.is_empty() {
            let used = self.advance(bytes, on_event)?;
            self.kept.extend_from_slice(&bytes[used..]);
            return Ok(());
        }
        let mut rest = bytes;
        while !rest.is_empty() && !self.has_ended {
            let taken = if self.is_open {
                self.keep_one(rest)
            } else {
                // Handshake messages may be split across records, so all input stays together.
                self.kept.extend_from_slice(rest);
                rest.len()
            };
            rest = &mut rest[taken..];
            if self.is_open && missing(&self.kept) > 0 {
                return Ok(());
            }
            let mut kept = std::mem::take(&mut self.kept);
            let used = match self.advance(&mut kept, on_event) {
                Ok(used) => used,
                Err(fault) if self.has_understood || self.is_open => return Err(fault),
                Err(fault) => return Err(Fault::unless_spoken(&kept, fault)),
            };
            self.has_understood |= used > 0;
            if used < kept.len() {
                kept.drain(..used);
                self.kept = kept;
            } else if self.is_open && !rest.is_empty() {
                let consumed = self.advance(rest, on_event)?;
                self.kept.extend_from_slice(&rest[consumed..]);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Keeps the rest of an incomplete record, or another record; returns the number of bytes taken.
    fn keep_one(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        let mut wanted = match missing(&self.kept) {
            0 => HEADER,
            some => some,
        };
        while wanted > 0 && taken < bytes.len() {
            let piece = wanted.min(bytes.len() - taken);
            self.kept.extend_from_slice(&bytes[taken..taken + piece]);
            taken += piece;
            wanted = missing(&self.kept);
        }
        taken
    }

    /// Continues as far as possible with these bytes; returns how many were processed.
    fn advance(
        &mut self,
        incoming: &mut [u8],
        on_event: &mut impl FnMut(SessionEvent<'_>) -> bool,
    ) -> Result<usize, Fault> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                self.connection.process_tls_records(&mut incoming[used..]);
            let next = match state {
                // The record is returned again after the event of the completed handshake.
                Ok(ConnectionState::ReadTraffic(_)) if !self.is_open => Next::More,
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    let mut next = Next::More;
                    while let Some(record) = traffic.next_record() {
                        let Ok(record) = record else { break };
                        if !on_event(SessionEvent::Plaintext(record.payload)) {
                            next = Next::Enough;
                            break;
                        }
                    }
                    // Without remaining input, continuing would have no effect.
                    if used + discard == incoming.len() {
                        next = Next::Enough;
                    }
                    next
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, &mut self.out);
                    Next::More
                }
                // The data is in `out`, which is sent before anything else.
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    Next::More
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    self.has_ended = true;
                    Next::Enough
                }
                Ok(_) => Next::Enough,
                Err(error) => {
                    self.collect_alerts();
                    return Err(Fault::of(&error, self.is_open));
                }
            };
            used += discard;
            if !self.is_open && !self.connection.is_handshaking() {
                self.is_open = true;
                if !on_event(SessionEvent::Opened(Negotiated(&self.connection))) {
                    return Ok(used);
                }
            }
            if next == Next::Enough {
                return Ok(used);
            }
        }
    }

    /// Collects the alert after an error. The connection must not be used afterwards.
    fn collect_alerts(&mut self) {
        self.has_failed = true;
        while self.connection.wants_write() {
            match self.connection.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.out),
                _ => return,
            }
        }
    }

    /// Appends the client's bytes, encrypted, to `to`, after any pending messages.
    ///
    /// # Errors
    /// When this connection has had too many records.
    pub fn seal(&mut self, plaintext: &[u8], to: &mut Vec<u8>) -> Result<(), Fault> {
        let records = plaintext.len().div_ceil(RECORD).max(1);
        let most = plaintext.len() + records * OVERHEAD;
        loop {
            match self.connection.process_tls_records(&mut []).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    to.append(&mut self.out);
                    let sealed = grown(to, most, |room| traffic.encrypt(plaintext, room));
                    return sealed.map_err(|error| {
                        Fault::new(Kind::Unable, format!("cannot encrypt: {error}"))
                    });
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                _ => {
                    let why = "nothing can be sent over this TLS connection any more";
                    return Err(Fault::new(Kind::Unable, why));
                }
            }
        }
    }

    /// Appends close_notify to `to`, or the alert of an earlier error.
    pub fn close(&mut self, to: &mut Vec<u8>) {
        to.append(&mut self.out);
        if !self.is_open || self.has_failed {
            return;
        }
        let state = self.connection.process_tls_records(&mut []).state;
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = state {
            // If the connection's counters are exhausted, the server sees the end anyway.
            let _ = grown(to, 2 * OVERHEAD, |room| traffic.queue_close_notify(room));
        }
    }
}

/// Appends an encoded message to `to`.
fn encode(mut data: EncodeTlsData<'_, ClientConnectionData>, to: &mut Vec<u8>) {
    const USUAL: usize = 512;
    let encoded = grown(to, USUAL, |room| match data.encode(room) {
        Err(EncodeError::InsufficientSize(size)) => Err(EncryptError::InsufficientSize(size)),
        // It was encoded already, which is all that is needed.
        Err(EncodeError::AlreadyEncoded) => Ok(0),
        Ok(count) => Ok(count),
    });
    debug_assert!(encoded.is_ok(), "there is room for it");
}

/// Lets `write` append to `to`, with room for `most` bytes, or for as many as it needs.
fn grown(
    to: &mut Vec<u8>,
    most: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), EncryptError> {
    let from = to.len();
    to.resize(from + most, 0);
    let mut written = write(&mut to[from..]);
    if let Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) = written {
        to.resize(from + required_size, 0);
        written = write(&mut to[from..]);
    }
    to.truncate(from + written.as_ref().copied().unwrap_or(0));
    written.map(|_| ())
}

/// The number of bytes missing from the last record.
fn missing(records: &[u8]) -> usize {
    let mut rest = records;
    loop {
        let [_, _, _, high, low, body @ ..] = rest else {
            // Nothing is missing after complete records.
            return if rest.is_empty() && !records.is_empty() {
                0
            } else {
                HEADER - rest.len()
            };
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if body.len() < length {
            return length - body.len();
        }
        rest = &body[length..];
    }
}

impl Negotiated<'_> {
    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.0.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Version, cipher suite and protocol: "TLS 1.3, TLS13_AES_128_GCM_SHA256, http/1.1".
    pub fn text(&self) -> String {
        let version = match self.0.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS",
        };
        let mut text = version.to_owned();
        let suite = self.0.negotiated_cipher_suite();
        if let Some(name) = suite.and_then(|suite| suite.suite().as_str()) {
            text += ", ";
            text += name;
        }
        if let Some(protocol) = self.0.alpn_protocol() {
            text += ", ";
            text += &String::from_utf8_lossy(protocol);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_in_a_record() {
        let record = [23, 3, 3, 0, 2, 7, 7];
        for (count, expected) in [(0, 5), (1, 4), (4, 1), (5, 2), (6, 1), (7, 0)] {
            assert_eq!(missing(&record[..count]), expected, "{count} bytes");
        }
        let two = [record, record].concat();
        assert_eq!(missing(&two), 0);
        assert_eq!(missing(&two[..9]), 3);
        assert_eq!(missing(&two[..13]), 1);
    }
}
