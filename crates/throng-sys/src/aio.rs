//! POSIX aio on sockets: asynchronous reads and writes.
//!
//! An [`Operation`] owns its control block, its buffer and a share of its socket, all on the heap. It owns them from
//! the start of a read or write until its completion has been observed. aio_cancel(3) cancels only queued operations.
//! To end a read that blocks a thread of the C library, shut down the socket.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::io::Errno;

use super::completion_pipe;

/// Whether the C library runs operations on a thread pool of adjustable size.
pub const HAS_POOL: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Whether the C library can call a function in a new thread when an operation completes. On other systems, the layout
/// of that member of `sigevent` is unknown.
pub const HAS_CALLBACKS: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Whether operations on different sockets are known to progress concurrently.
///
/// They are on glibc and musl (tested), and on FreeBSD and illumos (documented). macOS supports files only. Other
/// systems are unknown.
pub const WORKS_ON_SOCKETS: bool = cfg!(any(
    target_os = "linux",
    target_os = "freebsd",
    target_os = "illumos",
    target_os = "solaris"
));

/// How completion is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Not reported: the caller polls.
    None,
    /// By a signal whose handler writes to the [completion_pipe].
    Signal,
    /// By a function in a new thread, which writes to the [completion_pipe].
    Thread,
}

/// Sets the maximum number of threads of the C library's pool; the default is 20. Call it before the first operation.
/// Without a [pool](HAS_POOL) it has no effect.
pub fn set_pool_size(threads: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let count = libc::c_int::try_from(threads).unwrap_or(libc::c_int::MAX);
        let settings = gnu::Settings {
            threads: count,
            idle_time_s: libc::c_int::MAX,
            ..gnu::Settings::default()
        };
        // SAFETY: `settings` has the layout of struct aioinit and is only read.
        unsafe { gnu::aio_init(&raw const settings) };
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = threads;
}

/// Extensions of glibc.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod gnu {
    use std::mem::offset_of;

    /// `struct aioinit` of aio.h.
    #[derive(Default)]
    #[repr(C)]
    pub(super) struct Settings {
        pub(super) threads: libc::c_int,
        pub(super) expected_requests: libc::c_int,
        pub(super) unused: [libc::c_int; 4],
        pub(super) idle_time_s: libc::c_int,
        pub(super) reserved: libc::c_int,
    }

    unsafe extern "C" {
        pub(super) fn aio_init(settings: *const Settings);
    }

    /// `struct sigevent` with the members of its union that SIGEV_THREAD uses.
    #[repr(C)]
    pub(super) struct CallbackEvent {
        pub(super) value: libc::sigval,
        pub(super) signal: libc::c_int,
        pub(super) notify: libc::c_int,
        pub(super) function: extern "C" fn(libc::sigval),
        pub(super) attributes: *const libc::pthread_attr_t,
    }

    const _: () = assert!(
        size_of::<CallbackEvent>() <= size_of::<libc::sigevent>()
            && align_of::<CallbackEvent>() <= align_of::<libc::sigevent>()
            && offset_of!(CallbackEvent, notify) == offset_of!(libc::sigevent, sigev_notify)
            && offset_of!(CallbackEvent, function)
                == offset_of!(libc::sigevent, sigev_notify_thread_id)
                    .next_multiple_of(align_of::<usize>())
    );
}

/// A reusable slot for one read or write at a time on one socket.
#[derive(Debug)]
pub struct Operation {
    /// From `Box::into_raw`; the C library writes into it while `running`.
    parts: NonNull<Parts>,
    running: bool,
    notice: Notice,
    token: u32,
}

struct Parts {
    block: libc::aiocb,
    buffer: Vec<u8>,
    socket: Arc<OwnedFd>,
}

/// A completed operation: bytes transferred, and the buffer, which has the data of a read.
pub type AioResult = (Result<usize, Errno>, Vec<u8>);

