//! How a connection can end, also before it began.

use std::collections::BTreeMap;

/// Why a connection was closed as soon as it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Refusal {
    /// The descriptor table is full.
    Descriptors,
    /// The descriptor does not fit into the set that select() takes.
    SetSize,
    /// As many asynchronous operations are under way as the system carries out at a time.
    Pool,
    /// No further thread could be started, or the process would not have outlived it.
    Threads,
    /// No further process could be started.
    Processes,
    /// As many are being served as may be.
    Clients,
    /// The kernel waits for no further socket (epoll): it has a limit for each user, or no memory.
    Watches,
}

/// Each with its name in counts.
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
#[repr(u64)]
pub enum CloseReason {
    /// It has not.
    Open,
    /// The client closed it, and everything it asked was answered.
    ClientClosed,
    /// The server closed it, as the protocol says.
    ServerClosed,
    /// The client reset it or vanished.
    Reset,
    /// The client broke the protocol.
    ProtocolError,
    /// The server stopped and the client took its last answers.
    Drained,
    /// The server stopped and the client did not take its last answers in time.
    Cut,
    /// It said nothing and took nothing for too long.
    Idle,
    /// The process that served it died.
    Lost,
    /// It was accepted, but then there was nobody to serve it.
    GivenUp,
    /// A request of it did not come whole in time.
    RequestTimeout,
}

/// Each with its name in counts and logs.
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

/// Counts by name, those that are 0 left out.
pub(super) fn named<T>(table: &[(T, &str)], count: impl Fn(&T) -> u64) -> BTreeMap<String, u64> {
    table
        .iter()
        .map(|(key, name)| ((*name).to_owned(), count(key)))
        .filter(|(_, count)| *count > 0)
        .collect()
}
