//! io_uring(7): operations submitted to the kernel and completed in batches.
//!
//! The memory of an operation belongs to the [`Ring`] from its submission until its completion, also when it is
//! cancelled meanwhile. Data arrives in a few buffers shared by all connections, and is lent to the caller until the
//! next [`Event`].

mod buffers;
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
pub use sending::{LARGEST_KEPT, Send};
use sending::{Quiet, Sending};
pub use support::supported;

/// Operations that can be handed over at once; more are handed over in several calls.
const SUBMISSIONS: u32 = 4096;
/// Completions that fit into the ring; the kernel keeps more outside, at a cost.
const COMPLETIONS: u32 = 16_384;
/// Impatient sends up to which a wait is not ended by them. Since Linux 6.13 a wait takes in some 20
/// receives, or as many as the events it waits for: with more, batches would grow with the number of clients,
/// out of the caches and out of buffers.
const SMALL_BATCH: usize = 16;
/// Bytes up to which an impatient send is expected to complete at once. A larger one may be the last event: nothing
/// else follows before the rest has left.
const EXPECTED_WHOLE: usize = 16 * 1024;
/// Longest wait beyond sends that are expected to have left whole, in case one has not.
const DOUBT: Duration = Duration::from_millis(1);
/// How long cancelled operations may take to end when the ring is dropped.
const END_LIMIT: Duration = Duration::from_secs(1);

/// What the caller calls a descriptor or a connection; it comes back with each event.
pub type Name = u32;

/// How long a send may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// A send without room fails at once: `EAGAIN`.
    None,
    /// Until the socket takes something.
    UntilThereIsRoom,
}

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Any event.
    Event,
    /// An event besides the ends of impatient sends, which complete at once: they would end each wait immediately, and
    /// another call would be needed to wait.
    News,
}

/// What became of an operation.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client was accepted.
    Accepted {
        /// Its socket, or why accepting ended.
        socket: Result<OwnedFd, Errno>,
        /// Whether more events of this kind come; if not, accepting has to be begun again.
        goes_on: bool,
    },
    /// What was watched is readable.
    Readable(Name),
    /// What was watched is writable, or has failed.
    Writable(Name),
    /// Bytes arrived; none at the end of the stream.
    Received {
        /// The connection.
        name: Name,
        /// The bytes, which are the caller's until the next event, or why receiving ended.
        bytes: Result<&'a mut [u8], Errno>,
        /// Whether more events of this kind come; if not, receiving has to be begun again.
        goes_on: bool,
    },
    /// The kernel returns a buffer.
    Sent {
        /// The connection.
        name: Name,
        /// What the caller gave with it.
        turn: Turn,
        /// What was to be sent.
        buffer: Vec<u8>,
        /// Beginning where.
        from: usize,
        /// How much of it was.
        sent: Result<usize, Errno>,
    },
    /// Bytes that live for ever have left, or not all of them.
    Left {
        /// The connection.
        name: Name,
        /// What the caller gave with them.
        turn: Turn,
        /// How many have.
        sent: Result<usize, Errno>,
    },
}

/// Distinguishes successive connections of the same name.
pub type Turn = u16;

/// Which ends of a send are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// Every one.
    Always,
    /// Only one that was not as it should be: an error, or not all bytes.
    Trouble,
}

/// The user data of an operation: 16 bits that only some have, the kind, and a name in the lower half.
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
}

/// What an operation is that was submitted with this, or a completion that came back with it.
pub fn operation(user_data: u64) -> &'static str {
    match Kind::of(user_data) {
        Kind::Accept => "accept",
        Kind::Watch | Kind::WatchOut => "poll",
        Kind::Receive => "receive",
        Kind::Send | Kind::SendStatic => "send",
        Kind::Cancel => "cancel",
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
            _ => Self::Cancel,
        }
    }
}

/// A submission queue, a completion queue, and the memory of what is in neither.
///
/// For the thread that makes it: the kernel refuses others.
pub struct Ring {
    queue: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    /// What the kernel has to send, each in a place that its completion names.
    sending: Vec<Option<Sending>>,
    /// Places among these that are free.
    places: Vec<u32>,
    /// Operations with only their failures reported.
    quiet: Quiet,
    /// Operations begun that are not over.
    unfinished: usize,
    /// Of these, those that are over as soon as the kernel has them.
    immediate: usize,
    /// Of these, those that may well leave in part.
    doubtful: usize,
}

impl Ring {
    /// Sets up a ring.
    ///
    /// # Errors
    /// As io_uring_setup(2) and io_uring_register(2); [`supported`] explains them.
    pub fn new() -> io::Result<Self> {
        let queue = set_up()?;
        let buffers = Buffers::register(&queue)?;
        Ok(Self::over(queue, buffers))
    }

    fn over(queue: IoUring, buffers: Buffers) -> Self {
        Self {
            queue: ManuallyDrop::new(queue),
            buffers: ManuallyDrop::new(buffers),
            sending: Vec::new(),
            places: Vec::new(),
            quiet: Quiet::default(),
            unfinished: 0,
            immediate: 0,
            doubtful: 0,
        }
    }

