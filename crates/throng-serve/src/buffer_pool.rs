//! Spare buffers for the answers of a worker that lends them to the kernel: an idle connection owns no buffer, and a
//! busy one needs no allocation.

use throng_protocol::OUTPUT_LIMIT;

/// Maximum total size of the spare buffers in bytes.
const KEPT: usize = 8 * OUTPUT_LIMIT;

/// The spare buffers of one worker.
#[derive(Debug, Default)]
pub struct BufferPool {
    buffers: Vec<Vec<u8>>,
    /// Their total size.
    bytes: usize,
}

impl BufferPool {
    /// Keeps an empty buffer for the next use, unless there are enough already.
    pub fn keep(&mut self, buffer: Vec<u8>) {
        let bytes = self.bytes + buffer.capacity();
        if bytes <= KEPT {
            self.bytes = bytes;
            self.buffers.push(buffer);
        }
    }

    /// Takes the most recently used buffer, which is the most likely to be in a cache.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop()?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_no_more_than_it_may() {
        let mut pool = BufferPool::default();
        for _ in 0..20 {
            pool.keep(Vec::with_capacity(OUTPUT_LIMIT));
        }
        let kept: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        let bytes: usize = kept.iter().map(Vec::capacity).sum();
        assert!(!kept.is_empty() && bytes <= KEPT, "{bytes}");
        assert_eq!(pool.bytes, 0);
    }
}
