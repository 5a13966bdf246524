//! What single models can be told beside what all are told.

use std::fmt;
use std::str::FromStr;

use throng_sys::select::FD_SETSIZE;

/// Settings of which each model knows [its own](super::Model::knobs) at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Descriptors that a set of select() holds; more than the C library's constant on purpose.
    pub fd_setsize: usize,
    /// The least descriptor that a client's socket gets in select: sets are copied up to the highest, however few are in
    /// them.
    pub fd_from: i32,
    /// Whether each worker thread takes a descriptor table of its own.
    pub own_descriptors: bool,
    /// How `aio` learns that an operation ended.
    pub aio_completion: Completion,
    /// Most threads that the C library may start for `aio`.
    pub aio_threads: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            fd_setsize: FD_SETSIZE,
            fd_from: 0,
            own_descriptors: false,
            aio_completion: Completion::Signal,
            aio_threads: usize::MAX,
        }
    }
}

/// How the end of an asynchronous operation is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Every operation is asked, again and again, with a short rest when none had ended.
    Poll,
    /// The same without a rest.
    Busy,
    /// A signal says which one ended. The default: with 10 and 100 clients it serves as many or more
    /// for its CPU time as asking does, with 1000 somewhat fewer, and idle clients cost it next to
    /// nothing, where asking 1000 of them takes a twentieth of a CPU.
    Signal,
    /// A function called in a thread of its own says so.
    Thread,
}

impl Completion {
    /// All of them, by the names to choose them by.
    pub const NAMES: [(Self, &str); 4] = [
        (Self::Poll, "poll"),
        (Self::Busy, "busy"),
        (Self::Signal, "signal"),
        (Self::Thread, "thread"),
    ];
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES
            .iter()
            .find(|(completion, _)| completion == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Completion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        found
            .map(|(completion, _)| *completion)
            .ok_or_else(|| "it must be poll, busy, signal or thread".to_owned())
    }
}
