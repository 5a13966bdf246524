//! Frames (RFC 9113, sections 4 and 6).

use std::borrow::Cow;

use super::super::super::status;

/// Length of a frame's head in bytes.
pub(super) const HEAD: usize = 9;
/// The largest payload that either half accepts, and that it may send before the peer allows more.
pub(super) const MOST_PAYLOAD: u32 = 16_384;
/// The window of a connection or stream before any setting.
pub(super) const FIRST_WINDOW: u32 = 65_535;
/// The largest window, and the largest stream number.
pub(super) const MOST: u32 = (1 << 31) - 1;
/// Maximum size of the table for header blocks, before any setting.
pub(super) const TABLE: usize = 4096;
/// The first bytes of a client.
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
pub(super) const HAS_PRIORITY: u8 = 0x20;

/// An error code (section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub(super) u32);

impl Code {
    pub(super) const NO_ERROR: Self = Self(0);
    pub(super) const PROTOCOL: Self = Self(1);
    pub(super) const FLOW_CONTROL: Self = Self(3);
    pub(super) const STREAM_CLOSED: Self = Self(5);
    pub(super) const FRAME_SIZE: Self = Self(6);
    pub(super) const REFUSED: Self = Self(7);
    pub(super) const CANCEL: Self = Self(8);
    pub(super) const COMPRESSION: Self = Self(9);
    pub(super) const CALM: Self = Self(11);

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        status::code_name(self.0)
    }

    /// The status of a reply whose stream was reset with it.
    pub(super) fn status(self) -> u16 {
        status::RESET + self.0.min(99) as u16
    }
}

/// A violation by the peer that ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) code: Code,
    pub(super) what: &'static str,
}

/// The error for this violation.
#[cold]
pub(super) fn violation<T>(code: Code, what: &'static str) -> Result<T, Violation> {
    Err(Violation { code, what })
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn read(bytes: [u8; HEAD]) -> Self {
        let stream = [bytes[5], bytes[6], bytes[7], bytes[8]];
        Self {
            length: u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32::from_be_bytes(stream) & MOST,
        }
    }

    pub(super) fn bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..3].copy_from_slice(&self.length.to_be_bytes()[1..]);
        (bytes[3], bytes[4]) = (self.kind, self.flags);
        bytes[5..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }
}

/// Appends a frame.
pub(super) fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let head = FrameHead {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Appends a frame with a 32-bit number: WINDOW_UPDATE or RST_STREAM.
pub(super) fn write_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    write(out, kind, 0, stream, &number.to_be_bytes());
}

/// Appends SETTINGS with these values, by identifier.
pub(super) fn write_settings(out: &mut Vec<u8>, values: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(values.len() * 6);
    for (name, value) in values {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    write(out, SETTINGS, 0, 0, &payload);
}

/// Appends a header block, in as many frames as its length needs.
pub(super) fn write_block(out: &mut Vec<u8>, flags: u8, stream: u32, block: &[u8]) {
    let mut pieces = block.chunks(MOST_PAYLOAD as usize);
    let first = pieces.next().unwrap_or_default();
    let end = |rest: &std::slice::Chunks<'_, u8>| {
        if rest.len() == 0 { END_HEADERS } else { 0 }
    };
    write(out, HEADERS, flags | end(&pieces), stream, first);
    while let Some(piece) = pieces.next() {
        write(out, CONTINUATION, end(&pieces), stream, piece);
    }
}

/// The number in the payload of a WINDOW_UPDATE or RST_STREAM frame.
pub(super) fn number(payload: &[u8]) -> Result<u32, Violation> {
    match payload.try_into() {
        Ok(bytes) => Ok(u32::from_be_bytes(bytes)),
        Err(_) => violation(
            Code::FRAME_SIZE,
            "a frame with a number does not have 4 bytes",
        ),
    }
}

/// What a peer's settings change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PeerSettings {
    pub(super) most_streams: u32,
    /// The window of a new stream.
    pub(super) window: u32,
    pub(super) most_payload: u32,
    header_table: u32,
    /// Whether the table for header blocks was made smaller, which the next block must acknowledge.
    pub(super) shrinks_table: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            most_streams: MOST,
            window: FIRST_WINDOW,
            most_payload: MOST_PAYLOAD,
            header_table: TABLE as u32,
            shrinks_table: false,
        }
    }
}

pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;

