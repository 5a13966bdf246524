//! System calls as text.

use std::os::fd::RawFd;

use throng_sys::calls::name;

/// The state of a stopped thread.
pub(super) trait ThreadView {
    /// The object of a descriptor: "connection".
    fn descriptor(&self, fd: RawFd) -> String;
    /// Bytes of its memory; fewer if they cannot be read.
    fn memory(&self, address: u64, length: usize) -> Vec<u8>;
}

/// A call that was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyscallEntry {
    pub(super) number: u64,
    pub(super) arguments: [u64; 6],
}

/// The arguments of a call that show its purpose.
pub(super) fn arguments(entered: &SyscallEntry, look: &dyn ThreadView) -> String {
    let [first, second, third, ..] = entered.arguments;
    let fd = |value: u64| look.descriptor(value as RawFd);
    match name(entered.number).as_str() {
        "read" | "recvfrom" | "pread64" => format!("{}, up to {}", fd(first), bytes(third)),
        "write" | "sendto" | "pwrite64" => format!("{}, {}", fd(first), bytes(third)),
        "epoll_ctl" => {
            let what = ["", "add", "remove", "change"]
                .get(second as usize)
                .unwrap_or(&"");
            format!("{}, {what} {}", fd(first), fd(third))
        }
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => {
            format!("{}, up to {third} events", fd(first))
        }
        "poll" | "ppoll" => in_words(polled(first, second, look).map(|(each, _)| each), look),
        "select" | "pselect6" => format!("descriptors below {first}"),
        "io_uring_enter" => format!("{}, submit {second}, wait for {third}", fd(first)),
        "shutdown" => {
            let how = ["reading", "writing", "both"];
            format!("{}, {}", fd(first), how.get(second as usize).unwrap_or(&""))
        }
        "futex" => match second & 0x7f {
            0 | 9 => "wait".to_owned(),
            1 | 10 if third >= i32::MAX as u64 => "wake all".to_owned(),
            1 | 10 => format!("wake {third}"),
            _ => String::new(),
        },
        "mmap" | "munmap" | "mprotect" | "madvise" => bytes(second),
        "rt_sigprocmask" => {
            let how = ["block", "unblock", "set"];
            (*how.get(first as usize).unwrap_or(&"")).to_owned()
        }
        "rt_sigqueueinfo" => signal(second as i32),
        "tgkill" | "rt_tgsigqueueinfo" => signal(third as i32),
        "wait4" => "any child that has ended".to_owned(),
        "prctl" if first == libc::PR_SET_NAME as u64 => "name of the thread".to_owned(),
        "setsockopt" => format!("{}, {}", fd(first), option(second, third)),
        "close" | "accept" | "accept4" | "readv" | "writev" | "recvmsg" | "sendmsg"
        | "getpeername" | "getsockname" | "getsockopt" | "fcntl" | "ioctl" | "lseek" => fd(first),
        _ => String::new(),
    }
}

fn option(level: u64, name: u64) -> &'static str {
    let (level, name) = (level as i32, name as i32);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => "time limit of reading",
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => "time limit of writing",
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => "TCP_NODELAY",
        _ => "an option",
    }
}

/// The result of a call.
pub(super) fn outcome(entered: &SyscallEntry, value: i64, look: &dyn ThreadView) -> String {
    let name = name(entered.number);
    if name == "rt_sigreturn" {
        return String::new(); // the value belongs to the code that it returns to
    }
    if (-4095..0).contains(&value) {
        return error(&name, -value as i32);
    }
    let ready = |count: i64| match count {
        0 => "nothing, in the time it had".to_owned(),
        count => format!("{count} ready"),
    };
    match name.as_str() {
        "read" | "recvfrom" | "pread64" | "readv" | "recvmsg" if value == 0 => {
            "the end of the stream".to_owned()
        }
        "read" | "recvfrom" | "pread64" | "readv" | "recvmsg" | "write" | "sendto" | "pwrite64"
        | "writev" | "sendmsg" => bytes(value as u64),
        "accept" | "accept4" | "socket" => look.descriptor(value as RawFd),
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "select" | "pselect6" => ready(value),
        "poll" | "ppoll" => {
            let polled = polled(entered.arguments[0], entered.arguments[1], look);
            let with_events = polled.filter(|(_, found)| *found != 0).map(|(fd, _)| fd);
            let found = in_words(with_events, look);
            if value == 0 || found.is_empty() {
                ready(value)
            } else {
                format!("{found} ready")
            }
        }
        "io_uring_enter" => format!("{value} submitted"),
        "futex" if matches!(entered.arguments[1] & 0x7f, 1 | 10) => format!("{value} woken"),
        "futex" => "woken".to_owned(),
        "wait4" if value == 0 => "none".to_owned(),
        _ => String::new(),
    }
}

/// Whether the value of a call is the ID of a thread or process.
pub(super) fn returns_task(entered: &SyscallEntry) -> bool {
    ["clone", "clone3", "fork", "vfork", "wait4"].contains(&name(entered.number).as_str())
}

/// The result of an operation of a ring.
pub(super) fn completed(kind: &str, result: i32) -> String {
    match (kind, result) {
        (_, ..0) => error(kind, -result),
        ("receive", 0) => "the end of the stream".to_owned(),
        ("receive" | "send", count) => bytes(count as u64),
        _ => String::new(),
    }
}

/// Whether a call with this value was interrupted, and the kernel restarts it unless a signal handler runs in
/// between: `ERESTARTSYS` and the like, which only a tracer sees.
pub(super) fn was_interrupted(value: i64) -> bool {
    (-516..=-512).contains(&value)
}

