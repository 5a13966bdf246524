//! Frames, parsed from bytes that arrive in pieces.

use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::super::LARGEST_SIZE;
use super::Fault;

/// Maximum bytes of a frame's head: two, plus eight for a length and four for a mask.
const MOST_HEAD: usize = 14;
/// Maximum bytes of a control frame's content.
pub(super) const MOST_CONTROL: usize = 125;

/// The sender of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Client,
    Server,
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first frame of a message, which is text or binary.
    Message {
        is_text: bool,
    },
    /// A continuation frame.
    More,
    Ping,
    Pong,
    Close,
}

impl Kind {
    pub(super) fn is_control(self) -> bool {
        matches!(self, Self::Ping | Self::Pong | Self::Close)
    }

    fn opcode(self) -> OpCode {
        match self {
            Self::Message { is_text: true } => OpCode::Data(Data::Text),
            Self::Message { is_text: false } => OpCode::Data(Data::Binary),
            Self::More => OpCode::Data(Data::Continue),
            Self::Ping => OpCode::Control(Control::Ping),
            Self::Pong => OpCode::Control(Control::Pong),
            Self::Close => OpCode::Control(Control::Close),
        }
    }

    fn of(opcode: OpCode) -> Result<Self, Fault> {
        Ok(match opcode {
            OpCode::Data(Data::Text) => Self::Message { is_text: true },
            OpCode::Data(Data::Binary) => Self::Message { is_text: false },
            OpCode::Data(Data::Continue) => Self::More,
            OpCode::Control(Control::Ping) => Self::Ping,
            OpCode::Control(Control::Pong) => Self::Pong,
            OpCode::Control(Control::Close) => Self::Close,
            OpCode::Data(Data::Reserved(_)) | OpCode::Control(Control::Reserved(_)) => {
                return Err(Fault::ReservedOpcode);
            }
        })
    }
}

/// A partially received frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// Whether it is the last frame of its message.
    pub(super) is_final: bool,
    pub(super) length: u64,
    mask: Option<[u8; 4]>,
    /// How many bytes of its content were processed.
    pub(super) taken: u64,
}

impl Frame {
    pub(super) fn is_whole(&self) -> bool {
        self.taken == self.length
    }

    /// Takes the next bytes of its content, still masked, but at most `most`.
    pub(super) fn take<'a>(&mut self, input: &mut &'a [u8], most: usize) -> &'a [u8] {
        let left = usize::try_from(self.length - self.taken).unwrap_or(usize::MAX);
        let (piece, rest) = input.split_at(input.len().min(left).min(most));
        *input = rest;
        self.taken += piece.len() as u64;
        piece
    }

    /// Unmasks the bytes that were taken last.
    pub(super) fn unmask(&self, piece: &mut [u8]) {
        if let Some(mask) = self.mask {
            let start = self.taken - piece.len() as u64;
            apply_mask(mask, start, piece);
        }
    }
}

/// Masks or unmasks bytes that start at offset `start` of a frame's content.
pub(super) fn apply_mask(mut mask: [u8; 4], start: u64, bytes: &mut [u8]) {
    mask.rotate_left((start % 4) as usize);
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (at, byte) in rest.iter_mut().enumerate() {
        *byte ^= mask[at % 4];
    }
}

/// Appends the head of a frame.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    kind: Kind,
    is_final: bool,
    mask: Option<[u8; 4]>,
    length: u64,
) {
    let header = FrameHeader {
        is_final,
        opcode: kind.opcode(),
        mask,
        ..FrameHeader::default()
    };
    let written = header.format(length, out);
    written.expect("memory can be written to");
}

/// Appends a complete frame.
pub(super) fn write(out: &mut Vec<u8>, kind: Kind, mask: Option<[u8; 4]>, content: &[u8]) {
    write_head(out, kind, true, mask, content.len() as u64);
    let start = out.len();
    out.extend_from_slice(content);
    if let Some(mask) = mask {
        apply_mask(mask, 0, &mut out[start..]);
    }
}

/// Parses the heads of frames, and checks their order.
#[derive(Debug)]
pub(super) struct Frames {
    sender: Sender,
    /// The received part of an incomplete head.
    head: [u8; MOST_HEAD],
    length: usize,
    /// Bytes so far of an incomplete message, if there is one.
    message: Option<u64>,
}

