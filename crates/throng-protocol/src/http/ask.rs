//! What a request asks for, from its head.

use std::mem::MaybeUninit;

use httparse::{Request, Status};

use super::super::Close;
use super::{length, lists};

/// Most bytes of a request line and the fields after it.
pub(super) const MOST_HEAD: usize = 8 * 1024;
/// Most fields of a request.
pub(super) const MOST_FIELDS: usize = 64;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) keep: Keep,
    /// Bytes that follow.
    pub(super) body: u64,
    /// How to close, if that.
    pub(super) close: Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Other,
}

/// Whether the connection stays, and what has to be said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It stays, as is usual.
    Usual,
    /// It stays, which is unusual in HTTP/1.0.
    Asked,
    /// It closes.
    No,
}

/// Why a request cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    BadRequest,
    TooLarge,
    Version,
}

impl Fault {
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::BadRequest => "400 Bad Request",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Version => "505 HTTP Version Not Supported",
        }
    }
}

/// The request at the front of `bytes`, and the bytes of its head; none when it is not whole.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Ask, usize)>, Fault> {
    let mut request = Request::new(&mut []);
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(count)) => Ok(Some((examine(&request)?, count))),
        Ok(Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Fault::TooLarge),
        Err(httparse::Error::Version) if has_version(bytes) => Err(Fault::Version),
        Err(_) => Err(Fault::BadRequest),
    }
}

/// Whether the request line names a version of HTTP where one belongs, though none that is known here.
///
/// Nothing behind it is looked at, which may not have come yet: the answer would depend on that.
fn has_version(bytes: &[u8]) -> bool {
    let line = bytes.trim_ascii_start();
    let version = line.splitn(3, |&byte| byte == b' ').nth(2);
    let number = version.and_then(|version| version.strip_prefix(b"HTTP/"));
    number.is_some_and(|number| number.first().is_some_and(u8::is_ascii_digit))
}

fn examine(request: &Request<'_, '_>) -> Result<Ask, Fault> {
    let (mut hosts, mut body) = (0, None);
    let (mut closes, mut stays, mut unclear) = (false, false, false);
    for field in request.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts += 1;
        } else if is("connection") {
            closes |= lists(field.value, "close");
            stays |= lists(field.value, "keep-alive");
        } else if is("content-length") {
            let bytes = length(field.value).ok_or(Fault::BadRequest)?;
            if body.replace(bytes).is_some_and(|other| other != bytes) {
                return Err(Fault::BadRequest);
            }
        } else if is("transfer-encoding") || is("expect") {
            unclear = true;
        }
    }
    let old = request.version == Some(0);
    if !old && hosts != 1 {
        return Err(Fault::BadRequest);
    }
    let body = body.unwrap_or(0);
    let keep = if closes || unclear || (old && !stays) {
        Keep::No
    } else if old {
        Keep::Asked
    } else {
        Keep::Usual
    };
    Ok(Ask {
        method: match request.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            _ => Method::Other,
        },
        keep,
        body,
        close: match keep {
            Keep::No if unclear || body > 0 => Close::WhileClientSends,
            Keep::No => Close::Yes,
            _ => Close::No,
        },
    })
}
