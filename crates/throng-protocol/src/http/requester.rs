//! The client half, for any server.

use super::super::cycle::Cycle;
use super::super::mix::following;
use super::super::status::Tally;
use super::super::{ProtocolError, Replies, ReplyCounts, Requester, Settings};
use super::TEXT_PERIOD;
use super::chunked::Found;
use super::cookies;
use super::generated::Generated;
use super::known::{self, Last};
use super::reply::{Head, MOST_HEAD, Place, Reply};
use super::request_set::{Checked, RequestSet, request_set};
use super::template::Values;
use super::wrong::{Fault, Wrong, wrong};

/// Most heads that may come before that of the reply (1xx).
const MOST_INTERIM: u8 = 64;

/// The client half of one client.
pub(super) struct HttpRequester {
    request_set: &'static RequestSet,
    requests: Cycle,
    /// Instead of these, what is put together for this client alone.
    generated: Option<Box<Generated>>,
    /// Which request is the next to be begun.
    next: usize,
    /// The oldest one that is not answered, or the next one.
    oldest: usize,
    /// Requests begun and not yet answered whole.
    unanswered: usize,
    /// What has come of a head that is not whole.
    part: Vec<u8>,
    last: Last,
    place: Place,
    reply: Reply,
    /// Heads that came before that of the reply.
    interim: u8,
    /// What was wrong last.
    fault: Fault,
    checked: Option<Box<Checked>>,
    tally: Tally,
}

impl HttpRequester {
    pub(super) fn new(settings: &Settings, client: u64) -> Self {
        let request_set = request_set(settings);
        let first = request_set.first(client);
        let generated = || {
            let values = Values::new(client, settings.clients, settings.seed);
            Box::new(Generated::new(values, request_set.keeps_cookies))
        };
        Self {
            request_set,
            requests: Cycle::new(&request_set.wire, request_set.requests[first].start),
            generated: request_set.is_made().then(generated),
            next: first,
            oldest: first,
            unanswered: 0,
            part: Vec::new(),
            last: Last::default(),
            place: Place::Head,
            reply: Reply::default(),
            interim: 0,
            fault: Fault::default(),
            checked: Checked::new(settings),
            tally: Tally::default(),
        }
    }
}

impl Requester for HttpRequester {
    fn begin(&mut self) -> &'static [u8] {
        match &mut self.generated {
            None => self
                .requests
                .begin(self.request_set.requests[self.next].bytes),
            Some(generated) => generated.begin(&self.request_set.kind(self.next).pieces),
        }
        self.next = following(self.next, self.request_set.requests.len());
        self.unanswered += 1;
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        self.requests.pending()
    }

    fn made(&self) -> &[u8] {
        self.generated
            .as_ref()
            .map_or(&[], |generated| generated.pending())
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        match &mut self.generated {
            None => self.requests.advance(count),
            Some(generated) => generated.advance(count),
        }
        self.pending()
    }

    fn forget(&mut self) {
        self.requests
            .start_over(self.request_set.requests[self.next].start);
        if let Some(generated) = &mut self.generated {
            generated.forget();
        }
        self.oldest = self.next;
        self.unanswered = 0;
        self.part = Vec::new();
        self.place = Place::Head;
        self.interim = 0;
    }

    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError> {
        match self.read(input) {
            Ok(replies) => Ok(replies),
            Err(wrong) => Err(self.blame(wrong)),
        }
    }

    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        self.end().map_err(|wrong| self.blame(wrong))
    }

    fn fault(&self) -> Option<&'static str> {
        self.fault.name()
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        self.tally.add_to(counts);
    }

    fn sizes(&mut self, record: &mut dyn FnMut(u64, u64)) {
        self.tally.take_sizes(record);
    }
}

impl HttpRequester {
    #[inline]
    fn read(&mut self, mut input: &[u8]) -> Result<Replies, Wrong> {
        let mut replies = Replies::default();
        while !input.is_empty() {
            if self.unanswered == 0 {
                let what = format!(
                    "{} bytes came after the reply: `{}`",
                    input.len(),
                    input[..input.len().min(40)].escape_ascii()
                );
                return wrong(Fault::Extra, what);
            }
            let whole = match &mut self.place {
                Place::Head => self.head(&mut input)?,
                Place::Counted(left) => {
                    let count = input
                        .len()
                        .min(usize::try_from(*left).unwrap_or(usize::MAX));
                    let (content, rest) = input.split_at(count);
                    *left -= count as u64;
                    let whole = *left == 0;
                    input = rest;
                    self.check(content)?;
                    whole
                }
                Place::Chunked(chunks) => match chunks.read(&mut input)? {
                    Found::Content(content) => {
                        self.check(content)?;
                        false
                    }
                    Found::End => true,
                    Found::Nothing => false,
                },
                Place::Endless => {
                    self.check(std::mem::take(&mut input))?;
                    false
                }
            };
            if whole {
                self.complete(&mut replies)?;
            }
        }
        Ok(replies)
    }

    /// The server sends no more.
    fn end(&mut self) -> Result<Replies, Wrong> {
        let bytes = self.reply.bytes;
        let what = match self.place {
            Place::Endless => {
                let mut replies = Replies::default();
                self.complete(&mut replies)?;
                return Ok(replies);
            }
            Place::Head if self.part.is_empty() => return Ok(Replies::default()),
            Place::Head => format!("after {} bytes of a head", self.part.len()),
            Place::Counted(left) => {
                let all = bytes.saturating_add(left);
                format!("after {bytes} of {all} bytes of a body")
            }
            Place::Chunked(_) => format!("after {bytes} bytes of a body, before its last chunk"),
        };
        wrong(Fault::Cut, format!("the connection ended {what}"))
    }

