//! What one worker of a load saw while it ran.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rustix::io::Errno;

use super::jobs::JobsTally;
use super::times::{Times, TimesByPart};
use crate::protocol::Decline;

/// Equal parts of the steady part whose replies are counted apart.
pub(super) const SLICES: usize = 20;
/// Equal parts of a slice, in which times are counted apart.
pub(super) const PARTS_A_SLICE: usize = 3;
/// These, over the whole window.
pub(super) const PARTS: usize = SLICES * PARTS_A_SLICE;
/// Equal parts of the clients, in the order in which they connect, whose replies are counted apart.
pub(super) const TENTHS: usize = 10;

/// Why a connection, and with it a request or a client, ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ErrorKind {
    /// Nobody listens there.
    Refused,
    /// No connection in time.
    ConnectTimeout,
    /// No way there.
    Unreachable,
    /// No local port left.
    NoPort,
    /// No descriptor left.
    NoDescriptor,
    /// The server reset the connection.
    Reset,
    /// The server closed it though a reply was due.
    ClosedEarly,
    /// The reply was not what it should have been.
    WrongReply,
    /// No reply within the time a request has.
    RequestTimeout,
    /// No reply until the end, though earlier ones came.
    Unanswered,
    /// Anything else: an errno(3).
    Other(i32),
}

impl ErrorKind {
    pub(super) fn of(errno: Errno) -> Self {
        match errno {
            Errno::CONNREFUSED => Self::Refused,
            Errno::TIMEDOUT => Self::ConnectTimeout,
            Errno::NETUNREACH | Errno::HOSTUNREACH => Self::Unreachable,
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Self::NoPort,
            Errno::MFILE | Errno::NFILE => Self::NoDescriptor,
            Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Self::Reset,
            other => Self::Other(other.raw_os_error()),
        }
    }

    pub(super) fn name(self) -> String {
        let name = match self {
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::Unreachable => "unreachable",
            Self::NoPort => "no-port",
            Self::NoDescriptor => "no-descriptor",
            Self::Reset => "reset",
            Self::ClosedEarly => "closed-early",
            Self::WrongReply => "wrong-reply",
            Self::RequestTimeout => "request-timeout",
            Self::Unanswered => "unanswered",
            Self::Other(errno) => return format!("errno-{errno}"),
        };
        name.to_owned()
    }
}

/// What one client did. Times are nanoseconds since the load began; none: it never happened.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientTally {
    pub(super) source: Option<SocketAddr>,
    pub(super) started_at: Option<u64>,
    pub(super) connected_at: Option<u64>,
    pub(super) first_answer_at: Option<u64>,
    pub(super) connections: u32,
    /// When it had made all the requests it had to; when it failed for good.
    pub(super) done_at: Option<u64>,
    pub(super) failed_at: Option<u64>,
    pub(super) errors: u32,
    pub(super) requests: u64,
    pub(super) replies: u64,
    pub(super) window_replies: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// The first one.
    pub(super) error: Option<ErrorKind>,
}

/// Errors of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errors {
    pub(super) count: u64,
    /// When the first one came, in nanoseconds since the load began.
    pub(super) began: u64,
}

/// What only an open loop has, all of it about requests that came due in the window.
#[derive(Clone, Default)]
pub(super) struct OpenTally {
    /// From due to the whole verified reply. Requests without one count with what they had waited
    /// when the load ended.
    pub(super) response_time: Times,
    /// Requests that came due while no client was free.
    pub(super) waited: u64,
    /// Requests that no client became free for before the window ended.
    pub(super) never_sent: u64,
    /// Requests sent that had no reply when the load ended.
    pub(super) unanswered: u64,
    /// Requests whose connection failed.
    pub(super) lost: u64,
}

/// What one worker saw.
pub(super) struct WorkerTally {
    pub(super) service_time: Times,
    pub(super) connect_time: Times,
    /// From due to sent, where requests come due by themselves.
    pub(super) lateness: Option<Times>,
    pub(super) open: Option<OpenTally>,
    /// Where each client has a job.
    pub(super) jobs: Option<Box<JobsTally>>,
    /// Replies in the window, by the client's tenth and by slice.
    pub(super) served: [[u64; SLICES]; TENTHS],
    /// How long these had taken, by part of a slice: response times of an open loop, else service times.
    pub(super) times: TimesByPart<PARTS>,
    pub(super) window_bytes_sent: u64,
    pub(super) window_bytes_received: u64,
    /// Replies in which the server declined, over the life of the load.
    pub(super) declined: BTreeMap<Decline, u64>,
    pub(super) errors: BTreeMap<ErrorKind, Errors>,
    /// Every `threads`th client, beginning with the worker's number.
    pub(super) clients: Vec<ClientTally>,
}

impl WorkerTally {
    pub(super) fn new(is_open: bool, has_dues: bool) -> Self {
        Self {
            service_time: Times::default(),
            connect_time: Times::default(),
            lateness: has_dues.then(Times::default),
            open: is_open.then(OpenTally::default),
            jobs: None,
            served: [[0; SLICES]; TENTHS],
            times: TimesByPart::default(),
            window_bytes_sent: 0,
            window_bytes_received: 0,
            declined: BTreeMap::new(),
            errors: BTreeMap::new(),
            clients: Vec::new(),
        }
    }

    /// Replies in each slice of the window.
    pub(super) fn slices(&self) -> [u64; SLICES] {
        std::array::from_fn(|slice| self.served.iter().map(|tenth| tenth[slice]).sum())
    }

    /// Counts an error that came `at` nanoseconds after the load began.
    pub(super) fn error(&mut self, kind: ErrorKind, at: u64) {
        let errors = self.errors.entry(kind).or_insert(Errors {
            count: 0,
            began: at,
        });
        errors.count += 1;
        errors.began = errors.began.min(at);
    }

    /// Adds what another worker saw, all but its clients.
    pub(super) fn add(&mut self, other: &Self) {
        self.service_time.add(&other.service_time);
        self.connect_time.add(&other.connect_time);
        if let (Some(mine), Some(theirs)) = (&mut self.lateness, &other.lateness) {
            mine.add(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.open, &other.open) {
            mine.response_time.add(&theirs.response_time);
            mine.waited += theirs.waited;
            mine.never_sent += theirs.never_sent;
            mine.unanswered += theirs.unanswered;
            mine.lost += theirs.lost;
        }
        if let (Some(mine), Some(theirs)) = (&mut self.jobs, &other.jobs) {
            mine.add(theirs);
        }
        let parts = other.served.iter().flatten();
        for (sum, part) in self.served.iter_mut().flatten().zip(parts) {
            *sum += part;
        }
        self.times.add(&other.times);
        self.window_bytes_sent += other.window_bytes_sent;
        self.window_bytes_received += other.window_bytes_received;
        for (&why, count) in &other.declined {
            *self.declined.entry(why).or_insert(0) += count;
        }
        for (&kind, errors) in &other.errors {
            let sum = self.errors.entry(kind).or_insert(Errors {
                count: 0,
                began: u64::MAX,
            });
            sum.count += errors.count;
            sum.began = sum.began.min(errors.began);
        }
    }
}
