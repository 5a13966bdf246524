//! `throng load --debug`: one request and its reply, exactly as sent and received.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::{Exit, output};
use super::describe::reasons;
use super::watch::Unseen;
use crate::load::arrival::Think;
use crate::load::{self, Plan, Until};
use crate::protocol::{
    Dialogue, ProtocolError, Replies, ReplyCounts, Requester, Settings, StepDone, WireProtocol,
};
use crate::record::format;
use crate::spec::Share;
use crate::sys::signal::Stop;

/// Maximum bytes shown of a message.
const MOST_SHOWN: usize = 64 * 1024;

/// Sends one request of a load, and prints it together with its reply.
///
/// # Errors
/// If the reply is wrong, or none arrives.
pub(super) fn run(plan: &Plan, stop: Stop) -> anyhow::Result<Exit> {
    let wire = Arc::new(Mutex::new(Wire::default()));
    let plan = Plan {
        dialogue: Box::leak(Box::new(RecordingDialogue {
            dialogue: plan.dialogue,
            wire: Arc::clone(&wire),
        })),
        clients: 1,
        threads: 1,
        own_tables: false,
        rate: None,
        think: Think::None,
        pipeline: 1,
        until: Until::Requests(1),
        in_slices: false,
        at_once: None,
        warm_up: Duration::ZERO,
        longest_warm_up: Duration::ZERO,
        connects_per_s: None,
        reconnect: false,
        probes: None,
        share: Share::WHOLE,
        ..plan.clone()
    };
    let load = load::run(&plan, &mut Unseen(stop))?.stats.summary();
    output::text(&lock(&wire).shown(plan.dialogue))?;
    let is_whole = match &load.sessions {
        Some(sessions) => sessions.completed == 1,
        None => load.verified == 1,
    };
    if is_whole && load.errors.is_empty() {
        return Ok(Exit::Done);
    }
    if load.sessions.is_some() && load.errors.is_empty() {
        let failed = load
            .unexpected
            .keys()
            .next()
            .map_or_else(|| "a step".to_owned(), Clone::clone);
        anyhow::bail!("the session ended at a step that failed: {failed}");
    }
    let unexpected = load.unexpected.keys().next();
    anyhow::bail!(match unexpected {
        Some(status) =>
            format!("unexpected status {status}; --expect-status accepts other HTTP statuses"),
        None if load.errors.is_empty() => {
            let limit = format::time(plan.first_reply_timeout.as_secs_f64() * 1e6);
            format!("no reply was complete within {limit} (--first-reply-timeout)")
        }
        None => format!("no correct reply{}", reasons(&load)),
    })
}

/// The bytes in both directions.
#[derive(Debug, Default)]
struct Wire {
    sent: Message,
    received: Message,
    /// The steps before, of a session.
    before: String,
}

#[derive(Debug, Default)]
struct Message {
    bytes: Vec<u8>,
    all: usize,
    /// Bytes of earlier steps.
    before: usize,
}

impl Message {
    fn add(&mut self, bytes: &[u8]) {
        let room = MOST_SHOWN - self.bytes.len();
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.all += bytes.len();
    }

    /// Writes each line with a prefix; unprintable characters are escaped.
    fn show(&self, sign: char, text: &mut String) {
        let ends_line = self.bytes.ends_with(b"\n");
        show(sign, &self.bytes, text);
        let more = self.all - self.bytes.len();
        if more > 0 {
            let _ = writeln!(text, "{sign} ... and {more} more bytes");
        } else if !ends_line && !self.bytes.is_empty() {
            let _ = writeln!(text, "{sign} (no end of line)");
        }
    }
}

/// Writes each line with a prefix; unprintable characters are escaped.
fn show(sign: char, bytes: &[u8], text: &mut String) {
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if !bytes.is_empty() {
        for line in lines.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let _ = writeln!(text, "{sign} {}", printable(line));
        }
    }
}

