//! What clients ask, laid out once for all of them, and what they remember of the answers.

use super::super::mix::scatter;
use super::super::pattern::Kept;
use super::super::{Mix, ProtocolError, Settings, Statuses, cycle};
use super::body::BodyCheck;
use super::{BodyRule, HttpRequest, text};

/// What clients ask, round and round, and the text that throng's own servers answer.
pub(super) struct RequestSet {
    pub(super) wire: Vec<u8>,
    pub(super) requests: Vec<Request>,
    pub(super) text: &'static [u8],
    /// The statuses and the length that are right.
    pub(super) expected: Statuses,
    pub(super) length: Option<u64>,
    /// Whether replies have no body, whatever their heads say.
    pub(super) is_head: bool,
    /// Whether they are not all the same.
    is_mixed: bool,
}

impl RequestSet {
    /// Which request a client begins with.
    pub(super) fn first(&self, client: u64) -> usize {
        if self.is_mixed {
            scatter(client, self.requests.len())
        } else {
            0
        }
    }
}

/// One request among them.
pub(super) struct Request {
    /// Its first byte.
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// Which path it asks for.
    pub(super) path: usize,
}

/// What clients with these settings ask.
pub(super) fn request_set(settings: &Settings) -> &'static RequestSet {
    type Key = (
        &'static str,
        Mix<&'static str>,
        Statuses,
        &'static HttpRequest,
        Option<u64>,
    );
    static REQUEST_SETS: Kept<Key, RequestSet> = Kept::new();
    let key = (
        settings.host,
        settings.paths,
        settings.expected,
        settings.request,
        settings.length,
    );
    REQUEST_SETS.get(key, |(host, paths, expected, request, length)| {
        let mut request_set = RequestSet {
            wire: Vec::new(),
            requests: Vec::new(),
            text: text(),
            expected: *expected,
            length: *length,
            is_head: request.is_head(),
            is_mixed: matches!(paths, Mix::Several(_)),
        };
        for asked in paths.order() {
            let request = request.wire(host, asked);
            let wire = match paths {
                Mix::One(_) => cycle::repeat(&request),
                Mix::Several(_) => request.clone(),
            };
            let path = paths.parts().position(|(path, _)| path == asked);
            for _ in 0..wire.len() / request.len() {
                request_set.requests.push(Request {
                    start: request_set
                        .requests
                        .last()
                        .map_or(0, |last| last.start + last.bytes),
                    bytes: request.len(),
                    path: path.unwrap_or(0),
                });
            }
            request_set.wire.extend(wire);
        }
        Box::new(request_set)
    })
}

/// What a client remembers of bodies, where somebody said which are right.
pub(super) struct Checked {
    pub(super) rule: &'static BodyRule,
    pub(super) check: BodyCheck,
    /// Of the first body granted for each path: what tells it from others.
    firsts: Vec<Option<u64>>,
}

impl Checked {
    /// Before anything was granted.
    pub(super) fn new(settings: &Settings) -> Option<Box<Self>> {
        let checked = settings.body.map(|rule| Self {
            rule,
            check: BodyCheck::default(),
            firsts: vec![None; settings.paths.parts().count()],
        });
        checked.map(Box::new)
    }

    /// A body for this path is whole, with so many bytes.
    pub(super) fn end(&mut self, path: usize, bytes: u64) -> Result<(), ProtocolError> {
        let seen = self.rule.end(&self.check, bytes)?;
        let first = self.firsts[path].get_or_insert(seen);
        if self.rule.wants_same() && *first != seen {
            return self.rule.wrong(&self.check);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Requester as _;
    use super::super::requester::HttpRequester;
    use super::*;

    #[test]
    fn paths_come_by_weight_and_each_has_a_body_of_its_own() {
        let paths = Mix::Several(&[("/long", 1), ("/", 3)]);
        let mut requester = HttpRequester::new(
            &Settings {
                paths,
                body: Some(Box::leak(Box::new(BodyRule::parse("same").unwrap()))),
                ..Settings::default()
            },
            5,
        );
        let mut wire = Vec::new();
        (0..1024).for_each(|_| requester.request(&mut wire));
        let asked = String::from_utf8(wire).unwrap();
        let asked: Vec<&str> = asked
            .lines()
            .filter_map(|line| line.strip_prefix("GET "))
            .collect();
        let length = |line: &&str| if line.starts_with("/long") { 20 } else { 2 };
        assert_eq!(asked.iter().map(length).sum::<usize>(), 256 * 20 + 768 * 2);
        let reply = |length: usize| {
            let body = "x".repeat(length);
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let replies: String = asked.iter().map(|line| reply(length(line))).collect();
        let heard = requester.receive(replies.as_bytes()).unwrap();
        assert_eq!(heard.completed, 1024);
        // The same order comes again, and now with the body of the other path.
        requester.begin();
        let wrong = reply(22 - length(&asked[0]));
        assert!(requester.receive(wrong.as_bytes()).is_err());
    }

    #[test]
    fn several_requests_leave_in_few_pieces() {
        for paths in [Mix::One("/a"), Mix::Several(&[("/a", 1), ("/b", 1)])] {
            let mut requester = HttpRequester::new(
                &Settings {
                    paths,
                    ..Settings::default()
                },
                5,
            );
            let mut pieces = 0;
            for _ in 0..64 {
                (0..16).for_each(|_| {
                    requester.begin();
                });
                while !requester.pending().is_empty() {
                    requester.advance(requester.pending().len());
                    pieces += 1;
                }
            }
            assert!((64..=65).contains(&pieces), "{pieces}");
        }
    }
}
