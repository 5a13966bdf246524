//! The client half.

use super::super::mix::following;
use super::super::{ProtocolError, Replies, Requester, Settings};
use super::frame::{Frame, Frames, Kind, Sender, close_status};
use super::opening::{MOST_HEAD, Refused};
use super::request_set::{RequestSet, control, request_set};

/// The statuses for normal closure and for going away.
const ORDERLY: [u16; 2] = [1000, 1001];

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was sent yet.
    New,
    /// The opening handshake was started.
    Opening,
    Open,
    /// The connection is closing.
    Closing,
}

/// Identifies a message.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The index of its size in the order.
    turn: usize,
    /// Selects its content among the messages of this size.
    number: usize,
}

impl Place {
    fn request(self, set: &'static RequestSet) -> &'static [u8] {
        let frames = set.order[self.turn];
        frames.request(self.number % frames.count)
    }

    fn reply(self, set: &'static RequestSet) -> &'static [u8] {
        let frames = set.order[self.turn];
        frames.reply(self.number % frames.count)
    }

    fn content(self, set: &'static RequestSet) -> &'static [u8] {
        &self.reply(set)[set.order[self.turn].head..]
    }

    fn following(self, set: &RequestSet) -> Self {
        Self {
            turn: following(self.turn, set.order.len()),
            number: self.number.wrapping_add(1),
        }
    }
}

/// The client half of one connection.
pub(super) struct WebsocketRequester {
    set: &'static RequestSet,
    phase: Phase,
    opening: usize,
    /// The received part of the reply to the opening handshake.
    part: Vec<u8>,
    /// The bytes being sent.
    leaving: &'static [u8],
    /// A control frame to be sent next.
    control: Option<&'static [u8]>,
    /// Messages begun of which no byte was sent.
    waiting: usize,
    /// The next message to send.
    next: Place,
    /// The oldest message that has not come back, or the next one, and the bytes expected for it.
    oldest: Place,
    due: &'static [u8],
    /// Number of messages begun that have not come back.
    unanswered: usize,
    frames: Frames,
    frame: Option<Frame>,
    /// How many bytes of the oldest message's content have come back.
    come: usize,
    /// The received content of an incomplete control frame.
    payload: Vec<u8>,
    /// The kind of the last error.
    fault: Option<&'static str>,
}

impl WebsocketRequester {
    pub(super) fn new(settings: &Settings, client: u64) -> Self {
        let set = request_set(settings);
        let first = Place {
            turn: set.first_frame(client),
            number: client as usize,
        };
        Self {
            set,
            phase: Phase::New,
            opening: set.first_opening(client),
            part: Vec::new(),
            leaving: &[],
            control: None,
            waiting: 0,
            next: first,
            oldest: first,
            due: first.reply(set),
            unanswered: 0,
            frames: Frames::of(Sender::Server),
            frame: None,
            come: 0,
            payload: Vec::new(),
            fault: None,
        }
    }

    /// Starts sending the next message, unless something is already being sent.
    fn send_next(&mut self) {
        if !self.leaving.is_empty() {
            return;
        }
        if self.phase == Phase::Open || self.phase == Phase::Closing {
            self.leaving = self.control.take().unwrap_or_default();
        }
        if self.leaving.is_empty() && self.phase == Phase::Open && self.waiting > 0 {
            self.waiting -= 1;
            self.leaving = self.next.request(self.set);
            self.next = self.next.following(self.set);
        }
    }

    fn expect(&mut self, place: Place) {
        self.oldest = place;
        self.due = place.reply(self.set);
        self.come = 0;
    }

    fn complete(&mut self) {
        self.expect(self.oldest.following(self.set));
        self.unanswered -= 1;
    }

    /// Consumes the reply to the opening handshake, or part of it, from the front of `input`.
    fn open(&mut self, input: &mut &[u8]) -> Result<(), Refused> {
        let before = self.part.len();
        let window = &input[..input.len().min(MOST_HEAD - before)];
        self.part.extend_from_slice(window);
        match self.set.openings[self.opening].check(&self.part)? {
            Some(count) => {
                *input = &input[count - before..];
                self.part = Vec::new(); // an idle client holds no buffer
                self.phase = Phase::Open;
                self.send_next();
            }
            None if self.part.len() == MOST_HEAD => {
                let what =
                    format!("a reply to the opening handshake of more than {MOST_HEAD} bytes");
                return Err(Refused::bad(what));
            }
            None => *input = &input[window.len()..],
        }
        Ok(())
    }

    #[inline(never)]
    fn receive_pieces(&mut self, mut input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut replies = Replies::default();
        while !input.is_empty() {
            match self.phase {
                Phase::New => {
                    let what = format!("{} bytes came before the opening handshake", input.len());
                    return Err(ProtocolError { what });
                }
                Phase::Opening => self
                    .open(&mut input)
                    .map_err(|refused| self.wrong(refused.kind, refused.what))?,
                // Bytes after a close frame are ignored.
                Phase::Closing => break,
                Phase::Open => replies.completed += self.take(&mut input)?,
            }
        }
        replies.close = self.phase == Phase::Closing;
        Ok(replies)
    }

    /// Processes a frame, or the part received; returns how many messages it completes.
    fn take(&mut self, input: &mut &[u8]) -> Result<u32, ProtocolError> {
        let mut current = match self.frame.take() {
            Some(frame) => frame,
            None => match self.frames.next(input) {
                Ok(None) => return Ok(0),
                Ok(Some(frame)) => {
                    self.check_kind(&frame)?;
                    frame
                }
                Err(fault) => return Err(self.wrong(fault.kind(), fault.what().to_owned())),
            },
        };
        let piece = current.take(input, usize::MAX);
        let mut completed = 0;
        if current.kind.is_control() {
            self.payload.extend_from_slice(piece);
            if current.is_whole() {
                let payload = std::mem::take(&mut self.payload);
                self.answer(current.kind, &payload)?;
            }
        } else {
            self.compare(piece)?;
            if current.is_whole() && current.is_final {
                self.check_length()?;
                self.complete();
                completed = 1;
            }
        }
        if !current.is_whole() {
            self.frame = Some(current);
        }
        Ok(completed)
    }

    fn check_kind(&mut self, frame: &Frame) -> Result<(), ProtocolError> {
        if frame.kind.is_control() {
            return Ok(());
        }
        if self.unanswered == 0 {
            let what = "a message arrived that the client did not send".to_owned();
            return Err(ProtocolError { what });
        }
        let Kind::Message { is_text } = frame.kind else {
            return Ok(());
        };
        if frame.kind != self.set.kind {
            let (is, instead) = if is_text {
                ("text", "binary")
            } else {
                ("binary", "text")
            };
            let what = format!("the echoed message is {is}, not {instead}");
            return Err(ProtocolError { what });
        }
        Ok(())
    }

    /// Compares the next bytes of a message with the bytes sent.
    fn compare(&mut self, piece: &[u8]) -> Result<(), ProtocolError> {
        let content = self.oldest.content(self.set);
        let expected = &content[self.come..];
        let length = piece.len().min(expected.len());
        if let Some(at) = (0..length).find(|&at| piece[at] != expected[at]) {
            let what = format!(
                "byte {} of the echoed message is {:#04x} instead of {:#04x}",
                self.come + at,
                piece[at],
                expected[at]
            );
            return Err(ProtocolError { what });
        }
        if piece.len() > length {
            let what = format!("the echoed message is longer than {} bytes", content.len());
            return Err(ProtocolError { what });
        }
        self.come += length;
        Ok(())
    }

    fn check_length(&self) -> Result<(), ProtocolError> {
        let length = self.oldest.content(self.set).len();
        if self.come == length {
            return Ok(());
        }
        let what = format!("{} of the {length} bytes of a message came back", self.come);
        Err(ProtocolError { what })
    }

    /// Answers a control frame.
    fn answer(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ProtocolError> {
        match kind {
            // If several pings arrive before an answer can be sent, only the last one is answered.
            Kind::Ping => {
                self.control = control(Kind::Pong, payload);
                if self.control.is_none() {
                    let what = "the server sent too many different pings".to_owned();
                    return Err(self.wrong("bad-frame", what));
                }
            }
            Kind::Close => {
                let status = match close_status(payload) {
                    Ok(status) => status,
                    Err(fault) => return Err(self.wrong(fault.kind(), fault.what().to_owned())),
                };
                if let Some(status) = status.filter(|status| !ORDERLY.contains(status)) {
                    let reason = payload[2..].escape_ascii();
                    let what =
                        format!("the server closed the connection with status {status} {reason}");
                    return Err(self.wrong("closed-with-status", what.trim_end().to_owned()));
                }
                self.phase = Phase::Closing;
                self.waiting = 0;
                self.control = control(Kind::Close, &payload[..payload.len().min(2)]);
            }
            _ => return Ok(()),
        }
        self.send_next();
        Ok(())
    }

    #[cold]
    fn wrong(&mut self, kind: &'static str, what: String) -> ProtocolError {
        self.fault = Some(kind);
        ProtocolError { what }
    }
}

impl Requester for WebsocketRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.unanswered += 1;
        self.waiting += 1;
        if self.phase == Phase::New {
            self.phase = Phase::Opening;
            self.leaving = &self.set.openings[self.opening].wire;
        } else {
            self.send_next();
        }
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        self.leaving
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.leaving = &self.leaving[count..];
        self.send_next();
        self.pending()
    }

    fn drop_requests(&mut self) {
        if self.phase != Phase::New {
            self.opening = following(self.opening, self.set.openings.len());
        }
        self.phase = Phase::New;
        (self.part, self.payload) = (Vec::new(), Vec::new());
        (self.leaving, self.control, self.waiting, self.unanswered) = (&[], None, 0, 0);
        (self.frames, self.frame) = (Frames::of(Sender::Server), None);
        self.fault = None;
        self.expect(self.next);
    }

    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError> {
        // The usual case is one complete message; its own branch keeps it short. No other frame can start like this,
        // and no other frame has arrived in part.
        if self.unanswered > 0
            && input == self.due
            && self.phase == Phase::Open
            && self.frame.is_none()
            && self.frames.is_between_messages()
        {
            self.complete();
            return Ok(Replies {
                completed: 1,
                ..Replies::default()
            });
        }
        self.receive_pieces(input)
    }

    fn closing_message(&mut self) -> &'static [u8] {
        if self.phase != Phase::Open || !self.leaving.is_empty() {
            return &[];
        }
        self.phase = Phase::Closing;
        control(Kind::Close, &ORDERLY[0].to_be_bytes()).unwrap_or_default()
    }

    fn fault(&self) -> Option<&'static str> {
        self.fault
    }
}

#[cfg(test)]
mod tests;
