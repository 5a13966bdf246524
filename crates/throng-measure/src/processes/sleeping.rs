//! Threads that sleep: in which system call, and where their stacks are (`proc_pid_syscall(5)`).

use std::fs;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It runs, or is ready to.
    Running,
    /// It sleeps.
    Sleeping {
        /// The number of the system call in which it does; `None` outside of one, as in a page fault.
        call: Option<u64>,
        /// Its stack pointer.
        stack: u64,
    },
}

/// The threads of a process.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let ids = tasks.into_iter().flatten().flatten();
    ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// What a thread does; `None` if that may not be seen, or it has ended.
pub(crate) fn look(pid: u32, thread: u32) -> Option<Doing> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"));
    parse(&text.ok()?)
}

/// The CPU time of a thread; `None` if it has ended, or the kernel does not count it.
pub(crate) fn cpu_ns(pid: u32, thread: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat"));
    text.ok()?.split_whitespace().next()?.parse().ok()
}

/// "running", or the number of a call, its arguments, the stack pointer and the program counter; without arguments if
/// the number is -1.
fn parse(text: &str) -> Option<Doing> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Doing::Running);
    }
    let number: i64 = first.parse().ok()?;
    let stack = words.rev().nth(1)?.strip_prefix("0x")?;
    Some(Doing::Sleeping {
        call: u64::try_from(number).ok(),
        stack: u64::from_str_radix(stack, 16).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let in_call = "232 0x4 0x7ffd 0x400 0xffffffff 0x0 0x0 0x7ffd9a10 0x7f3c\n";
        let sleeping = |call, stack| Some(Doing::Sleeping { call, stack });
        assert_eq!(parse(in_call), sleeping(Some(232), 0x7ffd_9a10));
        assert_eq!(parse("-1 0x7ffe 0x40\n"), sleeping(None, 0x7ffe));
        assert_eq!(parse("running\n"), Some(Doing::Running));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_thread_that_sleeps_is_seen() {
        let (quit, wait) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || wait.recv().is_err());
        let pid = std::process::id();
        let others = threads(pid);
        assert!(others.len() > 1 && others.contains(&pid));
        drop(quit);
        assert!(sleeper.join().unwrap());
    }
}
