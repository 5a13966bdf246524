//! The client half, for any server.

use super::super::cycle::Cycle;
use super::super::mix::following;
use super::super::status::StatusCounts;
use super::super::{ProtocolError, Replies, ReplyCounts, Requester, Settings};
use super::TEXT_PERIOD;
use super::chunked::Found;
use super::known::{self, Last};
use super::reply::{Head, MOST_HEAD, Place, Reply, wrong};
use super::request_set::{Checked, RequestSet, request_set};

/// The client half of one client.
pub(super) struct HttpRequester {
    request_set: &'static RequestSet,
    requests: Cycle,
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
    checked: Option<Box<Checked>>,
    statuses: StatusCounts,
}

impl HttpRequester {
    pub(super) fn new(settings: &Settings, client: u64) -> Self {
        let request_set = request_set(settings);
        let first = request_set.first(client);
        Self {
            request_set,
            requests: Cycle::new(&request_set.wire, request_set.requests[first].start),
            next: first,
            oldest: first,
            unanswered: 0,
            part: Vec::new(),
            last: Last::default(),
            place: Place::Head,
            reply: Reply::default(),
            checked: Checked::new(settings),
            statuses: StatusCounts::default(),
        }
    }
}

impl Requester for HttpRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.requests
            .begin(self.request_set.requests[self.next].bytes);
        self.next = following(self.next, self.request_set.requests.len());
        self.unanswered += 1;
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        self.requests.pending()
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.requests.advance(count);
        self.pending()
    }

    fn forget(&mut self) {
        self.requests
            .start_over(self.request_set.requests[self.next].start);
        self.oldest = self.next;
        self.unanswered = 0;
        self.part = Vec::new();
        self.place = Place::Head;
    }

    fn receive(&mut self, mut input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut replies = Replies::default();
        while !input.is_empty() {
            if self.unanswered == 0 {
                return wrong(format!("{} bytes came after the reply", input.len()));
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

    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        let mut replies = Replies::default();
        if let Place::Endless = self.place {
            self.complete(&mut replies)?;
        }
        Ok(replies)
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        for (status, count) in self.statuses.iter() {
            *counts.statuses.entry(status).or_default() += count;
            if !self.request_set.expected.contains(status) {
                *counts.unexpected.entry(status).or_default() += count;
            }
        }
    }
}

impl HttpRequester {
    /// Takes the head of a reply off the front of `input`, or what has come of it; whether the
    /// reply is whole with it.
    fn head(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        if self.part.is_empty() {
            let count = known::recall(input, self.last, |head| {
                (self.reply, self.place) = (head.reply, head.place);
                head.count
            });
            if let Some(count) = count {
                *input = &input[count..];
                return Ok(self.begin_body());
            }
        }
        self.read_head(input)
    }

    /// As [`HttpRequester::head`], when it is not the one that came last.
    #[cold]
    fn read_head(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
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
                wrong(format!("a head of more than {MOST_HEAD} bytes"))
            } else {
                Ok(false)
            };
        };
        *input = &input[count - before..];
        if before > 0 {
            self.part = Vec::new(); // an idle client owns no buffer
        }
        match reply.status {
            101 => return wrong("the server changes to another protocol, unasked".to_owned()),
            ..200 => return Ok(false), // the real reply follows
            _ => {}
        }
        (self.reply, self.place) = (reply, place);
        Ok(self.begin_body())
    }

    /// A head is read. Whether the reply is whole with it.
    fn begin_body(&mut self) -> bool {
        if self.request_set.is_head {
            self.place = Place::Counted(0);
        }
        if let Some(checked) = &mut self.checked {
            checked.rule.begin(&mut checked.check);
        }
        matches!(self.place, Place::Counted(0))
    }

    /// Checks the next bytes of a body.
    fn check(&mut self, mut content: &[u8]) -> Result<(), ProtocolError> {
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
                return wrong(format!("a byte of the text is wrong, from byte {bytes} on"));
            }
            content = rest;
            at = 0;
        }
        Ok(())
    }

    /// A reply is whole.
    fn complete(&mut self, replies: &mut Replies) -> Result<(), ProtocolError> {
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
        replies.refused += u32::from(!self.request_set.expected.contains(status));
        self.statuses.add(status);
        if granted {
            if let Some(length) = self.request_set.length.filter(|length| *length != bytes) {
                return wrong(format!("a body has {bytes} bytes instead of {length}"));
            }
            if let Some(checked) = &mut self.checked {
                checked.end(self.request_set.requests[self.oldest].path, bytes)?;
            }
        }
        self.oldest = following(self.oldest, self.request_set.requests.len());
        if close {
            // What else was asked over this connection is not answered.
            replies.close = true;
            self.forget();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
