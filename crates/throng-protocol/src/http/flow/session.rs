//! One client's session.

use super::super::super::status::ReplyTotals;
use super::super::feed::Known;
use super::query::Seen;
use super::{Flow, MOST_BODY, MOST_CAPTURED, StepDone};

/// The state of one client's session: the step that it is at, and what it has captured.
#[derive(Debug)]
pub(in super::super) struct FlowSession {
    flow: &'static Flow,
    /// Head and body of the reply that is being read, as far as its step needs them.
    head: Vec<u8>,
    body: Vec<u8>,
    /// The step of the next reply.
    step: u16,
    has_begun: bool,
    /// The status of the last reply.
    status: u16,
    is_too_long: bool,
    done: StepDone,
}

/// Maximum characters of a value in words.
const MOST_SHOWN: usize = 100;
/// The message for a body that is too long to be read.
pub(super) const TOO_LONG: &str = "the body exceeds 64 KiB, the most that a step reads";
/// The message for values that are too long to be kept.
pub(super) const TOO_MUCH: &str = "the captured values exceed 4 KiB";

impl FlowSession {
    pub(in super::super) fn new(flow: &'static Flow) -> Self {
        Self {
            flow,
            head: Vec::new(),
            body: Vec::new(),
            step: 0,
            has_begun: false,
            status: 0,
            is_too_long: false,
            done: StepDone::default(),
        }
    }

    /// Whether this client has begun a session before.
    pub(in super::super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// A request was begun.
    pub(in super::super) fn begin(&mut self, step: usize) {
        self.has_begun = true;
        self.step = step as u16;
        (self.head, self.body) = (Vec::new(), Vec::new());
        self.is_too_long = false;
    }

    /// Keeps the head of a reply.
    pub(in super::super) fn note_head(&mut self, head: &[u8]) {
        let step = &self.flow.steps[usize::from(self.step)];
        if !step.captures.is_empty() || !step.asserts.is_empty() {
            head.clone_into(&mut self.head);
        }
    }

    /// Keeps the next bytes of a body.
    pub(in super::super) fn note_body(&mut self, bytes: &[u8]) {
        if !self.flow.reads_body(self.step.into()) {
            return;
        }
        if self.body.len() + bytes.len() > MOST_BODY {
            self.is_too_long = true;
            return;
        }
        self.body.extend_from_slice(bytes);
    }

    /// Judges a complete reply, and captures from it. Counts a failure in `tally`.
    pub(in super::super) fn complete(
        &mut self,
        status: u16,
        is_expected: bool,
        known: &mut [Known],
        tally: &mut ReplyTotals,
    ) {
        self.status = status;
        let failure = if !is_expected {
            None
        } else if self.is_too_long {
            Some(TOO_LONG)
        } else {
            self.judge(status, known).err()
        };
        if let Some(why) = failure {
            tally.fail(why);
        }
        let has_failed = !is_expected || failure.is_some();
        self.done = StepDone {
            step: self.step,
            has_failed,
            is_last: has_failed || usize::from(self.step) + 1 == self.flow.steps.len(),
        };
    }

    /// What the last reply was judged by, and what was captured from it, a line for each.
    pub(in super::super) fn in_words(&self, known: &[Known]) -> Vec<String> {
        let step = &self.flow.steps[usize::from(self.done.step)];
        let seen = Seen::new(self.status, &self.head, &self.body);
        let mut words = Vec::new();
        for assert in &step.asserts {
            let value = assert.query.find(&seen);
            let is_so = assert.predicate.holds(value.as_ref(), known) != assert.is_negated;
            let word = if is_so { "asserted" } else { "failed" };
            let found = value.map_or_else(|| "nothing".to_owned(), shortened);
            words.push(format!("{word}: {} (found: {found})", assert.failure));
        }
        for capture in &step.captures {
            words.push(match capture.query.find(&seen) {
                Some(value) => format!("captured: {} = {}", capture.name, shortened(value)),
                None => format!("failed: {}", capture.failure),
            });
        }
        words
    }

    /// How the last reply left the session.
    pub(in super::super) fn done(&self) -> StepDone {
        self.done
    }

    fn judge(&self, status: u16, known: &mut [Known]) -> Result<(), &'static str> {
        let step = &self.flow.steps[usize::from(self.step)];
        let seen = Seen::new(status, &self.head, &self.body);
        let mut found = Vec::with_capacity(step.captures.len());
        for capture in &step.captures {
            let value = capture.query.find(&seen).ok_or(capture.failure)?;
            found.push((capture.variable, value.into_text().into_bytes()));
        }
        for (variable, value) in found {
            known[variable] = Known::Own(value.into());
        }
        let kept: usize = known.iter().map(Known::kept).sum();
        if kept > MOST_CAPTURED {
            return Err(TOO_MUCH);
        }
        // They may use what was captured.
        for assert in &step.asserts {
            let value = assert.query.find(&seen);
            if assert.predicate.holds(value.as_ref(), known) == assert.is_negated {
                return Err(assert.failure);
            }
        }
        Ok(())
    }
}

/// A value as text that fits in a line.
fn shortened(value: super::Value) -> String {
    let text = value.into_text();
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
