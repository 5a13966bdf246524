//! Options for single models, in addition to those of all.

use std::fmt;
use std::str::FromStr;

use throng_sys::select::FD_SETSIZE;

/// Settings, each for [some models](super::Model::knobs) only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Capacity of a set of select(), possibly more than the C library's constant.
    pub fd_setsize: usize,
    /// The lowest descriptor of a client in select: sets are copied up to the highest, however few are in them.
    pub fd_from: i32,
    /// Whether each worker thread has its own descriptor table.
    pub own_descriptors: bool,
    /// The way in which `aio` is notified of an operation's end.
    pub aio_completion: Completion,
    /// Maximum threads of the C library for `aio`.
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
    /// Polling every operation, with a short pause if none had ended.
    Poll,
    /// The same without a pause.
    Busy,
    /// By signal, the default. With 10 and 100 clients it serves as many or more per CPU time as polling does, and
    /// with 1000 somewhat fewer. Idle clients cost next to nothing, while polling 1000 of them takes a twentieth of a
    /// CPU.
    Signal,
    /// By a function that runs in its own thread.
    Thread,
}

impl Completion {
    /// All of them, by name.
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
