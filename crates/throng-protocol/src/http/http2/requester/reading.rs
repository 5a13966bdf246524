//! Reading replies and checking them.

use std::cell::RefCell;
use std::thread::LocalKey;

use super::super::super::super::{Replies, WireProtocol, status};
use super::super::super::wrong::{Fault, WrongReply, wrong};
use super::super::super::{SERVER, TEXT_PERIOD, length};
use super::super::frame::{self, Block, Code, FrameHead, MOST, Piece, Violation};
use super::super::hpack::{self, BlockCache, BlockForm};
use super::super::message;
use super::{Http2Client, MOST_IDLE_FRAMES, Phase, Shared, Stream, WINDOW, busy};

/// Maximum number of heads before the final reply's head (1xx).
const MOST_INTERIM: u8 = 64;
/// Maximum bytes shown of a server's reason.
const SHOWN: usize = 200;

/// What matters of a reply's headers.
#[expect(clippy::struct_excessive_bools, reason = "properties are these")]
#[derive(Debug, Clone, Copy, Default)]
struct ReplyForm {
    /// Its status; 0 without one.
    status: u16,
    own: bool,
    length: Option<u64>,
    /// The status of a call of gRPC, if it has one.
    grpc: Option<u16>,
    has_fields: bool,
    is_malformed: bool,
    /// Whether it has fields that are looked at each time.
    is_special: bool,
}

impl BlockForm for ReplyForm {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        if name.starts_with(b":") {
            let status = length(value).filter(|status| (100..1000).contains(status));
            let is_valid = name == b":status" && value.len() == 3 && self.status == 0;
            self.is_malformed |= !is_valid || self.has_fields || status.is_none();
            self.status = status.unwrap_or(0) as u16;
            return;
        }
        self.has_fields = true;
        self.is_malformed |= !hpack::is_name(name) || !hpack::is_value(value);
        match name {
            b"server" => self.own = value == SERVER.as_bytes(),
            b"content-length" => {
                let found = length(value);
                let differs = self.length.is_some_and(|_| self.length != found);
                self.is_malformed |= found.is_none() || differs;
                self.length = found;
            }
            // What is not a number has the meaning of an unknown status.
            b"grpc-status" => {
                self.grpc = Some(length(value).map_or(u16::MAX, |status| status.min(99) as u16));
            }
            b"set-cookie" | b"location" => self.is_special = true,
            _ => {}
        }
    }

    fn is_cacheable(&self) -> bool {
        !self.is_special
    }

    fn cache() -> &'static LocalKey<RefCell<BlockCache<Self>>> {
        thread_local! {
            static CACHE: RefCell<BlockCache<ReplyForm>> = const { RefCell::new(BlockCache::new()) };
        }
        &CACHE
    }
}

impl From<Violation> for WrongReply {
    fn from(violation: Violation) -> Self {
        let kind = match violation.code {
            Code::COMPRESSION => Fault::Headers,
            Code::FLOW_CONTROL => Fault::FlowControl,
            Code::CALM => Fault::LongHead,
            _ => Fault::Frame,
        };
        Self {
            kind,
            what: violation.what.to_owned(),
        }
    }
}

