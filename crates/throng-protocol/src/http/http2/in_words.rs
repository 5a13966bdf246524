//! Frames in words, for `throng load --debug`.

use std::io::Write as _;

use super::frame::{self, Code, FrameHead, Frames, MOST, PREFACE, Piece};
use super::hpack::{self, SharedTable};

/// The names of frames, by kind.
const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

/// The names of settings, from identifier 1.
const SETTINGS: [&str; 6] = [
    "HEADER_TABLE_SIZE",
    "ENABLE_PUSH",
    "MAX_CONCURRENT_STREAMS",
    "INITIAL_WINDOW_SIZE",
    "MAX_FRAME_SIZE",
    "MAX_HEADER_LIST_SIZE",
];

/// All frames of one direction of a connection, each with its content; `is_sent` by the client.
pub(super) fn in_words(is_sent: bool, mut bytes: &[u8]) -> Vec<u8> {
    let mut words = Words::default();
    if is_sent && let Some(rest) = bytes.strip_prefix(PREFACE) {
        words.shown.extend_from_slice(b"PRI * HTTP/2.0\n");
        bytes = rest;
    }
    let mut frames = Frames::default();
    while !bytes.is_empty() {
        match frames.next(&mut bytes) {
            Ok(Some(piece)) => words.add(&piece),
            Ok(None) => {}
            Err(violation) => {
                let _ = writeln!(words.shown, "not a frame: {}", violation.what);
                break;
            }
        }
    }
    words.shown
}

#[derive(Default)]
struct Words {
    shown: Vec<u8>,
    table: SharedTable,
    /// A header block of which more is to come.
    block: Vec<u8>,
    is_within_data: bool,
}

impl Words {
    fn add(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Data {
                head,
                content,
                is_last,
            } => {
                if !self.is_within_data {
                    self.head(*head);
                }
                self.is_within_data = !is_last;
                self.shown.extend_from_slice(content);
                if *is_last && !self.shown.ends_with(b"\n") {
                    self.shown.push(b'\n');
                }
            }
            Piece::Frame { head, payload } => {
                self.head(*head);
                self.content(*head, payload);
            }
        }
    }

    /// "HEADERS, stream 1, END_STREAM".
    fn head(&mut self, head: FrameHead) {
        let kind = KINDS.get(usize::from(head.kind)).copied();
        self.shown
            .extend_from_slice(kind.unwrap_or("unknown frame").as_bytes());
        if head.stream > 0 {
            let _ = write!(self.shown, ", stream {}", head.stream);
        }
        let ends = [frame::DATA, frame::HEADERS].contains(&head.kind);
        if ends && head.has(frame::END_STREAM) {
            self.shown.extend_from_slice(b", END_STREAM");
        }
        if !ends && head.has(frame::ACK) {
            self.shown.extend_from_slice(b", ACK");
        }
        if head.kind == frame::DATA {
            let _ = write!(self.shown, ", {} bytes", head.length);
        }
        self.shown.push(b'\n');
    }

    fn content(&mut self, head: FrameHead, payload: &[u8]) {
        let chunk = |at: usize| payload.get(at..).and_then(|rest| rest.first_chunk());
        let number = |at: usize| chunk(at).map(|bytes| u32::from_be_bytes(*bytes));
        match head.kind {
            frame::HEADERS | frame::CONTINUATION => {
                let fragment = match head.kind {
                    frame::HEADERS => frame::fragment(head, payload).unwrap_or_default(),
                    _ => payload,
                };
                self.block.extend_from_slice(fragment);
                if head.has(frame::END_HEADERS) {
                    self.fields();
                }
            }
            frame::SETTINGS => {
                for setting in payload.as_chunks::<6>().0 {
                    let name = usize::from(u16::from_be_bytes([setting[0], setting[1]]));
                    let value =
                        u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    let known = SETTINGS
                        .get(name.wrapping_sub(1))
                        .copied()
                        .map_or_else(|| format!("setting {name}"), str::to_owned);
                    let _ = writeln!(self.shown, "  {known}: {value}");
                }
            }
            frame::WINDOW_UPDATE => {
                if let Some(more) = number(0) {
                    let _ = writeln!(self.shown, "  {} bytes more", more & MOST);
                }
            }
            frame::RST_STREAM => {
                if let Some(code) = number(0) {
                    let _ = writeln!(self.shown, "  {}", Code(code).name());
                }
            }
            frame::GOAWAY => {
                if let (Some(last), Some(code)) = (number(0), number(4)) {
                    let reason = payload.get(8..).unwrap_or_default().escape_ascii();
                    let (code, last) = (Code(code).name(), last & MOST);
                    let _ = writeln!(self.shown, "  {code}, last stream {last} {reason}");
                }
            }
            _ => {}
        }
    }

    /// The fields of a complete header block.
    fn fields(&mut self) {
        let block = std::mem::take(&mut self.block);
        let shown = &mut self.shown;
        let read = hpack::decode(&mut self.table, &block, &mut |name, value| {
            shown.extend_from_slice(&[b"  ", name, b": ", value, b"\n"].concat());
        });
        if let Err(violation) = read {
            let _ = writeln!(self.shown, "  {}", violation.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_shown_with_their_content() {
        let mut bytes = PREFACE.to_vec();
        frame::write_settings(&mut bytes, &[(frame::ENABLE_PUSH, 0), (99, 7)]);
        frame::write_number(&mut bytes, frame::WINDOW_UPDATE, 0, 1000);
        let mut block = Vec::new();
        hpack::push_field(":method", "GET", &mut block);
        hpack::push_field("accept", "text/html", &mut block);
        frame::write_block(&mut bytes, frame::END_STREAM, 1, &block);
        frame::write(&mut bytes, frame::DATA, 0, 3, b"hello");
        frame::write(&mut bytes, frame::SETTINGS, frame::ACK, 0, &[]);
        frame::write(
            &mut bytes,
            frame::GOAWAY,
            0,
            0,
            &[0, 0, 0, 5, 0, 0, 0, 11, b'x'],
        );
        let words = in_words(true, &bytes);
        assert_eq!(
            String::from_utf8(words).unwrap(),
            "PRI * HTTP/2.0\nSETTINGS\n  ENABLE_PUSH: 0\n  setting 99: 7\nWINDOW_UPDATE\n  1000 bytes more\n\
             HEADERS, stream 1, END_STREAM\n  :method: GET\n  accept: text/html\nDATA, stream 3, 5 bytes\nhello\n\
             SETTINGS, ACK\nGOAWAY\n  ENHANCE_YOUR_CALM, last stream 5 x\n"
        );
        // Other protocols have no frames.
        let wrong = in_words(false, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        assert!(
            wrong.starts_with(b"not a frame"),
            "{}",
            wrong.escape_ascii()
        );
    }
}