impl Frames {
    pub(super) fn of(sender: Sender) -> Self {
        Self {
            sender,
            head: [0; MOST_HEAD],
            length: 0,
            message: None,
        }
    }

    /// Whether no frame or message is incomplete.
    pub(super) fn is_between_messages(&self) -> bool {
        self.length == 0 && self.message.is_none()
    }

    /// Consumes the head of the next frame, or part of it, from the front of `input`.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, Fault> {
        let before = self.length;
        let count = input.len().min(MOST_HEAD - before);
        self.head[before..before + count].copy_from_slice(&input[..count]);
        let come = before + count;
        let mut cursor = Cursor::new(&self.head[..come]);
        let parsed = FrameHeader::parse(&mut cursor).map_err(|_| Fault::ReservedOpcode);
        let Some((header, length)) = self.checked_early(come, parsed)? else {
            *input = &input[count..];
            self.length = come;
            return Ok(None);
        };
        let used = cursor.position() as usize;
        *input = &input[used - before..];
        self.length = 0;
        if used != header.len(length) || length > i64::MAX as u64 {
            return Err(Fault::BadLength);
        }
        let frame = Frame {
            kind: Kind::of(header.opcode)?,
            is_final: header.is_final,
            length,
            mask: header.mask,
            taken: 0,
        };
        self.check_order(&frame)?;
        Ok(Some(frame))
    }

    /// Checks each of the first two bytes as soon as it has arrived, so that the result does not depend on the pieces.
    fn checked_early(
        &self,
        come: usize,
        parsed: Result<Option<(FrameHeader, u64)>, Fault>,
    ) -> Result<Option<(FrameHeader, u64)>, Fault> {
        if come == 0 {
            return Ok(None);
        }
        let [first, second] = [self.head[0], self.head[1]];
        if first & 0x70 != 0 {
            return Err(Fault::ReservedBits);
        }
        let kind = Kind::of(OpCode::from(first & 0x0f))?;
        if kind.is_control() && first & 0x80 == 0 {
            return Err(Fault::FragmentedControl);
        }
        if come < 2 {
            return Ok(None);
        }
        match (self.sender, second & 0x80 != 0) {
            (Sender::Client, false) => return Err(Fault::Unmasked),
            (Sender::Server, true) => return Err(Fault::Masked),
            _ => {}
        }
        if kind.is_control() && usize::from(second & 0x7f) > MOST_CONTROL {
            return Err(Fault::LongControl);
        }
        parsed
    }

    fn check_order(&mut self, frame: &Frame) -> Result<(), Fault> {
        let so_far = match (frame.kind, self.message) {
            (Kind::Ping | Kind::Pong | Kind::Close, _) => return Ok(()),
            (Kind::Message { .. }, None) => 0,
            (Kind::Message { .. }, Some(_)) => return Err(Fault::Interleaved),
            (Kind::More, None) => return Err(Fault::NothingToContinue),
            (Kind::More, Some(so_far)) => so_far,
        };
        let bytes = so_far + frame.length;
        if bytes > LARGEST_SIZE as u64 {
            return Err(Fault::TooLong);
        }
        self.message = (!frame.is_final).then_some(bytes);
        Ok(())
    }
}