impl PeerSettings {
    /// Applies the payload of a SETTINGS frame. Only a client may enable pushes.
    pub(super) fn apply(&mut self, payload: &[u8], most_push: u32) -> Result<(), Violation> {
        let (values, []) = payload.as_chunks::<6>() else {
            return violation(Code::FRAME_SIZE, "SETTINGS has a broken length");
        };
        for setting in values {
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            match u16::from_be_bytes([setting[0], setting[1]]) {
                HEADER_TABLE_SIZE => {
                    self.header_table = value;
                    self.shrinks_table |= (value as usize) < TABLE;
                }
                ENABLE_PUSH if value > most_push => {
                    return violation(Code::PROTOCOL, "ENABLE_PUSH has a wrong value");
                }
                MAX_CONCURRENT_STREAMS => self.most_streams = value,
                INITIAL_WINDOW_SIZE if value > MOST => {
                    return violation(Code::FLOW_CONTROL, "INITIAL_WINDOW_SIZE is above 2^31 - 1");
                }
                INITIAL_WINDOW_SIZE => self.window = value,
                MAX_FRAME_SIZE if !(MOST_PAYLOAD..1 << 24).contains(&value) => {
                    return violation(Code::PROTOCOL, "MAX_FRAME_SIZE is out of range");
                }
                MAX_FRAME_SIZE => self.most_payload = value,
                _ => {}
            }
        }
        Ok(())
    }

    /// What it allows, by the name of the setting.
    pub(super) fn limits(&self) -> [(&'static str, u32); 4] {
        [
            (MOST_STREAMS, self.most_streams),
            ("INITIAL_WINDOW_SIZE", self.window),
            ("MAX_FRAME_SIZE", self.most_payload),
            ("HEADER_TABLE_SIZE", self.header_table),
        ]
    }
}

/// The name of the setting that limits how many requests a connection may have open.
pub const MOST_STREAMS: &str = "MAX_CONCURRENT_STREAMS";

/// The next part of a stream of frames.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// Content of a DATA frame, without padding. The last piece of a frame has `is_last`.
    Data {
        head: FrameHead,
        content: &'a [u8],
        is_last: bool,
    },
    /// Any other frame, complete.
    Frame {
        head: FrameHead,
        payload: Cow<'a, [u8]>,
    },
}

/// Reads frames from bytes that arrive in any pieces.
#[derive(Debug, Default)]
pub(super) struct Frames(Option<Box<CutFrame>>);

/// A frame of which more is to come.
#[derive(Debug)]
enum CutFrame {
    /// The received part of a frame other than DATA, or of any head.
    Part(Vec<u8>),
    Data(DataFrame),
}

/// A DATA frame of which more is to come.
#[derive(Debug, Clone, Copy)]
struct DataFrame {
    head: FrameHead,
    /// Bytes to come, including padding.
    left: u32,
    /// How many of these are padding; unknown before the first byte of a padded frame.
    padding: Option<u32>,
}

impl Frames {
    /// Whether part of a frame was received.
    pub(super) fn is_within_frame(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the next piece from the front of `input`; `None` if more bytes are needed.
    #[inline]
    pub(super) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<Piece<'a>>, Violation> {
        if let Some(cut) = self.0.take() {
            return match *cut {
                CutFrame::Data(data) => self.data(data, input).map(Some),
                CutFrame::Part(part) => self.next_in_parts(part, input),
            };
        }
        if let Some(bytes) = input.first_chunk() {
            let head = FrameHead::read(*bytes);
            let end = HEAD + head.length as usize;
            let is_padded = head.kind == DATA && head.has(PADDED);
            if head.length <= MOST_PAYLOAD && !is_padded && input.len() >= end {
                let payload = &input[HEAD..end];
                *input = &input[end..];
                return Ok(Some(if head.kind == DATA {
                    Piece::Data {
                        head,
                        content: payload,
                        is_last: true,
                    }
                } else {
                    Piece::Frame {
                        head,
                        payload: Cow::Borrowed(payload),
                    }
                }));
            }
        }
        self.next_in_parts(Vec::new(), input)
    }

