//! Detects a server's protocol from its first bytes, if it differs from the client's.

use std::fmt;

use crate::ProtocolError;

/// A protocol that can be recognised by the first bytes of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireProtocol {
    /// HTTP/1.
    Http,
    /// HTTP/2 without an upgrade from HTTP/1.
    Http2,
    /// TLS.
    Tls,
    /// RESP, the protocol of Redis and similar servers.
    Redis,
    /// SSH.
    Ssh,
    /// SMTP or FTP, whose greetings look the same.
    Mail,
}

impl WireProtocol {
    /// The protocol of a reply with this beginning, if known.
    pub fn of(reply: &[u8]) -> Option<Self> {
        let begins = |text: &str| reply.starts_with(text.as_bytes());
        Some(match reply {
            _ if begins("HTTP/1.") => Self::Http,
            // The first frame is SETTINGS on stream 0 (RFC 9113, section 3.4).
            [0, 0, _, 4, 0 | 1, 0, 0, 0, 0, ..] => Self::Http2,
            // An alert or a handshake, and the version.
            [0x15 | 0x16, 3, 0..=4, ..] => Self::Tls,
            _ if begins("-ERR ") || begins("-NOAUTH ") || begins("-DENIED ") => Self::Redis,
            _ if begins("SSH-") => Self::Ssh,
            _ if begins("220 ") || begins("220-") => Self::Mail,
            _ => return None,
        })
    }
}

/// What is wrong with a reply that begins with these bytes, and which protocol they are of, if that is not our `own`.
pub fn explained(wrong: &ProtocolError, reply: &[u8], own: Option<WireProtocol>) -> String {
    match WireProtocol::of(reply).filter(|spoken| Some(*spoken) != own) {
        Some(spoken) => format!("{wrong}; this server speaks {spoken}"),
        None => wrong.what.clone(),
    }
}

impl fmt::Display for WireProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTP: use http:// or --protocol http",
            Self::Http2 => "HTTP/2: use h2c:// or --http2",
            Self::Tls => "TLS: use https:// or --tls",
            Self::Redis => "the Redis protocol: use --send and --expect",
            Self::Ssh => "SSH",
            Self::Mail => "SMTP or FTP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_beginnings() {
        for (reply, wire_protocol) in [
            (
                &b"HTTP/1.1 400 Bad Request\r\n"[..],
                Some(WireProtocol::Http),
            ),
            (b"\0\0\x12\x04\0\0\0\0\0\0\x03", Some(WireProtocol::Http2)),
            (b"\x15\x03\x01\0\x02\x02\x46", Some(WireProtocol::Tls)),
            (b"-ERR unknown command 'x'\r\n", Some(WireProtocol::Redis)),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Some(WireProtocol::Ssh)),
            (b"220 mail.example.org ESMTP\r\n", Some(WireProtocol::Mail)),
            (b"", None),
            (b"H", None),
            (b"hello", None),
        ] {
            assert_eq!(WireProtocol::of(reply), wire_protocol);
        }
    }
}
