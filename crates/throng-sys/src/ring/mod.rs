//! io_uring(7): operations submitted to the kernel and completed in batches.
//!
//! The [`Ring`] owns the memory of an operation from its submission until its completion, even if it is cancelled. Data
//! arrives in buffers shared by all connections; the caller borrows it until the next [`Event`].

mod buffers;
mod files;
mod queues;
mod sending;
mod support;
#[cfg(test)]
mod tests;

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;

use buffers::Buffers;
use files::Files;
pub use files::Target;
pub use sending::{LARGEST_KEPT, Send};
use sending::{Sending, SilentSends};
pub use support::{NoRing, supported};

/// Completions taken from the queue at once.
const COMPLETIONS_AT_ONCE: usize = 32;
/// Maximum non-blocking sends that do not end a wait. Since Linux 6.13 a wait processes about 20 receives, or the
/// number of events it waits for. With more, batches would grow with the number of clients, beyond the caches and the
/// buffers.
const SMALL_BATCH: usize = 16;
/// Maximum bytes of a non-blocking send that is expected to complete at once. A larger one may be the last event:
/// nothing else follows until the rest is sent.
const EXPECTED_WHOLE: usize = 16 * 1024;
/// Longest wait after sends that are expected to complete, in case one does not.
const DOUBT: Duration = Duration::from_millis(1);
/// Time limit for cancelled operations when the ring is dropped.
const END_LIMIT: Duration = Duration::from_secs(1);

/// The caller's name for a descriptor or connection, returned with each event.
pub type Name = u32;

/// What a send does while the socket buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It fails with `EAGAIN`.
    Fail,
    /// It waits until there is room.
    Wait,
}

/// Events that end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeOn {
    /// Any event.
    Event,
    /// Any event except the end of a non-blocking send. These complete at once and would end each wait immediately, so
    /// that another call would be necessary.
    News,
}

/// The result of an operation.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client was accepted.
    Accepted {
        /// Its socket, or the error that ended accepting.
        socket: Result<OwnedFd, Errno>,
        /// Whether more events follow; if not, accepting must be restarted.
        goes_on: bool,
    },
    /// The watched descriptor is readable.
    Readable(Name),
    /// The watched descriptor is writable, or has an error.
    Writable(Name),
    /// Bytes arrived; none at the end of the stream.
    Received {
        /// The connection.
        name: Name,
        /// The bytes, borrowed until the next event, or the error that ended receiving.
        bytes: Result<&'a mut [u8], Errno>,
        /// Whether more events follow; if not, receiving must be restarted.
        goes_on: bool,
    },
    /// The kernel has returned the buffer of a send.
    Sent {
        /// The connection.
        name: Name,
        /// The caller's tag.
        turn: Turn,
        /// The data to send.
        buffer: Vec<u8>,
        /// Offset of the data in the buffer.
        from: usize,
        /// Number of bytes sent, or the error.
        sent: Result<usize, Errno>,
    },
    /// Static bytes were sent, possibly only in part.
    Left {
        /// The connection.
        name: Name,
        /// The caller's tag.
        turn: Turn,
        /// Number of bytes sent, or the error.
        sent: Result<usize, Errno>,
    },
}

/// Distinguishes successive connections with the same name.
pub type Turn = u16;

/// Which completions of a send are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// All.
    Always,
    /// Only errors and partial sends.
    Trouble,
}

/// The user data of an operation: optional 16 bits, the kind, and a name in the lower half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Accept = 0,
    Watch = 1,
    Receive = 2,
    Send = 3,
    WatchOut = 4,
    SendStatic = 5,
    Cancel = 6,
    Update = 7,
}

/// The kind of an operation with this user data.
pub fn operation(user_data: u64) -> &'static str {
    match Kind::of(user_data) {
        Kind::Accept => "accept",
        Kind::Watch | Kind::WatchOut => "poll",
        Kind::Receive => "receive",
        Kind::Send | Kind::SendStatic => "send",
        Kind::Cancel => "cancel",
        Kind::Update => "register",
    }
}

impl Kind {
    fn with(self, name: Name) -> u64 {
        (self as u64) << 32 | u64::from(name)
    }

    fn of(user_data: u64) -> Self {
        match (user_data >> 32) as u8 {
            0 => Self::Accept,
            1 => Self::Watch,
            2 => Self::Receive,
            3 => Self::Send,
            4 => Self::WatchOut,
            5 => Self::SendStatic,
            7 => Self::Update,
            _ => Self::Cancel,
        }
    }
}

