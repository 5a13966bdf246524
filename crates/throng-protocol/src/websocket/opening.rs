//! Both halves of the opening handshake (RFC 6455, section 4).

use std::mem::MaybeUninit;

use httparse::{Header, Request, Response, Status};
use tungstenite::handshake::derive_accept_key;

use super::super::http::lenient;

/// Maximum bytes of a head.
pub(super) const MOST_HEAD: usize = 8 * 1024;
/// Maximum number of headers.
const MOST_FIELDS: usize = 64;
/// Length of a key: 16 bytes in base64.
const KEY_LENGTH: usize = 24;
/// Maximum length shown of a server's refusal.
const SHOWN: usize = 60;

/// Why a server rejects a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not a valid websocket request.
    BadRequest,
    TooLarge,
    /// It is a plain HTTP request.
    NoUpgrade,
    /// It is for another version of the protocol.
    Version,
}

impl Refusal {
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::BadRequest => "the opening handshake is invalid",
            Self::TooLarge => "the opening handshake is too long",
            Self::NoUpgrade => "the client did not request a websocket",
            Self::Version => "the client requested another version of websocket",
        }
    }

    /// The reply to the client.
    pub(super) fn reply(self) -> String {
        let (status, fields) = match self {
            Self::BadRequest => ("400 Bad Request", ""),
            Self::TooLarge => ("431 Request Header Fields Too Large", ""),
            Self::NoUpgrade | Self::Version => (
                "426 Upgrade Required",
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            ),
        };
        format!(
            "HTTP/1.1 {status}\r\nServer: throng\r\n{fields}Connection: close\r\nContent-Length: 0\r\n\r\n"
        )
    }
}

/// The server's reply to the request at the front of `bytes`, and the request's length; `None` if it is incomplete.
pub(super) fn answer(bytes: &[u8]) -> Result<Option<(String, usize)>, Refusal> {
    let mut request = Request::new(&mut []);
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let count = match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(count)) => count,
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err(Refusal::BadRequest),
    };
    if request.method != Some("GET") || request.version != Some(1) {
        return Err(Refusal::BadRequest);
    }
    let headers = &*request.headers;
    if !lists(headers, "upgrade", "websocket") || !lists(headers, "connection", "upgrade") {
        return Err(Refusal::NoUpgrade);
    }
    if only(headers, "sec-websocket-version") != Some(b"13") {
        return Err(Refusal::Version);
    }
    let key = only(headers, "sec-websocket-key")
        .filter(|key| is_key(key))
        .ok_or(Refusal::BadRequest)?;
    let reply = format!(
        "HTTP/1.1 101 Switching Protocols\r\nServer: throng\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key)
    );
    Ok(Some((reply, count)))
}

/// Whether `key` is 16 bytes in base64. The last character then has only two bits.
fn is_key(key: &[u8]) -> bool {
    let (Some((last, digits)), KEY_LENGTH) = (
        key.strip_suffix(b"==").and_then(<[u8]>::split_last),
        key.len(),
    ) else {
        return false;
    };
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    digits.iter().all(is_digit) && b"AQgw".contains(last)
}

/// The client's handshake and the expected reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// The request to send.
    pub(super) wire: Vec<u8>,
    accept: String,
    /// The subprotocols that the client offers.
    offered: Vec<String>,
}

impl Opening {
    /// The handshake for an HTTP request without the upgrade, with 16 random bytes.
    pub(super) fn new(request: &[u8], nonce: u128) -> Self {
        let key = base64(&nonce.to_be_bytes());
        let end = request.len() - 2; // before the final empty line
        let fields = format!(
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
             Sec-WebSocket-Version: 13\r\n\r\n"
        );
        let wire = [&request[..end], fields.as_bytes()].concat();
        Self {
            offered: offered(&wire),
            accept: derive_accept_key(key.as_bytes()),
            wire,
        }
    }

