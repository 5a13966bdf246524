//! `grpc`: unary gRPC over HTTP/2, one message each way.
//!
//! A call succeeded only if the trailers of its reply say so: every other status is counted by its name.
//!
//! A built-in server answers any method with a message whose field 1 is a text of [`Offer::size`] bytes, so that
//! clients that decode messages understand it.

use super::super::super::{
    Dialogue, Offer, Protocol, Requester, Requesters, Session, Settings, WireProtocol,
};
use super::{Http2, requester, session};

/// The protocol `grpc`.
pub(crate) struct Grpc;

impl Protocol for Grpc {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn summary(&self) -> &'static str {
        "unary gRPC over HTTP/2; the client also works against any other server"
    }

    fn session(&self, offer: &Offer) -> Box<dyn Session> {
        Box::new(session::Http2Session::new(offer.size, true))
    }
}

impl Dialogue for Grpc {
    fn describe(&self, settings: &Settings) -> String {
        super::super::described("grpc", settings, |_| "")
    }

    fn has_handshake(&self) -> bool {
        Http2.has_handshake()
    }

    fn generates_requests(&self, settings: &Settings) -> bool {
        Http2.generates_requests(settings)
    }

    fn wire_protocol(&self) -> Option<WireProtocol> {
        Http2.wire_protocol()
    }

