//! The head of a request.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use httparse::{Request, Status};

use super::super::Close;
use super::head_cache::{HeadCache, HeadForm};
use super::place::{is_host, is_target};
use super::{length, lists};

/// Maximum length in bytes of a request line with its headers.
pub(super) const MOST_HEAD: usize = 8 * 1024;
/// Maximum number of headers of a request.
pub(super) const MOST_FIELDS: usize = 64;

/// A parsed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestHead {
    /// Its length.
    pub(super) bytes: usize,
    pub(super) method: Method,
    pub(super) keep_alive: KeepAlive,
    /// Length of its body.
    pub(super) body: u64,
    /// Whether and how to close.
    pub(super) close: Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Other,
}

/// Whether the connection stays open, and the header that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepAlive {
    /// It stays open, which is the default.
    Usual,
    /// It stays open, which is not the default in HTTP/1.0.
    Asked,
    /// It closes.
    No,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    BadRequest,
    TooLarge,
    Version,
    /// An unknown transfer coding.
    Coding,
}

impl Fault {
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::BadRequest => "400 Bad Request",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Version => "505 HTTP Version Not Supported",
            Self::Coding => "501 Not Implemented",
        }
    }
}

thread_local! {
    /// Cached heads of earlier requests.
    pub(super) static KNOWN: RefCell<HeadCache<RequestHead>> = const { RefCell::new(HeadCache::new()) };
}

impl HeadForm for RequestHead {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The request at the front of `bytes`; `None` if it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<RequestHead>, Fault> {
    let mut request = Request::new(&mut []);
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(count)) => examine(&request, count).map(Some),
        Ok(Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Fault::TooLarge),
        Err(httparse::Error::Version) if has_version(bytes) => Err(Fault::Version),
        Err(_) => Err(Fault::BadRequest),
    }
}

/// Whether the request line has an unknown HTTP version.
///
/// Ignores later bytes, which may not have arrived yet: the answer must not depend on that.
fn has_version(bytes: &[u8]) -> bool {
    let line = bytes.trim_ascii_start();
    let version = line.splitn(3, |&byte| byte == b' ').nth(2);
    let number = version.and_then(|version| version.strip_prefix(b"HTTP/"));
    number.is_some_and(|number| number.first().is_some_and(u8::is_ascii_digit))
}

/// The parsed request, if it is unambiguous: a proxy in front of a server might read an ambiguous one differently (RFC
/// 9112, section 11.2). At least as strict as nginx, and stricter in places.
fn examine(request: &Request<'_, '_>, bytes: usize) -> Result<RequestHead, Fault> {
    let method = request.method.unwrap_or_default();
    let target = request.path.unwrap_or_default();
    if !is_method(method) || !is_asked_for(method, target) {
        return Err(Fault::BadRequest);
    }
    let old = request.version == Some(0);
    let (mut has_host, mut body, mut coding) = (false, None, None);
    let (mut closes, mut stays) = (false, false);
    let mut alone = [false; ALONE.len()];
    for field in request.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        // The length comes first: it alone rules out most names.
        match field.name.len() {
            4 if is("host") => {
                if has_host || !is_host(field.value) {
                    return Err(Fault::BadRequest);
                }
                has_host = true;
            }
            10 if is("connection") => {
                closes |= lists(field.value, "close");
                stays |= lists(field.value, "keep-alive");
            }
            14 if is("content-length") => {
                let stated = length(field.value).ok_or(Fault::BadRequest)?;
                if body.replace(stated).is_some() {
                    return Err(Fault::BadRequest);
                }
            }
            17 if is("transfer-encoding") => {
                let is_second = coding.replace(field.value).is_some();
                if old || is_second {
                    return Err(Fault::BadRequest);
                }
            }
            6 | 13 | 17 => {
                if let Some(place) = ALONE.iter().position(|name| is(name))
                    && std::mem::replace(&mut alone[place], true)
                {
                    return Err(Fault::BadRequest);
                }
            }
            _ => {}
        }
    }
    if (!old && !has_host) || (coding.is_some() && body.is_some()) {
        return Err(Fault::BadRequest);
    }
    if coding.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"chunked")) {
        return Err(Fault::Coding);
    }
    let unclear = coding.is_some() || alone[EXPECT];
    let length = body.unwrap_or(0);
    let keep_alive = if closes || unclear || (old && !stays) {
        KeepAlive::No
    } else if old {
        KeepAlive::Asked
    } else {
        KeepAlive::Usual
    };
    Ok(RequestHead {
        bytes,
        method: match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => Method::Other,
        },
        keep_alive,
        body: length,
        close: match keep_alive {
            KeepAlive::No if unclear || length > 0 => Close::WhileClientSends,
            KeepAlive::No => Close::Yes,
            _ => Close::No,
        },
    })
}

/// Headers that may occur only once, apart from those whose value is parsed.
const ALONE: [&str; 3] = ["expect", "authorization", "if-modified-since"];
/// The index of the first of these.
const EXPECT: usize = 0;

/// Whether `method` is a method in capitals.
fn is_method(method: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || b"-_".contains(&byte);
    method.bytes().all(is_part)
}

/// Whether this method can have this target.
fn is_asked_for(method: &str, target: &str) -> bool {
    match method {
        "CONNECT" => is_host(target.as_bytes()),
        "OPTIONS" if target == "*" => true,
        _ => is_target(target),
    }
}
