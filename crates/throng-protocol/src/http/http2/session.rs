//! The server half.
//!
//! A request is answered when all of it has arrived. Its text leaves as far as the windows and the output limit
//! permit; while the limit holds it up, the last byte of a frame is not consumed, so that this half is called again
//! when there is room. So what is sent never depends on the pieces in which requests arrive.

use std::cell::RefCell;
use std::thread::LocalKey;

use super::super::super::pattern::Interned;
use super::super::super::{Close, OUTPUT_LIMIT, ProtocolError, Session, Step};
use super::super::{SERVER, TEXT_PERIOD, length, place, text};
use super::frame::{
    self, Block, Code, FIRST_WINDOW, FrameHead, Frames, MOST, PREFACE, PeerSettings, Piece,
    Violation, violation,
};
use super::hpack::{self, BlockCache, BlockForm, Decoder};
use super::message::{self, MessageHead};

/// Maximum number of open streams of a connection.
const MOST_STREAMS: u32 = 256;
/// The window for request bodies, per connection and stream.
const WINDOW: u32 = 1 << 20;
/// Number of reset streams to remember, on which late frames are ignored.
const MOST_RESET: usize = 32;

/// The server half of one connection.
pub(super) struct Http2Session {
    answers: &'static Answers,
    /// How many bytes of the client's preface arrived.
    preface: usize,
    has_settings: bool,
    frames: Frames,
    decoder: Decoder,
    block: Option<Box<Block>>,
    streams: Vec<Stream>,
    last_stream: u32,
    peer: PeerSettings,
    /// How much the client lets this half send, and how much it sent of what it was allowed.
    window: i64,
    received: u32,
    /// Streams that this half reset, newest last.
    reset: Vec<u32>,
    /// Whether the client announced to close.
    leaving: bool,
    /// Whether the last byte of a processed frame was not consumed, since its answers did not fit.
    held: bool,
    /// The violation that ends the connection once earlier requests are counted.
    broken: Option<Violation>,
}

/// An open stream.
struct Stream {
    number: u32,
    head: RequestForm,
    /// Bytes of the body that arrived, and those for which no window was given back.
    bytes: u64,
    unacknowledged: u32,
    /// What came before a message of gRPC.
    message: MessageHead,
    /// Whether the request is complete.
    is_asked: bool,
    /// Whether the head of the reply was sent, and how much of the text.
    is_answered: bool,
    at: usize,
    window: i64,
}

/// A server's answers, created once.
struct Answers {
    is_grpc: bool,
    /// What comes before the text of a reply.
    lead: Vec<u8>,
    size: usize,
    text: &'static [u8],
    /// Header blocks: of replies with a text, what follows that text, and of replies that have none.
    granted: Vec<u8>,
    trailers: Option<Vec<u8>>,
    refused: Vec<u8>,
    compressed: Vec<u8>,
    broken: Vec<u8>,
}

impl Answers {
    fn new(size: usize, is_grpc: bool) -> Self {
        let status_of_call = |status: u16, before: &[(&str, &str)]| {
            let mut block = Vec::new();
            for (name, value) in before {
                hpack::push_field(name, value, &mut block);
            }
            hpack::push_field("grpc-status", &status.to_string(), &mut block);
            block
        };
        let of_grpc = [
            (":status", "200"),
            ("server", SERVER),
            ("content-type", message::CONTENT_TYPE),
        ];
        let failed = |status| status_of_call(status, &of_grpc);
        let block = |status: &str, (name, value): (&str, &str), length: usize| {
            let mut block = Vec::new();
            hpack::push_field(":status", status, &mut block);
            hpack::push_field("server", SERVER, &mut block);
            hpack::push_field(name, value, &mut block);
            hpack::push_field("content-length", &length.to_string(), &mut block);
            block
        };
        Self {
            is_grpc,
            lead: if is_grpc {
                message::lead(size)
            } else {
                Vec::new()
            },
            size,
            text: text(),
            granted: if is_grpc {
                let mut text = Vec::new();
                for (name, value) in of_grpc {
                    hpack::push_field(name, value, &mut text);
                }
                text
            } else {
                block("200", ("content-type", "text/plain"), size)
            },
            trailers: is_grpc.then(|| status_of_call(message::OK, &[])),
            refused: if is_grpc {
                block("415", ("accept-post", message::CONTENT_TYPE), 0)
            } else {
                block("405", ("allow", "GET, HEAD"), 0)
            },
            compressed: failed(message::UNIMPLEMENTED),
            broken: failed(message::INTERNAL),
        }
    }
}