impl Http2Client {
    /// Processes received bytes.
    pub(super) fn read(
        &mut self,
        shared: &mut Shared,
        mut input: &[u8],
    ) -> Result<Replies, WrongReply> {
        let mut replies = Replies::default();
        match self.phase {
            Phase::New => {
                let what = format!("{} bytes came before the client's", input.len());
                return wrong(Fault::Extra, what);
            }
            Phase::Opening if WireProtocol::of(input) == Some(WireProtocol::Http) => {
                return wrong(Fault::NotHttp2, "not HTTP/2".to_owned());
            }
            _ => {}
        }
        while !input.is_empty() && self.phase != Phase::Closing {
            let piece = match self.frames.next(&mut input) {
                Ok(Some(piece)) => piece,
                Ok(None) => continue,
                Err(violation) if self.phase == Phase::Opening => {
                    return wrong(Fault::NotHttp2, format!("not HTTP/2: {}", violation.what));
                }
                Err(violation) => return Err(violation.into()),
            };
            let head = match &piece {
                Piece::Data { head, .. } | Piece::Frame { head, .. } => *head,
            };
            if self.phase == Phase::Opening
                && (head.kind != frame::SETTINGS || head.has(frame::ACK))
            {
                let what = "not HTTP/2: the first frame is not SETTINGS".to_owned();
                return wrong(Fault::NotHttp2, what);
            }
            if let Some(mut block) = self.rare.as_mut().and_then(|rare| rare.block.take()) {
                let payload = match &piece {
                    Piece::Data { .. } => &[][..],
                    Piece::Frame { payload, .. } => payload,
                };
                if block.add(head, payload)? {
                    self.headers(shared, &mut replies, &block, &block.bytes)?;
                } else {
                    self.rare.get_or_insert_default().block = Some(block);
                }
            } else {
                match piece {
                    Piece::Data {
                        head: frame_head,
                        content,
                        is_last,
                    } => self.data(shared, &mut replies, frame_head, content, is_last)?,
                    Piece::Frame {
                        head: frame_head,
                        payload,
                    } => {
                        self.frame(shared, &mut replies, frame_head, &payload)?;
                    }
                }
            }
            if self.phase == Phase::Leaving && self.open_streams() == 0 {
                replies.close = true;
                self.reset();
                self.phase = Phase::Closing;
            }
        }
        Ok(replies)
    }

    /// Called when the server sends no more.
    pub(super) fn end(&mut self) -> Result<Replies, WrongReply> {
        let is_within =
            self.frames.is_within_frame() || self.streams().any(|stream| stream.status > 0);
        if is_within && self.phase != Phase::Closing {
            let what = "the connection ended within a reply".to_owned();
            return wrong(Fault::Cut, what);
        }
        Ok(Replies::default())
    }

    fn frame(
        &mut self,
        shared: &mut Shared,
        replies: &mut Replies,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), WrongReply> {
        let broken = |what: &str| wrong(Fault::Frame, what.to_owned());
        if head.kind != frame::HEADERS {
            self.count_idle()?;
        }
        let is_of_connection = matches!(head.kind, frame::SETTINGS | frame::PING | frame::GOAWAY);
        if is_of_connection && head.stream != 0 {
            return broken("a frame of the connection names a stream");
        }
        match head.kind {
            frame::HEADERS => {
                let fragment = frame::fragment(head, payload)?;
                let mut block = Block::new(head, &[]);
                if head.has(frame::END_HEADERS) {
                    return self.headers(shared, replies, &block, fragment);
                }
                block.bytes.extend_from_slice(fragment);
                self.rare.get_or_insert_default().block = Some(block);
            }
            frame::PRIORITY if payload.len() != 5 => {
                return broken("PRIORITY does not have 5 bytes");
            }
            frame::RST_STREAM => {
                let code = Code(frame::number(payload)?);
                self.check_known(head.stream)?;
                self.reset_by_server(shared, replies, head.stream, code);
            }
            frame::SETTINGS if head.has(frame::ACK) && payload.is_empty() => {}
            frame::SETTINGS if head.has(frame::ACK) => {
                return broken("an acknowledgement has content");
            }
            frame::SETTINGS => {
                let before = self.peer.window;
                self.peer.apply(payload, 0)?;
                shared.limits = Some(self.peer.limits());
                let change = i64::from(self.peer.window) - i64::from(before);
                let streams = self.busy.iter_mut().flat_map(|busy| &mut busy.streams);
                for more in streams.filter_map(|stream| stream.more.as_mut()) {
                    more.window += change;
                    if more.window > MOST.into() {
                        return wrong(Fault::FlowControl, "a window is above 2^31 - 1".to_owned());
                    }
                }
                frame::write(
                    &mut busy(&mut self.busy).wire,
                    frame::SETTINGS,
                    frame::ACK,
                    0,
                    &[],
                );
                if self.phase == Phase::Opening {
                    self.phase = Phase::Open;
                }
                self.send_queued(shared.request_set);
                self.send_bodies();
            }
            frame::PUSH_PROMISE => {
                return broken("the server pushes, which the client does not allow");
            }
            frame::PING if payload.len() != 8 => return broken("PING does not have 8 bytes"),
            frame::PING if head.has(frame::ACK) => {}
            frame::PING => frame::write(
                &mut busy(&mut self.busy).wire,
                frame::PING,
                frame::ACK,
                0,
                payload,
            ),
            frame::GOAWAY => return self.leave(payload),
            frame::WINDOW_UPDATE => self.widen(head.stream, payload)?,
            frame::CONTINUATION => return broken("CONTINUATION is outside a header block"),
            _ => {}
        }
        Ok(())
    }

