//! A cache of parsed heads.
//!
//! A server sends the same head before every reply, except for the date, which changes once per second. Most clients
//! repeat the same request. So a parsed head is looked up by its bytes, at a tenth of the cost of parsing it again. A
//! head is self-contained: its meaning does not depend on what follows.
//!
//! Each thread caches the last few heads of all its connections. A connection keeps only the index of its last head.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Maximum number of heads in a thread's cache; clients need one per path.
const MOST_HEADS: usize = 16;
/// Maximum length of a cached head in bytes.
const MOST_BYTES: usize = 2 * 1024;

/// The index of a connection's last head in the cache.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Last(u8);

/// Heads with their parsed form.
pub(super) struct HeadCache<T> {
    heads: Vec<(Box<[u8]>, T)>,
    /// The index to replace next when the cache is full.
    oldest: usize,
}

/// The cache of a thread.
pub(super) type ThreadHeadCache<T> = LocalKey<RefCell<HeadCache<T>>>;

/// A parsed form of a head.
pub(super) trait HeadForm: Copy {
    /// The length of the head.
    fn bytes(&self) -> usize;

    /// Whether it should be cached.
    fn is_cacheable(&self) -> bool {
        true
    }
}

/// Applies `then` to the parsed head at the front of `bytes`, if this is the connection's last head.
#[inline]
pub(super) fn cached<T: HeadForm, U>(
    here: &'static ThreadHeadCache<T>,
    bytes: &[u8],
    last: Last,
    then: impl FnOnce(&T) -> U,
) -> Option<U> {
    here.with_borrow(|known| known.find(bytes, last).map(then))
}

/// The parsed head at the front of `bytes`, from the cache or from `parse`.
#[cold]
pub(super) fn read<T: HeadForm, E>(
    here: &'static ThreadHeadCache<T>,
    bytes: &[u8],
    last: &mut Last,
    parse: impl FnOnce(&[u8]) -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    here.with_borrow_mut(|known| known.read(bytes, last, parse))
}

impl<T: HeadForm> HeadCache<T> {
    pub(super) const fn new() -> Self {
        Self {
            heads: Vec::new(),
            oldest: 0,
        }
    }

    #[inline]
    fn find(&self, bytes: &[u8], last: Last) -> Option<&T> {
        let (text, head) = self.heads.get(usize::from(last.0))?;
        bytes.starts_with(text).then_some(head)
    }

    /// Searches all heads; parses and caches a new one.
    fn read<E>(
        &mut self,
        bytes: &[u8],
        last: &mut Last,
        parse: impl FnOnce(&[u8]) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let mut heads = self.heads.iter();
        if let Some(place) = heads.position(|(text, _)| bytes.starts_with(text)) {
            last.0 = place as u8;
            return Ok(Some(self.heads[place].1));
        }
        let parsed = parse(bytes)?;
        if let Some(head) = parsed
            && head.bytes() <= MOST_BYTES
            && head.is_cacheable()
        {
            last.0 = self.remember(&bytes[..head.bytes()], head) as u8;
        }
        Ok(parsed)
    }

    fn remember(&mut self, text: &[u8], head: T) -> usize {
        let known = (text.into(), head);
        if self.heads.len() < MOST_HEADS {
            self.heads.push(known);
            return self.heads.len() - 1;
        }
        let place = self.oldest;
        self.heads[place] = known;
        self.oldest = (place + 1) % MOST_HEADS;
        place
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reply::{Head, parse};
    use super::*;

    fn head(number: usize) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {number}\r\n\r\n").into_bytes()
    }

    #[test]
    fn a_head_is_remembered_until_many_others_have_come() {
        let mut known = HeadCache::<Head>::new();
        let mut last = Last::default();
        for number in 0..3 * MOST_HEADS {
            let found = known
                .read(&head(number), &mut last, parse)
                .unwrap()
                .unwrap();
            assert_eq!(found, parse(&head(number)).unwrap().unwrap());
            assert_eq!(usize::from(last.0), number % MOST_HEADS);
        }
        assert_eq!(known.heads.len(), MOST_HEADS);
        // Another client finds what this one has cached.
        let mut other = Last::default();
        let number = 3 * MOST_HEADS - 2;
        known.read(&head(number), &mut other, parse).unwrap();
        assert_eq!(usize::from(other.0), MOST_HEADS - 2);
        assert_eq!(known.oldest, 0, "nothing was read anew");
    }

    #[test]
    fn long_and_broken_heads_are_not_cached() {
        let mut known = HeadCache::<Head>::new();
        let mut last = Last::default();
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MOST_BYTES));
        assert!(
            known
                .read(long.as_bytes(), &mut last, parse)
                .unwrap()
                .is_some()
        );
        assert!(known.read(b"SSH-2.0\r\n\r\n", &mut last, parse).is_err());
        let first = b"HTTP/1.1 100 Continue\r\n\r\n"; // the real reply follows
        assert!(known.read(first, &mut last, parse).unwrap().is_some());
        let whole = head(5);
        for cut in 0..whole.len() {
            assert!(
                known
                    .read(&whole[..cut], &mut last, parse)
                    .unwrap()
                    .is_none()
            );
        }
        assert!(known.heads.is_empty());
    }

    /// Almost valid replies, some of which share a prefix.
    fn nearly_a_reply() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 404 Not Found\n",
            "HTTP/1.0 200 OK\r\n",
            "HTTP/1.1 100 Continue\r\n",
            "Content-Length: 5\r\n",
            "Content-Length: 55\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Connection: close\r\n",
            "Server: throng\r\n",
            "\r\n",
            "\n",
            "\r",
            "x",
        ]);
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn cached_heads_equal_parsed_ones(
            replies in prop::collection::vec(nearly_a_reply(), 1..60),
        ) {
            let mut known = HeadCache::<Head>::new();
            let mut last = Last::default();
            for reply in replies.iter().chain(&replies) {
                let recalled = known.find(reply, last).copied();
                let parsed = parse(reply);
                if recalled.is_some() {
                    prop_assert_eq!(Ok(recalled), parsed.clone());
                }
                prop_assert_eq!(known.read(reply, &mut last, parse), parsed);
            }
        }
    }
}