impl Answers {
    /// The head of the reply to a request, and how many bytes follow it.
    fn to(&self, stream: &Stream) -> (&[u8], usize) {
        let all = self.lead.len() + self.size;
        match stream.head.method {
            Method::Post if self.is_grpc && stream.head.is_grpc => {
                if stream.message.is_compressed() {
                    (&self.compressed, 0)
                } else if stream.message.is_all_of(stream.bytes) {
                    (&self.granted, all)
                } else {
                    (&self.broken, 0)
                }
            }
            Method::Get if !self.is_grpc => (&self.granted, all),
            Method::Head if !self.is_grpc => (&self.granted, 0),
            _ => (&self.refused, 0),
        }
    }

    /// Appends up to `most` bytes of a reply from byte `at` as a DATA frame. Returns their number.
    fn write(&self, out: &mut Vec<u8>, stream: u32, at: usize, most: usize) -> usize {
        let rest_of_lead = self.lead.get(at..).unwrap_or_default();
        let lead = &rest_of_lead[..rest_of_lead.len().min(most)];
        let from = (at + lead.len()).saturating_sub(self.lead.len()) % TEXT_PERIOD;
        let rest_of_text = &self.text[from..];
        let text = &rest_of_text[..rest_of_text.len().min(most - lead.len())];
        let count = lead.len() + text.len();
        let is_end = at + count == self.lead.len() + self.size && self.trailers.is_none();
        let head = FrameHead {
            length: count as u32,
            kind: frame::DATA,
            flags: if is_end { frame::END_STREAM } else { 0 },
            stream,
        };
        out.extend_from_slice(&head.bytes());
        out.extend_from_slice(lead);
        out.extend_from_slice(text);
        count
    }
}

/// The method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Method {
    Get,
    Head,
    Post,
    #[default]
    Other,
}

/// What matters of a request's headers.
#[derive(Debug, Clone, Copy, Default)]
struct RequestForm {
    method: Method,
    /// The pseudo-headers that were there, as bits.
    pseudo: u8,
    has_fields: bool,
    is_malformed: bool,
    length: Option<u64>,
    /// Whether its content is that of gRPC.
    is_grpc: bool,
}

/// The pseudo-headers of a request; all but the last are required.
const PSEUDO: [&[u8]; 4] = [b":method", b":scheme", b":path", b":authority"];
const REQUIRED: u8 = 0b111;

impl RequestForm {
    /// Whether it is the head of a request (RFC 9113, section 8.3.1).
    fn is_request(&self) -> bool {
        !self.is_malformed && self.pseudo & REQUIRED == REQUIRED
    }

    /// Whether they are trailers, which have no pseudo-headers.
    fn is_trailer(&self) -> bool {
        !self.is_malformed && self.pseudo == 0
    }
}

