//! Sessions of several steps: each client logs in, keeps what it was given, and goes on.
//!
//! A [`Flow`] is the list of steps that each client repeats. A step is a request with variables, what its reply must be,
//! and what is captured from it for later steps. Every session begins without cookies and captured values, with the next
//! row of data. A step that fails ends its session, and the client begins the next one.

mod query;
mod session;

use std::time::Duration;

pub use query::{Expression, Predicate, Query, Value};
pub(super) use session::FlowSession;

use super::super::Statuses;
use super::feed::Feed;
use super::request::HttpRequest;
use super::template::{Encoding, Piece, Variable, joined};

/// Maximum bytes of a reply's body in a step that reads it.
pub(super) const MOST_BODY: usize = 64 * 1024;
/// Maximum bytes of all values that a client has captured.
pub(super) const MOST_CAPTURED: usize = 4096;

/// The steps of a session.
#[derive(Debug)]
pub struct Flow {
    /// In their order.
    pub steps: Vec<Step>,
    /// Its variables. Each session takes a row.
    pub feed: Feed,
}

/// One request of a session.
#[derive(Debug)]
pub struct Step {
    /// Its name in results.
    pub name: String,
    /// The request, whose variable parts are in `head` and `body` instead.
    pub request: HttpRequest,
    /// The path with its query.
    pub path: Vec<Part>,
    /// Headers, by name.
    pub headers: Vec<(String, Vec<Part>)>,
    /// Cookies that only this request sends, as `a=b; c=d`.
    pub cookies: Vec<Part>,
    /// The body; `None` for a request without one.
    pub body: Option<Vec<Part>>,
    /// Statuses that are correct; those of the load if absent.
    pub expected: Option<Statuses>,
    /// How long a client waits before this step.
    pub delay: Duration,
    /// The time that the reply must not reach.
    pub limit: Option<Duration>,
    /// What is captured, each into a variable, in this order.
    pub captures: Vec<Capture>,
    /// What the reply must be, in this order.
    pub asserts: Vec<Assert>,
}

/// A part of a request's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Text(Vec<u8>),
    /// The value of a variable.
    Variable(usize, Encoding),
    /// A new UUID.
    Uuid,
}

/// A value that is taken from a reply.
#[derive(Debug)]
pub struct Capture {
    /// The variable, and its name.
    pub variable: usize,
    pub name: String,
    /// Where it is.
    pub query: Query,
    /// The message if it is not there.
    pub failure: &'static str,
}

/// What a reply must be.
#[derive(Debug)]
pub struct Assert {
    /// The value that is looked at.
    pub query: Query,
    /// What it must be.
    pub predicate: Predicate,
    /// Whether it must not be that.
    pub is_negated: bool,
    /// The message if it is not so.
    pub failure: &'static str,
}

/// How a session goes on after a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepDone {
    /// The step that was answered.
    pub step: u16,
    /// Whether its reply was not what it had to be.
    pub has_failed: bool,
    /// Whether the session is over: this was its last step, or has failed.
    pub is_last: bool,
}

impl Flow {
    /// Whether a step reads heads or bodies of replies.
    pub(super) fn reads_body(&self, step: usize) -> bool {
        let current = &self.steps[step];
        let captured = current.captures.iter().map(|capture| &capture.query);
        let asserted = current.asserts.iter().map(|assert| &assert.query);
        captured.chain(asserted).any(Query::reads_body)
    }
}

impl Step {
    /// The same as a request by itself, with `x` for variables in its path and headers.
    pub fn as_request(&self) -> HttpRequest {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Variable(..) | Part::Uuid => b"x".to_vec(),
        };
        let body = self.body.as_ref();
        let request = self
            .request
            .clone()
            .with_body(body.map(|parts| parts.iter().flat_map(text).collect()));
        match self.expected {
            Some(expected) => request.expecting(expected),
            None => request,
        }
    }

    /// The pieces of its head and of its body, for a host.
    pub(super) fn pieces(&self, host: &str) -> (Vec<Piece>, Vec<Piece>) {
        let text = |text: String| Piece::Text(text.into_bytes());
        let mut head = vec![text(format!("{} ", self.request.method()))];
        head.extend(self.path.iter().map(Part::piece));
        head.push(text(" HTTP/1.1\r\n".to_owned()));
        for (name, value) in self.request.usual_headers(host) {
            head.push(text(format!("{name}: {value}\r\n")));
        }
        for (name, value) in &self.headers {
            head.push(text(format!("{name}: ")));
            head.extend(value.iter().map(Part::piece));
            head.push(text("\r\n".to_owned()));
        }
        if self.body.is_some() || self.request.has_length() {
            head.extend([
                text("Content-Length: ".to_owned()),
                Piece::BodyLength,
                text("\r\n".to_owned()),
            ]);
        }
        if self.cookies.is_empty() {
            head.push(Piece::Cookies);
        } else {
            head.extend([text("Cookie: ".to_owned()), Piece::CookiesBefore]);
            head.extend(self.cookies.iter().map(Part::piece));
            head.push(text("\r\n".to_owned()));
        }
        head.push(text("\r\n".to_owned()));
        let body = self.body.iter().flatten().map(Part::piece).collect();
        (joined(head), body)
    }
}

impl Part {
    fn piece(&self) -> Piece {
        match self {
            Self::Text(text) => Piece::Text(text.clone()),
            Self::Variable(place, encoding) => Piece::Variable(Variable {
                place: *place as u16,
                encoding: *encoding,
            }),
            Self::Uuid => Piece::Uuid,
        }
    }
}

#[cfg(test)]
mod tests;
