//! Sending: buffers that the kernel owns until they are sent, and static bytes.

use std::io;

use io_uring::{opcode, squeue};

use super::{EXPECTED_WHOLE, Kind, Name, Notify, Ring, Target, Turn, WhenFull};

/// Maximum number of free buffers.
const SPARE: usize = 1024;
/// Maximum capacity of a free buffer.
pub const LARGEST_KEPT: usize = 8 * 1024;

/// The caller's description of a send.
#[derive(Debug, Clone, Copy)]
pub struct Send {
    /// The connection.
    pub name: Name,
    /// Returned with the result.
    pub turn: Turn,
    /// Whether it may wait.
    pub when_full: WhenFull,
    /// Which of its completions are reported.
    pub notify: Notify,
}

/// Data to send, and its memory.
pub(super) struct Sending {
    pub(super) send: Send,
    pub(super) buffer: Vec<u8>,
    /// Offset in the buffer.
    pub(super) from: usize,
    /// Whether it was submitted; a non-blocking send is then complete.
    handed_over: bool,
}

/// Non-blocking sends that report only failures. Each completes on submission.
#[derive(Default)]
pub(super) struct SilentSends {
    /// Indices of sends that are not submitted yet.
    begun: Vec<u32>,
    /// Indices of submitted sends, whose errors are available as events.
    handed_over: Vec<u32>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl Ring {
    /// An empty buffer for [`send`](Self::send), if possible a used one with capacity.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.quiet.spare.pop().unwrap_or_default()
    }

    /// Keeps a buffer for reuse.
    pub fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.quiet.spare.len() < SPARE && buffer.capacity() <= LARGEST_KEPT {
            buffer.clear();
            self.quiet.spare.push(buffer);
        }
    }

    /// Sends the content of a buffer from offset `from`. The kernel owns the buffer until an event returns it. If only
    /// [failures](Notify::Trouble) of a [non-blocking](WhenFull::Fail) send are reported, the buffer of a successful
    /// send is [kept](Self::keep).
    ///
    /// Do not send further bytes on the same connection until the kernel has accepted these.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send(
        &mut self,
        target: impl Into<Target>,
        mut send: Send,
        buffer: Vec<u8>,
        from: usize,
    ) -> io::Result<()> {
        let place = self.places.pop().unwrap_or_else(|| {
            self.sending.push(None);
            self.sending.len() as u32 - 1
        });
        let bytes = &buffer[from..];
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let sending = send_operation(target.into(), bytes.as_ptr(), length);
        let flags = libc::MSG_NOSIGNAL;
        if send.when_full == WhenFull::Wait {
            send.notify = Notify::Always;
        }
        let operation = match (send.when_full, send.notify) {
            // With MSG_WAITALL a partial send is a failure.
            (WhenFull::Fail, Notify::Trouble) => sending
                .flags(flags | libc::MSG_DONTWAIT | libc::MSG_WAITALL)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS),
            (WhenFull::Fail, Notify::Always) => sending.flags(flags | libc::MSG_DONTWAIT).build(),
            (WhenFull::Wait, _) => sending.flags(flags).build(),
        };
        if send.notify == Notify::Trouble {
            self.quiet.begun.push(place);
        } else if send.when_full == WhenFull::Fail {
            self.immediate += 1;
            self.doubtful += usize::from(buffer.len() > EXPECTED_WHOLE);
        }
        self.sending[place as usize] = Some(Sending {
            send,
            buffer,
            from,
            handed_over: false,
        });
        self.begin(&operation.user_data(Kind::Send.with(place)))?;
        if send.notify == Notify::Trouble {
            // Its completion is not awaited.
            self.unfinished -= 1;
        }
        Ok(())
    }

    /// Records that everything was submitted.
    pub(super) fn has_had_all(&mut self) {
        for &place in &self.quiet.begun {
            if let Some(sending) = &mut self.sending[place as usize] {
                sending.handed_over = true;
            }
        }
        self.quiet.handed_over.append(&mut self.quiet.begun);
    }

    /// Records that no event is left: all submitted sends without events succeeded.
    pub(super) fn has_no_trouble(&mut self) {
        if self.quiet.handed_over.is_empty() || self.queue.submission().cq_overflow() {
            return;
        }
        let mut succeeded = std::mem::take(&mut self.quiet.handed_over);
        for place in succeeded.drain(..) {
            // After a failure, another send may have its index.
            let over = self.sending[place as usize]
                .take_if(|sending| sending.handed_over && sending.send.notify == Notify::Trouble);
            if let Some(sending) = over {
                self.places.push(place);
                self.keep(sending.buffer);
            }
        }
        self.quiet.handed_over = succeeded;
    }

    /// Sends all of these static bytes, however long it takes.
    ///
    /// Do not send further bytes on the same connection until these are sent.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send_static(
        &mut self,
        target: impl Into<Target>,
        name: Name,
        turn: Turn,
        bytes: &'static [u8],
        notify: Notify,
    ) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // With MSG_WAITALL the kernel continues after a partial send.
        let entry = send_operation(target.into(), bytes.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(Kind::SendStatic.with(name) | u64::from(turn) << 48);
        let send = match notify {
            Notify::Always => entry,
            Notify::Trouble => entry.flags(squeue::Flags::SKIP_SUCCESS),
        };
        self.begin(&send)?;
        // Its completion is not awaited: it uses no memory of the ring.
        self.unfinished -= 1;
        Ok(())
    }
}

fn send_operation(target: Target, bytes: *const u8, length: u32) -> opcode::Send {
    match target.file() {
        Ok(file) => opcode::Send::new(file, bytes, length),
        Err(descriptor) => opcode::Send::new(descriptor, bytes, length),
    }
}
