//! Requests generated for one client: those with variables or cookies, and those too large to repeat in memory as
//! often as their weights require.

use super::cookies::Jar;
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
}

impl Generated {
    pub(super) fn new(values: Values, keeps_cookies: bool) -> Self {
        Self {
            wire: Vec::new(),
            at: 0,
            values,
            jar: Jar::default(),
            keeps_cookies,
        }
    }

    /// Appends a request to the unsent bytes.
    pub(super) fn begin(&mut self, (head, body): &(Vec<Piece>, Vec<Piece>)) {
        self.values.fill(head, body, &self.jar, &mut self.wire);
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

    /// Stores the cookies in the head of a reply.
    pub(super) fn note_head(&mut self, head: &[u8]) {
        if self.keeps_cookies {
            self.jar.take(head);
        }
    }
}
