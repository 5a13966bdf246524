//! The buffers of a worker.

use std::mem::MaybeUninit;

/// Bytes per read of a worker that serves many clients.
const INPUT_BYTES: usize = 256 * 1024;
/// Bytes per read of a worker that serves one client; small enough for thousands of them.
const SINGLE_INPUT_BYTES: usize = 64 * 1024;

/// The buffers of one worker, lent to the connection that it handles.
///
/// The input buffer is never cleared, so only the part that is used takes memory.
#[derive(Debug)]
pub struct WorkerBuffers {
    pub(super) input: Box<[MaybeUninit<u8>]>,
    pub(super) out: Vec<u8>,
}

impl WorkerBuffers {
    /// Buffers for a worker that serves many clients in turn.
    pub fn for_many() -> Self {
        Self::with(INPUT_BYTES)
    }

    /// Buffers for a worker that serves one client at a time and may be one of thousands.
    pub fn for_one() -> Self {
        Self::with(SINGLE_INPUT_BYTES)
    }

    fn with(input_bytes: usize) -> Self {
        Self {
            input: Box::new_uninit_slice(input_bytes),
            out: Vec::new(),
        }
    }
}
