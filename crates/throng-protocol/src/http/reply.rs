//! The length and meaning of a reply, from its head.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use httparse::{ParserConfig, Response, Status};

use super::head_cache::{HeadCache, HeadForm};
use super::wrong::{Fault, WrongReply, wrong};
use super::{SERVER, length, lists};

/// Maximum length in bytes of a status line with its headers.
pub(super) const MOST_HEAD: usize = 32 * 1024;
/// Maximum number of headers of a reply.
pub(super) const MOST_FIELDS: usize = 128;

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// After this many bytes.
    Counted(u64),
    /// After its last chunk.
    Chunked,
    /// When the server closes.
    Endless,
}

/// A reply after its head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Whether it is from a built-in server, with a known text.
    pub(super) own: bool,
    /// Whether its head announces a close.
    pub(super) close: bool,
}

impl Reply {
    /// Whether the request was successful.
    pub(super) fn is_granted(self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it is a redirect.
    pub(super) fn is_redirect(self) -> bool {
        matches!(self.status, 301..=303 | 307 | 308)
    }
}

/// A complete head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) reply: Reply,
    pub(super) place: Place,
    /// Its length.
    pub(super) count: usize,
}

thread_local! {
    /// Cached heads of earlier replies.
    pub(super) static KNOWN: RefCell<HeadCache<Head>> = const { RefCell::new(HeadCache::new()) };
}

impl HeadForm for Head {
    fn bytes(&self) -> usize {
        self.count
    }

    /// Whether the reply is final: an interim one is too rare to cache.
    fn is_cacheable(&self) -> bool {
        self.reply.status >= 200
    }
}

/// The head at the front of `bytes`; `None` if it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Head>, WrongReply> {
    let mut response = Response::new(&mut []);
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    match lenient().parse_response_with_uninit_headers(&mut response, bytes, &mut fields) {
        Ok(Status::Complete(count)) => examine(&response, count).map(Some),
        Ok(Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            let what = format!("a head with more than {MOST_FIELDS} fields (too many headers)");
            wrong(Fault::LongHead, what)
        }
        Err(error) => wrong(Fault::NotHttp, format!("not HTTP/1.1: {error}")),
    }
}

/// Accepts a header folded over several lines, as clients must (RFC 9112, section 5.2).
pub(crate) fn lenient() -> ParserConfig {
    let mut config = ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    config
}

/// Determines the length of a reply (RFC 9112, section 6.3) and its other properties.
fn examine(response: &Response<'_, '_>, count: usize) -> Result<Head, WrongReply> {
    let mut reply = Reply {
        status: response.code.unwrap_or(0),
        ..Reply::default()
    };
    if reply.status < 100 {
        let what = format!("not HTTP/1.1: {:03} is not a status", reply.status);
        return wrong(Fault::NotHttp, what);
    }
    let (mut bytes, mut chunked, mut stays) = (None, None, false);
    for field in response.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let Some(length) = length(field.value.trim_ascii()) else {
                let value = field.value.escape_ascii();
                let what = format!("an invalid content length: `{value}`");
                return wrong(Fault::Length, what);
            };
            if bytes.replace(length).is_some_and(|other| other != length) {
                return wrong(Fault::Length, "two different content lengths".to_owned());
            }
        } else if is("transfer-encoding") {
            let last = field.value.rsplit(|&byte| byte == b',').next();
            chunked = Some(lists(last.unwrap_or_default(), "chunked"));
        } else if is("connection") {
            reply.close |= lists(field.value, "close");
            stays |= lists(field.value, "keep-alive");
        } else if is("server") {
            reply.own = field.value == SERVER.as_bytes();
        }
    }
    let place = match (reply.status, chunked, bytes) {
        (..200 | 204 | 304, ..) => Place::Counted(0),
        (_, Some(true), _) => Place::Chunked,
        (_, None, Some(length)) => Place::Counted(length),
        _ => Place::Endless,
    };
    let old = response.version == Some(0) && !stays;
    reply.close |= old;
    Ok(Head {
        reply,
        place,
        count,
    })
}