    #[cold]
    fn blame(&mut self, wrong: Wrong) -> ProtocolError {
        self.fault = wrong.kind;
        ProtocolError { what: wrong.what }
    }

    /// Takes the head of a reply off the front of `input`, or what has come of it; whether the
    /// reply is whole with it.
    fn head(&mut self, input: &mut &[u8]) -> Result<bool, Wrong> {
        if self.part.is_empty() {
            let count = known::recall(input, self.last, |head| {
                (self.reply, self.place) = (head.reply, head.place);
                head.count
            });
            if let Some(count) = count {
                let (head, rest) = input.split_at(count);
                *input = rest;
                if self.reply.status >= 300 || self.generated.is_some() {
                    self.note_head(head);
                }
                return Ok(self.begin_body());
            }
        }
        self.read_head(input)
    }

    /// As [`HttpRequester::head`], when it is not the one that came last.
    #[cold]
    fn read_head(&mut self, input: &mut &[u8]) -> Result<bool, Wrong> {
        let before = self.part.len();
        let window = &input[..input.len().min(MOST_HEAD - before)];
        let parsed = if before == 0 {
            known::read(window, &mut self.last)?
        } else {
            self.part.extend_from_slice(window);
            known::read(&self.part, &mut self.last)?
        };
        let Some(Head {
            reply,
            place,
            count,
        }) = parsed
        else {
            if before == 0 {
                self.part.extend_from_slice(window);
            }
            *input = &input[window.len()..];
            return if self.part.len() == MOST_HEAD {
                wrong(
                    Fault::LongHead,
                    format!("a head of more than {MOST_HEAD} bytes"),
                )
            } else {
                Ok(false)
            };
        };
        let part = std::mem::take(&mut self.part); // an idle client owns no buffer
        let head = if before == 0 {
            &window[..count]
        } else {
            &part[..count]
        };
        *input = &input[count - before..];
        match reply.status {
            101 => {
                let what = "the server changes to another protocol, unasked".to_owned();
                return wrong(Fault::Reply, what);
            }
            ..200 => {
                // The real reply follows.
                self.interim += 1;
                if self.interim > MOST_INTERIM {
                    let what = format!("more than {MOST_INTERIM} heads of status 1xx and no reply");
                    return wrong(Fault::Reply, what);
                }
                return Ok(false);
            }
            _ => self.interim = 0,
        }
        (self.reply, self.place) = (reply, place);
        self.note_head(head);
        Ok(self.begin_body())
    }

    /// Takes the rest of a head, besides the length of the reply.
    #[cold]
    fn note_head(&mut self, head: &[u8]) {
        if let Some(generated) = &mut self.generated {
            generated.note_head(head);
        }
        if self.reply.is_redirect() {
            let mut lines = head.split(|&byte| byte == b'\n');
            let location = lines.find_map(|line| cookies::field(line, "location"));
            self.tally.redirect(location.unwrap_or_default());
        }
    }

    /// A head is read. Whether the reply is whole with it.
    fn begin_body(&mut self) -> bool {
        if self.request_set.replies_differ && self.request_set.kind(self.oldest).is_head {
            self.place = Place::Counted(0);
        }
        if let Some(checked) = &mut self.checked {
            checked.rule.begin(&mut checked.check);
        }
        matches!(self.place, Place::Counted(0))
    }

    /// Checks the next bytes of a body.
    fn check(&mut self, mut content: &[u8]) -> Result<(), Wrong> {
        let bytes = self.reply.bytes;
        self.reply.bytes += content.len() as u64;
        if let Some(checked) = self.checked.as_mut().filter(|_| self.reply.is_granted()) {
            checked.rule.take(&mut checked.check, bytes, content)?;
        }
        if !self.reply.own || !self.reply.is_granted() {
            return Ok(());
        }
        let mut at = (bytes % TEXT_PERIOD as u64) as usize;
        while !content.is_empty() {
            let count = content.len().min(TEXT_PERIOD - at);
            let (piece, rest) = content.split_at(count);
            if piece != &self.request_set.text[at..at + count] {
                let what = format!("a byte of the text is wrong, from byte {bytes} on");
                return wrong(Fault::Reply, what);
            }
            content = rest;
            at = 0;
        }
        Ok(())
    }

    /// A reply is whole.
    fn complete(&mut self, replies: &mut Replies) -> Result<(), Wrong> {
        let granted = self.reply.is_granted();
        let Reply {
            status,
            close,
            bytes,
            ..
        } = self.reply;
        let close = close || matches!(self.place, Place::Endless);
        self.place = Place::Head;
        self.unanswered -= 1;
        replies.completed += 1;
        self.tally.add(status, bytes);
        let expected = if self.request_set.replies_differ {
            &self.request_set.kind(self.oldest).expected
        } else {
            &self.request_set.expected
        };
        if !expected.contains(status) {
            replies.refused += 1;
            self.tally.refuse(status);
        }
        if granted {
            if let Some(length) = self.request_set.length.filter(|length| *length != bytes) {
                let what = format!("a body has {bytes} bytes instead of {length}");
                return wrong(Fault::Reply, what);
            }
            if let Some(checked) = &mut self.checked {
                checked.end(self.request_set.requests[self.oldest].kind, bytes)?;
            }
        }
        self.oldest = following(self.oldest, self.request_set.requests.len());
        if close {
            // Other pending requests on this connection are not answered.
            replies.close = true;
            self.forget();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