impl BlockForm for RequestForm {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        if let Some(at) = PSEUDO.iter().position(|pseudo| *pseudo == name) {
            let is_valid = match name {
                b":method" => {
                    self.method = match value {
                        b"GET" => Method::Get,
                        b"HEAD" => Method::Head,
                        b"POST" => Method::Post,
                        _ => Method::Other,
                    };
                    !value.is_empty()
                }
                b":path" => value == b"*" || str::from_utf8(value).is_ok_and(place::is_target),
                _ => hpack::is_value(value),
            };
            self.is_malformed |= self.has_fields || self.pseudo & 1 << at != 0 || !is_valid;
            self.pseudo |= 1 << at;
            return;
        }
        self.has_fields = true;
        self.is_malformed |= !hpack::is_name(name)
            || !hpack::is_value(value)
            || (name == b"te" && value != b"trailers");
        self.is_grpc |=
            name == b"content-type" && value.starts_with(message::CONTENT_TYPE.as_bytes());
        if name == b"content-length" {
            let found = length(value);
            self.is_malformed |=
                found.is_none() || self.length.is_some_and(|_| self.length != found);
            self.length = found;
        }
    }

    fn is_cacheable(&self) -> bool {
        true
    }

    fn cache() -> &'static LocalKey<RefCell<BlockCache<Self>>> {
        thread_local! {
            static CACHE: RefCell<BlockCache<RequestForm>> = const { RefCell::new(BlockCache::new()) };
        }
        &CACHE
    }
}

impl Http2Session {
    pub(super) fn new(size: usize, is_grpc: bool) -> Self {
        static ANSWERS: Interned<(usize, bool), Answers> = Interned::new();
        Self {
            answers: ANSWERS.get((size, is_grpc), |_| Box::new(Answers::new(size, is_grpc))),
            preface: 0,
            has_settings: false,
            frames: Frames::default(),
            decoder: Decoder::default(),
            block: None,
            streams: Vec::new(),
            last_stream: 0,
            peer: PeerSettings::default(),
            window: FIRST_WINDOW.into(),
            received: 0,
            reset: Vec::new(),
            leaving: false,
            held: false,
            broken: None,
        }
    }
}

/// Appends the server's first frame.
fn write_first(out: &mut Vec<u8>) {
    let settings = [
        (frame::MAX_CONCURRENT_STREAMS, MOST_STREAMS),
        (frame::INITIAL_WINDOW_SIZE, WINDOW),
    ];
    frame::write_settings(out, &settings);
}

impl Session for Http2Session {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        if let Some(broken) = self.broken.take() {
            return Err(self.end(broken, out));
        }
        let mut step = Step::default();
        let mut rest = input;
        if self.held {
            self.held = self.send(out, &mut step);
            if self.held {
                return Ok(step);
            }
            rest = &rest[1..];
        }
        while !rest.is_empty() && step.close == Close::No && out.len() < OUTPUT_LIMIT {
            match self.take(&mut rest, out) {
                Ok(false) => {}
                Ok(true) => {
                    self.held = self.send(out, &mut step);
                    if self.held {
                        step.consumed = input.len() - rest.len() - 1;
                        return Ok(step);
                    }
                }
                Err(broken) if step.requests > 0 => {
                    // Earlier requests are counted first; then the last byte is passed again.
                    self.broken = Some(broken);
                    step.consumed = (input.len() - rest.len()).min(input.len() - 1);
                    return Ok(step);
                }
                Err(broken) => return Err(self.end(broken, out)),
            }
            if self.leaving && self.streams.is_empty() {
                step.close = Close::Yes;
            }
        }
        step.consumed = input.len() - rest.len();
        Ok(step)
    }

    fn is_within_request(&self) -> bool {
        (self.preface > 0 && self.preface < PREFACE.len())
            || self.frames.is_within_frame()
            || self.block.is_some()
            || self.streams.iter().any(|stream| !stream.is_asked)
    }
}

impl Http2Session {
    /// Says goodbye after a violation.
    #[cold]
    fn end(&self, broken: Violation, out: &mut Vec<u8>) -> ProtocolError {
        let mut payload = self.last_stream.to_be_bytes().to_vec();
        payload.extend_from_slice(&broken.code.0.to_be_bytes());
        payload.extend_from_slice(broken.what.as_bytes());
        frame::write(out, frame::GOAWAY, 0, 0, &payload);
        ProtocolError {
            what: broken.what.to_owned(),
        }
    }

