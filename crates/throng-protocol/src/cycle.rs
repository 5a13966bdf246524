//! Requests laid out contiguously in memory shared by all clients, and a client's position among them.
//!
//! This lets a client send several requests at once without a copy of any.

/// Maximum bytes of a request and its repetitions, unless the request alone is longer.
const REPEATED_BYTES: usize = 16 * 1024;
/// Maximum repetitions of a request.
const MOST_REPEATED: usize = 64;

/// Repeats a request, so that several can be sent at once.
pub(super) fn repeat(request: &[u8]) -> Vec<u8> {
    let times = REPEATED_BYTES / request.len().max(1);
    request.repeat(times.clamp(1, MOST_REPEATED))
}

/// The requests of a cycle that a client has begun but not sent yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cycle {
    wire: &'static [u8],
    /// Position of the next byte to send.
    at: usize,
    /// Number of bytes to send.
    left: usize,
}

impl Cycle {
    /// A cycle over complete requests, starting at offset `at`.
    pub(super) fn new(wire: &'static [u8], at: usize) -> Self {
        Self { wire, at, left: 0 }
    }

    /// Begins the next request, which has `bytes` bytes.
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

    /// Cancels the begun requests; the request at `at` is next.
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
