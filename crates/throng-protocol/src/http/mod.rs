//! `http`: HTTP/1.1 over persistent connections, as much as it takes to measure servers.
//!
//! The server half (`session`) replies to GET and HEAD of any path with a plain text of [`Offer::size`] bytes. The
//! client half (`requester`) sends [any request](HttpRequest) and works with any server: it follows the framing of
//! each reply and checks throng's own text byte by byte. For other servers it checks the length and the
//! [body](BodyRule), if a rule is given. Replies with a status that is not [expected](super::Settings::expected)
//! count as rejected.
//!
//! RFC 9110 defines the semantics, RFC 9112 the syntax.

mod body;
mod chunked;
mod cookies;
mod feed;
mod flow;
mod generated;
mod head;
mod head_cache;
mod http2;
mod place;
mod reply;
mod request;
mod request_set;
mod requester;
mod session;
mod template;
mod wrong;

use super::pattern::{Interned, noise};
use super::{Dialogue, Offer, Protocol, Requester, Requesters, Session, Settings, WireProtocol};
pub use body::BodyRule;
pub use feed::{Feed, Initial};
pub use flow::{Assert, Capture, Expression, Flow, Part, Predicate, Query, Step, StepDone, Value};
pub use http2::MOST_STREAMS;
pub(crate) use http2::{Grpc, Http2};
pub(crate) use reply::lenient;
pub(crate) use request::GET;
pub use request::{HttpRequest, RequestPart};
pub use template::{Encoding, has_variables};

/// The protocol `http`.
pub(super) struct Http;

impl Protocol for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn summary(&self) -> &'static str {
        "HTTP/1.1, keep-alive; the client also works against any other server"
    }

    fn session(&self, offer: &Offer) -> Box<dyn Session> {
        Box::new(session::HttpSession::new(offer.size))
    }
}

impl Dialogue for Http {
    fn describe(&self, settings: &Settings) -> String {
        described("http", settings, HttpRequest::method)
    }

    fn generates_requests(&self, settings: &Settings) -> bool {
        request_set::request_set(settings).is_made()
    }

    fn wire_protocol(&self) -> Option<WireProtocol> {
        Some(WireProtocol::Http)
    }

    fn alpn(&self) -> Option<&'static str> {
        Some("http/1.1")
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        Box::new(requester::HttpRequester::new(settings, client))
    }

    fn requesters(
        &self,
        settings: &Settings,
        clients: &mut dyn Iterator<Item = u64>,
    ) -> Box<dyn Requesters> {
        Box::new(requester::HttpRequesters::new(settings, clients))
    }
}

/// The requests of a load, after the name of their protocol; `method` is empty if all have the same.
fn described(protocol: &str, settings: &Settings, method: fn(&HttpRequest) -> &str) -> String {
    if let Some(flow) = settings.flow {
        let steps = flow.steps.iter().take(MOST_NAMED);
        let first: Vec<&str> = steps.map(|step| step.name.as_str()).collect();
        let more = if flow.steps.len() > MOST_NAMED {
            ", ..."
        } else {
            ""
        };
        return format!("{protocol} sessions of {}{more}", first.join(", "));
    }
    let in_words = |request: &HttpRequest| {
        let words = [method(request), request.path()];
        words.join(" ").trim_start().to_owned()
    };
    let requests = || settings.requests.parts().map(|(request, _)| request);
    let parts = requests().count();
    if parts > MOST_NAMED {
        let first = requests().next().map(in_words).unwrap_or_default();
        return format!("{protocol} {parts} requests, like {first}");
    }
    let mut methods: Vec<&str> = requests().map(method).collect();
    methods.dedup();
    let named = if let [only] = methods[..] {
        let paths = settings.requests.in_words(HttpRequest::path);
        let words: Vec<&str> = [protocol, only, &paths]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        words.join(" ")
    } else {
        let named = settings.requests.in_words(in_words);
        format!("{protocol} {named}")
    };
    match requests().map(|request| request.body().len()).max() {
        None | Some(0) => named,
        Some(bytes) => format!("{named} with {bytes} bytes"),
    }
}

/// Maximum number of requests to list.
const MOST_NAMED: usize = 8;

/// The Server header of built-in servers, by which clients recognise them.
const SERVER: &str = "throng";

/// The period of the text in bytes: it repeats after this many.
const TEXT_PERIOD: usize = 64 * 1024;
/// Length of a line of the text, including the line end.
const TEXT_LINE: usize = 64;

/// The text of built-in servers.
fn text() -> &'static [u8] {
    static TEXT: Interned<(), [u8]> = Interned::new();
    TEXT.get((), |()| {
        let printable = |(at, byte): (usize, u8)| match at % TEXT_LINE {
            place if place == TEXT_LINE - 1 => b'\n',
            _ => b' ' + byte % 95,
        };
        noise()
            .take(TEXT_PERIOD)
            .enumerate()
            .map(printable)
            .collect()
    })
}

/// Parses a length that consists only of digits.
fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(value).ok()?.parse().ok()
}

/// Whether a comma-separated list has this member, ignoring case.
fn lists(value: &[u8], member: &str) -> bool {
    let mut members = value.split(|&byte| byte == b',');
    members.any(|found| found.trim_ascii().eq_ignore_ascii_case(member.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::ReplyCounts;
    use super::requester::HttpRequester;
    use super::*;

    #[test]
    fn a_length_is_digits() {
        assert_eq!(length(b"0"), Some(0));
        assert_eq!(length(b"18446744073709551615"), Some(u64::MAX));
        for wrong in ["", "+1", "-1", "1 ", "0x1", "1,1", "18446744073709551616"] {
            assert_eq!(length(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn lists_have_members() {
        assert!(lists(b"close", "close"));
        assert!(lists(b"Upgrade ,\tCLOSE", "close"));
        assert!(!lists(b"closed, not-close", "close"));
        assert!(!lists(b"", "close"));
    }

    #[test]
    fn the_text_is_lines_that_can_be_printed() {
        let text = text();
        assert_eq!(text.len(), TEXT_PERIOD);
        assert!(text.chunks(TEXT_LINE).all(|line| line.ends_with(b"\n")));
        assert!(
            text.iter()
                .all(|&byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
        );
    }

    #[test]
    fn every_status_of_a_pipeline_is_counted() {
        let reply = |status| format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        let wire: String = [200, 503, 503, 404, 302].map(reply).concat();
        for cut in 0..wire.len() {
            let mut requester = HttpRequester::new(&Settings::default(), 1);
            (0..5).for_each(|_| {
                requester.begin();
            });
            let pieces = [&wire.as_bytes()[..cut], &wire.as_bytes()[cut..]];
            let refused = pieces.map(|piece| requester.receive(piece).unwrap().refused);
            assert_eq!(refused.iter().sum::<u32>(), 3, "cut at {cut}");
            let mut counts = ReplyCounts::default();
            requester.counts(&mut counts);
            assert_eq!(
                counts.statuses,
                [(200, 1), (302, 1), (404, 1), (503, 2)].into()
            );
            assert_eq!(counts.unexpected, [(404, 1), (503, 2)].into());
        }
    }

    #[test]
    fn expected_replies_are_accepted() {
        let mut requester = HttpRequester::new(
            &Settings {
                expected: "404,5xx".parse().unwrap(),
                ..Settings::default()
            },
            1,
        );
        for (status, refused) in [(200, 1), (404, 0), (503, 0)] {
            requester.begin();
            let wire = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            let replies = requester.receive(wire.as_bytes()).unwrap();
            assert_eq!(
                (replies.completed, replies.refused),
                (1, refused),
                "{status}"
            );
        }
    }
}
