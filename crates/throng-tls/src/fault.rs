//! Faults of a server's TLS.

use std::fmt;

use rustls::{CertificateError, Error, OtherError};
use throng_protocol::WireProtocol;

use crate::verifier::SelfSigned;

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The server's certificate has expired, or is not valid yet.
    Expired,
    /// The certificate is for another host.
    WrongHost,
    /// No trusted issuer signed the certificate.
    UnknownIssuer,
    /// Another fault of the certificate.
    Certificate,
    /// The server does not speak TLS.
    NotSpoken,
    /// It has no version or cipher suite in common with us.
    Incompatible,
    /// It refused, with an alert.
    Alert,
    /// It closed the connection before the handshake was complete.
    Closed,
    /// It ended a reply without a length by closing without close_notify.
    Truncated,
    /// The handshake took too long.
    Timeout,
    /// Its bytes are invalid.
    BadRecord,
    /// This machine does not support it.
    Unable,
}

impl Kind {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "tls-expired",
            Self::WrongHost => "tls-wrong-host",
            Self::UnknownIssuer => "tls-unknown-issuer",
            Self::Certificate => "tls-bad-certificate",
            Self::NotSpoken => "tls-not-spoken",
            Self::Incompatible => "tls-incompatible",
            Self::Alert => "tls-alert",
            Self::Closed => "tls-closed",
            Self::Truncated => "tls-truncated",
            Self::Timeout => "tls-timeout",
            Self::BadRecord => "tls-bad-record",
            Self::Unable => "tls-unable",
        }
    }

    /// Whether it is a property of the server, so that every other connection will have the same fault.
    pub fn is_lasting(self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::Truncated | Self::Timeout | Self::BadRecord
        )
    }
}

/// A fault, with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub kind: Kind,
    /// The fault, and the remedy.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }

    /// The handshake was not complete within `seconds`.
    pub fn timeout(seconds: f64) -> Self {
        let detail = format!("no TLS handshake within {seconds} s");
        Self::new(Kind::Timeout, detail)
    }

    /// The server closed the connection during the handshake.
    pub fn closed() -> Self {
        let detail = "the server closed the connection during the TLS handshake";
        Self::new(Kind::Closed, detail)
    }

    /// The server closed without close_notify, and only that close ended its reply.
    pub fn truncated() -> Self {
        let detail =
            "the reply may be incomplete: it has no length, and TLS ended without close_notify";
        Self::new(Kind::Truncated, detail)
    }

    /// Nothing more can be encrypted.
    pub fn worn_out() -> Self {
        let detail = "this TLS connection has used up its keys: reconnect earlier, with \
                      --requests-per-connection or --lifetime";
        Self::new(Kind::Unable, detail)
    }

    /// The fault of a server that does not speak TLS, judging by its first bytes; otherwise this fault.
    pub(crate) fn unless_spoken(first: &[u8], fault: Self) -> Self {
        not_spoken(first).unwrap_or(fault)
    }

    /// A fault found by rustls, before or after the handshake.
    pub(crate) fn of(error: &Error, is_open: bool) -> Self {
        match error {
            Error::InvalidCertificate(wrong) => of_certificate(wrong),
            Error::AlertReceived(alert) => {
                let name = alert.as_str().unwrap_or("of an unknown kind");
                let remedy = match name {
                    "CertificateRequired" | "HandshakeFailure" if is_open => CERTIFICATE_WANTED,
                    "CertificateRequired" => CERTIFICATE_WANTED,
                    "UnrecognisedName" => "; use --sni NAME",
                    "NoApplicationProtocol" => "; set --alpn to a protocol that it supports",
                    _ => "",
                };
                let what = if is_open { "connection" } else { "handshake" };
                let detail = format!("the server refused the TLS {what}: alert {name}{remedy}");
                Self::new(Kind::Alert, detail)
            }
            Error::PeerIncompatible(why) => {
                let detail = format!("the server's TLS is too old or too limited: {why:?}");
                Self::new(Kind::Incompatible, detail)
            }
            _ if is_open => {
                let detail = format!("the server sent an invalid TLS record: {error}");
                Self::new(Kind::BadRecord, detail)
            }
            _ => {
                let detail = format!("the TLS handshake is invalid: {error}");
                Self::new(Kind::BadRecord, detail)
            }
        }
    }
}