/// A line in which bytes that are not text are written as `\xNN`.
fn printable(line: &[u8]) -> String {
    let mut text = String::new();
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() && c != '\t' {
                text.extend(c.to_string().bytes().map(|byte| format!("\\x{byte:02x}")));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

impl Wire {
    fn show(&self, dialogue: &dyn Dialogue, text: &mut String) {
        for (sign, message) in [('>', &self.sent), ('<', &self.received)] {
            match dialogue.in_words(sign == '>', &message.bytes) {
                Some(words) => show(sign, &words, text),
                None => message.show(sign, text),
            }
        }
    }

    /// A step of a session is over: the next one is shown after what it was judged by.
    fn end_step(&mut self, dialogue: &dyn Dialogue, words: &[String]) {
        let mut text = std::mem::take(&mut self.before);
        self.show(dialogue, &mut text);
        for line in words {
            let _ = writeln!(text, "* {}", printable(line.as_bytes()));
        }
        self.before = text + "\n";
        for message in [&mut self.sent, &mut self.received] {
            message.bytes.clear();
            message.before += std::mem::take(&mut message.all);
        }
    }

    fn shown(&self, dialogue: &dyn Dialogue) -> String {
        let mut text = self.before.clone();
        self.show(dialogue, &mut text);
        let _ = writeln!(
            text,
            "{} bytes sent, {} bytes received",
            self.sent.before + self.sent.all,
            self.received.before + self.received.all
        );
        text
    }
}

fn lock(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dialogue that records the bytes sent and received.
struct RecordingDialogue {
    dialogue: &'static dyn Dialogue,
    wire: Arc<Mutex<Wire>>,
}

impl Dialogue for RecordingDialogue {
    fn describe(&self, settings: &Settings) -> String {
        self.dialogue.describe(settings)
    }

    fn closes(&self) -> bool {
        self.dialogue.closes()
    }

    fn has_handshake(&self) -> bool {
        self.dialogue.has_handshake()
    }

    fn generates_requests(&self, settings: &Settings) -> bool {
        self.dialogue.generates_requests(settings)
    }

    fn wire_protocol(&self) -> Option<WireProtocol> {
        self.dialogue.wire_protocol()
    }

    fn in_words(&self, is_sent: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        self.dialogue.in_words(is_sent, bytes)
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        Box::new(RecordingRequester {
            requester: self.dialogue.requester(settings, client),
            dialogue: self.dialogue,
            has_steps: settings.flow.is_some(),
            wire: Arc::clone(&self.wire),
        })
    }
}

struct RecordingRequester {
    requester: Box<dyn Requester>,
    dialogue: &'static dyn Dialogue,
    has_steps: bool,
    wire: Arc<Mutex<Wire>>,
}

impl RecordingRequester {
    /// Notes the end of a step, if a reply completed one.
    fn noted(&self, replies: Result<Replies, ProtocolError>) -> Result<Replies, ProtocolError> {
        if self.has_steps && replies.as_ref().is_ok_and(|replies| replies.completed > 0) {
            let words = self.requester.step_in_words();
            lock(&self.wire).end_step(self.dialogue, &words);
        }
        replies
    }
}

impl Requester for RecordingRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.requester.begin()
    }

    fn pending(&self) -> &'static [u8] {
        self.requester.pending()
    }

    fn generated(&self) -> &[u8] {
        self.requester.generated()
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        let pending = match self.requester.generated() {
            [] => self.requester.pending(),
            made => made,
        };
        lock(&self.wire).sent.add(&pending[..count]);
        self.requester.advance(count)
    }

    fn drop_requests(&mut self) {
        self.requester.drop_requests();
    }

    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError> {
        lock(&self.wire).received.add(input);
        let replies = self.requester.receive(input);
        self.noted(replies)
    }

    fn step_done(&self) -> StepDone {
        self.requester.step_done()
    }

    fn awaits_close(&self) -> bool {
        self.requester.awaits_close()
    }

    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        let replies = self.requester.finish();
        self.noted(replies)
    }

    fn closing_message(&mut self) -> &'static [u8] {
        self.requester.closing_message()
    }

    fn fault(&self) -> Option<&'static str> {
        self.requester.fault()
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        self.requester.counts(counts);
    }

    fn sizes(&mut self, record: &mut dyn FnMut(u64, u64)) {
        self.requester.sizes(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PROTOCOLS;

    #[test]
    fn messages_are_shown_line_by_line() {
        let mut wire = Wire::default();
        wire.sent.add(b"GET / HTTP/1.1\r\n");
        wire.sent.add(b"A: b\r\n\r\n");
        wire.received
            .add(b"HTTP/1.1 200 OK\r\n\r\n\x1b[2Ja\rb\\\xff\tz\xc3\xa4");
        assert_eq!(
            wire.shown(PROTOCOLS[0]),
            "> GET / HTTP/1.1\n> A: b\n> \n< HTTP/1.1 200 OK\n< \n\
             < \\x1b[2Ja\\x0db\\\\xff\tz\u{e4}\n< (no end of line)\n24 bytes sent, 32 bytes received\n"
        );
        let mut long = Message::default();
        (0..3).for_each(|_| long.add(&vec![b'x'; MOST_SHOWN / 2 + 1]));
        let mut text = String::new();
        long.show('<', &mut text);
        assert!(text.ends_with("and 32771 more bytes\n") && text.len() < MOST_SHOWN + 100);
    }
}
