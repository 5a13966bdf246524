//! Responses: pages, files, and why a request is rejected.

use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use maud::Markup;

use throng_record::format::sentence;
use throng_report::document::html::POLICY;

/// The policy for a page of a record, which may be from anyone: its script gets an origin of its own, and thus cannot
/// read the other pages.
const IN_A_BOX: &str = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'";

pub(super) type Response = hyper::Response<Full<Bytes>>;
pub(super) type Answer = Result<Response, Refused>;

/// A rejected request, with the reason.
#[derive(Debug)]
pub(super) struct Refused(pub(super) StatusCode, pub(super) String);

impl Refused {
    pub(super) fn missing(why: &str) -> Self {
        Self(StatusCode::NOT_FOUND, why.to_owned())
    }
}

/// An unreadable record.
impl<E: Into<anyhow::Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        let why = sentence(&format!("{:#}", error.into()));
        Self(StatusCode::UNPROCESSABLE_ENTITY, why)
    }
}

/// A page of a record, in a sandbox.
pub(super) fn boxed(page: impl Into<Bytes>) -> Response {
    let mut response = typed("text/html; charset=utf-8", page);
    let policy = HeaderValue::from_str(&format!("{}; {IN_A_BOX}", *POLICY)).ok();
    let headers = response.headers_mut();
    headers.extend(policy.map(|policy| (CONTENT_SECURITY_POLICY, policy)));
    response
}

/// A page of our own.
pub(super) fn whole(page: &Markup) -> Response {
    typed("text/html; charset=utf-8", page.0.clone())
}

pub(super) fn json(value: &impl serde::Serialize) -> Answer {
    Ok(typed("application/json", serde_json::to_vec(value)?))
}

pub(super) fn typed(kind: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(body.into()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
