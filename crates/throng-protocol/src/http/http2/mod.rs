//! `http2`: HTTP/2 by prior knowledge, or over TLS by ALPN.
//!
//! The server half (`session`) replies to GET and HEAD like that of `http`. The client half (`requester`) sends the
//! same requests as that of `http`, each on a stream of its own. Replies come in any order. Requests wait for the
//! server's settings, and for a free stream.
//!
//! RFC 9113 is the reference, RFC 7541 for header blocks (`hpack`).

mod frame;
mod grpc;
mod hpack;
mod in_words;
mod message;
mod request_set;
mod requester;
mod session;

use super::super::{
    Dialogue, Offer, Protocol, Requester, Requesters, Session, Settings, WireProtocol,
};
use super::HttpRequest;

pub use frame::MOST_STREAMS;
pub(crate) use grpc::Grpc;

/// The protocol `http2`.
pub(crate) struct Http2;

impl Protocol for Http2 {
    fn name(&self) -> &'static str {
        "http2"
    }

    fn summary(&self) -> &'static str {
        "HTTP/2, a stream per request; the client also works against any other server"
    }

    fn session(&self, offer: &Offer) -> Box<dyn Session> {
        Box::new(session::Http2Session::new(offer.size, false))
    }
}

impl Dialogue for Http2 {
    fn describe(&self, settings: &Settings) -> String {
        super::described("http2", settings, HttpRequest::method)
    }

    fn has_handshake(&self) -> bool {
        true
    }

    fn generates_requests(&self, _: &Settings) -> bool {
        true // each has its own stream
    }

    fn wire_protocol(&self) -> Option<WireProtocol> {
        Some(WireProtocol::Http2)
    }

    fn alpn(&self) -> Option<&'static str> {
        Some("h2")
    }

    fn in_words(&self, is_sent: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(in_words::in_words(is_sent, bytes))
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        Box::new(requester::Http2Requester::new(settings, client, false))
    }

    fn requesters(
        &self,
        settings: &Settings,
        clients: &mut dyn Iterator<Item = u64>,
    ) -> Box<dyn Requesters> {
        Box::new(requester::Http2Requesters::new(settings, clients, false))
    }
}
