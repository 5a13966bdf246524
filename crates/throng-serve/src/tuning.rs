//! Options for individual models, in addition to those of all models.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use throng_sys::select::FD_SETSIZE;

/// Options of models. All but `work` apply only to [some of them](super::Model::knobs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Capacity of select()'s sets, possibly more than the C library's constant.
    pub fd_setsize: usize,
    /// The lowest descriptor that a client gets in select: sets are copied up to the highest descriptor, however few
    /// they contain.
    pub fd_from: i32,
    /// Whether each worker thread has its own descriptor table.
    pub own_descriptors: bool,
    /// How `aio` is notified that an operation ended.
    pub aio_completion: Completion,
    /// Maximum number of threads that the C library uses for `aio`.
    pub aio_threads: usize,
    /// Whether clients beyond these threads wait for one in `aio`, instead of being rejected.
    pub aio_queue: bool,
    /// Nice value of the threads of clients in `thread`.
    pub client_nice: i32,
    /// Where the loops of `reactors` accept clients.
    pub accept: Accept,
    /// CPU time that each request takes in addition, in every model.
    pub work: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            fd_setsize: FD_SETSIZE,
            fd_from: 0,
            own_descriptors: false,
            aio_completion: Completion::Signal,
            aio_threads: usize::MAX,
            aio_queue: false,
            client_nice: 0,
            accept: Accept::ReusePort,
            work: Duration::ZERO,
        }
    }
}

/// Where the loops of `reactors` accept clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// Each from a queue of its own: the kernel distributes the clients by a hash (SO_REUSEPORT).
    ReusePort,
    /// All from one queue: whichever loop is free takes the next client.
    Shared,
}

impl Accept {
    /// All variants, by name.
    pub const NAMED: [(&'static str, Self); 2] =
        [("reuseport", Self::ReusePort), ("shared", Self::Shared)];
}

/// How to find out that an asynchronous operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// By polling every operation, with a short pause if none had ended.
    Poll,
    /// By polling without a pause.
    Busy,
    /// By signal, the default. With 10 and 100 clients it serves at least as many requests per CPU time as polling,
    /// and with 1000 somewhat fewer. Idle clients cost next to nothing, while polling 1000 of them takes a twentieth
    /// of a CPU.
    Signal,
    /// By a function that runs in its own thread.
    Thread,
}

impl Completion {
    /// All variants, by name.
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
