//! The server half: an echo.
//!
//! Each frame of a message is sent back as it arrives, so that no message is ever kept, however long. Text is
//! validated on the way. An error in the middle of a frame ends the connection without a close frame, because that
//! would have to come between frames.

use super::super::{Close, OUTPUT_LIMIT, ProtocolError, Session, Step};
use super::Fault;
use super::frame::{self, Frame, Frames, Kind, Sender, close_status};
use super::opening::{self, MOST_HEAD, Refusal};
use super::utf8::Utf8;

/// The server half of one connection.
pub(super) struct WebsocketSession {
    /// The received part of the opening handshake; `None` once it is complete.
    opening: Option<Vec<u8>>,
    frames: Frames,
    /// The current frame.
    frame: Option<Frame>,
    /// The received content of a control frame.
    control: Vec<u8>,
    /// The state of a text message.
    text: Option<Utf8>,
    /// The violation that ends the connection once earlier requests are counted.
    broken: Option<Violation>,
}

/// A violation by the client.
#[derive(Debug, Clone, Copy)]
struct Violation {
    fault: Fault,
    /// Whether the server is in the middle of sending a frame, so that no close frame can follow.
    within_frame: bool,
}

impl Violation {
    fn end(self, out: &mut Vec<u8>) -> ProtocolError {
        if !self.within_frame {
            let status = self.fault.status().to_be_bytes();
            frame::write(out, Kind::Close, None, &status);
        }
        self.fault.into()
    }
}

impl From<Fault> for Violation {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            within_frame: false,
        }
    }
}

impl Default for WebsocketSession {
    fn default() -> Self {
        Self {
            opening: Some(Vec::new()),
            frames: Frames::of(Sender::Client),
            frame: None,
            control: Vec::new(),
            text: None,
            broken: None,
        }
    }
}

impl Session for WebsocketSession {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        if let Some(broken) = self.broken.take() {
            return Err(broken.end(out));
        }
        let mut step = Step::default();
        let mut rest = input;
        if self.opening.is_some() {
            self.open(&mut rest, out)?;
        }
        while self.opening.is_none()
            && !rest.is_empty()
            && step.close == Close::No
            && out.len() < OUTPUT_LIMIT
        {
            match self.take(&mut rest, out, &mut step) {
                Ok(()) => {}
                Err(broken) if step.requests > 0 => {
                    // Earlier requests are counted first; then the last byte is passed again.
                    self.broken = Some(broken);
                    step.consumed = (input.len() - rest.len()).min(input.len() - 1);
                    return Ok(step);
                }
                Err(broken) => return Err(broken.end(out)),
            }
        }
        step.consumed = input.len() - rest.len();
        Ok(step)
    }

    fn is_within_request(&self) -> bool {
        match &self.opening {
            Some(part) => !part.is_empty(),
            None => self.frame.is_some() || !self.frames.is_between_messages(),
        }
    }
}

impl WebsocketSession {
    /// Consumes the opening handshake, or part of it, from the front of `input`.
    fn open(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let Some(part) = &mut self.opening else {
            return Ok(());
        };
        let before = part.len();
        let window = &input[..input.len().min(MOST_HEAD - before)];
        part.extend_from_slice(window);
        let refusal = match opening::answer(part) {
            Ok(Some((reply, count))) => {
                out.extend_from_slice(reply.as_bytes());
                *input = &input[count - before..];
                self.opening = None;
                return Ok(());
            }
            Ok(None) if part.len() < MOST_HEAD => {
                *input = &input[window.len()..];
                return Ok(());
            }
            Ok(None) => Refusal::TooLarge,
            Err(refusal) => refusal,
        };
        out.extend_from_slice(refusal.reply().as_bytes());
        Err(ProtocolError {
            what: refusal.what().to_owned(),
        })
    }

    /// Processes a frame, or part of it.
    fn take(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
        step: &mut Step,
    ) -> Result<(), Violation> {
        let mut current = match self.frame.take() {
            Some(frame) => frame,
            None => match self.frames.next(input) {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => {
                    self.begin(&frame, out);
                    frame
                }
                Err(fault) => return Err(fault.into()),
            },
        };
        if current.kind.is_control() {
            self.control(&mut current, input, out, step)?;
        } else {
            self.echo(&mut current, input, out)?;
            if current.is_whole() && current.is_final {
                if self.text.take().is_some_and(|text| !text.is_whole()) {
                    return Err(Fault::InvalidUtf8.into());
                }
                step.requests += 1;
            }
        }
        if !current.is_whole() {
            self.frame = Some(current);
        }
        Ok(())
    }

