//! The receive buffers of all connections of a ring. The kernel takes one when data arrives, so idle connections need
//! none.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use io_uring::{IoUring, cqueue};
use rustix::io::Errno;

/// The ID of the only buffer group in a ring.
pub(super) const GROUP: u16 = 0;
/// Number and size of the buffers. If all are in use, the kernel ends receives, and each must be restarted, which is
/// expensive with many small requests. If they do not fit into the cache, large requests are slower.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// A power of two.
    count: u16,
    bytes: usize,
    flags: u16,
}

/// Several receives share one buffer: `IOU_PBUF_RING_INC`, since Linux 6.12.
const INCREMENTAL: Shape = Shape {
    count: 8,
    bytes: 64 * 1024,
    flags: 2,
};

/// Each receive uses a whole buffer, however small.
pub(super) const WHOLE: Shape = Shape {
    count: 1024,
    bytes: 4096,
    flags: 0,
};

/// Buffers, and the queue that provides them to the kernel.
pub(super) struct Buffers {
    shape: Shape,
    /// One mapping: the queue, then the buffers.
    start: *mut u8,
    /// Bytes used of each buffer, if receives share buffers.
    filled: Box<[u32]>,
    /// Number of buffers provided so far; it wraps around.
    tail: u16,
    /// The buffer lent to the caller with the last event.
    lent: Option<u16>,
}

impl Shape {
    fn queue_bytes(self) -> usize {
        (usize::from(self.count) * size_of::<BufRingEntry>()).next_multiple_of(4096)
    }

    fn all_bytes(self) -> usize {
        self.queue_bytes() + usize::from(self.count) * self.bytes
    }
}

impl Buffers {
    /// Registers buffers with a ring, in the best mode that the kernel supports.
    pub(super) fn register(queue: &IoUring) -> io::Result<Self> {
        match Self::with_shape(queue, INCREMENTAL) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Self::with_shape(queue, WHOLE)
            }
            registered => registered,
        }
    }

    pub(super) fn with_shape(queue: &IoUring, shape: Shape) -> io::Result<Self> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing we own.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                shape.all_bytes(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut buffers = Self {
            shape,
            start: start.cast(),
            filled: vec![0; usize::from(shape.count)].into(),
            tail: 0,
            lent: None,
        };
        let (submitter, address) = (queue.submitter(), start as u64);
        // SAFETY: the mapping begins with room for `count` entries, aligned to a page, and `Ring`
        // keeps it longer than the queue.
        unsafe {
            submitter.register_buf_ring_with_flags(address, shape.count, GROUP, shape.flags)?;
        }
        for number in 0..shape.count {
            buffers.offer(number);
        }
        Ok(buffers)
    }

    /// The received bytes of a buffer, borrowed until the buffer is [taken back].
    ///
    /// [taken back]: Self::take_back
    pub(super) fn filled(
        &mut self,
        flags: u32,
        result: Result<usize, Errno>,
    ) -> Result<&mut [u8], Errno> {
        let length = result?;
        let Some(number) = cqueue::buffer_select(flags) else {
            return Ok(&mut []);
        };
        let from = self.filled[usize::from(number)] as usize;
        if cqueue::buffer_more(flags) {
            self.filled[usize::from(number)] += length as u32;
        } else {
            self.lent = Some(number);
        }
        // The kernel never does that; a slice beyond the buffer would be unsound.
        assert!(
            from + length <= self.shape.bytes,
            "a receive ends within its buffer"
        );
        // SAFETY: the range lies in the mapping (asserted). The kernel has filled it, and neither reads nor writes it
        // again before `take_back`, which needs `self` exclusively, as the slice does.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.buffer(number).add(from), length) })
    }

    /// Returns the buffer of the last event to the kernel.
    pub(super) fn take_back(&mut self) {
        if let Some(number) = self.lent.take() {
            self.filled[usize::from(number)] = 0;
            self.offer(number);
        }
    }

    fn offer(&mut self, number: u16) {
        let address = self.buffer(number) as u64;
        let place = usize::from(self.tail % self.shape.count);
        let queue: *mut BufRingEntry = self.start.cast();
        // SAFETY: the entry at `place` lies in the queue at the start of the mapping, and the kernel reads it only
        // once the tail has passed it. An entry is plain numbers, for which any bytes are valid. Its setters leave the
        // tail alone, which lies in the unused part of the first entry.
        let entry = unsafe { &mut *queue.add(place) };
        entry.set_addr(address);
        entry.set_len(self.shape.bytes as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `queue` is the first entry; its tail is aligned, lives as long as the mapping, and
        // is shared with the kernel only, which reads it atomically.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(queue).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn buffer(&self, number: u16) -> *mut u8 {
        let number = usize::from(number % self.shape.count);
        // SAFETY: the buffer lies in the mapping, which has room for `count` buffers after the queue.
        unsafe {
            self.start
                .add(self.shape.queue_bytes() + number * self.shape.bytes)
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and `Ring` drops it after the queue through which the kernel
        // knew it; no slice of it is left, since each borrows `self`.
        unsafe { libc::munmap(self.start.cast(), self.shape.all_bytes()) };
    }
}
