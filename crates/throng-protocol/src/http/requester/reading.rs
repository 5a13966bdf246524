//! Reading replies and checking them.

use super::super::super::{ProtocolError, Replies};
use super::super::TEXT_PERIOD;
use super::super::chunked::{ChunkPart, Chunks};
use super::super::cookies;
use super::super::head_cache;
use super::super::reply::{Head, KNOWN, MOST_HEAD, Place, Reply, parse};
use super::super::wrong::{Fault, WrongReply, wrong};
use super::{HttpClient, ReplyState, Shared, Stage};

/// Maximum number of heads before the final reply's head (1xx).
const MOST_INTERIM: u8 = 64;

/// One client, with the state shared by all.
pub(super) struct ClientHalf<'a> {
    pub(super) shared: &'a mut Shared,
    pub(super) client: &'a mut HttpClient,
    pub(super) reply: ReplyState,
}

impl ClientHalf<'_> {
    /// Handles the usual case: a complete reply with the same head as the last one, where only the status and a
    /// built-in server's text matter. Otherwise it does nothing and returns false.
    #[inline]
    pub(super) fn take_usual(&mut self, input: &[u8]) -> bool {
        let (shared, client) = (&mut *self.shared, &mut *self.client);
        if !shared.is_plain || client.stage != Stage::Head || client.unanswered == 0 {
            return false;
        }
        let Some((bytes, status, own)) = head_cache::cached(&KNOWN, input, client.last, |head| {
            let is_whole = head.place == Place::Counted((input.len() - head.count) as u64);
            let is_usual = is_whole && head.reply.is_granted() && !head.reply.close;
            let bytes = input.len() - head.count;
            is_usual.then_some((bytes, head.reply.status, head.reply.own))
        })
        .flatten() else {
            return false;
        };
        if !shared.request_set.expected.contains(status) {
            return false;
        }
        let body = &input[input.len() - bytes..];
        if own && shared.request_set.text.get(..bytes) != Some(body) {
            return false;
        }
        client.unanswered -= 1;
        shared.tally.add(status, bytes as u64);
        true
    }

    pub(super) fn read(&mut self, mut input: &[u8]) -> Result<Replies, WrongReply> {
        let mut replies = Replies::default();
        self.recall_reply();
        while !input.is_empty() {
            if self.client.unanswered == 0 && self.client.stage != Stage::Over {
                if !ends_idleness(input) {
                    let what = format!(
                        "{} bytes came after the reply: `{}`",
                        input.len(),
                        input[..input.len().min(40)].escape_ascii()
                    );
                    return wrong(Fault::Extra, what);
                }
                self.client.stage = Stage::Over;
            }
            let whole = match self.client.stage {
                Stage::Head | Stage::AfterInterim | Stage::Part => self.head(&mut input)?,
                Stage::Counted => {
                    let rest = usize::try_from(self.reply.rest).unwrap_or(usize::MAX);
                    let (content, after) = input.split_at(input.len().min(rest));
                    self.reply.rest -= content.len() as u64;
                    input = after;
                    self.check(content)?;
                    self.reply.rest == 0
                }
                Stage::Chunked => {
                    let rare = self.client.rare.get_or_insert_default();
                    match rare.chunks.read(&mut input)? {
                        ChunkPart::Content(content) => {
                            self.check(content)?;
                            false
                        }
                        ChunkPart::End => true,
                        ChunkPart::Nothing => false,
                    }
                }
                Stage::Endless => {
                    self.check(std::mem::take(&mut input))?;
                    false
                }
                Stage::Over => {
                    replies.close = true;
                    return Ok(replies);
                }
            };
            if whole {
                self.complete(&mut replies)?;
            }
        }
        if self.client.has_begun_body() {
            self.client.rare.get_or_insert_default().reply = self.reply;
        }
        Ok(replies)
    }

    /// Restores the state of the incomplete reply, if there is one.
    fn recall_reply(&mut self) {
        if self.client.has_begun_body()
            && let Some(rare) = &self.client.rare
        {
            self.reply = rare.reply;
        }
    }

    /// Called when the server sends no more.
    pub(super) fn end(&mut self) -> Result<Replies, WrongReply> {
        self.recall_reply();
        let bytes = self.reply.bytes;
        let what = match self.client.stage {
            Stage::Endless => {
                let mut replies = Replies::default();
                self.complete(&mut replies)?;
                return Ok(replies);
            }
            Stage::Head | Stage::AfterInterim | Stage::Over => return Ok(Replies::default()),
            Stage::Part => {
                let part = self.client.rare.as_ref().map_or(0, |rare| rare.part.len());
                format!("after {part} bytes of a head")
            }
            Stage::Counted => {
                let all = bytes.saturating_add(self.reply.rest);
                format!("after {bytes} of {all} bytes of a body")
            }
            Stage::Chunked => format!("after {bytes} bytes of a body, before its last chunk"),
        };
        wrong(Fault::Cut, format!("the connection ended {what}"))
    }

    #[cold]
    pub(super) fn error(&mut self, wrong: WrongReply) -> ProtocolError {
        self.client.fault = wrong.kind;
        ProtocolError { what: wrong.what }
    }

    pub(super) fn drop_requests(&mut self) {
        let client = &mut *self.client;
        let request_set = self.shared.request_set;
        if request_set.flow.is_some() && client.unanswered > 0 {
            // The session is over.
            client.next = 0;
        }
        client.at = request_set.requests[client.next as usize].start as u32;
        client.unanswered = 0;
        client.unsent = 0;
        client.stage = Stage::Head;
        client.interim = 0;
        if let Some(rare) = &mut client.rare {
            rare.part = Vec::new();
            if let Some(made) = &mut rare.made {
                made.drop_requests();
            }
        }
    }

    /// Consumes the head of a reply, or part of it, from the front of `input`. Returns whether this completes the
    /// reply.
    fn head(&mut self, input: &mut &[u8]) -> Result<bool, WrongReply> {
        if self.client.stage == Stage::Head {
            let known = head_cache::cached(&KNOWN, input, self.client.last, |head| *head);
            if let Some(known) = known {
                self.begin_reply(&known);
                let (head, rest) = input.split_at(known.count);
                *input = rest;
                if known.reply.status >= 300 || self.client.generated().is_some() {
                    self.note_head(head, known.reply);
                }
                return Ok(self.begin_body());
            }
        }
        self.read_head(input)
    }

    /// Like [`ClientHalf::head`], for a head that differs from the last one.
    #[cold]
    fn read_head(&mut self, input: &mut &[u8]) -> Result<bool, WrongReply> {
        let client = &mut *self.client;
        let is_part = client.stage == Stage::Part;
        let mut part = match &mut client.rare {
            Some(rare) if is_part => std::mem::take(&mut rare.part),
            _ => Vec::new(),
        };
        let before = part.len();
        let window = &input[..input.len().min(MOST_HEAD - before)];
        let parsed = if is_part {
            part.extend_from_slice(window);
            head_cache::read(&KNOWN, &part, &mut client.last, parse)?
        } else {
            head_cache::read(&KNOWN, window, &mut client.last, parse)?
        };
        let Some(head) = parsed else {
            if !is_part {
                part.extend_from_slice(window);
            }
            *input = &input[window.len()..];
            let bytes = part.len();
            client.stage = Stage::Part;
            client.rare.get_or_insert_default().part = part;
            return if bytes == MOST_HEAD {
                wrong(
                    Fault::LongHead,
                    format!("a head of more than {MOST_HEAD} bytes"),
                )
            } else {
                Ok(false)
            };
        };
        client.stage = Stage::Head;
        let source = if is_part { &part[..] } else { window };
        let bytes = &source[..head.count];
        *input = &input[head.count - before..];
        match head.reply.status {
            101 => {
                let what = "the server switched to another protocol without a request".to_owned();
                return wrong(Fault::Reply, what);
            }
            ..200 => {
                // The final reply follows.
                client.stage = Stage::AfterInterim;
                client.interim += 1;
                if client.interim > MOST_INTERIM {
                    let what = format!(
                        "more than {MOST_INTERIM} replies of status 1xx without a final one"
                    );
                    return wrong(Fault::Reply, what);
                }
                return Ok(false);
            }
            _ => client.interim = 0,
        }
        self.begin_reply(&head);
        self.note_head(bytes, head.reply);
        Ok(self.begin_body())
    }

    /// Applies those properties of a head that do not concern framing.
    #[cold]
    fn note_head(&mut self, head: &[u8], reply: Reply) {
        if let Some(made) = self.client.generated_mut() {
            made.note_head(head);
        }
        if reply.is_redirect() {
            let location = cookies::lines(head).find_map(|line| cookies::field(line, "location"));
            self.shared.tally.redirect(location.unwrap_or_default());
        }
    }

    /// Starts a reply when its head is complete.
    fn begin_reply(&mut self, head: &Head) {
        let client = &mut *self.client;
        self.reply = ReplyState {
            bytes: 0,
            rest: 0,
            status: head.reply.status,
            own: head.reply.own,
            close: head.reply.close,
        };
        client.stage = match head.place {
            Place::Counted(bytes) => {
                self.reply.rest = bytes;
                Stage::Counted
            }
            Place::Chunked => {
                client.rare.get_or_insert_default().chunks = Chunks::default();
                Stage::Chunked
            }
            Place::Endless => Stage::Endless,
        };
    }

    /// Starts the body. Returns whether the reply is already complete because it has none.
    fn begin_body(&mut self) -> bool {
        let (shared, client) = (&self.shared, &mut *self.client);
        if shared.request_set.replies_differ
            && shared
                .request_set
                .kind(client.oldest(shared.request_set))
                .is_head
        {
            (client.stage, self.reply.rest) = (Stage::Counted, 0);
        }
        let is_whole = client.stage == Stage::Counted && self.reply.rest == 0;
        if let Some(checked) = client.checked() {
            checked.rule.begin(&mut checked.check);
        }
        is_whole
    }

    /// Checks the next bytes of a body.
    fn check(&mut self, mut content: &[u8]) -> Result<(), WrongReply> {
        if let Some((session, _)) = self.client.session_mut() {
            session.note_body(content);
        }
        let reply = &mut self.reply;
        let bytes = reply.bytes;
        reply.bytes += content.len() as u64;
        if !reply.is_granted() {
            return Ok(());
        }
        if let Some(checked) = self.client.checked() {
            checked.rule.take(&mut checked.check, bytes, content)?;
        }
        if !reply.own {
            return Ok(());
        }
        let mut at = (bytes % TEXT_PERIOD as u64) as usize;
        while !content.is_empty() {
            let count = content.len().min(TEXT_PERIOD - at);
            let (piece, rest) = content.split_at(count);
            if piece != &self.shared.request_set.text[at..at + count] {
                let what = format!("the body differs at byte {bytes} or later");
                return wrong(Fault::Reply, what);
            }
            content = rest;
            at = 0;
        }
        Ok(())
    }

    /// Counts and checks a complete reply.
    fn complete(&mut self, replies: &mut Replies) -> Result<(), WrongReply> {
        let (shared, client, reply) = (&mut *self.shared, &mut *self.client, &self.reply);
        let request_set = shared.request_set;
        let (status, bytes) = (reply.status, reply.bytes);
        let oldest = client.oldest(request_set);
        let close = reply.close || client.stage == Stage::Endless;
        client.stage = Stage::Head;
        client.unanswered -= 1;
        replies.completed += 1;
        shared.tally.add(status, bytes);
        let expected = if request_set.replies_differ {
            &request_set.kind(oldest).expected
        } else {
            &request_set.expected
        };
        let is_expected = expected.contains(status);
        if !is_expected {
            replies.refused += 1;
            shared.tally.refuse(status);
        }
        if let Some((session, known)) = client.session_mut() {
            session.complete(status, is_expected, known, &mut shared.tally);
            if session.done().is_last {
                client.next = 0;
            }
        }
        if reply.is_granted() {
            if let Some(length) = request_set.length.filter(|length| *length != bytes) {
                let what = format!("the body has {bytes} bytes instead of {length}");
                return wrong(Fault::Reply, what);
            }
            if let Some(checked) = client.checked() {
                checked.end(request_set.requests[oldest].kind, bytes)?;
            }
        }
        if close {
            // The remaining requests on this connection get no reply.
            replies.close = true;
            self.drop_requests();
        }
        Ok(())
    }
}

/// Whether bytes without a request are the reply with which a server closes a connection that was idle for too long
/// (RFC 9110, section 15.5.9).
#[cold]
fn ends_idleness(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.1 408") || bytes.starts_with(b"HTTP/1.0 408")
}
