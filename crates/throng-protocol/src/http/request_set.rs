//! The requests of all clients, laid out once, and each client's state while checking replies.

use super::super::mix::order_of;
use super::super::pattern::Interned;
use super::super::{Mix, Settings, Statuses, cycle};
use super::body::BodyCheck;
use super::flow::Flow;
use super::template::Piece;
use super::wrong::WrongReply;
use super::{BodyRule, HttpRequest, text};

/// Maximum bytes of requests laid out contiguously, each repeated by its weight.
const MOST_LAID_OUT: usize = 64 << 20;
/// Maximum bytes of an order of requests that is longer than one round of their weights.
const MOST_ROUNDS: usize = 4 << 20;

/// The requests that all clients cycle through, and the text of built-in servers.
pub(super) struct RequestSet {
    /// All requests in order, or empty if each is generated when it is sent.
    pub(super) wire: Vec<u8>,
    pub(super) requests: Vec<Request>,
    pub(super) kinds: Vec<RequestKind>,
    pub(super) text: &'static [u8],
    /// The statuses and the length that count as correct.
    pub(super) expected: Statuses,
    pub(super) length: Option<u64>,
    /// Whether expected replies differ between requests: some have no body, or other correct statuses.
    pub(super) replies_differ: bool,
    pub(super) keeps_cookies: bool,
    /// The flow that the requests are the steps of.
    pub(super) flow: Option<&'static Flow>,
    /// Whether there are several different requests.
    is_mixed: bool,
    mix: Mix<&'static HttpRequest>,
    seed: u64,
}

impl RequestSet {
    /// The index of a client's first request.
    pub(super) fn first(&self, client: u64) -> usize {
        if self.is_mixed {
            self.mix.first(client, self.seed, self.requests.len())
        } else {
            0
        }
    }

    /// Whether each request is generated when it is sent.
    pub(super) fn is_made(&self) -> bool {
        self.wire.is_empty()
    }

    /// The request at index `place` of the order.
    pub(super) fn kind(&self, place: usize) -> &RequestKind {
        &self.kinds[self.requests[place].kind as usize]
    }
}

/// One request in the order.
pub(super) struct Request {
    /// Its offset in `wire`.
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// The index of its [`RequestKind`].
    pub(super) kind: u32,
}

/// What equal requests share.
pub(super) struct RequestKind {
    /// The parts of the request, if it is generated.
    pub(super) pieces: (Vec<Piece>, Vec<Piece>),
    /// Whether its replies have no body, regardless of their headers.
    pub(super) is_head: bool,
    pub(super) expected: Statuses,
}

/// The settings that determine the requests.
pub(super) struct Key {
    requests: Mix<&'static HttpRequest>,
    host: &'static str,
    expected: Statuses,
    length: Option<u64>,
    cookies: bool,
    flow: Option<&'static Flow>,
    is_encrypted: bool,
    seed: u64,
}

impl Key {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            requests: settings.requests,
            host: settings.host,
            expected: settings.expected,
            length: settings.length,
            cookies: settings.cookies,
            flow: settings.flow,
            is_encrypted: settings.is_encrypted,
            seed: settings.seed,
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        // Compared by address, since there may be many.
        let are_same = match (self.requests, other.requests) {
            (Mix::One(mine), Mix::One(theirs)) => std::ptr::eq(mine, theirs),
            (Mix::Several(mine), Mix::Several(theirs)) => std::ptr::eq(mine, theirs),
            _ => false,
        };
        are_same
            && (self.host, self.expected, self.length, self.cookies)
                == (other.host, other.expected, other.length, other.cookies)
            && self.flow.map(std::ptr::from_ref) == other.flow.map(std::ptr::from_ref)
            && (self.is_encrypted, self.seed) == (other.is_encrypted, other.seed)
    }
}

/// The requests of clients with these settings.
pub(super) fn request_set(settings: &Settings) -> &'static RequestSet {
    static REQUEST_SETS: Interned<Key, RequestSet> = Interned::new();
    let key = Key::of(settings);
    REQUEST_SETS.get(key, |key| Box::new(RequestSet::new(key)))
}

impl RequestSet {
    fn new(key: &Key) -> Self {
        let parts: Vec<(&HttpRequest, u32)> = key.requests.parts().collect();
        let weights: Vec<u32> = parts.iter().map(|(_, weight)| *weight).collect();
        let sizes: Vec<usize> = parts
            .iter()
            .map(|(request, _)| request.wire(key.host).len())
            .collect();
        let round: usize = order_of(&weights, 1, key.seed)
            .iter()
            .map(|kind| sizes[*kind as usize])
            .sum();
        let is_made = key.cookies
            || key.flow.is_some()
            || round > MOST_LAID_OUT
            || parts.iter().any(|(request, _)| request.is_variable());
        let rounds = if is_made {
            u64::MAX
        } else {
            (MOST_ROUNDS / round.max(1)) as u64
        };
        let mut set = Self {
            wire: Vec::new(),
            requests: Vec::new(),
            kinds: Vec::new(),
            text: text(),
            expected: key.expected,
            length: key.length,
            replies_differ: false,
            keeps_cookies: key.cookies || key.flow.is_some(),
            flow: key.flow,
            is_mixed: parts.len() > 1,
            mix: key.requests,
            seed: key.seed,
        };
        if let Some(flow) = key.flow {
            set.replies_differ = true;
            set.is_mixed = false;
            for (place, step) in (0..).zip(&flow.steps) {
                set.kinds.push(RequestKind {
                    pieces: step.pieces(key.host),
                    is_head: step.request.is_head(),
                    expected: step.expected.unwrap_or(key.expected),
                });
                set.add(place, 0);
            }
            return set;
        }
        for (request, _) in &parts {
            set.replies_differ |= request.is_head() || request.expected().is_some();
            set.kinds.push(RequestKind {
                pieces: if is_made {
                    request.pieces(key.host)
                } else {
                    Default::default()
                },
                is_head: request.is_head(),
                expected: request.expected().unwrap_or(key.expected),
            });
        }
        for kind in order_of(&weights, rounds, key.seed) {
            if is_made {
                set.add(kind, 0);
                continue;
            }
            let request = parts[kind as usize].0.wire(key.host);
            let bytes = request.len();
            let wire = if set.is_mixed {
                request
            } else {
                cycle::repeat(&request)
            };
            (0..wire.len() / bytes).for_each(|_| set.add(kind, bytes));
            set.wire.extend(wire);
        }
        set
    }