    /// Processes the next piece of input. Returns whether there may be more to send.
    fn take(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, Violation> {
        if self.preface < PREFACE.len() {
            self.open(input, out)?;
            return Ok(false);
        }
        let Some(piece) = self.frames.next(input)? else {
            return Ok(false);
        };
        let head = match &piece {
            Piece::Data { head, .. } | Piece::Frame { head, .. } => *head,
        };
        if !self.has_settings && head.kind != frame::SETTINGS {
            return violation(Code::PROTOCOL, "the first frame is not SETTINGS");
        }
        self.has_settings = true;
        if let Some(mut block) = self.block.take() {
            let payload = match &piece {
                Piece::Data { .. } => &[][..],
                Piece::Frame { payload, .. } => payload,
            };
            if block.add(head, payload)? {
                return self.headers(block.stream, block.ends_stream, &block.bytes, out);
            }
            self.block = Some(block);
            return Ok(false);
        }
        match piece {
            Piece::Data {
                head: frame_head,
                content,
                is_last,
            } => self.data(frame_head, content, is_last, out),
            Piece::Frame {
                head: frame_head,
                payload,
            } => self.frame(frame_head, &payload, out),
        }
    }

    /// Consumes the client's preface, or part of it.
    fn open(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        let expected = &PREFACE[self.preface..];
        let count = expected.len().min(input.len());
        if input[..count] != expected[..count] {
            write_first(out);
            return violation(Code::PROTOCOL, "the client does not begin like HTTP/2");
        }
        *input = &input[count..];
        self.preface += count;
        if self.preface == PREFACE.len() {
            write_first(out);
            frame::write_number(out, frame::WINDOW_UPDATE, 0, WINDOW - FIRST_WINDOW);
        }
        Ok(())
    }

    fn frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Violation> {
        let is_of_connection = matches!(head.kind, frame::SETTINGS | frame::PING | frame::GOAWAY);
        if is_of_connection && head.stream != 0 {
            return violation(Code::PROTOCOL, "a frame of the connection names a stream");
        }
        let is_of_stream = matches!(
            head.kind,
            frame::HEADERS | frame::PRIORITY | frame::RST_STREAM | frame::CONTINUATION
        );
        if is_of_stream && head.stream == 0 {
            return violation(Code::PROTOCOL, "a frame of a stream names none");
        }
        match head.kind {
            frame::HEADERS => {
                let fragment = frame::fragment(head, payload)?;
                if head.has(frame::END_HEADERS) {
                    return self.headers(head.stream, head.has(frame::END_STREAM), fragment, out);
                }
                self.block = Some(Box::new(Block::new(head, fragment)));
                return Ok(false);
            }
            frame::PRIORITY => match payload.first_chunk() {
                Some(parent) if payload.len() == 5 => {
                    if u32::from_be_bytes(*parent) & MOST == head.stream {
                        self.reset(head.stream, Code::PROTOCOL, out);
                    }
                }
                _ => self.reset(head.stream, Code::FRAME_SIZE, out),
            },
            frame::RST_STREAM => {
                frame::number(payload)?;
                self.check_known(head.stream)?;
                self.streams.retain(|stream| stream.number != head.stream);
            }
            frame::SETTINGS if head.has(frame::ACK) && payload.is_empty() => {}
            frame::SETTINGS if head.has(frame::ACK) => {
                return violation(Code::FRAME_SIZE, "an acknowledgement has content");
            }
            frame::SETTINGS => {
                let before = self.peer.window;
                self.peer.apply(payload, 1)?;
                let change = i64::from(self.peer.window) - i64::from(before);
                for stream in &mut self.streams {
                    stream.window += change;
                    if stream.window > MOST.into() {
                        return violation(Code::FLOW_CONTROL, "a window is above 2^31 - 1");
                    }
                }
                frame::write(out, frame::SETTINGS, frame::ACK, 0, &[]);
                return Ok(true);
            }
            frame::PING => {
                if payload.len() != 8 {
                    return violation(Code::FRAME_SIZE, "PING does not have 8 bytes");
                }
                if !head.has(frame::ACK) {
                    frame::write(out, frame::PING, frame::ACK, 0, payload);
                }
            }
            frame::GOAWAY => {
                if payload.len() < 8 {
                    return violation(Code::FRAME_SIZE, "GOAWAY is shorter than 8 bytes");
                }
                self.leaving = true;
            }
            frame::WINDOW_UPDATE => return self.widen(head.stream, payload, out),
            frame::PUSH_PROMISE => return violation(Code::PROTOCOL, "a client sent PUSH_PROMISE"),
            frame::CONTINUATION => {
                return violation(Code::PROTOCOL, "CONTINUATION is outside a header block");
            }
            _ => {}
        }
        Ok(false)
    }

    /// Rejects a stream that the client has not opened.
    fn check_known(&self, stream: u32) -> Result<(), Violation> {
        if stream > self.last_stream || stream.is_multiple_of(2) {
            return violation(Code::PROTOCOL, "a frame names a stream that is not open");
        }
        Ok(())
    }

    /// The client may be sent more.
    fn widen(&mut self, number: u32, payload: &[u8], out: &mut Vec<u8>) -> Result<bool, Violation> {
        let more = frame::number(payload)? & MOST;
        if number == 0 {
            self.window += i64::from(more);
            if more == 0 {
                return violation(Code::PROTOCOL, "a window is widened by 0");
            }
            if self.window > MOST.into() {
                return violation(Code::FLOW_CONTROL, "a window is above 2^31 - 1");
            }
            return Ok(true);
        }
        self.check_known(number)?;
        let Some(stream) = self.stream(number) else {
            return Ok(false);
        };
        stream.window += i64::from(more);
        if more == 0 {
            self.reset(number, Code::PROTOCOL, out);
        } else if stream.window > MOST.into() {
            self.reset(number, Code::FLOW_CONTROL, out);
        }
        Ok(true)
    }

    fn stream(&mut self, number: u32) -> Option<&mut Stream> {
        let mut streams = self.streams.iter_mut();
        streams.find(|stream| stream.number == number)
    }

    /// Ends a stream with an error.
    #[cold]
    fn reset(&mut self, number: u32, code: Code, out: &mut Vec<u8>) {
        self.streams.retain(|stream| stream.number != number);
        if self.reset.len() == MOST_RESET {
            self.reset.remove(0);
        }
        self.reset.push(number);
        frame::write_number(out, frame::RST_STREAM, number, code.0);
    }

    /// A complete header block: a request, or its trailers.
    fn headers(
        &mut self,
        number: u32,
        ends_stream: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Violation> {
        let form: RequestForm = self.decoder.decode(block, &mut |_, _| {})?;
        if number.is_multiple_of(2) {
            return violation(Code::PROTOCOL, "a client's stream has an even number");
        }
        if number <= self.last_stream {
            let was_reset = self.reset.contains(&number);
            match self.stream(number) {
                None if was_reset => return Ok(false),
                Some(stream) if !stream.is_asked => {
                    if !ends_stream || !form.is_trailer() {
                        self.reset(number, Code::PROTOCOL, out);
                        return Ok(false);
                    }
                    return Ok(self.is_asked(number, out));
                }
                _ => return violation(Code::STREAM_CLOSED, "headers come on a closed stream"),
            }
        }
        self.last_stream = number;
        if self.leaving {
            return Ok(false);
        }
        if self.streams.len() >= MOST_STREAMS as usize {
            self.reset(number, Code::REFUSED, out);
            return Ok(false);
        }
        if !form.is_request() {
            self.reset(number, Code::PROTOCOL, out);
            return Ok(false);
        }
        self.streams.push(Stream {
            number,
            head: form,
            bytes: 0,
            unacknowledged: 0,
            message: MessageHead::default(),
            is_asked: false,
            is_answered: false,
            at: 0,
            window: self.peer.window.into(),
        });
        Ok(ends_stream && self.is_asked(number, out))
    }

    /// A request is complete. Returns whether it can be answered.
    fn is_asked(&mut self, number: u32, out: &mut Vec<u8>) -> bool {
        let Some(stream) = self.stream(number) else {
            return false;
        };
        stream.is_asked = true;
        if stream
            .head
            .length
            .is_some_and(|length| length != stream.bytes)
        {
            self.reset(number, Code::PROTOCOL, out);
            return false;
        }
        true
    }

    /// Part of a request's body. What a frame changes is done at its end, so that the pieces do not matter.
    fn data(
        &mut self,
        head: FrameHead,
        content: &[u8],
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<bool, Violation> {
        if head.stream == 0 {
            return violation(Code::PROTOCOL, "a frame of a stream names none");
        }
        self.check_known(head.stream)?;
        if let Some(stream) = self.stream(head.stream) {
            stream.message.keep(stream.bytes, content);
            stream.bytes += content.len() as u64;
        }
        if !is_last {
            return Ok(false);
        }
        self.received += head.length;
        if self.received > WINDOW {
            return violation(Code::FLOW_CONTROL, "the client sent more than its window");
        }
        if self.received > WINDOW / 2 {
            let received = std::mem::take(&mut self.received);
            frame::write_number(out, frame::WINDOW_UPDATE, 0, received);
        }
        let was_reset = self.reset.contains(&head.stream);
        match self.stream(head.stream) {
            None if was_reset => return Ok(false),
            None => {
                self.reset(head.stream, Code::STREAM_CLOSED, out);
                return Ok(false);
            }
            Some(stream) if stream.is_asked => {
                self.reset(head.stream, Code::STREAM_CLOSED, out);
                return Ok(false);
            }
            Some(stream) => {
                stream.unacknowledged += head.length;
                if stream.unacknowledged > WINDOW {
                    self.reset(head.stream, Code::FLOW_CONTROL, out);
                    return Ok(false);
                }
                if stream.unacknowledged > WINDOW / 2 && !head.has(frame::END_STREAM) {
                    let more = std::mem::take(&mut stream.unacknowledged);
                    frame::write_number(out, frame::WINDOW_UPDATE, head.stream, more);
                }
            }
        }
        Ok(head.has(frame::END_STREAM) && self.is_asked(head.stream, out))
    }

    /// Sends replies as far as the windows permit. Returns whether the output limit stopped it.
    fn send(&mut self, out: &mut Vec<u8>, step: &mut Step) -> bool {
        let mut at = 0;
        while let Some(stream) = self.streams.get_mut(at) {
            if !stream.is_asked {
                at += 1;
                continue;
            }
            if out.len() >= OUTPUT_LIMIT {
                return true;
            }
            let (block, size) = self.answers.to(stream);
            if !stream.is_answered {
                stream.is_answered = true;
                let flags = if size == 0 { frame::END_STREAM } else { 0 } | frame::END_HEADERS;
                let shrinks = std::mem::take(&mut self.peer.shrinks_table);
                let length = (block.len() + usize::from(shrinks)) as u32;
                let head = FrameHead {
                    length,
                    kind: frame::HEADERS,
                    flags,
                    stream: stream.number,
                };
                out.extend_from_slice(&head.bytes());
                out.extend(shrinks.then_some(hpack::NO_TABLE));
                out.extend_from_slice(block);
            }
            while stream.at < size {
                let window = stream
                    .window
                    .min(self.window)
                    .min(self.peer.most_payload.into());
                let count = usize::try_from(window).unwrap_or(0).min(size - stream.at);
                if count == 0 {
                    break;
                }
                if out.len() >= OUTPUT_LIMIT {
                    return true;
                }
                let written = self.answers.write(out, stream.number, stream.at, count);
                stream.at += written;
                stream.window -= written as i64;
                self.window -= written as i64;
            }
            if stream.at == size
                && size > 0
                && let Some(trailers) = &self.answers.trailers
            {
                let flags = frame::END_STREAM | frame::END_HEADERS;
                frame::write(out, frame::HEADERS, flags, stream.number, trailers);
            }
            if stream.at == size {
                self.streams.remove(at);
                step.requests += 1;
            } else {
                at += 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