    /// Accepts clients, one event each, until an error.
    ///
    /// Descriptors have to stay open until the next [`wait`](Self::wait); the kernel holds references from then on. The
    /// same holds for the other operations.
    ///
    /// # Errors
    /// When the ring is full and the kernel takes nothing.
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

    /// Reports once that `fd` is writable or has failed.
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
    pub fn receive(&mut self, socket: impl AsFd, name: Name) -> io::Result<()> {
        let receive = opcode::RecvMulti::new(number(socket), buffers::GROUP);
        self.begin(&receive.build().user_data(Kind::Receive.with(name)))
    }

    /// Ends receiving; what was received before still comes, then `ECANCELED`.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn stop_receiving(&mut self, name: Name) -> io::Result<()> {
        let receive = CancelBuilder::user_data(Kind::Receive.with(name));
        let cancel = opcode::AsyncCancel2::new(receive).build();
        self.begin(&cancel.user_data(Kind::Cancel.with(name)))
    }

    /// Ends every operation that has been begun, with events like any others.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn cancel(&mut self) -> io::Result<()> {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        self.begin(&cancel.user_data(Kind::Cancel.with(0)))
    }

    /// Submits operations, and waits for the awaited event, a signal or the end of `limit`.
    ///
    /// # Errors
    /// As io_uring_enter(2).
    pub fn wait(&mut self, awaited: Awaited, limit: Option<Duration>) -> io::Result<()> {
        self.buffers.take_back();
        let beyond_sends = awaited == Awaited::News
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
            // EBUSY: completions have to be taken out of the ring before more can be submitted.
            Ok(_) | Err((Some(libc::ETIME | libc::EINTR | libc::EBUSY), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    /// Whether the kernel has all that was begun, so that descriptors may be closed, and whatever went wrong with sends that
    /// do not wait is among the events that it has ready.
    pub fn has_handed_over(&mut self) -> bool {
        let submission = self.queue.submission();
        submission.is_empty() && !submission.cq_overflow()
    }

    /// The next event that has happened.
    pub fn take_event(&mut self) -> Option<Event<'_>> {
        self.buffers.take_back();
        loop {
            let Some(completion) = self.queue.completion().next() else {
                self.has_no_trouble();
                return None;
            };
            let goes_on = cqueue::more(completion.flags());
            let kind = Kind::of(completion.user_data());
            if !goes_on && !matches!(kind, Kind::Send | Kind::SendStatic) {
                self.unfinished -= 1;
            }
            let result = Errno::from_raw_os_error;
            let result =
                usize::try_from(completion.result()).map_err(|_| result(-completion.result()));
            let name = completion.user_data() as u32;
            return Some(match kind {
                Kind::Accept => Event::Accepted {
                    // SAFETY: the kernel has just made this descriptor for us, and says so once.
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
                        continue; // cannot be: each send completes once
                    };
                    self.places.push(name);
                    let Sending {
                        send, buffer, from, ..
                    } = sending;
                    if send.notify == Notify::Always {
                        self.unfinished -= 1;
                        if send.patience == Patience::None {
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
                Kind::Cancel => continue,
            });
        }
    }

    fn begin(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what an entry points to lives as long as the program, or is a buffer in `sending`,
        // whose bytes stay where they are when the list moves, and which leaves the list only when
        // the kernel has completed the send, or never (see `drop`). One that does not wait (MSG_DONTWAIT) is
        // completed when the kernel has taken its entry.
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

    /// Ends every operation; whether all have ended.
    fn cancel_all(&mut self) -> bool {
        if self.cancel().is_err() {
            return false;
        }
        let until = Instant::now() + END_LIMIT;
        while self.unfinished > 0 && Instant::now() < until {
            if self.wait(Awaited::Event, Some(END_LIMIT)).is_err() {
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
            // SAFETY: neither is used again: this is their only drop. The ring goes first, so that
            // the kernel lets go of the buffers, and no operation is left that could fill one.
            unsafe {
                ManuallyDrop::drop(&mut self.queue);
                ManuallyDrop::drop(&mut self.buffers);
            }
        } else {
            // The kernel may still read and write this memory: it is never freed.
            std::mem::take(&mut self.sending)
                .into_iter()
                .for_each(std::mem::forget);
        }
    }
}

fn number(fd: impl AsFd) -> Fd {
    Fd(fd.as_fd().as_raw_fd())
}

/// Makes the queues, with the best ways of working that this kernel has.
fn set_up() -> io::Result<IoUring> {
    let mut newest = IoUring::builder();
    // This thread processes completions when it asks for events: no interruption, no lock.
    newest.setup_defer_taskrun().setup_no_sqarray(); // Linux 6.1 and 6.6
    let mut newer = IoUring::builder();
    newer.setup_defer_taskrun();
    let mut new = IoUring::builder();
    // The next best: at the next system call of this thread, whichever that is.
    new.setup_coop_taskrun().setup_taskrun_flag();
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for builder in [&mut newest, &mut newer, &mut new] {
        builder.setup_single_issuer().setup_submit_all(); // Linux 6.0
        builder.setup_clamp().setup_cqsize(COMPLETIONS);
        match builder.build(SUBMISSIONS) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            made => return made,
        }
    }
    Err(refused)
}
