//! Searches for a text in bytes that arrive in pieces, without keeping any.

use memchr::memmem::Finder;

/// The text to find.
#[derive(Debug)]
pub(in super::super) struct Needle {
    finder: Finder<'static>,
    /// For each number of matched bytes, less one, the number that still match after a mismatch (Knuth, Morris and
    /// Pratt, 1977).
    fallback: Vec<usize>,
}

impl Needle {
    /// `text` must not be empty.
    pub(in super::super) fn new(text: &[u8]) -> Self {
        let mut fallback = vec![0; text.len()];
        let mut found = 0;
        for at in 1..text.len() {
            found = advance(text, &fallback, found, text[at]);
            fallback[at] = found;
        }
        Self {
            finder: Finder::new(text).into_owned(),
            fallback,
        }
    }

    /// The end of the first occurrence in `input`, if earlier pieces ended with its first `found` bytes.
    pub(in super::super) fn find(&self, found: &mut usize, input: &[u8]) -> Option<usize> {
        let needle = self.finder.needle();
        // It may have started in an earlier piece.
        let mut used = 0;
        while *found > 0 && used < input.len() {
            *found = advance(needle, &self.fallback, *found, input[used]);
            used += 1;
            if *found == needle.len() {
                return Some(used);
            }
        }
        if let Some(at) = self.finder.find(&input[used..]) {
            return Some(used + at + needle.len());
        }
        // A match may start here and continue in the next piece.
        let tail = used.max((input.len() + 1).saturating_sub(needle.len()));
        for &byte in &input[tail..] {
            *found = advance(needle, &self.fallback, *found, byte);
        }
        None
    }
}

/// The number of matched bytes after one more byte.
fn advance(text: &[u8], fallback: &[usize], mut found: usize, byte: u8) -> usize {
    while found > 0 && text[found] != byte {
        found = fallback[found - 1];
    }
    found + usize::from(text[found] == byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_found_however_the_bytes_are_cut(
            needle in prop::collection::vec(b'a'..=b'b', 1..6),
            bytes in prop::collection::vec(b'a'..=b'b', 0..60),
            cuts in prop::collection::vec(0_usize..60, 0..8),
        ) {
            let first = bytes.windows(needle.len()).position(|window| window == needle);
            let right = first.map(|at| at + needle.len());
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
            ends.push(bytes.len());
            ends.sort_unstable();
            let needle = Needle::new(&needle);
            let (mut found, mut from, mut ended) = (0, 0, None);
            for end in ends {
                if ended.is_none() {
                    let used = needle.find(&mut found, &bytes[from..end]);
                    ended = used.map(|used| from + used);
                }
                from = end;
            }
            prop_assert_eq!(ended, right);
        }
    }
}