    fn next_in_parts<'a>(
        &mut self,
        mut part: Vec<u8>,
        input: &mut &'a [u8],
    ) -> Result<Option<Piece<'a>>, Violation> {
        collect(&mut part, input, HEAD);
        // The first byte of a length is 0 in every frame of a permitted size.
        if part.first().is_some_and(|byte| *byte > 0) {
            return violation(Code::FRAME_SIZE, "a frame is larger than 16,384 bytes");
        }
        let Some(bytes) = part.first_chunk() else {
            self.0 = Some(Box::new(CutFrame::Part(part)));
            return Ok(None);
        };
        let head = FrameHead::read(*bytes);
        if head.length > MOST_PAYLOAD {
            return violation(Code::FRAME_SIZE, "a frame is larger than 16,384 bytes");
        }
        if head.kind == DATA {
            let is_padded = head.has(PADDED);
            if is_padded && head.length == 0 {
                return violation(Code::FRAME_SIZE, "a padded frame is empty");
            }
            let data = DataFrame {
                head,
                left: head.length,
                padding: if is_padded { None } else { Some(0) },
            };
            if data.left > 0 && input.is_empty() {
                self.0 = Some(Box::new(CutFrame::Data(data)));
                return Ok(None);
            }
            return self.data(data, input).map(Some);
        }
        let end = HEAD + head.length as usize;
        collect(&mut part, input, end);
        if part.len() < end {
            self.0 = Some(Box::new(CutFrame::Part(part)));
            return Ok(None);
        }
        part.drain(..HEAD);
        Ok(Some(Piece::Frame {
            head,
            payload: Cow::Owned(part),
        }))
    }

    /// The next piece of a DATA frame.
    fn data<'a>(
        &mut self,
        mut data: DataFrame,
        input: &mut &'a [u8],
    ) -> Result<Piece<'a>, Violation> {
        let padding = match (data.padding, input.split_first()) {
            (Some(padding), _) => padding,
            (None, Some((byte, rest))) => {
                *input = rest;
                data.left -= 1;
                let padding = u32::from(*byte);
                if padding > data.left {
                    return violation(Code::PROTOCOL, "the padding is longer than its frame");
                }
                padding
            }
            (None, None) => {
                self.0 = Some(Box::new(CutFrame::Data(data)));
                return Ok(Piece::Data {
                    head: data.head,
                    content: &[],
                    is_last: false,
                });
            }
        };
        data.padding = Some(padding);
        let count = (data.left as usize).min(input.len());
        let (piece, rest) = input.split_at(count);
        *input = rest;
        let content = &piece[..count.min((data.left.saturating_sub(padding)) as usize)];
        data.left -= count as u32;
        data.padding = Some(padding.min(data.left));
        let is_last = data.left == 0;
        if !is_last {
            self.0 = Some(Box::new(CutFrame::Data(data)));
        }
        Ok(Piece::Data {
            head: data.head,
            content,
            is_last,
        })
    }
}

/// Moves bytes from the input to the part, until that has `length` bytes.
fn collect(part: &mut Vec<u8>, input: &mut &[u8], length: usize) {
    let missing = length.saturating_sub(part.len());
    let (piece, rest) = input.split_at(missing.min(input.len()));
    part.extend_from_slice(piece);
    *input = rest;
}

/// A header block that continues in further frames.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) ends_stream: bool,
    pub(super) bytes: Vec<u8>,
    frames: u32,
}

/// Maximum size of a header block in bytes, and of the frames that it comes in.
const MOST_BLOCK: usize = 64 * 1024;
const MOST_FRAMES: u32 = 64;

impl Block {
    pub(super) fn new(head: FrameHead, fragment: &[u8]) -> Self {
        Self {
            stream: head.stream,
            ends_stream: head.has(END_STREAM),
            bytes: fragment.to_vec(),
            frames: 1,
        }
    }

    /// Adds the payload of the next frame, which must continue this block. Returns whether it is complete.
    pub(super) fn add(&mut self, head: FrameHead, payload: &[u8]) -> Result<bool, Violation> {
        if (head.kind, head.stream) != (CONTINUATION, self.stream) {
            return violation(Code::PROTOCOL, "another frame comes within a header block");
        }
        self.frames += 1;
        self.bytes.extend_from_slice(payload);
        if self.bytes.len() > MOST_BLOCK || self.frames > MOST_FRAMES {
            return violation(
                Code::CALM,
                "a header block is longer than 64 KiB or has over 64 frames",
            );
        }
        Ok(head.has(END_HEADERS))
    }
}

