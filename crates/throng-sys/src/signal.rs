//! Stop signals (SIGINT, SIGTERM, SIGQUIT, SIGHUP) and ended children (SIGCHLD), which can be polled together with
//! sockets: the self-pipe of D. J. Bernstein.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

/// A launcher that forwards a signal of the terminal sends it again within this time: that is not a second request.
const FORWARDED_MS: i64 = 100;
/// Time from a second signal until the process ends, whatever it waits for.
const INSISTED_GRACE_S: u32 = 1;
/// The exit code then, as shells have it for SIGINT.
const INTERRUPTED: i32 = 128 + libc::SIGINT;

static STOP: AtomicBool = AtomicBool::new(false);
/// When the first signal arrived (CLOCK_MONOTONIC); 0 for never.
static FIRST_SIGNAL_MS: AtomicI64 = AtomicI64::new(0);
/// The parent of a forked child; 0 in the first process.
static PARENT: AtomicI32 = AtomicI32::new(0);
static INSISTED: AtomicBool = AtomicBool::new(false);
static STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);
static STOP_READ: AtomicI32 = AtomicI32::new(-1);
static STOP_WRITE: AtomicI32 = AtomicI32::new(-1);
static CHILD_READ: AtomicI32 = AtomicI32::new(-1);
static CHILD_WRITE: AtomicI32 = AtomicI32::new(-1);
/// The socket on which this process may block. A stop signal shuts it down for reading.
static BLOCKED_ON: AtomicI32 = AtomicI32::new(-1);
/// Seconds until it is shut down for writing too.
static GRACE_S: AtomicU32 = AtomicU32::new(0);

/// Stop requests by signals: Ctrl-C, Ctrl-\, a service manager, a closed terminal.
#[derive(Debug, Clone, Copy)]
pub struct Stop(());

impl Stop {
    /// From now on SIGINT, SIGTERM, SIGQUIT, SIGHUP and SIGXCPU request a stop instead of ending the process. A second one ends it
    /// within two seconds. An ignored SIGHUP stays ignored, as nohup(1) requires.
    ///
    /// # Errors
    /// If no pipe can be created.
    pub fn install() -> io::Result<Self> {
        renew(&STOP_READ, &STOP_WRITE)?;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT] {
            handle(signal, on_stop)?;
        }
        if !is_ignored(libc::SIGHUP) {
            handle(libc::SIGHUP, on_stop)?;
        }
        // Comes again for every second of CPU time beyond the limit, so it is never a second request.
        handle(libc::SIGXCPU, request_stop)?;
        handle(libc::SIGALRM, on_alarm)?;
        Ok(Self(()))
    }

    /// Whether a signal requested a stop.
    pub fn requested(self) -> bool {
        STOP.load(Ordering::Acquire)
    }

    /// [`Stop::requested`] for callers without a handle; false before [`Stop::install`].
    pub fn is_requested() -> bool {
        STOP.load(Ordering::Acquire)
    }

    /// Whether the limit of CPU time (RLIMIT_CPU) requested a stop.
    pub fn is_cpu_limit() -> bool {
        STOP_SIGNAL.load(Ordering::Acquire) == libc::SIGXCPU
    }

    /// Whether a second signal arrived. The process ends a second later: kill instead of waiting.
    pub fn is_insisted() -> bool {
        INSISTED.load(Ordering::Acquire)
    }

    /// Whether [`Stop::install`] was called.
    pub fn is_installed() -> bool {
        STOP_READ.load(Ordering::Acquire) >= 0
    }

    /// Becomes readable, permanently, once a stop is requested.
    pub fn fd(self) -> BorrowedFd<'static> {
        borrow(&STOP_READ)
    }

    /// Requests a stop, as SIGTERM does.
    pub fn request(self) {
        request_stop(libc::SIGTERM);
    }

    /// In a forked child: creates a new pipe, so that its signals do not wake the parent. The terminal and the parent both
    /// send a signal, so a second one insists only if the parent has ended.
    ///
    /// # Errors
    /// If no pipe can be created.
    pub fn renew_in_child(self) -> io::Result<()> {
        renew(&STOP_READ, &STOP_WRITE)?;
        let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        PARENT.store(parent, Ordering::SeqCst);
        if STOP.load(Ordering::Acquire) {
            request_stop(STOP_SIGNAL.load(Ordering::Acquire));
        }
        Ok(())
    }

    /// While the guard exists, a stop signal also shuts down `socket` for reading, so that recv() returns end-of-stream.
    /// After `grace`, rounded up to whole seconds for alarm(2), it is shut down for writing, so that send() fails with
    /// EPIPE. For processes that serve one connection at a time.
    pub fn interrupts(self, socket: BorrowedFd<'_>, grace: Duration) -> Interrupts {
        let seconds = grace.as_millis().div_ceil(1000).max(1);
        GRACE_S.store(u32::try_from(seconds).unwrap_or(u32::MAX), Ordering::SeqCst);
        BLOCKED_ON.store(socket.as_raw_fd(), Ordering::SeqCst);
        if self.requested() {
            release_blocked();
        }
        Interrupts(())
    }
}

