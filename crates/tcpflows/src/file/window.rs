//! A window that moves along a file: only the requested part is in memory.

use std::io::{self, ErrorKind, Read};

/// Bytes per read.
const PIECE_BYTES: usize = 256 << 10;

/// A reader, and the bytes that have been read but not consumed.
pub(super) struct Window<R> {
    inner: R,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// Offset of `from` in the file.
    offset: u64,
}

impl<R: Read> Window<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: vec![0; PIECE_BYTES],
            from: 0,
            to: 0,
            offset: 0,
        }
    }

    /// The offset of the next byte in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that have been read but not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Reads until the window has at least `bytes` bytes; false if the file ends first.
    pub(super) fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        if self.to - self.from >= bytes {
            return Ok(true);
        }
        self.buffer.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        while self.to < bytes {
            match self.inner.read(&mut self.buffer[self.to..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.to += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Consumes `bytes` bytes of the window.
    pub(super) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.to - self.from);
        self.from += bytes;
        self.offset += bytes as u64;
    }

    /// The last `bytes` consumed bytes.
    pub(super) fn consumed(&self, bytes: usize) -> &[u8] {
        &self.buffer[self.from - bytes..self.from]
    }

    /// Skips `bytes` bytes, which can be any number; false if the file ends first.
    pub(super) fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(PIECE_BYTES as u64) as usize;
            let whole = self.fill(piece)?;
            let there = piece.min(self.to - self.from);
            self.consume(there);
            left -= there as u64;
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
