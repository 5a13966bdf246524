//! Numbers on the wire: 64 bits, most significant byte first.

/// A number, some bytes of which have arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Number {
    bytes: [u8; 8],
    count: usize,
}

impl Number {
    /// Consumes bytes from the front of `input`; returns the number once it is complete.
    pub(super) fn take(&mut self, input: &mut &[u8]) -> Option<u64> {
        let count = input.len().min(self.bytes.len() - self.count);
        let (head, rest) = input.split_at(count);
        self.bytes[self.count..self.count + count].copy_from_slice(head);
        self.count += count;
        *input = rest;
        (self.count == self.bytes.len()).then(|| {
            self.count = 0;
            u64::from_be_bytes(self.bytes)
        })
    }

    /// Whether some but not all of its bytes have arrived.
    pub(super) fn is_begun(&self) -> bool {
        self.count > 0
    }
}
