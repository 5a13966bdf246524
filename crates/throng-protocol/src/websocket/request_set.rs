//! The messages of clients, laid out once and shared by all of them.
//!
//! A client masks each frame with four unpredictable bytes. The messages live as long as the program. So masks and
//! keys are drawn once per process, for a fixed number of frames and openings that are then repeated: each frame is in
//! memory exactly as it is sent.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::super::pattern::{Interned, noise};
use super::super::{HttpRequest, Mix, Settings};
use super::frame::{self, Kind};
use super::opening::Opening;

/// Number of openings that all clients with the same request share.
const OPENINGS: usize = 64;
/// Maximum and minimum number of frames of a size.
const FRAMES: (usize, usize) = (64, 2);
/// Maximum total size of these frames, unless the minimum number needs more.
const FRAMES_BYTES: usize = 1 << 20;
/// Distance in the noise between the contents of adjacent frames.
const STRIDE: usize = 389;
/// Maximum number of different pongs per process, since each is kept.
const MOST_PONGS: usize = 1 << 18;

/// The messages of all clients.
pub(super) struct RequestSet {
    pub(super) openings: Vec<Opening>,
    /// The frames of each size, in the order of sending.
    pub(super) order: Vec<&'static Frames>,
    pub(super) kind: Kind,
    requests: Mix<&'static HttpRequest>,
    sizes: Mix<usize>,
    seed: u64,
}

/// Frames of one size, each with different content.
pub(super) struct Frames {
    /// All frames as sent by clients, and as sent by servers.
    requests: Vec<u8>,
    replies: Vec<u8>,
    pub(super) count: usize,
    /// Length of the head of a reply frame.
    pub(super) head: usize,
}

impl Frames {
    /// Frame `number`, masked.
    pub(super) fn request(&self, number: usize) -> &[u8] {
        let size = self.requests.len() / self.count;
        &self.requests[number * size..][..size]
    }

    /// The same frame as it comes back.
    pub(super) fn reply(&self, number: usize) -> &[u8] {
        let size = self.replies.len() / self.count;
        &self.replies[number * size..][..size]
    }

    fn new(size: usize, kind: Kind) -> Self {
        let count = (FRAMES_BYTES / size.max(1)).clamp(FRAMES.1, FRAMES.0);
        let is_text = kind == (Kind::Message { is_text: true });
        let content: Vec<u8> = noise()
            .map(|byte| if is_text { b' ' + byte % 95 } else { byte })
            .take(size + count * STRIDE)
            .collect();
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        for number in 0..count {
            let message = &content[number * STRIDE..][..size];
            frame::write(&mut requests, kind, Some(mask(number)), message);
            frame::write(&mut replies, kind, None, message);
        }
        Self {
            head: replies.len() / count - size,
            requests,
            replies,
            count,
        }
    }
}

impl RequestSet {
    /// The index of a client's first opening.
    pub(super) fn first_opening(&self, client: u64) -> usize {
        let count = self.openings.len();
        match self.requests {
            Mix::One(_) => (client % count as u64) as usize,
            Mix::Several(_) => self.requests.first(client, self.seed, count),
        }
    }

    /// The index of a client's first frame in the order.
    pub(super) fn first_frame(&self, client: u64) -> usize {
        self.sizes.first(client, self.seed, self.order.len())
    }
}

/// The messages of clients with these settings.
pub(super) fn request_set(settings: &Settings) -> &'static RequestSet {
    type Key = (
        &'static str,
        Mix<&'static HttpRequest>,
        Mix<usize>,
        bool,
        u64,
    );
    static REQUEST_SETS: Interned<Key, RequestSet> = Interned::new();
    static FRAMES: Interned<(usize, bool), Frames> = Interned::new();
    let key = (
        settings.host,
        settings.requests,
        settings.size,
        settings.text,
        settings.seed,
    );
    REQUEST_SETS.get(key, |&(host, requests, sizes, is_text, seed)| {
        let kind = Kind::Message { is_text };
        let asked = requests.order(seed);
        let count = match requests {
            Mix::One(_) => OPENINGS,
            Mix::Several(_) => asked.len(),
        };
        let openings = (0..count).map(|number| {
            let wire = asked[number % asked.len()].wire(host);
            let nonce = u128::from(drawn(0, number)) << 64 | u128::from(drawn(1, number));
            Opening::new(&wire, nonce)
        });
        let frames = |size| FRAMES.get((size, is_text), |_| Box::new(Frames::new(size, kind)));
        Box::new(RequestSet {
            openings: openings.collect(),
            order: sizes.order(seed).into_iter().map(frames).collect(),
            kind,
            requests,
            sizes,
            seed,
        })
    })
}

/// Bits that are unpredictable outside this process.
fn drawn(what: u8, number: usize) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    STATE.hash_one((what, number))
}

/// The mask of a frame.
fn mask(number: usize) -> [u8; 4] {
    let [a, b, c, d, ..] = drawn(2, number).to_ne_bytes();
    [a, b, c, d]
}

/// A control frame with this content; `None` if there are already too many different ones.
pub(super) fn control(kind: Kind, content: &[u8]) -> Option<&'static [u8]> {
    static INTERNED: LazyLock<Mutex<HashSet<&'static [u8]>>> = LazyLock::new(Mutex::default);
    let mut wire = Vec::new();
    frame::write(&mut wire, kind, Some(mask(0)), content);
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(frame) = interned.get(&wire[..]) {
        return Some(frame);
    }
    if interned.len() >= MOST_PONGS {
        return None;
    }
    let frame: &'static [u8] = wire.leak();
    interned.insert(frame);
    Some(frame)
}
