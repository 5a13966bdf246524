//! Requests laid out contiguously in memory that all clients share, and a client's position among them.
//!
//! So several requests are sent in one piece, and a client needs no copy of any.

/// Maximum bytes of a request and its repetitions, unless one is longer.
const REPEATED_BYTES: usize = 16 * 1024;
/// Maximum repetitions of a request.
const MOST_REPEATED: usize = 64;

/// Repeats a request, so that as many can be sent at once.
pub(super) fn repeat(request: &[u8]) -> Vec<u8> {
    let times = REPEATED_BYTES / request.len().max(1);
    request.repeat(times.clamp(1, MOST_REPEATED))
}

/// A client's requests that were begun and not sent yet, of a cycle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cycle {
    wire: &'static [u8],
    /// Position of the next byte to send.
    at: usize,
    /// Bytes to send.
    left: usize,
}

impl Cycle {
    /// Complete requests, beginning with the one at `at`.
    pub(super) fn new(wire: &'static [u8], at: usize) -> Self {
        Self { wire, at, left: 0 }
    }

    /// Begins the next request, of so many bytes.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.left += bytes;
    }

    pub(super) fn pending(&self) -> &'static [u8] {
        let end = (self.at + self.left).min(self.wire.len());
        self.wire.get(self.at..end).unwrap_or_default()
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.at += count;
        self.left -= count;
        if self.at == self.wire.len() {
            self.at = 0;
        }
    }

    /// Cancels what was begun; the request at `at` is the next.
    pub(super) fn start_over(&mut self, at: usize) {
        (self.at, self.left) = (at, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_repeated_within_bounds() {
        assert_eq!(repeat(b"abc"), b"abc".repeat(64));
        assert_eq!(repeat(&[7; 1000]).len(), 16_000);
        assert_eq!(repeat(&vec![7; 20_000]).len(), 20_000);
        assert_eq!(repeat(b""), b"");
    }

    #[test]
    fn a_cycle_is_sent_in_as_few_pieces_as_possible() {
        let mut cycle = Cycle::new(b"aabbcc", 2);
        assert_eq!(cycle.pending(), b"");
        cycle.begin(2);
        cycle.advance(1);
        cycle.begin(2);
        cycle.begin(2);
        assert_eq!(cycle.pending(), b"bcc");
        cycle.advance(3);
        assert_eq!(cycle.pending(), b"aa");
        cycle.advance(2);
        assert_eq!(cycle.pending(), b"");
        cycle.begin(2);
        cycle.start_over(4);
        assert_eq!(cycle.pending(), b"");
        cycle.begin(2);
        assert_eq!(cycle.pending(), b"cc");
    }
}