/// The status in a close frame's content; `None` if it has none.
pub(super) fn close_status(content: &[u8]) -> Result<Option<u16>, Fault> {
    let Some((status, reason)) = content.split_first_chunk::<2>() else {
        return match content {
            [] => Ok(None),
            _ => Err(Fault::BadClose),
        };
    };
    let code = u16::from_be_bytes(*status);
    // Section 7.4: only some of the statuses below 3000 may be sent.
    let may_be_sent = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
    if !may_be_sent || str::from_utf8(reason).is_err() {
        return Err(Fault::BadClose);
    }
    Ok(Some(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Whole = (Kind, bool, Vec<u8>);

    /// The frames read from `wire` in pieces of `piece` bytes, and the fault that ends them.
    fn read(sender: Sender, wire: &[u8], piece: usize) -> (Vec<Whole>, Option<Fault>) {
        let mut frames = Frames::of(sender);
        let (mut read, mut current) = (Vec::new(), None::<(Frame, Vec<u8>)>);
        for mut input in wire.chunks(piece) {
            while !input.is_empty() {
                if current.is_none() {
                    match frames.next(&mut input) {
                        Ok(frame) => current = frame.map(|frame| (frame, Vec::new())),
                        Err(fault) => return (read, Some(fault)),
                    }
                }
                if let Some((frame, content)) = &mut current {
                    let mut piece = frame.take(&mut input, usize::MAX).to_vec();
                    frame.unmask(&mut piece);
                    content.extend(piece);
                    if frame.is_whole() {
                        read.push((frame.kind, frame.is_final, std::mem::take(content)));
                        current = None;
                    }
                }
            }
        }
        (read, None)
    }

    #[test]
    fn frames_are_read_as_they_were_written_however_they_are_cut() {
        let mut wire = Vec::new();
        let mut written = Vec::new();
        for (number, length) in [0, 1, 125, 126, 127, 1000, 65_535, 65_536, 70_001]
            .into_iter()
            .enumerate()
        {
            let content: Vec<u8> = (0..length).map(|at| (at * 7 + number) as u8).collect();
            write(
                &mut wire,
                Kind::Message { is_text: false },
                Some([1, 2, 3, number as u8]),
                &content,
            );
            write(&mut wire, Kind::Ping, Some([9; 4]), b"hello");
            written.push((Kind::Message { is_text: false }, true, content));
            written.push((Kind::Ping, true, b"hello".to_vec()));
        }
        for piece in [1, 2, 3, 5, 7, 14, 100, 65_536, wire.len()] {
            assert_eq!(
                read(Sender::Client, &wire, piece),
                (written.clone(), None),
                "{piece}"
            );
        }
    }

    #[test]
    fn examples_of_the_standard_are_read() {
        // RFC 6455, section 5.7.
        let masked = [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        let text = Kind::Message { is_text: true };
        let hello = (text, true, b"Hello".to_vec());
        assert_eq!(read(Sender::Client, &masked, 3).0, [hello]);
        let parts = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
        let expected = [
            (text, false, b"Hel".to_vec()),
            (Kind::More, true, b"lo".to_vec()),
        ];
        assert_eq!(read(Sender::Server, &parts, 4).0, expected);
    }

    #[test]
    fn faults_are_named_however_much_has_come() {
        let long = [0x82, 127, 0, 0, 0, 0, 0x04, 0, 0, 1];
        for (wire, fault) in [
            (&[0xc2, 0x00][..], Fault::ReservedBits),
            (&[0x92, 0x00], Fault::ReservedBits),
            (&[0x83, 0x00], Fault::ReservedOpcode),
            (&[0x8b, 0x00], Fault::ReservedOpcode),
            (&[0x82, 0x80], Fault::Masked),
            (&[0x89, 126], Fault::LongControl),
            (&[0x09, 0x00], Fault::FragmentedControl),
            (&[0x80, 0x00], Fault::NothingToContinue),
            (&[0x02, 0x00, 0x82, 0x00], Fault::Interleaved),
            (&[0x82, 126, 0, 125], Fault::BadLength),
            (&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Fault::BadLength),
            (&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], Fault::BadLength),
            (&long, Fault::TooLong),
        ] {
            for piece in 1..=wire.len() {
                assert_eq!(
                    read(Sender::Server, wire, piece).1,
                    Some(fault),
                    "{wire:x?}"
                );
            }
            assert!(!fault.what().is_empty());
        }
        assert_eq!(
            read(Sender::Client, &[0x82, 0x00], 1).1,
            Some(Fault::Unmasked)
        );
    }

    #[test]
    fn a_close_frame_has_a_code_or_is_empty() {
        for (content, status) in [
            (&b""[..], Ok(None)),
            (b"\x03\xe8", Ok(Some(1000))),
            (b"\x03\xe9bye", Ok(Some(1001))),
            (b"\x0f\xa0", Ok(Some(4000))),
            (b"\x03", Err(Fault::BadClose)),
            (b"\x03\xed", Err(Fault::BadClose)),
            (b"\x00\x00", Err(Fault::BadClose)),
            (b"\x03\xe8\xff", Err(Fault::BadClose)),
        ] {
            assert_eq!(close_status(content), status, "{content:x?}");
        }
    }
}
