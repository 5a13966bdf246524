//! Bodies in chunked transfer coding (RFC 9112, section 7.1).

use super::wrong::{Fault, WrongReply};

/// Maximum bytes other than content: extensions of a chunk's size, or the trailer.
const MOST_ASIDE: usize = 8 * 1024;

/// State of reading a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunks {
    place: Place,
    /// Bytes other than content since the last chunk.
    aside: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the size of a chunk, after this many digits.
    Size { size: u64, digits: u8 },
    /// After the digits, up to the end of the line.
    Extension { size: u64 },
    /// After the carriage return that ends this line.
    SizeEnd { size: u64 },
    /// Within a chunk, with this many bytes left.
    Content { left: u64 },
    /// After the content of a chunk, before the end of its line.
    ContentEnd { returned: bool },
    /// After the last chunk, in a line with this many bytes so far.
    Trailer { bytes: usize },
    /// After the carriage return of a trailer line.
    TrailerEnd { bytes: usize },
    /// The body is complete.
    Over,
}

/// The next part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunkPart<'a> {
    /// Part of the content.
    Content(&'a [u8]),
    /// The end of the body.
    End,
    /// Nothing; the input is incomplete.
    Nothing,
}

impl Default for Chunks {
    /// Before the first chunk.
    fn default() -> Self {
        Self {
            place: Place::Size { size: 0, digits: 0 },
            aside: 0,
        }
    }
}

impl Chunks {
    /// Consumes bytes from the front of `input`, up to the next part.
    ///
    /// # Errors
    /// If the bytes are invalid.
    pub(super) fn read<'a>(&mut self, input: &mut &'a [u8]) -> Result<ChunkPart<'a>, WrongReply> {
        while let Some((&byte, rest)) = input.split_first() {
            if let Place::Content { left } = &mut self.place {
                let count = input
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                let (content, after) = input.split_at(count);
                *input = after;
                *left -= count as u64;
                if *left == 0 {
                    self.place = Place::ContentEnd { returned: false };
                    self.aside = 0;
                }
                return Ok(ChunkPart::Content(content));
            }
            *input = rest;
            self.aside += 1;
            if self.aside > MOST_ASIDE {
                return Err(wrong("has too many bytes besides its content", byte));
            }
            self.place = next(self.place, byte)?;
            if self.place == Place::Over {
                return Ok(ChunkPart::End);
            }
        }
        Ok(ChunkPart::Nothing)
    }
}

/// The state after a byte that is not content.
fn next(place: Place, byte: u8) -> Result<Place, WrongReply> {
    let after_size = |size| match size {
        0 => Place::Trailer { bytes: 0 },
        left => Place::Content { left },
    };
    Ok(match (place, byte) {
        (Place::Size { size, digits }, byte) if byte.is_ascii_hexdigit() => {
            if digits == 16 {
                return Err(wrong("has a size that is too large", byte));
            }
            let digit = char::from(byte).to_digit(16).unwrap_or(0);
            Place::Size {
                size: size << 4 | u64::from(digit),
                digits: digits + 1,
            }
        }
        (Place::Size { digits: 0, .. }, byte) => return Err(wrong("has no size", byte)),
        (Place::Size { size, .. } | Place::Extension { size }, b'\r') => Place::SizeEnd { size },
        (Place::Size { size, .. } | Place::Extension { size } | Place::SizeEnd { size }, b'\n') => {
            after_size(size)
        }
        (Place::Size { size, .. }, b';' | b' ' | b'\t') | (Place::Extension { size }, _) => {
            Place::Extension { size }
        }
        (Place::ContentEnd { returned: false }, b'\r') => Place::ContentEnd { returned: true },
        (Place::ContentEnd { .. }, b'\n') => Place::Size { size: 0, digits: 0 },
        (Place::Trailer { bytes }, b'\r') => Place::TrailerEnd { bytes },
        (Place::Trailer { bytes: 0 } | Place::TrailerEnd { bytes: 0 }, b'\n') => Place::Over,
        (Place::Trailer { .. } | Place::TrailerEnd { .. }, b'\n') => Place::Trailer { bytes: 0 },
        (Place::Trailer { bytes }, _) => Place::Trailer { bytes: bytes + 1 },
        (_, byte) => return Err(wrong("has no line end", byte)),
    })
}

#[cold]
fn wrong(what: &str, byte: u8) -> WrongReply {
    WrongReply {
        kind: Fault::Chunk,
        what: format!("a chunk {what}: {byte:#04x}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The content of a body and what follows it, cut at `cut`; `None` if the body has not ended.
    fn read(wire: &[u8], cut: usize) -> Result<(Vec<u8>, Option<Vec<u8>>), WrongReply> {
        let mut chunks = Chunks::default();
        let mut content = Vec::new();
        let (first, second) = wire.split_at(cut);
        for (mut piece, after) in [(first, second), (second, &[][..])] {
            loop {
                match chunks.read(&mut piece)? {
                    ChunkPart::Content(bytes) => content.extend_from_slice(bytes),
                    ChunkPart::End => return Ok((content, Some([piece, after].concat()))),
                    ChunkPart::Nothing => break,
                }
            }
        }
        Ok((content, None))
    }

    #[test]
    fn chunks_are_put_together_cut_at_every_byte() {
        let wire = b"4\r\nWiki\r\n1A;name=\"v\"\r\npedia in twenty-six bytes!\r\n00\r\n\
                     Expires: never\r\nX:y\r\n\r\nHTTP";
        for cut in 0..=wire.len() {
            let (content, after) = read(wire, cut).unwrap();
            assert_eq!(content, b"Wikipedia in twenty-six bytes!", "cut at {cut}");
            assert_eq!(after.unwrap(), b"HTTP");
        }
        assert_eq!(read(&wire[..wire.len() - 5], 3).unwrap().1, None);
    }

    #[test]
    fn an_empty_body_is_a_last_chunk() {
        assert_eq!(read(b"0\r\n\r\n", 2).unwrap(), (vec![], Some(vec![])));
        assert_eq!(read(b"0\n\n", 1).unwrap(), (vec![], Some(vec![])));
    }

    #[test]
    fn invalid_chunks_are_rejected() {
        for wire in [
            &b"\r\n"[..],
            b"x\r\n",
            b"-1\r\n",
            b"1x\r\n",
            b"2\r\nabc\r\n",
            b"1\rX",
            b"1\r\na\r\r\n",
            b"11111111111111111\r\n",
            &[b"1;", &[b'x'; MOST_ASIDE][..]].concat(),
            &[b"0\r\n", &b"a:b\r\n".repeat(MOST_ASIDE / 5)[..]].concat(),
        ] {
            for cut in [0, wire.len() / 2, wire.len()] {
                assert!(read(wire, cut).is_err(), "{}", wire.escape_ascii());
            }
        }
        assert_eq!(read(b"ffffffffffffffff\r\nab", 4).unwrap().0, b"ab");
    }

    proptest! {
        #[test]
        fn garbage_is_no_trouble(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&garbage, garbage.len() / 2);
        }
    }
}
