//! Traces the system calls of other threads with ptrace(2).
//!
//! Needs no privilege for child processes. All requests must come from the thread that attached, so a [`Tracer`] is not
//! `Send`. When that thread or this process ends, the kernel kills all tracees.

use std::io;
use std::marker::PhantomData;

/// Requests of ptrace(2) that some C libraries do not define.
const CONT_TO_SYSCALL: libc::c_long = 24;
const GET_EVENT_MESSAGE: libc::c_long = 0x4201;
const SEIZE: libc::c_long = 0x4206;
const INTERRUPT: libc::c_long = 0x4207;
const GET_SYSCALL_INFO: libc::c_long = 0x420e;

/// Marks system-call stops; follows forks and threads; kills tracees when the tracer ends.
const OPTIONS: libc::c_long = 1 | FORK | VFORK | CLONE | (1 << 20);
const FORK: libc::c_long = 1 << 1;
const VFORK: libc::c_long = 1 << 2;
const CLONE: libc::c_long = 1 << 3;
/// The events of these options.
const BIRTHS: [libc::c_int; 3] = [1, 2, 3];

/// The signal of a system-call stop.
const AT_CALL: libc::c_int = libc::SIGTRAP | 0x80;

/// The event that stopped a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Entry of a system call.
    Entry {
        /// Its number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
    },
    /// Return from a system call, with its value; -4095 to -1 are errors.
    Exit(i64),
    /// It has started a thread or process with this ID.
    Creates(i32),
    /// A signal before its delivery.
    Signal(i32),
    /// Another reason.
    Other,
    Gone,
}

/// A stop, and its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceStop {
    /// Thread ID.
    pub thread: i32,
    pub what: StopReason,
}

/// The tracees of one thread.
#[derive(Debug, Default)]
pub struct Tracer {
    _of_one_thread: PhantomData<*const ()>,
}

/// `struct ptrace_syscall_info` of linux/ptrace.h, with the longest member of its union.
#[derive(Debug, Default)]
#[repr(C)]
struct CallInfo {
    op: u8,
    reserved: u8,
    flags: u16,
    architecture: u32,
    instruction: u64,
    stack: u64,
    /// On entry, the number and six arguments; on return, the value and whether it is an error.
    values: [u64; 8],
}

const ENTRY: u8 = 1;
const EXIT: u8 = 2;

impl Tracer {
    /// Attaches to a thread, which is stopped until [`resume`](Self::resume).
    ///
    /// # Errors
    /// As ptrace(2): EPERM if forbidden, ESRCH if it has ended.
    pub fn seize(&self, thread: i32) -> io::Result<()> {
        request(SEIZE, thread, 0, OPTIONS)?;
        request(INTERRUPT, thread, 0, 0).map(drop)
    }

    /// The next event, if any. The thread is stopped until it is continued, unless it has ended.
    ///
    /// # Errors
    /// As wait4(2): ECHILD without tracees.
    pub fn next(&self) -> io::Result<Option<TraceStop>> {
        let mut status = 0;
        let how = libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: `status` is valid for writing while the call lasts.
        let thread = unsafe { libc::waitpid(-1, &raw mut status, how) };
        match thread {
            0 => Ok(None),
            -1 => Err(io::Error::last_os_error()),
            thread => Ok(Some(TraceStop {
                thread,
                what: what_of(thread, status),
            })),
        }
    }

    /// Continues a thread to its next system call, and delivers `signal` unless it is 0.
    pub fn resume(&self, thread: i32, signal: i32) {
        // A killed thread is reported as ended.
        let _ = request(CONT_TO_SYSCALL, thread, 0, signal.into());
    }
}

fn what_of(thread: i32, status: libc::c_int) -> StopReason {
    if !libc::WIFSTOPPED(status) {
        return StopReason::Gone;
    }
    let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
    if BIRTHS.contains(&event) {
        let mut number: libc::c_ulong = 0;
        let place = (&raw mut number).addr() as libc::c_long;
        let reported = request(GET_EVENT_MESSAGE, thread, 0, place);
        return reported.map_or(StopReason::Other, |_| StopReason::Creates(number as i32));
    }
    match (event, signal) {
        (0, AT_CALL) => at_call(thread),
        (0, signal) => StopReason::Signal(signal),
        _ => StopReason::Other,
    }
}

fn at_call(thread: i32) -> StopReason {
    let mut info = CallInfo::default();
    let place = (&raw mut info).addr() as libc::c_long;
    let size = size_of::<CallInfo>() as libc::c_long;
    if request(GET_SYSCALL_INFO, thread, size, place).is_err() {
        return StopReason::Other;
    }
    let [first, arguments @ .., _] = info.values;
    match info.op {
        ENTRY => StopReason::Entry {
            number: first,
            arguments,
        },
        EXIT => StopReason::Exit(first.cast_signed()),
        _ => StopReason::Other,
    }
}

fn request(
    request: libc::c_long,
    thread: i32,
    address: libc::c_long,
    data: libc::c_long,
) -> io::Result<libc::c_long> {
    // SAFETY: only two of the requests above write, both to `data`: one an unsigned long, the other at most `address`
    // bytes. Both callers pass the address of a local that is large enough and outlives the call.
    let outcome = unsafe { libc::syscall(libc::SYS_ptrace, request, thread, address, data) };
    if outcome == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// The system calls of all processes of a shell script, from attaching to its end.
    fn calls(script: &str) -> BTreeSet<u64> {
        let mut child = Command::new("sh");
        child.args(["-c", &format!("read go; {script}")]);
        child
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0);
        let mut child = child.spawn().unwrap();
        let tracer = Tracer::default();
        tracer.seize(child.id().cast_signed()).unwrap();
        drop(child.stdin.take());
        let mut numbers = BTreeSet::new();
        let deadline = Instant::now() + Duration::from_mins(1);
        while Instant::now() < deadline {
            match tracer.next() {
                Ok(None) => std::thread::sleep(Duration::from_micros(100)),
                Err(_) => break,
                Ok(Some(TraceStop { thread, what })) => {
                    let signal = match what {
                        StopReason::Signal(signal) => signal,
                        _ => 0,
                    };
                    if let StopReason::Entry { number, .. } = what {
                        numbers.insert(number);
                    }
                    tracer.resume(thread, signal);
                }
            }
        }
        let _ = child.wait(); // the tracer has seen its end
        numbers
    }

    #[test]
    fn calls_of_a_process_and_its_children_are_reported() {
        let numbers = calls("cat /dev/null; exit 0");
        for call in [libc::SYS_execve, libc::SYS_exit_group, libc::SYS_wait4] {
            assert!(numbers.contains(&(call as u64)), "{call}: {numbers:?}");
        }
    }

    #[test]
    fn an_ended_process_cannot_be_traced() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let refused = Tracer::default().seize(child.id().cast_signed());
        assert!(refused.is_err());
    }
}