    fn alpn(&self) -> Option<&'static str> {
        Http2.alpn()
    }

    fn in_words(&self, is_sent: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        Http2.in_words(is_sent, bytes)
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        Box::new(requester::Http2Requester::new(settings, client, true))
    }

    fn requesters(
        &self,
        settings: &Settings,
        clients: &mut dyn Iterator<Item = u64>,
    ) -> Box<dyn Requesters> {
        Box::new(requester::Http2Requesters::new(settings, clients, true))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::{HttpRequest, ReplyCounts, status_in_words};
    use super::super::message::body;
    use super::super::{frame, hpack};
    use super::*;

    /// A client that has sent a call with this message, and what it sent.
    fn calling(settings: &Settings) -> (requester::Http2Requester, Vec<u8>) {
        let mut requester = requester::Http2Requester::new(settings, 0, true);
        requester.begin();
        let mut wire = Vec::new();
        requester.append_pending(&mut wire);
        let mut settings = Vec::new();
        frame::write_settings(&mut settings, &[]);
        requester.receive(&settings).unwrap();
        requester.append_pending(&mut wire);
        (requester, wire)
    }

    fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            hpack::push_field(name, value, &mut block);
        }
        block
    }

    fn settings(method: Option<&str>, headers: &[&str], message: Option<&[u8]>) -> Settings {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        let message = message.map(<[u8]>::to_vec);
        let request = HttpRequest::new(method, "/a.B/C", &headers, message).unwrap();
        Settings {
            requests: HttpRequest::intern(vec![(request, 1)]),
            ..Settings::default()
        }
    }

    #[test]
    fn a_call_is_a_post_with_a_message() {
        let own = "Content-Type: application/grpc+proto";
        for (headers, kind) in [
            (&["Te: gzip", "X-A: b"][..], "application/grpc"),
            (&["Content-Type: text/plain"], "application/grpc"),
            (&[own], "application/grpc+proto"),
        ] {
            let (_, wire) = calling(&settings(None, headers, Some(b"hello")));
            let words = super::super::in_words::in_words(true, &wire);
            let words = String::from_utf8(words).unwrap();
            for line in [
                "  :method: POST\n",
                "  :path: /a.B/C\n",
                "  te: trailers\n",
                &format!("  content-type: {kind}\n"),
            ] {
                assert_eq!(words.matches(line).count(), 1, "{line}{words}");
            }
            assert!(!words.contains("content-length"), "{words}");
            assert_eq!(words.contains("x-a: b"), headers.len() > 1);
            assert!(wire.ends_with(b"\0\0\0\0\x05hello"), "{words}");
        }
    }

    #[test]
    fn a_call_succeeds_only_by_its_trailers() {
        let head = [(":status", "200"), ("content-type", "application/grpc")];
        let ok = [("grpc-status", "0")];
        let failed = [("grpc-status", "13"), ("grpc-message", "broken")];
        let wire_of =
            |body: Option<&[u8]>, trailers: Option<&[(&str, &str)]>, head: &[(&str, &str)]| {
                let mut wire = Vec::new();
                let ends = |is_last: bool| if is_last { frame::END_STREAM } else { 0 };
                let is_all = body.is_none() && trailers.is_none();
                frame::write_block(&mut wire, ends(is_all), 1, &fields(head));
                if let Some(body) = body {
                    frame::write(&mut wire, frame::DATA, ends(trailers.is_none()), 1, body);
                }
                if let Some(trailers) = trailers {
                    frame::write_block(&mut wire, frame::END_STREAM, 1, &fields(trailers));
                }
                wire
            };
        let message = body(b"hi");
        let trailers_only = |status: &'static str| [head[0], head[1], ("grpc-status", status)];
        for (wire, status) in [
            (wire_of(Some(&message), Some(&ok), &head), "OK"),
            (wire_of(Some(&message), Some(&failed), &head), "INTERNAL"),
            (wire_of(None, Some(&failed), &head), "INTERNAL"),
            (wire_of(Some(&message), None, &head), "no grpc-status"),
            (
                wire_of(Some(&message), Some(&[("x", "y")]), &head),
                "no grpc-status",
            ),
            (wire_of(None, None, &trailers_only("14")), "UNAVAILABLE"),
            (wire_of(None, None, &trailers_only("17")), "UNKNOWN"),
            (wire_of(None, None, &trailers_only("-1")), "UNKNOWN"),
            (wire_of(None, None, &[(":status", "404")]), "404"),
            (
                wire_of(None, None, &[(":status", "302"), ("location", "/")]),
                "302",
            ),
            (
                wire_of(None, None, &[(":status", "503"), ("grpc-status", "14")]),
                "UNAVAILABLE",
            ),
        ] {
            for cut in 0..wire.len() {
                let (mut requester, _) = calling(&settings(None, &[], None));
                let pieces = [&wire[..cut], &wire[cut..]];
                let replies = pieces.map(|piece| requester.receive(piece).unwrap());
                let refused = u32::from(status != "OK");
                assert_eq!(replies[0].completed + replies[1].completed, 1, "{status}");
                assert_eq!(replies[0].refused + replies[1].refused, refused, "{status}");
                let mut counts = ReplyCounts::default();
                requester.counts(&mut counts);
                let seen: Vec<String> = counts
                    .statuses
                    .keys()
                    .map(|status| status_in_words(*status))
                    .collect();
                assert_eq!(seen, [status]);
                assert_eq!(counts.unexpected.len() as u32, refused);
            }
        }
        // A call that succeeded has one plain message.
        for (content, what) in [
            (&b""[..], "without a message"),
            (b"\0\0\0\0", "after its head"),
            (b"\0\0\0\0\x02h", "has a message of 2 bytes"),
            (b"\0\0\0\0\x01hi", "has a message of 1 bytes"),
            (b"\x01\0\0\0\x02hi", "is compressed"),
        ] {
            let (mut requester, _) = calling(&settings(None, &[], None));
            let wire = wire_of(Some(content), Some(&ok), &head);
            let error = requester.receive(&wire).unwrap_err();
            assert!(error.what.contains(what), "{error}");
            assert_eq!(requester.fault(), Some("bad-message"));
        }
    }

    /// What the server half sends for what a client half sent, and whether the client accepts it.
    fn exchange(
        settings: &Settings,
        size: usize,
    ) -> (
        Result<super::super::super::super::Replies, super::super::super::super::ProtocolError>,
        String,
    ) {
        let (mut requester, wire) = calling(settings);
        let mut session = session::Http2Session::new(size, true);
        let mut out = Vec::new();
        let mut rest = &wire[..];
        while !rest.is_empty() {
            let step = session.receive(rest, &mut out).unwrap();
            rest = &rest[step.consumed..];
        }
        let words = super::super::in_words::in_words(false, &out);
        let words = String::from_utf8_lossy(&words).into_owned();
        // Its settings come a second time, which is no error.
        (requester.receive(&out), words)
    }

    #[test]
    fn a_built_in_server_answers_calls() {
        for size in [0, 1, 127, 128, 1000, 60_000] {
            let (replies, words) = exchange(&settings(None, &[], Some(b"hello")), size);
            let replies = replies.unwrap_or_else(|error| panic!("{size}: {error}"));
            assert_eq!(
                (replies.completed, replies.refused),
                (1, 0),
                "{size} {words}"
            );
        }
        let (replies, words) = exchange(&Settings::default(), 10);
        assert_eq!(replies.unwrap().refused, 0, "{words}");
    }
}