    fn add(&mut self, kind: u32, bytes: usize) {
        let last = self.requests.last();
        let start = last.map_or(0, |last| last.start + last.bytes);
        self.requests.push(Request { start, bytes, kind });
    }
}

/// A client's state for checking bodies, if there is a rule.
pub(super) struct BodyState {
    pub(super) rule: &'static BodyRule,
    pub(super) check: BodyCheck,
    /// The fingerprint of the first successful body of each request.
    firsts: Vec<Option<u64>>,
}

impl BodyState {
    /// The state before any successful reply.
    pub(super) fn new(settings: &Settings) -> Option<Self> {
        settings.body.map(|rule| Self {
            rule,
            check: BodyCheck::default(),
            firsts: vec![None; settings.requests.parts().count()],
        })
    }

    /// Checks the complete body of a reply to a request of this kind; it has `bytes` bytes.
    pub(super) fn end(&mut self, kind: u32, bytes: u64) -> Result<(), WrongReply> {
        let seen = self.rule.end(&self.check, bytes)?;
        let first = self.firsts[kind as usize].get_or_insert(seen);
        if self.rule.wants_same() && *first != seen {
            return self.rule.wrong(&self.check);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::Requester as _;
    use super::super::requester::HttpRequester;
    use super::*;

    /// Requests for these paths, with their weights.
    fn paths(paths: &[(&str, u32)]) -> Mix<&'static HttpRequest> {
        let request = |(path, weight): &(&str, u32)| {
            let request = HttpRequest::new(None, path, &[], None).unwrap();
            (&*Box::leak(Box::new(request)), *weight)
        };
        Mix::new(&paths.iter().map(request).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn paths_come_by_weight_and_each_has_a_body_of_its_own() {
        for cookies in [false, true] {
            let mut requester = HttpRequester::new(
                &Settings {
                    requests: paths(&[("/long", 1), ("/", 3)]),
                    body: Some(Box::leak(Box::new(BodyRule::parse("same").unwrap()))),
                    cookies,
                    ..Settings::default()
                },
                5,
            );
            let mut wire = Vec::new();
            (0..1024).for_each(|_| requester.request(&mut wire));
            let wire = String::from_utf8(wire).unwrap();
            let asked: Vec<&str> = wire
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
            let received = requester.receive(replies.as_bytes()).unwrap();
            assert_eq!(received.completed, 1024);
            // The same order again, now with the body of the other path.
            requester.begin();
            let wrong = reply(22 - length(&asked[0]));
            assert!(requester.receive(wrong.as_bytes()).is_err());
        }
    }

    #[test]
    fn several_requests_leave_in_few_pieces() {
        for requests in [paths(&[("/a", 1)]), paths(&[("/a", 1), ("/b", 1)])] {
            let mut requester = HttpRequester::new(
                &Settings {
                    requests,
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

    proptest! {
        #[test]
        fn requests_leave_in_order_however_they_are_cut(
            steps in prop::collection::vec((0..7_usize, 0..=100_usize), 1..60),
        ) {
            for requests in [paths(&[("/a", 1)]), paths(&[("/a", 1), ("/bcd", 2)])] {
                let settings = Settings { requests, ..Settings::default() };
                let set = request_set(&settings);
                let mut requester = HttpRequester::new(&settings, 5);
                let (mut begun, mut sent) = (Vec::<u8>::new(), Vec::<u8>::new());
                let mut next = set.first(5);
                for &(requests, percent) in &steps {
                    for _ in 0..requests {
                        let request = &set.requests[next];
                        begun.extend(&set.wire[request.start..][..request.bytes]);
                        next = (next + 1) % set.requests.len();
                        requester.begin();
                    }
                    let pending = requester.pending();
                    let count = pending.len() * percent / 100;
                    sent.extend(&pending[..count]);
                    requester.advance(count);
                }
                while !requester.pending().is_empty() {
                    sent.extend(requester.pending());
                    requester.advance(requester.pending().len());
                }
                prop_assert!(sent == begun, "{} bytes of {}", sent.len(), begun.len());
            }
        }
    }

    #[test]
    fn large_requests_are_not_laid_out_as_often_as_they_are_asked() {
        let with_body = |bytes: usize, weight: u32| {
            let request = HttpRequest::new(None, "/", &[], Some(vec![b'x'; bytes])).unwrap();
            (&*Box::leak(Box::new(request)), weight)
        };
        let set = |parts: &[(&'static HttpRequest, u32)]| {
            request_set(&Settings {
                requests: Mix::new(parts).unwrap(),
                ..Settings::default()
            })
        };
        let some = set(&[with_body(1_000_000, 2), with_body(2_000_000, 1)]);
        assert!(!some.is_made());
        assert_eq!(some.requests.len(), 3);
        assert!(some.wire.len() < 5_000_000);
        let many = set(&[with_body(1_000_000, 1), with_body(2_000_000, 900)]);
        assert!(many.is_made());
        assert_eq!(many.requests.len() % 901, 0);
    }
}
