//! One client of a load: its state, its requests, and its remaining budget.
//!
//! Every request touches [`Client`], one cache line. With thousands of clients, that line is usually not in a cache,
//! so everything that most requests do not need is in [`ClientDetails`].

use std::num::NonZeroU64;

use super::{Plan, Until};

/// The state of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its turn to connect has not come.
    NotStarted,
    /// It is waiting for its turn to connect.
    Queued,
    /// connect() has not completed.
    Connecting,
    /// It is connected.
    Open,
    /// It got a reply that announces the end of the connection.
    Closing,
    /// It is not connected, and will connect again.
    Disconnected,
    /// Its connection failed, and it waits before the next attempt.
    Failed,
    /// It has made all its requests.
    Done,
    /// It has failed permanently.
    Lost,
}

#[cfg(test)]
impl State {
    /// Whether the client is finished.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Lost)
    }
}

/// Why the next reply of a client is not an ordinary one: what happened since its last reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// Nothing.
    Reply,
    /// It failed.
    Failure,
    /// It rested between two slices. Servers close idle connections.
    Rest,
}

/// When a request was due and when it was sent, on the clock of the load. In a closed loop, a request is due when it
/// is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) due: u64,
    pub(super) sent: u64,
}

/// No request is due.
pub(super) const NO_DUE: u64 = u64::MAX;

/// The state of a client that a request touches, except its requester.
#[repr(align(64))]
pub(super) struct Client {
    /// The next bytes to send.
    pub(super) unsent: &'static [u8],
    /// When the oldest open request was sent.
    pub(super) sent: u64,
    /// Remaining requests.
    pub(super) budget: u64,
    /// Replies in the window.
    pub(super) counted: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// Open requests on this connection.
    pub(super) outstanding: u16,
    pub(super) state: State,
    /// Its decile among the clients of this process, from 0, in the order in which they were connected.
    pub(super) tenth: u8,
    /// Whether it has ever got a reply.
    pub(super) was_answered: bool,
    /// Whether the server rejected the last request, and nothing has arrived since.
    pub(super) was_refused: bool,
    pub(super) since_reply: Since,
    /// Whether its requester counts all of `unsent` as sent.
    pub(super) is_ahead: bool,
}

const _: () = assert!(size_of::<Client>() == 64);

/// The rest of a client's state.
pub(super) struct ClientDetails {
    /// When it began to connect, and later when it was connected. When the server announced to close. After a failure,
    /// when it tries again. At the end, when it ended.
    pub(super) since: u64,
    pub(super) started_at: Moment,
    pub(super) connected_at: Moment,
    pub(super) first_reply_at: Moment,
    /// Replies before and after the window.
    pub(super) uncounted: u64,
    /// Requests returned to its budget after failures.
    pub(super) regained: u32,
    /// The lower half of its budget when its connection was established.
    pub(super) first_budget: u32,
    pub(super) connections: u32,
    pub(super) errors: u32,
    /// Number of its entries in the queue of clients that continue at a given time.
    pub(super) queued: u16,
    /// The local address of its first connection, as an index into its worker's [`Sources`].
    ///
    /// [`Sources`]: super::client_stats::Sources
    pub(super) source: (u16, u16),
    /// Failures since its last reply.
    pub(super) failures: u8,
    /// Its first error, as an index into its worker's [`ErrorKinds`].
    ///
    /// [`ErrorKinds`]: super::client_stats::ErrorKinds
    pub(super) error: u8,
}

const _: () = assert!(size_of::<ClientDetails>() == 64);

impl Client {
    /// Client `number` of a load, before its turn to connect.
    pub(super) fn new(plan: &Plan, number: u64) -> Self {
        Self {
            unsent: &[],
            sent: 0,
            budget: first_budget(plan, number),
            counted: 0,
            bytes_sent: 0,
            bytes_received: 0,
            outstanding: 0,
            state: State::NotStarted,
            tenth: 0,
            was_answered: false,
            was_refused: false,
            since_reply: Since::Reply,
            is_ahead: false,
        }
    }

    /// Whether it is in the usual state: one reply outstanding, earlier ones received, and the request completely
    /// sent.
    #[inline]
    pub(super) fn is_usual(&self) -> bool {
        self.state == State::Open
            && self.outstanding == 1
            && self.was_answered
            && !self.was_refused
            && self.since_reply == Since::Reply
            && self.unsent.is_empty()
            && self.budget > 0
    }
}

/// The budget of client `number` of a load.
pub(super) fn first_budget(plan: &Plan, number: u64) -> u64 {
    let count = u64::from(plan.clients);
    match (plan.until, plan.rate) {
        (Until::Requests(total), None) => total / count + u64::from(number < total % count),
        (Until::Each { requests, .. }, None) => requests.map_or(u64::MAX, u64::from),
        // In an open loop, the worker has a common budget for all its clients.
        _ => u64::MAX,
    }
}

impl ClientDetails {
    /// The details of a client before its turn to connect.
    pub(super) const fn new() -> Self {
        Self {
            since: 0,
            started_at: Moment::NEVER,
            connected_at: Moment::NEVER,
            first_reply_at: Moment::NEVER,
            uncounted: 0,
            regained: 0,
            first_budget: 0,
            connections: 0,
            errors: 0,
            queued: 0,
            source: (0, 0),
            failures: 0,
            error: 0,
        }
    }

    /// Number of requests begun on the current connection of a client with this budget.
    pub(super) fn requests_begun(&self, budget: u64) -> u32 {
        self.first_budget.wrapping_sub(budget as u32)
    }
}

/// Nanoseconds since the load began, or never, in half the bytes of an `Option<u64>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(Option<NonZeroU64>);

impl Moment {
    pub(super) const NEVER: Self = Self(None);

    pub(super) fn at(time: u64) -> Self {
        Self(NonZeroU64::new(time.saturating_add(1)))
    }

    pub(super) fn get(self) -> Option<u64> {
        self.0.map(|time| time.get() - 1)
    }

    /// Sets it unless it is already set; returns whether it did.
    pub(super) fn set_first(&mut self, time: u64) -> bool {
        let is_first = *self == Self::NEVER;
        if is_first {
            *self = Self::at(time);
        }
        is_first
    }
}