const CERTIFICATE_WANTED: &str = ": pass --cert FILE and --key FILE";

/// Whether a server's reply to our first message begins like another protocol.
fn not_spoken(first: &[u8]) -> Option<Fault> {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    let spoken = WireProtocol::of(first).filter(|spoken| *spoken != WireProtocol::Tls);
    let detail = match (first, spoken) {
        (_, Some(spoken)) => format!("the server does not speak TLS; it speaks {spoken}"),
        ([HANDSHAKE, _, _, _, _, CLIENT_HELLO, ..], _) => {
            "the server does not speak TLS: it echoes what it receives; leave out https:// or --tls"
                .to_owned()
        }
        ([20..=24, 3, ..] | [20..=24] | [], _) => return None,
        _ => "the server does not speak TLS; leave out https:// or --tls".to_owned(),
    };
    Some(Fault::new(Kind::NotSpoken, detail))
}

fn of_certificate(wrong: &CertificateError) -> Fault {
    use CertificateError as Wrong;
    let (kind, detail) = match wrong {
        Wrong::Expired | Wrong::ExpiredContext { .. } => (
            Kind::Expired,
            "the server's certificate has expired; renew it, or use -k".to_owned(),
        ),
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => (
            Kind::Expired,
            "the server's certificate is not valid yet; check the clock, or use -k".to_owned(),
        ),
        Wrong::NotValidForNameContext {
            expected,
            presented,
        } => {
            let name = expected.to_str();
            let names = if presented.is_empty() {
                "it names no host".to_owned()
            } else {
                format!("it is for {}", names(presented))
            };
            let detail = format!(
                "the server's certificate is not for {name}: {names}; use --sni NAME, or -k"
            );
            (Kind::WrongHost, detail)
        }
        Wrong::NotValidForName => (
            Kind::WrongHost,
            "the server's certificate is for another host; use --sni NAME, or -k".to_owned(),
        ),
        // A signature is wrong if another issuer has the same name as a trusted one.
        Wrong::UnknownIssuer | Wrong::BadSignature => (
            Kind::UnknownIssuer,
            "the issuer of the server's certificate is not trusted; use --cacert FILE, or -k"
                .to_owned(),
        ),
        Wrong::Other(OtherError(other)) if other.is::<SelfSigned>() => (
            Kind::UnknownIssuer,
            "the server's certificate is self-signed; use --cacert FILE, or -k".to_owned(),
        ),
        other => {
            let why = match other {
                Wrong::Other(OtherError(other)) => in_words(&other.to_string()),
                other => other.to_string(),
            };
            let detail =
                format!("the server's certificate is not accepted: {why}; use -k to ignore this");
            (Kind::Certificate, detail)
        }
    };
    Fault::new(kind, detail)
}

/// A name like `UnsupportedCertVersion`, as the library formats its errors, in words.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words.replace("cert ", "certificate ")
}

/// The first few names of a certificate.
fn names(presented: &[String]) -> String {
    const MOST: usize = 4;
    // "DnsName(\"a.example\")" and "IpAddress(127.0.0.1)", as the library formats them.
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest);
        inner.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let mut names: Vec<String> = presented.iter().take(MOST).map(bare).collect();
    if presented.len() > MOST {
        names.push("others".to_owned());
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_tls_are_named() {
        for (first, words) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], Some("http://")),
            (b"\x16\x03\x01\x00\xf0\x01\0\0", Some("echoes")),
            (b"hello", Some("does not speak TLS")),
            (b"\x16\x03\x03\x00\x7a\x02\0\0", None),
            (b"\x15\x03\x03\x00\x02\x02\x46", None),
            (b"", None),
        ] {
            let fault = not_spoken(first);
            assert_eq!(fault.is_some(), words.is_some(), "{first:?}");
            if let (Some(fault), Some(words)) = (fault, words) {
                assert!(fault.detail.contains(words), "{fault}");
            }
        }
    }

    #[test]
    fn an_error_of_the_library_is_in_words() {
        let words = in_words("UnsupportedCertVersion");
        assert_eq!(words, "unsupported certificate version");
    }

    #[test]
    fn names_of_a_certificate_are_bare() {
        let presented = ["DnsName(\"a.example\")", "IpAddress(127.0.0.1)"].map(str::to_owned);
        assert_eq!(names(&presented), "a.example, 127.0.0.1");
    }
}
