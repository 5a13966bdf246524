//! Sending: buffers that are the kernel's until it has them sent, and bytes that live as long as the program.

use std::io;
use std::os::fd::AsFd;

use io_uring::{opcode, squeue};

use super::{EXPECTED_WHOLE, Kind, Name, Notify, Patience, Ring, Turn, number};

/// What the kernel has to send, in memory of its own.
pub(super) struct Sending {
    pub(super) name: Name,
    pub(super) buffer: Vec<u8>,
    pub(super) patience: Patience,
    /// Where the caller wants to hear that the bytes have left, and not have them back.
    pub(super) turn: Option<Turn>,
}

impl Ring {
    /// Sends what a buffer holds beginning at `from`; the buffer is the kernel's
    /// until an event gives it back.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send(
        &mut self,
        socket: impl AsFd,
        name: Name,
        buffer: Vec<u8>,
        from: usize,
        patience: Patience,
    ) -> io::Result<()> {
        let flags = match patience {
            Patience::None => libc::MSG_DONTWAIT,
            Patience::UntilThereIsRoom => 0,
        };
        self.send_buffer(socket, name, buffer, from, patience, None, flags)
    }

    /// Sends all that a buffer holds, however long it takes, and tells of it with [`Event::Left`](super::Event::Left); the buffer is the
    /// kernel's and then gone.
    ///
    /// Bytes of the same connection have to wait until these have left.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send_given(
        &mut self,
        socket: impl AsFd,
        name: Name,
        turn: Turn,
        buffer: Vec<u8>,
    ) -> io::Result<()> {
        let patience = Patience::UntilThereIsRoom;
        // With MSG_WAITALL the kernel goes on after a part.
        self.send_buffer(
            socket,
            name,
            buffer,
            0,
            patience,
            Some(turn),
            libc::MSG_WAITALL,
        )
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "all that two kinds of sends differ in"
    )]
    fn send_buffer(
        &mut self,
        socket: impl AsFd,
        name: Name,
        buffer: Vec<u8>,
        from: usize,
        patience: Patience,
        turn: Option<Turn>,
        flags: i32,
    ) -> io::Result<()> {
        let place = self.places.pop().unwrap_or_else(|| {
            self.sending.push(None);
            self.sending.len() as u32 - 1
        });
        let bytes = &buffer[from..];
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let send = opcode::Send::new(number(socket), bytes.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | flags)
            .build();
        if patience == Patience::None {
            self.immediate += 1;
            self.doubtful += usize::from(buffer.len() > EXPECTED_WHOLE);
        }
        self.sending[place as usize] = Some(Sending {
            name,
            buffer,
            patience,
            turn,
        });
        self.begin(&send.user_data(Kind::Send.with(place)))
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
        // With MSG_WAITALL the kernel goes on after a part.
        let send = opcode::Send::new(number(socket), bytes.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(Kind::SendStatic.with(name) | u64::from(turn) << 48);
        let send = match notify {
            Notify::Always => send,
            Notify::Trouble => send.flags(squeue::Flags::SKIP_SUCCESS),
        };
        self.begin(&send)?;
        // Nobody has to wait for its end: nothing of ours is lent to it.
        self.unfinished -= 1;
        Ok(())
    }
}