    fn begin(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        if frame.kind.is_control() {
            return;
        }
        if frame.kind == (Kind::Message { is_text: true }) {
            self.text = Some(Utf8::default());
        }
        frame::write_head(out, frame.kind, frame.is_final, None, frame.length);
    }

    fn echo(
        &mut self,
        current: &mut Frame,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let start = out.len();
        let room = OUTPUT_LIMIT.saturating_sub(start).max(1);
        out.extend_from_slice(current.take(input, room));
        current.unmask(&mut out[start..]);
        if let Some(text) = &mut self.text
            && let Err(before) = text.take(&out[start..])
        {
            out.truncate(start + before);
            return Err(Violation {
                fault: Fault::InvalidUtf8,
                within_frame: true,
            });
        }
        Ok(())
    }

    fn control(
        &mut self,
        current: &mut Frame,
        input: &mut &[u8],
        out: &mut Vec<u8>,
        step: &mut Step,
    ) -> Result<(), Violation> {
        let start = self.control.len();
        self.control
            .extend_from_slice(current.take(input, usize::MAX));
        current.unmask(&mut self.control[start..]);
        if !current.is_whole() {
            return Ok(());
        }
        let content = std::mem::take(&mut self.control);
        match current.kind {
            Kind::Ping => frame::write(out, Kind::Pong, None, &content),
            Kind::Close => {
                close_status(&content)?;
                let status = &content[..content.len().min(2)];
                frame::write(out, Kind::Close, None, status);
                step.close = Close::Yes;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::pattern::noise;
    use super::super::opening::Opening;
    use super::*;

    const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);

    fn text(is_text: bool) -> Kind {
        Kind::Message { is_text }
    }

    /// The opening handshake of a client, and its answer.
    fn opened() -> (Vec<u8>, Vec<u8>) {
        let opening = Opening::new(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", 5);
        let (reply, _) = opening::answer(&opening.wire).unwrap().unwrap();
        (opening.wire, reply.into_bytes())
    }

    #[derive(Debug, Default, PartialEq)]
    struct Outcome {
        out: Vec<u8>,
        requests: u64,
        close: Close,
        fault: Option<String>,
    }

    /// The server's output for these pieces, without the reply to the opening handshake.
    fn exchange<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let (wire, reply) = opened();
        let mut session = WebsocketSession::default();
        let (mut outcome, mut out) = (Outcome::default(), Vec::new());
        assert_eq!(
            session.receive(&wire, &mut out).unwrap().consumed,
            wire.len()
        );
        assert_eq!(out, reply);
        for mut piece in pieces {
            while !piece.is_empty() && outcome.close == Close::No {
                out.clear();
                let step = session.receive(piece, &mut out);
                outcome.out.extend_from_slice(&out);
                match step {
                    Ok(step) => {
                        outcome.requests += step.requests;
                        outcome.close = step.close;
                        piece = &piece[step.consumed..];
                    }
                    Err(error) => {
                        outcome.fault = Some(error.what);
                        return outcome;
                    }
                }
            }
        }
        outcome
    }

    fn cut_everywhere(wire: &[u8], expected: &Outcome) {
        for cut in 0..=wire.len() {
            assert_eq!(
                exchange([&wire[..cut], &wire[cut..]]),
                *expected,
                "cut at {cut}"
            );
        }
        assert_eq!(exchange(wire.chunks(1)), *expected, "byte by byte");
    }

    #[test]
    fn messages_and_pings_come_back_and_closing_ends_it() {
        let (mut wire, mut out) = (Vec::new(), Vec::new());
        for (kind, content) in [
            (text(true), "Grüße".as_bytes()),
            (text(false), b"\xff\x00"),
            (text(true), b""),
        ] {
            frame::write(&mut wire, kind, MASK, content);
            frame::write(&mut out, kind, None, content);
        }
        // A message in parts that split a character, with control frames in between.
        let parts = [
            (text(true), false, &b"\xe2\x82"[..]),
            (Kind::More, false, b""),
            (Kind::More, true, b"\xac"),
        ];
        for (kind, is_final, content) in parts {
            for (to, mask) in [(&mut wire, MASK), (&mut out, None)] {
                frame::write_head(to, kind, is_final, mask, content.len() as u64);
                let start = to.len();
                to.extend_from_slice(content);
                frame::apply_mask(mask.unwrap_or_default(), 0, &mut to[start..]);
            }
            frame::write(&mut wire, Kind::Pong, MASK, b"unasked");
            frame::write(&mut wire, Kind::Ping, MASK, b"are you there?");
            frame::write(&mut out, Kind::Pong, None, b"are you there?");
        }
        frame::write(&mut wire, Kind::Close, MASK, b"\x03\xe8bye");
        frame::write(&mut out, Kind::Close, None, b"\x03\xe8");
        let expected = Outcome {
            out,
            requests: 4,
            close: Close::Yes,
            fault: None,
        };
        cut_everywhere(&wire, &expected);
    }

    #[test]
    fn faults_close_with_their_status() {
        let frame = |kind, mask, content: &[u8]| {
            let mut wire = Vec::new();
            frame::write(&mut wire, kind, mask, content);
            wire
        };
        let long = vec![0; 126];
        for (wire, fault, status) in [
            (frame(text(false), None, b"x"), Fault::Unmasked, 1002_u16),
            (frame(Kind::Ping, MASK, &long), Fault::LongControl, 1002),
            (
                frame(Kind::More, MASK, b"x"),
                Fault::NothingToContinue,
                1002,
            ),
            (frame(Kind::Close, MASK, b"x"), Fault::BadClose, 1002),
            (vec![0xd2, 0x80, 0, 0, 0, 0], Fault::ReservedBits, 1002),
            (
                vec![0x82, 0xff, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0],
                Fault::TooLong,
                1009,
            ),
            (
                frame(text(true), MASK, b"\xe2\x82"),
                Fault::InvalidUtf8,
                1007,
            ),
        ] {
            let mut sent = Vec::new();
            frame::write(&mut sent, text(true), MASK, b"ok");
            sent.extend(&wire);
            let mut out = Vec::new();
            frame::write(&mut out, text(true), None, b"ok");
            if fault == Fault::InvalidUtf8 {
                frame::write(&mut out, text(true), None, b"\xe2\x82");
            }
            frame::write(&mut out, Kind::Close, None, &status.to_be_bytes());
            let expected = Outcome {
                out,
                requests: 1,
                close: Close::No,
                fault: Some(fault.what().to_owned()),
            };
            cut_everywhere(&sent, &expected);
        }
        let wrong = frame(text(true), MASK, b"ab\xffcd");
        let expected = Outcome {
            out: b"\x81\x05ab".to_vec(),
            fault: Some(Fault::InvalidUtf8.what().to_owned()),
            ..Outcome::default()
        };
        cut_everywhere(&wrong, &expected);
    }

    #[test]
    fn plain_http_gets_426() {
        let mut out = Vec::new();
        let mut session = WebsocketSession::default();
        assert!(
            session
                .receive(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", &mut out)
                .is_err()
        );
        assert!(out.starts_with(b"HTTP/1.1 426 Upgrade Required\r\n"));
        let mut session = WebsocketSession::default();
        out.clear();
        let endless = vec![b'a'; MOST_HEAD + 10];
        let head = [b"GET / HTTP/1.1\r\nX: ", &endless[..]].concat();
        assert!(
            head.chunks(1000)
                .any(|piece| session.receive(piece, &mut out).is_err())
        );
        assert!(out.starts_with(b"HTTP/1.1 431 "));
    }

    #[test]
    fn a_long_message_leaves_in_bounded_parts() {
        let content: Vec<u8> = noise().take(3 * OUTPUT_LIMIT + 7).collect();
        let (mut wire, mut out) = (Vec::new(), Vec::new());
        frame::write(&mut wire, text(false), MASK, &content);
        frame::write(&mut out, text(false), None, &content);
        let mut session = WebsocketSession {
            opening: None,
            ..WebsocketSession::default()
        };
        let (mut rest, mut outcome) = (&wire[..], Vec::new());
        while !rest.is_empty() {
            let mut piece = Vec::new();
            rest = &rest[session.receive(rest, &mut piece).unwrap().consumed..];
            assert!(piece.len() <= OUTPUT_LIMIT + 14);
            outcome.extend(piece);
        }
        assert!(outcome == out);
    }
}