/// The header block fragment in the payload of a HEADERS frame, without padding and priority.
pub(super) fn fragment(head: FrameHead, mut payload: &[u8]) -> Result<&[u8], Violation> {
    let mut padding = 0;
    if head.has(PADDED) {
        let Some((length, rest)) = payload.split_first() else {
            return violation(Code::FRAME_SIZE, "a padded frame is empty");
        };
        (padding, payload) = (usize::from(*length), rest);
    }
    if head.has(HAS_PRIORITY) {
        let Some((priority, rest)) = payload.split_at_checked(5) else {
            return violation(Code::FRAME_SIZE, "a priority is cut off");
        };
        check_priority(head.stream, priority)?;
        payload = rest;
    }
    match payload.len().checked_sub(padding) {
        Some(length) => Ok(&payload[..length]),
        None => violation(Code::PROTOCOL, "the padding is longer than its frame"),
    }
}

/// Checks that a stream does not depend on itself.
fn check_priority(stream: u32, priority: &[u8]) -> Result<(), Violation> {
    match priority.first_chunk() {
        Some(parent) if u32::from_be_bytes(*parent) & MOST == stream => {
            violation(Code::PROTOCOL, "a stream depends on itself")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frames as text, with the whole content of each DATA frame.
    fn read(
        pieces: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Vec<(FrameHead, Vec<u8>)>, Violation> {
        let mut frames = Frames::default();
        let (mut read, mut content) = (Vec::new(), Vec::new());
        for mut piece in pieces {
            while !piece.is_empty() {
                match frames.next(&mut piece)? {
                    None => {}
                    Some(Piece::Frame { head, payload }) => read.push((head, payload.into_owned())),
                    Some(Piece::Data {
                        head,
                        content: next,
                        is_last,
                    }) => {
                        content.extend_from_slice(next);
                        if is_last {
                            read.push((head, std::mem::take(&mut content)));
                        }
                    }
                }
            }
        }
        Ok(read)
    }

    #[test]
    fn padding_is_left_out_and_sizes_are_checked() {
        let mut wire = Vec::new();
        write(&mut wire, DATA, PADDED, 1, b"\x03abc\0\0\0");
        write(&mut wire, DATA, PADDED, 1, b"\x03\0\0\0");
        write(&mut wire, DATA, END_STREAM, 1, b"");
        let frames = read(&mut std::iter::once(&wire[..])).unwrap();
        let contents: Vec<&[u8]> = frames.iter().map(|(_, content)| &content[..]).collect();
        assert_eq!(contents, [&b"abc"[..], b"", b""]);
        for wrong in [
            &b"\0\0\0\0\x08\0\0\0\x01"[..],
            b"\0\0\x01\0\x08\0\0\0\x01\x01",
            b"\x01\0\0\0\0\0\0\0\x01",
            b"H",
        ] {
            assert!(read(&mut std::iter::once(wrong)).is_err());
            assert!(read(&mut wrong.chunks(1)).is_err());
        }
    }

    #[test]
    fn a_long_block_leaves_in_several_frames() {
        let block: Vec<u8> = (0..40_000_u32).map(|at| at as u8).collect();
        let mut wire = Vec::new();
        write_block(&mut wire, END_STREAM, 3, &block);
        let frames = read(&mut std::iter::once(&wire[..])).unwrap();
        let mut whole = Block::new(frames[0].0, &frames[0].1);
        assert!(whole.ends_stream && !frames[0].0.has(END_HEADERS));
        assert_eq!(whole.add(frames[1].0, &frames[1].1), Ok(false));
        assert_eq!(whole.add(frames[2].0, &frames[2].1), Ok(true));
        assert_eq!(whole.bytes, block);
        assert!(whole.add(frames[0].0, b"").is_err(), "not a continuation");
        let more = FrameHead {
            length: 0,
            kind: CONTINUATION,
            flags: 0,
            stream: 3,
        };
        assert!((0..MOST_FRAMES).any(|_| whole.add(more, b"").is_err()));
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_they_are_cut(
            bytes in prop::collection::vec(
                (0..12_u8, any::<u8>(), 0..9_u32, prop::collection::vec(0..4_u8, 0..40)), 1..8),
            cuts in prop::collection::vec(1..30_usize, 1..10),
        ) {
            let mut wire = Vec::new();
            for (kind, flags, stream, payload) in &bytes {
                write(&mut wire, *kind, *flags, *stream, payload);
            }
            let whole = read(&mut std::iter::once(&wire[..]));
            let mut rest = &wire[..];
            let mut cuts = cuts.iter().cycle();
            let mut pieces = std::iter::from_fn(|| {
                let (piece, after) = rest.split_at((*cuts.next()?).min(rest.len()));
                rest = after;
                (!piece.is_empty()).then_some(piece)
            });
            prop_assert_eq!(whole, read(&mut pieces));
        }
    }
}