/// Lets a write beyond RLIMIT_FSIZE fail with EFBIG instead of ending the process. Programs that are started have the
/// default action again.
///
/// # Errors
/// As sigaction(2).
pub fn report_large_files() -> io::Result<()> {
    handle(libc::SIGXFSZ, ignore)
}

/// See [`Stop::interrupts`].
#[derive(Debug)]
pub struct Interrupts(());

impl Drop for Interrupts {
    fn drop(&mut self) {
        BLOCKED_ON.store(-1, Ordering::SeqCst);
    }
}

/// Notification of ended children.
#[derive(Debug)]
pub struct Children(());

impl Children {
    /// From now on [`Children::fd`] becomes readable when a child ends.
    ///
    /// # Errors
    /// If no pipe can be created.
    pub fn watch() -> io::Result<Self> {
        renew(&CHILD_READ, &CHILD_WRITE)?;
        handle(libc::SIGCHLD, on_child)?;
        Ok(Self(()))
    }

    /// Readable if children ended since the last [`Children::clear`].
    pub fn fd(&self) -> BorrowedFd<'static> {
        borrow(&CHILD_READ)
    }

    /// Clears the notification. Call it before reaping.
    pub fn clear(&self) {
        let mut bytes = [0_u8; 256];
        while matches!(rustix::io::read(self.fd(), &mut bytes), Ok(n) if n == bytes.len()) {}
    }
}

