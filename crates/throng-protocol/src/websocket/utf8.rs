//! Validates UTF-8 that arrives in pieces.

/// A validator that keeps an incomplete character.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    part: [u8; 4],
    length: usize,
}

impl Utf8 {
    /// Processes the next piece.
    ///
    /// # Errors
    /// The number of bytes before the first invalid one.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        while self.length > 0 {
            let Some(&byte) = piece.get(at) else {
                return Ok(());
            };
            self.part[self.length] = byte;
            match str::from_utf8(&self.part[..=self.length]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_some() => return Err(at),
                Err(_) => self.length += 1,
            }
            at += 1;
        }
        let rest = &piece[at..];
        let Err(error) = str::from_utf8(rest) else {
            return Ok(());
        };
        let wrong = &rest[error.valid_up_to()..];
        if let Some(length) = error.error_len() {
            // Either a byte that cannot begin a character, or the start of a character and a byte that does not
            // continue it.
            let begins = matches!(wrong[0], 0xc2..=0xf4);
            let before = if begins { length } else { 0 };
            return Err(at + error.valid_up_to() + before);
        }
        self.part[..wrong.len()].copy_from_slice(wrong);
        self.length = wrong.len();
        Ok(())
    }

    /// Whether the text can end here.
    pub(super) fn is_whole(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The length of the text that is accepted in these pieces, and whether all of it is valid.
    fn taken<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (usize, bool) {
        let mut utf8 = Utf8::default();
        let mut count = 0;
        for piece in pieces {
            match utf8.take(piece) {
                Ok(()) => count += piece.len(),
                Err(before) => return (count + before, false),
            }
        }
        (count, utf8.is_whole())
    }

    #[test]
    fn the_first_wrong_byte_is_found_however_text_is_cut() {
        for (text, right, is_whole) in [
            (&b""[..], 0, true),
            ("κόσμε€𝄞".as_bytes(), 17, true),
            (b"a\xff", 1, false),
            (b"a\xc3(", 2, false),
            (b"\xe2\x82", 2, false),
            (b"\xe2\x82(", 2, false),
            (b"\xf0\x9d\x84(", 3, false),
            (b"\xed\xa0\x80", 1, false),
            (b"\xc0\x80", 0, false),
            (b"\xe0\x80\x80", 1, false),
            (b"\xf4\x90\x80\x80", 1, false),
            (b"\xf5", 0, false),
            (b"ok\x80", 2, false),
        ] {
            for pieces in 1..=text.len().max(1) {
                assert_eq!(taken(text.chunks(pieces)), (right, is_whole), "{text:x?}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_standard_library(
            text in prop::collection::vec(prop::sample::select(
                vec![b'a', 0xc3, 0xa4, 0xe2, 0x82, 0xac, 0xf0, 0x9d, 0x84, 0x9e, 0x80, 0xff]), 0..20),
            size in 1_usize..6,
        ) {
            let is_right = str::from_utf8(&text).is_ok();
            prop_assert_eq!(taken(text.chunks(size)).1, is_right);
            prop_assert_eq!(taken(text.chunks(size)), taken(text.chunks(100)));
        }
    }
}