impl Operation {
    /// A slot for operations on `socket`, which it keeps open; `token` is written to the completion pipe.
    pub fn new(socket: Arc<OwnedFd>, notice: Notice, token: u32) -> Self {
        // SAFETY: an all-zero aiocb is a valid value: no buffer, no notice.
        let block = unsafe { std::mem::zeroed() };
        let parts = Box::new(Parts {
            block,
            buffer: Vec::new(),
            socket,
        });
        Self {
            parts: NonNull::from(Box::leak(parts)),
            running: false,
            notice,
            token,
        }
    }

    /// Starts to read up to the capacity of `room`.
    ///
    /// # Errors
    /// EAGAIN if the system accepts no more operations. Returns the buffer too.
    pub fn read(&mut self, mut room: Vec<u8>) -> Result<(), (Errno, Vec<u8>)> {
        room.clear();
        let length = room.capacity();
        self.start(room, length, libc::aio_read)
    }

    /// Starts to write `bytes`.
    ///
    /// # Errors
    /// As [`Operation::read`].
    pub fn write(&mut self, bytes: Vec<u8>) -> Result<(), (Errno, Vec<u8>)> {
        let length = bytes.len();
        self.start(bytes, length, libc::aio_write)
    }

    fn start(
        &mut self,
        buffer: Vec<u8>,
        length: usize,
        call: unsafe extern "C" fn(*mut libc::aiocb) -> libc::c_int,
    ) -> Result<(), (Errno, Vec<u8>)> {
        assert!(!self.running, "one operation at a time");
        // SAFETY: nothing runs, so the parts are ours alone until `call` below.
        let parts = unsafe { self.parts.as_mut() };
        parts.buffer = buffer;
        parts.block.aio_fildes = parts.socket.as_raw_fd();
        parts.block.aio_buf = parts.buffer.as_mut_ptr().cast();
        parts.block.aio_nbytes = length;
        notify(&mut parts.block.aio_sigevent, self.notice, self.token);
        // SAFETY: block, buffer (of at least `length` bytes) and socket live in `parts`. Until aio_error reports that
        // the operation has ended, `parts` is not touched, and is leaked rather than freed.
        if unsafe { call(&raw mut parts.block) } == 0 {
            self.running = true;
            return Ok(());
        }
        let error = last_error();
        Err((error, std::mem::take(&mut parts.buffer)))
    }

    /// Cancels the operation if it has not started. Returns whether it was cancelled.
    pub fn cancel(&mut self) -> bool {
        if !self.running {
            return false;
        }
        // SAFETY: the operation runs, so block and socket are alive; no reference is made.
        let answer = unsafe {
            let parts = self.parts.as_ptr();
            let block = &raw mut (*parts).block;
            libc::aio_cancel((*block).aio_fildes, block)
        };
        answer == libc::AIO_CANCELED
    }

    /// The result of the operation; `None` while it runs, or if none was started.
    pub fn ended(&mut self) -> Option<AioResult> {
        if !self.running {
            return None;
        }
        // SAFETY: the block is alive; this only makes a pointer to it.
        let block = unsafe { &raw mut (*self.parts.as_ptr()).block };
        // SAFETY: the block was passed to aio_read or aio_write and has not been freed since.
        let error = unsafe { libc::aio_error(block) };
        if error == libc::EINPROGRESS {
            return None;
        }
        // SAFETY: the operation has ended, and this is called once per operation.
        let count = unsafe { libc::aio_return(block) };
        self.running = false;
        // SAFETY: it ended, so the parts are ours alone again.
        let parts = unsafe { self.parts.as_mut() };
        let mut buffer = std::mem::take(&mut parts.buffer);
        let Ok(count) = usize::try_from(count) else {
            return Some((Err(Errno::from_raw_os_error(error)), buffer));
        };
        if buffer.is_empty() {
            // SAFETY: a read of at most `capacity` bytes wrote the first `count` of them; after a
            // write the buffer is not empty, or nothing was written.
            unsafe { buffer.set_len(count) };
        }
        Some((Ok(count), buffer))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // A running operation still uses its memory and socket, so they are leaked.
        if !self.running {
            // SAFETY: the pointer came from a Box, is freed only here, and nothing else uses it.
            drop(unsafe { Box::from_raw(self.parts.as_ptr()) });
        }
    }
}