/// A submission queue, a completion queue, and the memory of operations in progress.
///
/// Only the thread that created it can use it: the kernel rejects others.
pub struct Ring {
    queue: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    files: Files,
    /// Completions taken from the queue, and the next one to handle.
    completions: Vec<cqueue::Entry>,
    next: usize,
    /// Sends in progress, each at the index that its completion reports.
    sending: Vec<Option<Sending>>,
    /// Free indices.
    places: Vec<u32>,
    /// Operations that report only failures.
    quiet: SilentSends,
    /// Operations in progress.
    unfinished: usize,
    /// Of these, those that complete on submission.
    immediate: usize,
    /// Of these, those that may be partial.
    doubtful: usize,
}

impl Ring {
    /// Sets up a ring.
    ///
    /// # Errors
    /// Why it cannot be set up; see [`supported`].
    pub fn new() -> Result<Self, NoRing> {
        let registered = queues::set_up().and_then(|queue| {
            let buffers = Buffers::register(&queue)?;
            Ok((queue, buffers))
        });
        match registered {
            Ok((queue, buffers)) => Ok(Self::over(queue, buffers)),
            Err(error) => Err(support::explain(&error)),
        }
    }

    fn over(queue: IoUring, buffers: Buffers) -> Self {
        Self {
            files: Files::register(&queue),
            queue: ManuallyDrop::new(queue),
            buffers: ManuallyDrop::new(buffers),
            completions: Vec::with_capacity(COMPLETIONS_AT_ONCE),
            next: 0,
            sending: Vec::new(),
            places: Vec::new(),
            quiet: SilentSends::default(),
            unfinished: 0,
            immediate: 0,
            doubtful: 0,
        }
    }

    /// Accepts clients, one event per client, until an error.
    ///
    /// Keep descriptors open until the next [`wait`](Self::wait); then the kernel has its own references. The same
    /// applies to the other operations.
    ///
    /// # Errors
    /// If the ring is full and the kernel accepts no operations.
    pub fn accept(&mut self, listener: impl AsFd) -> io::Result<()> {
        let accept = opcode::AcceptMulti::new(number(listener)).flags(libc::SOCK_CLOEXEC);
        self.begin(&accept.build().user_data(Kind::Accept.with(0)))
    }

