//! Sending: buffers that are the kernel's until it has them sent, and bytes that live as long as the program.

use std::io;
use std::os::fd::AsFd;

use io_uring::{opcode, squeue};

use super::{EXPECTED_WHOLE, Kind, Name, Notify, Patience, Ring, Turn, number};

/// Buffers that wait to be used again.
const SPARE: usize = 1024;
/// Most bytes that one of these may have room for.
pub const LARGEST_KEPT: usize = 8 * 1024;

/// What a send is for the caller.
#[derive(Debug, Clone, Copy)]
pub struct Send {
    /// The connection.
    pub name: Name,
    /// Comes back with what becomes of it.
    pub turn: Turn,
    /// How long it may take.
    pub patience: Patience,
    /// Which of its ends are reported.
    pub notify: Notify,
}

/// Data to be sent, in memory of its own.
pub(super) struct Sending {
    pub(super) send: Send,
    pub(super) buffer: Vec<u8>,
    /// Where in the buffer it begins.
    pub(super) from: usize,
    /// Whether the kernel has had it, and so is done with it if it was not to wait.
    handed_over: bool,
}

/// Sends with only their failures reported. Each is over as soon as it is submitted, since they do not wait.
#[derive(Default)]
pub(super) struct Quiet {
    /// Places of those that it was not given yet.
    begun: Vec<u32>,
    /// Places of those that it was given; trouble with them is among the events that it has ready.
    handed_over: Vec<u32>,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
}

impl Ring {
    /// An empty buffer for [`send`](Self::send), perhaps with room.
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

    /// Sends the content of a buffer from `from` on; the buffer is the kernel's until an event returns it. With only
    /// [failures](Notify::Trouble) of a send reported that does not [wait](Patience::None), the buffer is
    /// [kept](Self::keep) otherwise.
    ///
    /// Further bytes of the same connection have to wait until the kernel has taken these.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send(
        &mut self,
        socket: impl AsFd,
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
        let operation = opcode::Send::new(number(socket), bytes.as_ptr(), length);
        let flags = libc::MSG_NOSIGNAL;
        if send.patience == Patience::UntilThereIsRoom {
            send.notify = Notify::Always;
        }
        let operation = match (send.patience, send.notify) {
            // With MSG_WAITALL a part of it is trouble.
            (Patience::None, Notify::Trouble) => operation
                .flags(flags | libc::MSG_DONTWAIT | libc::MSG_WAITALL)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS),
            (Patience::None, Notify::Always) => operation.flags(flags | libc::MSG_DONTWAIT).build(),
            (Patience::UntilThereIsRoom, _) => operation.flags(flags).build(),
        };
        if send.notify == Notify::Trouble {
            self.quiet.begun.push(place);
        } else if send.patience == Patience::None {
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
            // Its end is not awaited.
            self.unfinished -= 1;
        }
        Ok(())
    }

    /// The kernel has had all that was begun.
    pub(super) fn has_had_all(&mut self) {
        for &place in &self.quiet.begun {
            if let Some(sending) = &mut self.sending[place as usize] {
                sending.handed_over = true;
            }
        }
        self.quiet.handed_over.append(&mut self.quiet.begun);
    }

    /// Without an event, all quiet sends submitted so far succeeded.
    pub(super) fn has_no_trouble(&mut self) {
        if self.quiet.handed_over.is_empty() || self.queue.submission().cq_overflow() {
            return;
        }
        for place in std::mem::take(&mut self.quiet.handed_over) {
            // After trouble, another one may have its place.
            let over = self.sending[place as usize]
                .take_if(|sending| sending.handed_over && sending.send.notify == Notify::Trouble);
            if let Some(sending) = over {
                self.places.push(place);
                self.keep(sending.buffer);
            }
        }
    }

    /// Sends bytes that live as long as the program, all of them, however long it takes.
    ///
    /// Bytes of the same connection have to wait until these have left.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send_static(
        &mut self,
        socket: impl AsFd,
        name: Name,
        turn: Turn,
        bytes: &'static [u8],
        notify: Notify,
    ) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // With MSG_WAITALL the kernel continues after a partial send.
        let send = opcode::Send::new(number(socket), bytes.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(Kind::SendStatic.with(name) | u64::from(turn) << 48);
        let send = match notify {
            Notify::Always => send,
            Notify::Trouble => send.flags(squeue::Flags::SKIP_SUCCESS),
        };
        self.begin(&send)?;
        // Its end is not awaited: it borrows no memory of ours.
        self.unfinished -= 1;
        Ok(())
    }
}