/// Whether this is the call that resumes an interrupted one with a time limit.
pub(super) fn is_restart(entered: &SyscallEntry) -> bool {
    name(entered.number) == "restart_syscall"
}

/// Whether a call ends its thread.
pub(super) fn ends(entered: &SyscallEntry) -> bool {
    ["exit", "exit_group"].contains(&name(entered.number).as_str())
}

/// The descriptors of an array of `struct pollfd`, with the events found.
fn polled(address: u64, count: u64, look: &dyn ThreadView) -> impl Iterator<Item = (RawFd, u16)> {
    const ENTRY_BYTES: usize = 8;
    let length = count.min(64) as usize * ENTRY_BYTES;
    let bytes = look.memory(address, length);
    let read = |entry: &[u8]| {
        let fd = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
        (fd, u16::from_ne_bytes([entry[6], entry[7]]))
    };
    let entries: Vec<_> = bytes.chunks_exact(ENTRY_BYTES).map(read).collect();
    entries.into_iter()
}

fn in_words(fds: impl Iterator<Item = RawFd>, look: &dyn ThreadView) -> String {
    let words: Vec<String> = fds.map(|fd| look.descriptor(fd)).collect();
    words.join(", ")
}

fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        count if count >= 1024 && count.is_multiple_of(1024) => format!("{} KiB", count / 1024),
        count => format!("{count} bytes"),
    }
}

/// The name of a signal.
pub(super) fn signal(number: i32) -> String {
    match number {
        libc::SIGCHLD => "SIGCHLD".to_owned(),
        libc::SIGTERM => "SIGTERM".to_owned(),
        libc::SIGALRM => "SIGALRM".to_owned(),
        // The first two real-time signals are the C library's own.
        32.. => format!("SIGRTMIN+{}", number - 34),
        number => format!("signal {number}"),
    }
    .replace("+0", "")
}

fn error(name: &str, number: i32) -> String {
    match number {
        libc::EAGAIN if name.starts_with("accept") => "EAGAIN: nobody there".to_owned(),
        libc::EAGAIN if name == "futex" => "EAGAIN: no longer so".to_owned(),
        libc::EAGAIN => "EAGAIN: nothing there".to_owned(),
        libc::EINTR => "interrupted by a signal".to_owned(),
        libc::ECHILD => "ECHILD: there is no child".to_owned(),
        libc::ESPIPE => "ESPIPE: a socket has no offset".to_owned(),
        libc::ECONNRESET => "ECONNRESET".to_owned(),
        libc::EPIPE => "EPIPE".to_owned(),
        libc::ETIMEDOUT => "ETIMEDOUT".to_owned(),
        libc::ENOTCONN => "ENOTCONN".to_owned(),
        libc::EINVAL => "EINVAL".to_owned(),
        number => format!("error {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Made;

    impl ThreadView for Made {
        fn descriptor(&self, fd: RawFd) -> String {
            let names = ["listener", "pipe", "connection"];
            let name = names.get(fd as usize).copied();
            name.unwrap_or("?").to_owned()
        }

        fn memory(&self, _: u64, length: usize) -> Vec<u8> {
            let entries = [[0, 0, 0, 0, 1, 0, 0, 0], [2, 0, 0, 0, 1, 0, 1, 0]];
            entries.concat().into_iter().take(length).collect()
        }
    }

    fn entered(number: i64, arguments: [u64; 6]) -> SyscallEntry {
        SyscallEntry {
            number: number as u64,
            arguments,
        }
    }

    #[test]
    fn calls_are_described() {
        for (number, given, value, says, came) in [
            (
                libc::SYS_recvfrom,
                [2, 0, 4096, 0, 0, 0],
                1000,
                "connection, up to 4 KiB",
                "1000 bytes",
            ),
            (
                libc::SYS_recvfrom,
                [2, 0, 1, 0, 0, 0],
                0,
                "connection, up to 1 byte",
                "the end of the stream",
            ),
            (libc::SYS_accept4, [0; 6], 2, "listener", "connection"),
            (
                libc::SYS_accept4,
                [0; 6],
                -11,
                "listener",
                "EAGAIN: nobody there",
            ),
            (
                libc::SYS_epoll_ctl,
                [1, 1, 2, 0, 0, 0],
                0,
                "pipe, add connection",
                "",
            ),
            (
                libc::SYS_ppoll,
                [7, 2, 0, 0, 0, 0],
                1,
                "listener, connection",
                "connection ready",
            ),
            (
                libc::SYS_ppoll,
                [7, 2, 0, 0, 0, 0],
                0,
                "listener, connection",
                "nothing, in the time it had",
            ),
            (
                libc::SYS_futex,
                [0, 129, 1, 0, 0, 0],
                1,
                "wake 1",
                "1 woken",
            ),
            (
                libc::SYS_pread64,
                [2, 0, 9, 0, 0, 0],
                -29,
                "connection, up to 9 bytes",
                "ESPIPE: a socket has no offset",
            ),
        ] {
            let entered = entered(number, given);
            assert_eq!(arguments(&entered, &Made), says, "{}", name(entered.number));
            assert_eq!(
                outcome(&entered, value, &Made),
                came,
                "{}",
                name(entered.number)
            );
        }
        assert_eq!(name(9999), "call 9999");
        assert_eq!(signal(34), "SIGRTMIN");
        assert_eq!(signal(36), "SIGRTMIN+2");
    }
}
