//! Why connections end, and why some are rejected.

use std::collections::BTreeMap;

/// Why a connection was closed immediately after being accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Refusal {
    /// The file descriptor table is full.
    Descriptors,
    /// The file descriptor does not fit into select()'s sets.
    SetSize,
    /// The system's maximum number of asynchronous operations is in progress.
    Pool,
    /// No more threads could be started, or starting one would have aborted the process.
    Threads,
    /// No more processes could be started.
    Processes,
    /// The maximum number of clients is connected.
    Clients,
    /// The kernel polls no more sockets (epoll): it has a limit per user, or is out of memory.
    Watches,
}

/// All refusals, with their names in counts.
pub(super) const REFUSALS: [(Refusal, &str); 7] = [
    (Refusal::Descriptors, "descriptors"),
    (Refusal::SetSize, "set-size"),
    (Refusal::Pool, "pool-size"),
    (Refusal::Threads, "threads"),
    (Refusal::Processes, "processes"),
    (Refusal::Clients, "max-clients"),
    (Refusal::Watches, "watches"),
];

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseReason {
    /// It is open.
    Open,
    /// The client closed it, and all its requests were answered.
    ClientClosed,
    /// The server closed it, as the protocol requires.
    ServerClosed,
    /// The client reset it or disappeared.
    Reset,
    /// The client violated the protocol.
    ProtocolError,
    /// The server stopped, and the client received its last answers.
    Drained,
    /// The server stopped, and the client did not receive its last answers in time.
    Cut,
    /// It was idle too long.
    Idle,
    /// The process that served it died.
    Lost,
    /// It was accepted, but could not be served.
    GivenUp,
    /// A request stayed incomplete too long.
    RequestTimeout,
}

/// All close reasons, with their names in counts and logs.
pub(super) const CLOSE_REASONS: [(CloseReason, &str); 11] = [
    (CloseReason::Open, "open"),
    (CloseReason::ClientClosed, "client-closed"),
    (CloseReason::ServerClosed, "server-closed"),
    (CloseReason::Reset, "reset"),
    (CloseReason::ProtocolError, "protocol-error"),
    (CloseReason::Drained, "drained"),
    (CloseReason::Cut, "cut"),
    (CloseReason::Idle, "idle-timeout"),
    (CloseReason::Lost, "process-died"),
    (CloseReason::GivenUp, "given-up"),
    (CloseReason::RequestTimeout, "request-timeout"),
];

/// Counts by name, except for those that are 0.
pub(super) fn named<T>(table: &[(T, &str)], count: impl Fn(&T) -> u64) -> BTreeMap<String, u64> {
    table
        .iter()
        .map(|(key, name)| ((*name).to_owned(), count(key)))
        .filter(|(_, count)| *count > 0)
        .collect()
}
