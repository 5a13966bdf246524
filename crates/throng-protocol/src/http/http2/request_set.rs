//! The requests of all clients, encoded once as far as they are constant.

use std::borrow::Cow;

use super::super::super::mix::order_of;
use super::super::super::pattern::Interned;
use super::super::super::{Mix, Settings, Statuses};
use super::super::cookies::Jar;
use super::super::request_set::Key;
use super::super::template::{Encoding, Piece, Values};
use super::super::{HttpRequest, text};
use super::{hpack, message};

/// Maximum bytes of an order of requests.
const MOST_ROUNDS: u64 = 1 << 20;

/// The requests that all clients cycle through.
pub(super) struct RequestSet {
    /// The index of the kind of each request, in the order of sending.
    pub(super) order: Vec<u32>,
    pub(super) kinds: Vec<RequestKind>,
    pub(super) text: &'static [u8],
    /// The length that counts as correct.
    pub(super) length: Option<u64>,
    /// Whether they are calls of gRPC.
    pub(super) is_grpc: bool,
    pub(super) keeps_cookies: bool,
    /// Whether requests have variables.
    pub(super) has_variables: bool,
    mix: Mix<&'static HttpRequest>,
    seed: u64,
}

/// What equal requests share.
pub(super) struct RequestKind {
    head: Vec<Part>,
    body: Vec<Piece>,
    /// The body if it is constant.
    constant: Option<Vec<u8>>,
    /// Whether its replies have no body, regardless of their headers.
    pub(super) is_head: bool,
    is_grpc: bool,
    pub(super) expected: Statuses,
}

/// A part of a header block.
enum Part {
    /// Encoded fields.
    Bytes(Vec<u8>),
    /// The value of the field whose name came before.
    Value(Vec<Piece>),
    /// The length of the body, as a field.
    BodyLength,
    /// The field with the client's cookies, if it has any.
    Cookies,
}

/// The requests of clients with these settings, as calls of gRPC if `is_grpc`.
pub(super) fn request_set(settings: &Settings, is_grpc: bool) -> &'static RequestSet {
    static REQUEST_SETS: Interned<(Key, bool), RequestSet> = Interned::new();
    REQUEST_SETS.get((Key::of(settings), is_grpc), |_| {
        Box::new(RequestSet::new(settings, is_grpc))
    })
}

impl RequestSet {
    fn new(settings: &Settings, is_grpc: bool) -> Self {
        let parts: Vec<(&HttpRequest, u32)> = settings.requests.parts().collect();
        let weights: Vec<u32> = parts.iter().map(|(_, weight)| *weight).collect();
        let kinds = parts.iter().map(|(request, _)| RequestKind {
            head: head(request, settings, is_grpc),
            body: request.body_pieces(),
            constant: (!request.is_variable()).then(|| {
                if is_grpc {
                    message::body(request.body())
                } else {
                    request.body().to_vec()
                }
            }),
            is_head: request.is_head() && !is_grpc,
            is_grpc,
            expected: request.expected().unwrap_or(settings.expected),
        });
        let round: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        Self {
            order: order_of(&weights, (MOST_ROUNDS / round.max(1)).max(1), settings.seed),
            kinds: kinds.collect(),
            text: text(),
            length: settings.length,
            is_grpc,
            keeps_cookies: settings.cookies,
            has_variables: parts.iter().any(|(request, _)| request.is_variable()),
            mix: settings.requests,
            seed: settings.seed,
        }
    }

    /// The index of a client's first request.
    pub(super) fn first(&self, client: u64) -> usize {
        match self.mix {
            Mix::One(_) => 0,
            Mix::Several(_) => self.mix.first(client, self.seed, self.order.len()),
        }
    }
}

impl RequestKind {
    /// Appends the header block of a request to `out`, and returns its body.
    pub(super) fn write(
        &'static self,
        variable: &mut Variable,
        out: &mut Vec<u8>,
    ) -> Cow<'static, [u8]> {
        let body = match &self.constant {
            Some(body) => Cow::Borrowed(&body[..]),
            None if self.is_grpc => Cow::Owned(message::body(&variable.text(&self.body))),
            None => Cow::Owned(variable.text(&self.body)),
        };
        for part in &self.head {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Value(pieces) => hpack::push_text(&variable.text(pieces), out),
                Part::BodyLength => {
                    hpack::push_field("content-length", &body.len().to_string(), out);
                }
                Part::Cookies => variable.push_cookies(out),
            }
        }
        if let Some(values) = &mut variable.values {
            values.advance();
        }
        body
    }
}

/// What differs between the requests of one client.
#[derive(Default)]
pub(super) struct Variable {
    pub(super) values: Option<Values>,
    pub(super) jar: Option<Jar>,
}

impl Variable {
    fn text(&mut self, pieces: &[Piece]) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some(values) = &mut self.values {
            values.write(pieces, &[], &Jar::EMPTY, &mut text);
        }
        text
    }

    fn push_cookies(&self, out: &mut Vec<u8>) {
        if let Some(jar) = self.jar.as_ref().filter(|jar| !jar.is_empty()) {
            let mut value = Vec::new();
            jar.push_value(&mut value);
            hpack::push_name("cookie", out);
            hpack::push_text(&value, out);
        }
    }
}

/// The header block of a request, or of a call of gRPC.
fn head(request: &HttpRequest, settings: &Settings, is_grpc: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut bytes = Vec::new();
    let method = if is_grpc { "POST" } else { request.method() };
    hpack::push_field(":method", method, &mut bytes);
    let scheme = if settings.is_encrypted {
        "https"
    } else {
        "http"
    };
    hpack::push_field(":scheme", scheme, &mut bytes);
    let path = [(":path", request.path())].into_iter();
    let headers: Vec<(String, &str)> = request
        .headers(settings.host)
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, value)| {
            let is_fixed = name == "te" || name == "content-type";
            !(is_grpc && is_fixed) || value.starts_with(message::CONTENT_TYPE)
        })
        .collect();
    let has_type = headers.iter().any(|(name, _)| name == "content-type");
    let of_grpc = [("te", "trailers"), ("content-type", message::CONTENT_TYPE)]
        .into_iter()
        .filter(|(name, _)| is_grpc && !(*name == "content-type" && has_type));
    // Pseudo-headers come first.
    let host = headers
        .iter()
        .filter(|(name, _)| name == "host")
        .map(|(_, value)| (":authority", *value));
    let others = headers
        .iter()
        .filter(|(name, _)| name != "host" && !hpack::OF_CONNECTIONS.contains(&name.as_bytes()))
        .map(|(name, value)| (&**name, *value));
    for (name, value) in path.chain(host.take(1)).chain(others).chain(of_grpc) {
        let encoding = match name {
            ":path" => Encoding::Path,
            _ => Encoding::Header,
        };
        match request.variable_pieces(value, encoding) {
            Some(pieces) => {
                hpack::push_name(name, &mut bytes);
                parts.push(Part::Bytes(std::mem::take(&mut bytes)));
                parts.push(Part::Value(pieces));
            }
            None => hpack::push_field(name, value, &mut bytes),
        }
    }
    let has_length = request.has_length() && !is_grpc;
    if has_length && !request.is_variable() {
        hpack::push_field(
            "content-length",
            &request.body().len().to_string(),
            &mut bytes,
        );
    }
    parts.push(Part::Bytes(bytes));
    if has_length && request.is_variable() {
        parts.push(Part::BodyLength);
    }
    if settings.cookies {
        parts.push(Part::Cookies);
    }
    parts
}
