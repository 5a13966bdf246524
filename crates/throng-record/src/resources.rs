//! The resources of this machine for a process that makes connections.

/// The resources of this machine for a process that makes connections. `None` means no known limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// Maximum descriptors in one table: that of a process, unless its threads have their own.
    pub descriptors: Option<u64>,
    /// First and last ephemeral port.
    pub ports: Option<(u16, u16)>,
    /// Threads that can still be started.
    pub threads: Option<u64>,
    /// Files, including sockets, that the whole machine can still open.
    pub files: Option<u64>,
    /// Maximum descriptors of one user in epoll sets.
    pub watches: Option<u64>,
    /// Available memory in bytes.
    pub memory_bytes: Option<u64>,
}