    /// Reports once that `fd` is readable.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn watch(&mut self, fd: impl AsFd, name: Name) -> io::Result<()> {
        let watch = opcode::PollAdd::new(number(fd), libc::POLLIN as u32);
        self.begin(&watch.build().user_data(Kind::Watch.with(name)))
    }

    /// Reports once that `fd` is writable or has an error.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn watch_writable(&mut self, fd: impl AsFd, name: Name) -> io::Result<()> {
        let watch = opcode::PollAdd::new(number(fd), libc::POLLOUT as u32);
        self.begin(&watch.build().user_data(Kind::WatchOut.with(name)))
    }

    /// Receives from a socket repeatedly, until an event ends it.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn receive(&mut self, target: impl Into<Target>, name: Name) -> io::Result<()> {
        let receive = match target.into().file() {
            Ok(file) => opcode::RecvMulti::new(file, buffers::GROUP),
            Err(descriptor) => opcode::RecvMulti::new(descriptor, buffers::GROUP),
        };
        self.begin(&receive.build().user_data(Kind::Receive.with(name)))
    }

    /// Ends receiving. Data that was already received is still reported, then `ECANCELED`.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn stop_receiving(&mut self, name: Name) -> io::Result<()> {
        let receive = CancelBuilder::user_data(Kind::Receive.with(name));
        let cancel = opcode::AsyncCancel2::new(receive).build();
        self.begin(&cancel.user_data(Kind::Cancel.with(name)))
    }

    /// Cancels all operations, which report their events as usual.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn cancel(&mut self) -> io::Result<()> {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        self.begin(&cancel.user_data(Kind::Cancel.with(0)))
    }

    /// Submits operations, and waits for the awaited event or a signal, for at most `limit`.
    ///
    /// # Errors
    /// As io_uring_enter(2).
    pub fn wait(&mut self, awaited: WakeOn, limit: Option<Duration>) -> io::Result<()> {
        self.buffers.take_back();
        let beyond_sends = awaited == WakeOn::News
            && (1..SMALL_BATCH).contains(&self.immediate)
            && self.doubtful == 0;
        let (wanted, limit) = if beyond_sends {
            (
                self.immediate + 1,
                Some(limit.map_or(DOUBT, |limit| limit.min(DOUBT))),
            )
        } else {
            (1, limit)
        };
        let entered = match limit {
            None => self.queue.submit_and_wait(wanted),
            Some(limit) => {
                let time = Timespec::new()
                    .sec(limit.as_secs())
                    .nsec(limit.subsec_nanos());
                let arguments = SubmitArgs::new().timespec(&time);
                self.queue.submitter().submit_with_args(wanted, &arguments)
            }
        };
        if self.has_handed_over() {
            self.has_had_all();
        }
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            // EBUSY: the ring needs room for completions before more can be submitted.
            Ok(_) | Err((Some(libc::ETIME | libc::EINTR | libc::EBUSY), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    /// Whether the kernel has taken all operations. Then descriptors may be closed, and all errors of non-blocking
    /// sends are available as events.
    pub fn has_handed_over(&mut self) -> bool {
        let submission = self.queue.submission();
        submission.is_empty() && !submission.cq_overflow()
    }

    /// The next available event.
    pub fn take_event(&mut self) -> Option<Event<'_>> {
        self.buffers.take_back();
        loop {
            let completion = self.next_completion()?;
            let goes_on = cqueue::more(completion.flags());
            let kind = Kind::of(completion.user_data());
            if !goes_on && !matches!(kind, Kind::Send | Kind::SendStatic | Kind::Update) {
                self.unfinished -= 1;
            }
            let from_number = Errno::from_raw_os_error;
            let result =
                usize::try_from(completion.result()).map_err(|_| from_number(-completion.result()));
            let name = completion.user_data() as u32;
            return Some(match kind {
                Kind::Accept => Event::Accepted {
                    // SAFETY: the kernel has just created this descriptor for us, and reports it once.
                    socket: result.map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) }),
                    goes_on,
                },
                Kind::Watch => Event::Readable(name),
                Kind::WatchOut => Event::Writable(name),
                Kind::SendStatic => Event::Left {
                    name,
                    turn: (completion.user_data() >> 48) as Turn,
                    sent: result,
                },
                Kind::Receive => Event::Received {
                    name,
                    bytes: self.buffers.filled(completion.flags(), result),
                    goes_on,
                },
                Kind::Send => {
                    let Some(sending) = self.sending[name as usize].take() else {
                        continue; // impossible: each send completes once
                    };
                    self.places.push(name);
                    let Sending {
                        send, buffer, from, ..
                    } = sending;
                    if send.notify == Notify::Always {
                        self.unfinished -= 1;
                        if send.when_full == WhenFull::Fail {
                            self.immediate -= 1;
                            self.doubtful -= usize::from(buffer.len() > EXPECTED_WHOLE);
                        }
                    }
                    Event::Sent {
                        name: send.name,
                        turn: send.turn,
                        buffer,
                        from,
                        sent: result,
                    }
                }
                Kind::Cancel | Kind::Update => continue,
            });
        }
    }

    fn next_completion(&mut self) -> Option<cqueue::Entry> {
        if self.next == self.completions.len() {
            self.next = 0;
            self.completions.clear();
            let queue = self.queue.completion();
            self.completions.extend(queue.take(COMPLETIONS_AT_ONCE));
            if self.completions.is_empty() {
                self.has_no_trouble();
                return None;
            }
        }
        self.next += 1;
        self.completions.get(self.next - 1).cloned()
    }

    /// The connection of the event after the next one, if that event is already known and reports received bytes.
    #[inline]
    pub fn coming_receiver(&self) -> Option<Name> {
        let coming = self.completions.get(self.next + 1)?.user_data();
        (Kind::of(coming) == Kind::Receive).then_some(coming as Name)
    }

    fn begin(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what an entry points to lives as long as the program, or is a buffer in `sending`. The bytes of such
        // a buffer do not move when the list does. It leaves the list only when the kernel has completed the send, or
        // never (see `drop`). A send that does not wait (MSG_DONTWAIT) is complete when the kernel has taken its
        // entry. So is an update of the files, whose descriptor stays in place for longer than entries can wait.
        while unsafe { self.queue.submission().push(entry) }.is_err() {
            match self.queue.submit() {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.unfinished += 1;
        Ok(())
    }

    /// Cancels all operations. Returns whether all have ended.
    fn cancel_all(&mut self) -> bool {
        if self.cancel().is_err() {
            return false;
        }
        let until = Instant::now() + END_LIMIT;
        while self.unfinished > 0 && Instant::now() < until {
            if self.wait(WakeOn::Event, Some(END_LIMIT)).is_err() {
                break;
            }
            while self.take_event().is_some() {}
        }
        self.unfinished == 0
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.unfinished == 0 || self.cancel_all() {
            self.files.unregister(&self.queue);
            // SAFETY: neither is used again: this is their only drop. The ring is dropped first, so that the kernel
            // releases the buffers, and no operation is left that could fill one.
            unsafe {
                ManuallyDrop::drop(&mut self.queue);
                ManuallyDrop::drop(&mut self.buffers);
            }
        } else {
            // The kernel may still read and write this memory, so it is never freed.
            std::mem::take(&mut self.sending)
                .into_iter()
                .for_each(std::mem::forget);
        }
    }
}

fn number(fd: impl AsFd) -> Fd {
    Fd(fd.as_fd().as_raw_fd())
}