    /// Checks the server's reply at the front of `bytes`, and returns its length; `None` if it is incomplete.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<Option<usize>, Refused> {
        let mut response = Response::new(&mut []);
        let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let parsed =
            lenient().parse_response_with_uninit_headers(&mut response, bytes, &mut fields);
        let count = match parsed {
            Ok(Status::Complete(count)) => count,
            Ok(Status::Partial) => return Ok(None),
            Err(error) => {
                let what = format!("the reply to the opening handshake is not HTTP: {error}");
                return Err(Refused::bad(what));
            }
        };
        let status = response.code.unwrap_or_default();
        match status {
            101 => {}
            // Interim replies of an HTTP server.
            100..200 => {
                return self
                    .check(&bytes[count..])
                    .map(|more| more.map(|more| count + more));
            }
            _ => {
                let reason: String = response
                    .reason
                    .unwrap_or_default()
                    .chars()
                    .take(SHOWN)
                    .collect();
                return Err(Refused {
                    kind: "upgrade-refused",
                    what: format!("the server refused the websocket: {status} {reason}")
                        .trim_end()
                        .to_owned(),
                });
            }
        }
        let headers = &*response.headers;
        if !lists(headers, "upgrade", "websocket") || !lists(headers, "connection", "upgrade") {
            let what = "the server's 101 lacks `Upgrade: websocket` or `Connection: Upgrade`";
            return Err(Refused::bad(what.to_owned()));
        }
        let accept = only(headers, "sec-websocket-accept");
        if accept != Some(self.accept.as_bytes()) {
            let got = accept.map_or("nothing".into(), |accept| {
                accept[..accept.len().min(SHOWN)].escape_ascii().to_string()
            });
            let what = format!("Sec-WebSocket-Accept is {got} instead of {}", self.accept);
            return Err(Refused {
                kind: "wrong-accept-key",
                what,
            });
        }
        if headers
            .iter()
            .any(|field| is(field, "sec-websocket-extensions"))
        {
            let what = "the server agreed to an extension that was not offered";
            return Err(Refused::bad(what.to_owned()));
        }
        let chosen = headers
            .iter()
            .find(|field| is(field, "sec-websocket-protocol"));
        if let Some(chosen) = chosen
            && !self
                .offered
                .iter()
                .any(|offered| offered.as_bytes() == chosen.value.trim_ascii())
        {
            let name = chosen.value[..chosen.value.len().min(SHOWN)].escape_ascii();
            let what = format!("the server chose the subprotocol {name}, which was not offered");
            return Err(Refused::bad(what));
        }
        Ok(Some(count))
    }
}

/// Why there is no connection, for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) kind: &'static str,
    pub(super) what: String,
}

impl Refused {
    pub(super) fn bad(what: String) -> Self {
        Self {
            kind: "bad-upgrade",
            what,
        }
    }
}

/// The subprotocols that a request offers.
fn offered(wire: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(wire);
    let fields = text.split("\r\n").filter_map(|line| line.split_once(':'));
    let lists = fields.filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
    lists
        .flat_map(|(_, list)| list.split(','))
        .map(|name| name.trim().to_owned())
        .collect()
}

fn is(field: &Header<'_>, name: &str) -> bool {
    field.name.eq_ignore_ascii_case(name)
}

/// The value of a header, if it occurs exactly once.
fn only<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    let mut found = headers.iter().filter(|field| is(field, name));
    let first = found.next()?.value.trim_ascii();
    found.next().is_none().then_some(first)
}