fn borrow(read: &'static AtomicI32) -> BorrowedFd<'static> {
    let fd = read.load(Ordering::Acquire);
    assert!(fd >= 0, "the pipe is made before the handle to it");
    // SAFETY: the descriptor was made by `renew` and is closed only by `renew` in a forked child,
    // which has one thread and borrows again after it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Creates a new pipe in the statics, and closes the old one.
fn renew(read: &AtomicI32, write: &AtomicI32) -> io::Result<()> {
    let (reader, writer) = super::flags::pipe()?;
    close(read.swap(reader.into_raw_fd(), Ordering::AcqRel));
    close(write.swap(writer.into_raw_fd(), Ordering::AcqRel));
    Ok(())
}

fn close(fd: RawFd) {
    if fd >= 0 {
        use std::os::fd::FromRawFd as _;
        // SAFETY: the number came from `into_raw_fd` in `renew` and has just been taken out of the
        // only place that held it.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: an all-zero sigaction is a valid value: no flags, empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    // No SA_RESTART: a blocked call returns EINTR, and every caller here handles that explicitly.
    action.sa_flags = libc::SA_NOCLDSTOP;
    // SAFETY: `action` is initialised, and the handlers below call only async-signal-safe
    // functions and touch only atomics.
    if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether a signal is ignored.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero sigaction is a valid value, and is overwritten.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is installed, and `action` has room for the current action.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

extern "C" fn on_stop(signal: libc::c_int) {
    keep_errno(|| {
        if is_second() && !INSISTED.swap(true, Ordering::SeqCst) {
            // SAFETY: alarm is async-signal-safe, and its signal has a handler since `Stop::install`.
            unsafe { libc::alarm(INSISTED_GRACE_S) };
        }
    });
    request_stop(signal);
}

extern "C" fn request_stop(signal: libc::c_int) {
    keep_errno(|| {
        STOP_SIGNAL.store(signal, Ordering::Release);
        STOP.store(true, Ordering::SeqCst);
        release_blocked();
        wake(&STOP_WRITE);
    });
}

/// Whether the signal that has just arrived insists on an earlier one.
fn is_second() -> bool {
    let parent = PARENT.load(Ordering::SeqCst);
    if parent != 0 {
        let own = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        return STOP.load(Ordering::SeqCst) && own != parent;
    }
    let now = monotonic_ms();
    let first = FIRST_SIGNAL_MS.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
    first.is_err_and(|first| now - first >= FORWARDED_MS)
}

/// Milliseconds of CLOCK_MONOTONIC, at least 1.
fn monotonic_ms() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec * 1000 + now.tv_nsec / 1_000_000).max(1)
}

/// A handler, since a program that is started would inherit SIG_IGN.
extern "C" fn ignore(_: libc::c_int) {}

extern "C" fn on_child(_: libc::c_int) {
    keep_errno(|| wake(&CHILD_WRITE));
}

extern "C" fn on_alarm(_: libc::c_int) {
    if INSISTED.load(Ordering::SeqCst) {
        // SAFETY: _exit is async-signal-safe. The watchdog of a run ends what this process has started.
        unsafe { libc::_exit(INTERRUPTED) };
    }
    keep_errno(|| {
        shut_blocked(libc::SHUT_RDWR);
    });
}

/// Gives a process that blocks on a socket the grace period to answer received requests.
fn release_blocked() {
    // There is one alarm, and that of a second signal comes sooner.
    if shut_blocked(libc::SHUT_RD) && !INSISTED.load(Ordering::SeqCst) {
        // SAFETY: alarm is async-signal-safe, and its signal has a handler since `Stop::install`.
        unsafe { libc::alarm(GRACE_S.load(Ordering::SeqCst)) };
    }
}

/// Shuts down the registered socket. Returns whether there is one.
fn shut_blocked(how: libc::c_int) -> bool {
    let fd = BLOCKED_ON.load(Ordering::SeqCst);
    if fd >= 0 {
        // SAFETY: shutdown is async-signal-safe and harmless on a descriptor that is not a socket;
        // the owner clears BLOCKED_ON before it closes the socket.
        unsafe { libc::shutdown(fd, how) };
    }
    fd >= 0
}

fn wake(write: &AtomicI32) {
    let fd = write.load(Ordering::Acquire);
    // SAFETY: write is async-signal-safe, the byte outlives the call, and the pipe does not block:
    // a full pipe is readable anyway.
    unsafe { libc::write(fd, [1_u8].as_ptr().cast(), 1) };
}

/// Runs the body of a signal handler, and preserves errno for the interrupted code.
pub(super) fn keep_errno(body: impl FnOnce()) {
    // SAFETY: the location of errno of this thread is valid for the thread's life.
    let errno = unsafe { *errno_location() };
    body();
    // SAFETY: as above.
    unsafe { *errno_location() = errno };
}

#[cfg(any(target_os = "illumos", target_os = "solaris"))]
use libc::___errno as errno_location;
#[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
use libc::__errno as errno_location;
#[cfg(any(target_os = "linux", target_os = "dragonfly"))]
use libc::__errno_location as errno_location;
#[cfg(any(target_os = "freebsd", target_vendor = "apple"))]
use libc::__error as errno_location;
