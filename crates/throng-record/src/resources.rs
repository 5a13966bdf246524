//! What this machine gives a process that makes connections.

/// What this machine gives a process that makes connections. None: no limit is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// Descriptors in one table, at most: those of a process, unless its threads take their own.
    pub descriptors: Option<u64>,
    /// First and last ephemeral port.
    pub ports: Option<(u16, u16)>,
    /// Threads that can still be started.
    pub threads: Option<u64>,
    /// Files, sockets among them, that the whole machine may still open.
    pub files: Option<u64>,
    /// Descriptors that one user may have in epoll sets.
    pub watches: Option<u64>,
    /// Bytes of memory that can still be had.
    pub memory_bytes: Option<u64>,
}