/// Whether the headers of this name list `member`, ignoring case.
fn lists(headers: &[Header<'_>], name: &str, member: &str) -> bool {
    let of_name = headers.iter().filter(|field| is(field, name));
    let mut members = of_name.flat_map(|field| field.value.split(|&byte| byte == b','));
    members.any(|found| found.trim_ascii().eq_ignore_ascii_case(member.as_bytes()))
}

/// Encodes 16 bytes in base64.
fn base64(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(KEY_LENGTH);
    for group in bytes.chunks(3) {
        let mut bits = 0;
        for place in 0..3 {
            bits = bits << 8 | u32::from(group.get(place).copied().unwrap_or(0));
        }
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > group.len() {
                '='
            } else {
                digit.into()
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "GET /chat HTTP/1.1\r\nHost: h\r\n\r\n";

    fn opening(fields: &str) -> Opening {
        let request = PLAIN.replace("\r\n\r\n", &format!("\r\n{fields}\r\n"));
        Opening::new(
            request.as_bytes(),
            0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        )
    }

    #[test]
    fn both_halves_understand_each_other() {
        let opening = opening("");
        // This is the example in RFC 6455, section 4.1.
        let text = String::from_utf8(opening.wire.clone()).unwrap();
        assert!(
            text.contains("Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n"),
            "{text}"
        );
        let (reply, count) = answer(&opening.wire).unwrap().unwrap();
        assert_eq!(count, opening.wire.len());
        assert_eq!(opening.check(reply.as_bytes()), Ok(Some(reply.len())));
        for cut in 0..opening.wire.len() {
            assert_eq!(answer(&opening.wire[..cut]), Ok(None));
        }
        for cut in 0..reply.len() {
            assert_eq!(opening.check(&reply.as_bytes()[..cut]), Ok(None));
        }
        let early = format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{reply}");
        assert_eq!(opening.check(early.as_bytes()), Ok(Some(early.len())));
    }

    #[test]
    fn requests_without_upgrade_are_refused() {
        let right = String::from_utf8(opening("").wire).unwrap();
        for (from, to, refusal) in [
            ("GET /chat", "POST /chat", Refusal::BadRequest),
            ("HTTP/1.1", "HTTP/1.0", Refusal::BadRequest),
            ("GET /chat", "\0", Refusal::BadRequest),
            ("Upgrade: websocket\r\n", "", Refusal::NoUpgrade),
            ("Upgrade: websocket", "Upgrade: h2c", Refusal::NoUpgrade),
            (
                "Connection: Upgrade",
                "Connection: keep-alive",
                Refusal::NoUpgrade,
            ),
            ("Version: 13", "Version: 8", Refusal::Version),
            (
                "AQIDBAUGBwgJCgsMDQ4PEA==",
                "AQIDBAUGBwgJCgsMDQ4PEB==",
                Refusal::BadRequest,
            ),
            ("AQIDBAUGBwgJCgsMDQ4PEA==", "AQID", Refusal::BadRequest),
            (
                "AQIDBAUGBwgJCgsMDQ4PEA==",
                "AQIDBAUGBwgJCgsMDQ4PE!==",
                Refusal::BadRequest,
            ),
            (
                "Host: h",
                "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==",
                Refusal::BadRequest,
            ),
        ] {
            let wrong = right.replace(from, to);
            assert_ne!(wrong, right, "{from}");
            assert_eq!(answer(wrong.as_bytes()), Err(refusal), "{wrong}");
            assert!(refusal.reply().ends_with("Content-Length: 0\r\n\r\n"));
        }
        let odd = right.replace("Connection: Upgrade", "connection: keep-alive, UPGRADE");
        assert!(answer(odd.as_bytes()).unwrap().is_some());
    }

    #[test]
    fn requests_that_open_no_websocket_are_named() {
        let opening = opening("Sec-WebSocket-Protocol: chat, superchat\r\n");
        let (right, _) = answer(&opening.wire).unwrap().unwrap();
        let accept = opening.accept.clone();
        let chosen = |name| format!("Connection: Upgrade\r\nSec-WebSocket-Protocol: {name}");
        assert!(
            opening
                .check(
                    right
                        .replace("Connection: Upgrade", &chosen("superchat"))
                        .as_bytes()
                )
                .is_ok()
        );
        for (from, to, kind, why) in [
            (
                "101 Switching Protocols",
                "404 Not Found",
                "upgrade-refused",
                "refused the websocket: 404 Not Found",
            ),
            (
                "101 Switching Protocols",
                "200 OK",
                "upgrade-refused",
                "200 OK",
            ),
            ("HTTP/1.1", "SSH-2.0", "bad-upgrade", "is not HTTP"),
            (
                "Upgrade: websocket",
                "Upgrade: other",
                "bad-upgrade",
                "lacks `Upgrade",
            ),
            (
                "Connection: Upgrade",
                "Connection: close",
                "bad-upgrade",
                "lacks `Upgrade",
            ),
            (&accept, "AAAA", "wrong-accept-key", "is AAAA instead of"),
            (
                "Sec-WebSocket-Accept",
                "X",
                "wrong-accept-key",
                "is nothing instead of",
            ),
            (
                "Server: throng",
                "Sec-WebSocket-Extensions: x",
                "bad-upgrade",
                "an extension",
            ),
            (
                "Connection: Upgrade",
                &chosen("other"),
                "bad-upgrade",
                "subprotocol other",
            ),
        ] {
            let wrong = right.replace(from, to);
            let refused = opening.check(wrong.as_bytes()).unwrap_err();
            assert_eq!(refused.kind, kind, "{wrong}");
            assert!(refused.what.contains(why), "{refused:?}");
        }
    }
}
