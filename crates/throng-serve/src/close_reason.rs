//! Why connections end, including rejected ones.

use std::collections::BTreeMap;

/// Why a connection was closed as soon as it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Refusal {
    /// The descriptor table is full.
    Descriptors,
    /// The descriptor does not fit into select()'s sets.
    SetSize,
    /// The system's maximum of asynchronous operations is in progress.
    Pool,
    /// No further thread could be started, or it would have aborted the process.
    Threads,
    /// No further process could be started.
    Processes,
    /// The maximum number of clients is connected.
    Clients,
    /// The kernel polls no further socket (epoll): it has a limit per user, or no memory.
    Watches,
}

/// All of them, with their names in counts.
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
    /// It was idle for too long.
    Idle,
    /// Its process died.
    Lost,
    /// It was accepted, but could not be served.
    GivenUp,
    /// A request was incomplete for too long.
    RequestTimeout,
}

/// All of them, with their names in counts and logs.
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

/// Counts by name, without those that are 0.
pub(super) fn named<T>(table: &[(T, &str)], count: impl Fn(&T) -> u64) -> BTreeMap<String, u64> {
    table
        .iter()
        .map(|(key, name)| ((*name).to_owned(), count(key)))
        .filter(|(_, count)| *count > 0)
        .collect()
}