fn notify(event: &mut libc::sigevent, notice: Notice, token: u32) {
    event.sigev_value = libc::sigval {
        sival_ptr: std::ptr::without_provenance_mut(token as usize),
    };
    match notice {
        Notice::None => event.sigev_notify = libc::SIGEV_NONE,
        Notice::Signal => {
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = completion_pipe::signal();
        }
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        Notice::Thread => {
            let callback = gnu::CallbackEvent {
                value: event.sigev_value,
                signal: 0,
                notify: libc::SIGEV_THREAD,
                function: completion_pipe::on_end,
                attributes: std::ptr::null(),
            };
            // SAFETY: both are views of struct sigevent, as asserted next to the type.
            unsafe {
                std::ptr::from_mut(event)
                    .cast::<gnu::CallbackEvent>()
                    .write(callback);
            };
        }
        #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
        Notice::Thread => unreachable!("refused before, see HAS_CALLBACKS"),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn until_ended(operation: &mut Operation) -> AioResult {
        loop {
            if let Some(ended) = operation.ended() {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn reads_and_writes_return_the_buffer() {
        let (mut peer, socket) = UnixStream::pair().unwrap();
        let mut operation = Operation::new(Arc::new(OwnedFd::from(socket)), Notice::None, 0);
        assert!(operation.ended().is_none(), "none was started");
        operation.read(Vec::with_capacity(100)).unwrap();
        assert!(operation.ended().is_none(), "nothing has arrived");
        peer.write_all(b"question").unwrap();
        assert_eq!(until_ended(&mut operation), (Ok(8), b"question".to_vec()));
        operation.write(b"answer".to_vec()).unwrap();
        assert_eq!(until_ended(&mut operation), (Ok(6), b"answer".to_vec()));
        let mut received = [0; 6];
        peer.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"answer");
        drop(peer);
        operation.read(Vec::with_capacity(100)).unwrap();
        assert_eq!(until_ended(&mut operation), (Ok(0), Vec::new()));
    }

    #[test]
    fn a_running_operation_keeps_its_socket_when_dropped() {
        let (mut peer, socket) = UnixStream::pair().unwrap();
        let mut operation = Operation::new(Arc::new(OwnedFd::from(socket)), Notice::None, 0);
        operation.read(Vec::with_capacity(100)).unwrap();
        drop(operation);
        peer.write_all(b"to nobody").unwrap(); // EPIPE if it were closed
    }

    #[test]
    fn the_pipe_reports_the_completed_operation() {
        let completion_pipe = completion_pipe::CompletionPipe::open().unwrap();
        assert!(
            completion_pipe::CompletionPipe::open().is_err(),
            "there is one"
        );
        for (notice, token) in [(Notice::Signal, 7), (Notice::Thread, u32::MAX - 1)] {
            if notice == Notice::Thread && !HAS_CALLBACKS {
                continue;
            }
            let (mut peer, socket) = UnixStream::pair().unwrap();
            let mut operation = Operation::new(Arc::new(OwnedFd::from(socket)), notice, token);
            operation.read(Vec::with_capacity(100)).unwrap();
            peer.write_all(b"x").unwrap();
            let mut entries = [crate::poll::PollEntry::reading(&completion_pipe)];
            while !matches!(crate::poll::poll(&mut entries, None), Ok(1)) {}
            let mut received = Vec::new();
            assert!(!completion_pipe.drain(|token| received.push(token)));
            assert_eq!(received, [token]);
            assert_eq!(until_ended(&mut operation), (Ok(1), b"x".to_vec()));
        }
    }
}