    /// Counts a frame without progress.
    fn count_idle(&mut self) -> Result<(), WrongReply> {
        self.idle_frames += 1;
        if self.idle_frames > MOST_IDLE_FRAMES {
            let what = format!("the server sent {MOST_IDLE_FRAMES} frames without a reply");
            return wrong(Fault::Flood, what);
        }
        Ok(())
    }

    /// Rejects a stream that this client has not opened.
    fn check_known(&self, stream: u32) -> Result<(), WrongReply> {
        if stream == 0 || stream >= self.next_stream || stream.is_multiple_of(2) {
            let what = "a frame names a stream that the client has not opened".to_owned();
            return wrong(Fault::Frame, what);
        }
        Ok(())
    }

    fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.busy.iter().flat_map(|busy| &busy.streams)
    }

    /// The position of a stream among the open ones.
    fn place(&self, stream: u32) -> Option<usize> {
        self.streams().position(|open| open.number == stream)
    }

    /// The server takes no further requests.
    fn leave(&mut self, payload: &[u8]) -> Result<(), WrongReply> {
        let numbers = payload
            .split_first_chunk()
            .and_then(|(last, rest)| Some((last, rest.split_first_chunk()?)));
        let Some((last, (code, reason))) = numbers else {
            return wrong(Fault::Frame, "GOAWAY is shorter than 8 bytes".to_owned());
        };
        let last_stream = u32::from_be_bytes(*last) & MOST;
        let error = Code(u32::from_be_bytes(*code));
        if error != Code::NO_ERROR {
            let text = reason[..reason.len().min(SHOWN)].escape_ascii();
            let what = format!(
                "the server ended the connection with {} {text}",
                error.name()
            );
            return wrong(Fault::GoAway, what.trim_end().to_owned());
        }
        self.phase = Phase::Leaving;
        // Later requests get no reply.
        busy(&mut self.busy)
            .streams
            .retain(|stream| stream.number <= last_stream);
        Ok(())
    }

    /// This client may send more.
    fn widen(&mut self, number: u32, payload: &[u8]) -> Result<(), WrongReply> {
        let more = frame::number(payload)? & MOST;
        if more == 0 {
            return wrong(Fault::FlowControl, "a window is widened by 0".to_owned());
        }
        let too_wide = || wrong(Fault::FlowControl, "a window is above 2^31 - 1".to_owned());
        if number == 0 {
            self.window += more;
            if self.window > MOST {
                return too_wide();
            }
        } else {
            self.check_known(number)?;
            let place = self.place(number);
            if let Some(state) = place.and_then(|at| busy(&mut self.busy).streams[at].more.as_mut())
            {
                state.window += i64::from(more);
                if state.window > MOST.into() {
                    return too_wide();
                }
            }
        }
        self.send_bodies();
        Ok(())
    }

    /// The server ended a stream without a complete reply.
    #[cold]
    fn reset_by_server(
        &mut self,
        shared: &mut Shared,
        replies: &mut Replies,
        number: u32,
        code: Code,
    ) {
        let Some(at) = self.place(number) else {
            return; // after its reply
        };
        busy(&mut self.busy).streams.remove(at);
        shared.answered.push_back(at as u16);
        replies.completed += 1;
        replies.refused += 1;
        shared.totals.add(code.status(), 0);
        shared.totals.refuse(code.status());
        self.send_queued(shared.request_set);
    }

    /// A complete header block: the head of a reply, an interim one, or trailers.
    fn headers(
        &mut self,
        shared: &mut Shared,
        replies: &mut Replies,
        block: &Block,
        bytes: &[u8],
    ) -> Result<(), WrongReply> {
        self.check_known(block.stream)?;
        let mut jar = self
            .rare
            .as_mut()
            .and_then(|rare| rare.variable.jar.as_mut());
        let totals = &mut shared.totals;
        let mut location = None;
        let form: ReplyForm = self.decoder.decode(bytes, &mut |name, value| match name {
            b"set-cookie" => {
                if let Some(jar) = &mut jar {
                    jar.set(value);
                }
            }
            b"location" => location = Some(value.to_vec()),
            _ => {}
        })?;
        let Some(at) = self.place(block.stream) else {
            return wrong(Fault::Extra, "headers came after a reply".to_owned());
        };
        let stream = &mut busy(&mut self.busy).streams[at];
        let malformed = |what: &str| wrong(Fault::Headers, what.to_owned());
        if stream.status > 0 {
            // Trailers.
            if form.is_malformed || form.status > 0 || !block.ends_stream {
                return malformed("the trailers of a reply are malformed");
            }
            return self.complete(shared, replies, at, form.grpc);
        }
        if form.is_malformed || form.status == 0 {
            return malformed("the headers of a reply are malformed");
        }
        if form.status < 200 {
            stream.interim += 1;
            if form.status == 101 || block.ends_stream || stream.interim > MOST_INTERIM {
                return malformed("a reply of status 1xx is not followed by a final one");
            }
            return self.count_idle();
        }
        stream.status = form.status;
        stream.own = form.own;
        stream.length = form.length;
        if matches!(form.status, 301..=303 | 307 | 308) {
            totals.redirect(&location.unwrap_or_default());
        }
        if let (Some(more), Some(checked)) = (
            &mut stream.more,
            self.rare.as_mut().and_then(|rare| rare.checked.as_mut()),
        ) {
            checked.rule.begin(&mut more.check);
        }
        if block.ends_stream {
            return self.complete(shared, replies, at, form.grpc);
        }
        Ok(())
    }

    /// Part of a reply's body.
    fn data(
        &mut self,
        shared: &mut Shared,
        replies: &mut Replies,
        head: FrameHead,
        content: &[u8],
        is_last: bool,
    ) -> Result<(), WrongReply> {
        self.check_known(head.stream)?;
        let Some(at) = self.place(head.stream) else {
            return wrong(
                Fault::Extra,
                "part of a body came after its reply".to_owned(),
            );
        };
        if busy(&mut self.busy).streams[at].status == 0 {
            return wrong(
                Fault::Frame,
                "part of a body came before the headers".to_owned(),
            );
        }
        self.check(shared, at, content)?;
        if !is_last {
            return Ok(());
        }
        if head.length == 0 && !head.has(frame::END_STREAM) {
            self.count_idle()?;
        }
        self.received += head.length;
        if self.received >= WINDOW / 2 {
            let more = std::mem::take(&mut self.received);
            frame::write_number(
                &mut busy(&mut self.busy).wire,
                frame::WINDOW_UPDATE,
                0,
                more,
            );
        }
        if head.has(frame::END_STREAM) {
            return self.complete(shared, replies, at, None);
        }
        let stream = &mut busy(&mut self.busy).streams[at];
        stream.unacknowledged += head.length;
        if stream.unacknowledged >= WINDOW / 2 {
            let more = std::mem::take(&mut stream.unacknowledged);
            frame::write_number(
                &mut busy(&mut self.busy).wire,
                frame::WINDOW_UPDATE,
                head.stream,
                more,
            );
        }
        Ok(())
    }

    /// Checks the next bytes of a body.
    fn check(&mut self, shared: &Shared, at: usize, mut content: &[u8]) -> Result<(), WrongReply> {
        let stream = &mut busy(&mut self.busy).streams[at];
        let mut bytes = stream.bytes;
        stream.bytes += content.len() as u64;
        let is_head = shared.request_set.kinds[stream.kind as usize].is_head;
        if stream.length.is_some_and(|length| stream.bytes > length)
            || (is_head && !content.is_empty())
        {
            let what = "a body is longer than its head says".to_owned();
            return wrong(Fault::Length, what);
        }
        if !(200..300).contains(&stream.status) {
            return Ok(());
        }
        if shared.request_set.is_grpc
            && let Some(more) = &mut stream.more
        {
            more.head.keep(bytes, content);
            (bytes, content) = message::of_message(bytes, content);
        }
        if let (Some(more), Some(checked)) = (
            &mut stream.more,
            self.rare.as_mut().and_then(|rare| rare.checked.as_mut()),
        ) {
            checked.rule.take(&mut more.check, bytes, content)?;
        }
        if !stream.own {
            return Ok(());
        }
        if shared.request_set.is_grpc
            && let Some(more) = &stream.more
        {
            let head = more.head.field_head();
            let expected = head.get(bytes as usize..).unwrap_or_default();
            let (field, text) = content.split_at(expected.len().min(content.len()));
            if field != &expected[..field.len()] {
                return wrong(
                    Fault::Reply,
                    "the head of the message's field differs".to_owned(),
                );
            }
            bytes = bytes.saturating_sub(head.len() as u64);
            content = text;
        }
        let mut from = (bytes % TEXT_PERIOD as u64) as usize;
        while !content.is_empty() {
            let count = content.len().min(TEXT_PERIOD - from);
            let (piece, rest) = content.split_at(count);
            if piece != &shared.request_set.text[from..from + count] {
                let what = format!("the body differs at byte {bytes} or later");
                return wrong(Fault::Reply, what);
            }
            content = rest;
            from = 0;
        }
        Ok(())
    }

    /// Counts and checks a complete reply, of gRPC with the status `outcome`.
    fn complete(
        &mut self,
        shared: &mut Shared,
        replies: &mut Replies,
        at: usize,
        outcome: Option<u16>,
    ) -> Result<(), WrongReply> {
        let Some(stream) = busy(&mut self.busy).streams.remove(at) else {
            return Ok(()); // the caller has found it
        };
        let kind = &shared.request_set.kinds[stream.kind as usize];
        self.idle_frames = 0;
        if stream.has_unsent() {
            // The server needs no more of the request.
            frame::write_number(
                &mut busy(&mut self.busy).wire,
                frame::RST_STREAM,
                stream.number,
                Code::CANCEL.0,
            );
        }
        let has_body = !kind.is_head && stream.status != 304;
        if has_body && let Some(length) = stream.length.filter(|length| *length != stream.bytes) {
            let what = format!("the body has {} bytes instead of {length}", stream.bytes);
            return wrong(Fault::Length, what);
        }
        shared.answered.push_back(at as u16);
        replies.completed += 1;
        let is_success = (200..300).contains(&stream.status);
        let is_grpc = shared.request_set.is_grpc;
        let (status, is_expected) = if is_grpc {
            let has_own = outcome.is_some() || is_success;
            let status = if has_own {
                status::of_call(outcome)
            } else {
                stream.status
            };
            (status, is_success && outcome == Some(message::OK))
        } else {
            (stream.status, kind.expected.contains(stream.status))
        };
        shared.totals.add(status, stream.bytes);
        if !is_expected {
            replies.refused += 1;
            shared.totals.refuse(status);
        }
        if is_success && (is_expected || !is_grpc) {
            let mut bytes = stream.bytes;
            if is_grpc {
                let head = stream.more.as_ref().map(|more| more.head);
                head.unwrap_or_default().check(bytes)?;
                bytes -= message::HEAD as u64;
            }
            let expected = shared.request_set.length;
            if let Some(length) = expected.filter(|length| *length != bytes) {
                let what = format!("the body has {bytes} bytes instead of {length}");
                return wrong(Fault::Reply, what);
            }
            let checked = self.rare.as_mut().and_then(|rare| rare.checked.as_mut());
            if let (Some(mut more), Some(checked)) = (stream.more, checked) {
                std::mem::swap(&mut checked.check, &mut more.check);
                checked.end(stream.kind, bytes)?;
            }
        }
        self.send_queued(shared.request_set);
        Ok(())
    }
}
