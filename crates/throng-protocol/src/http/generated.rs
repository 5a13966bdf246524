//! Requests generated for one client: those with variables or cookies, those of a flow, and those too large to repeat in
//! memory as often as their weights require.

use super::cookies::Jar;
use super::feed::Known;
use super::flow::{Flow, FlowSession};
use super::template::{Piece, Values};

/// Maximum bytes of memory kept for a client's next request.
const BUFFER_LIMIT: usize = 64 * 1024;

/// The generated requests of one client.
#[derive(Debug)]
pub(super) struct Generated {
    wire: Vec<u8>,
    /// Number of bytes sent so far.
    at: usize,
    values: Values,
    jar: Jar,
    keeps_cookies: bool,
    /// The session, if the requests are the steps of a flow.
    session: Option<Box<FlowSession>>,
}

impl Generated {
    pub(super) fn new(values: Values, keeps_cookies: bool, flow: Option<&'static Flow>) -> Self {
        Self {
            wire: Vec::new(),
            at: 0,
            values,
            jar: Jar::EMPTY,
            keeps_cookies,
            session: flow.map(|flow| Box::new(FlowSession::new(flow))),
        }
    }

    /// Appends request `place` of the order to the unsent bytes.
    pub(super) fn begin(&mut self, place: usize, (head, body): &(Vec<Piece>, Vec<Piece>)) {
        if let Some(session) = &mut self.session {
            if place == 0 {
                self.jar = Jar::EMPTY;
                if session.has_begun() {
                    self.values.advance();
                }
            }
            session.begin(place);
        }
        self.values.write(head, body, &self.jar, &mut self.wire);
        if self.session.is_none() {
            self.values.advance();
        }
    }

    pub(super) fn pending(&self) -> &[u8] {
        &self.wire[self.at..]
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.at += count;
        if self.at >= self.wire.len() {
            self.drop_requests();
        }
    }

    /// Cancels the begun requests.
    pub(super) fn drop_requests(&mut self) {
        self.wire.clear();
        self.wire.shrink_to(BUFFER_LIMIT);
        self.at = 0;
    }

    /// The session, if there is one.
    pub(super) fn session(&self) -> Option<&FlowSession> {
        self.session.as_deref()
    }

    /// The session, if there is one, and the values of its variables.
    pub(super) fn session_mut(&mut self) -> Option<(&mut FlowSession, &mut [Known])> {
        let session = self.session.as_deref_mut()?;
        Some((session, self.values.known_mut()))
    }

    /// What the session's last reply was judged by.
    pub(super) fn step_in_words(&self) -> Vec<String> {
        let session = self.session.as_ref();
        session.map_or_else(Vec::new, |session| session.in_words(self.values.known()))
    }

    /// Stores the cookies in the head of a reply.
    pub(super) fn note_head(&mut self, head: &[u8]) {
        if self.keeps_cookies {
            self.jar.take(head);
        }
        if let Some(session) = &mut self.session {
            session.note_head(head);
        }
    }
}
