//! What a worker records: stats, and what each of its clients did.

use std::net::SocketAddr;

use rustix::io::Errno;
use throng_record::load_stats::{JobStats, LoadStats, OpenStats, Times, TimesByPart};

use super::Plan;

/// What one worker saw, and each of its clients.
pub(super) type Worked = (LoadStats, Vec<ClientStats>);

/// The stats of a worker before anything happened, with room for all times that it will record.
pub(super) fn empty_stats(plan: &Plan) -> LoadStats {
    LoadStats {
        threads: 1,
        service_time: Times::with_room(),
        connect_time: Times::with_room(),
        times_by_part: TimesByPart::with_room(),
        lateness: if plan.has_dues() {
            Times::with_room()
        } else {
            Times::default()
        },
        open: plan.rate.map(|_| OpenStats {
            response_time: Times::with_room(),
            ..OpenStats::default()
        }),
        tls: plan.tls.as_ref().map(|_| Box::default()),
        jobs: plan.job().map(|requests_each| {
            Box::new(JobStats {
                requests_each,
                seed: plan.seed,
                time: Times::with_room(),
                ..JobStats::default()
            })
        }),
        ..LoadStats::default()
    }
}

/// Why a connection, and with it a request or a client, ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ErrorKind {
    /// Nobody listens there.
    Refused,
    /// No connection in time.
    ConnectTimeout,
    /// No way there.
    Unreachable,
    /// Its unix socket is not for this user.
    Denied,
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
    /// It was wrong in a way for which its protocol has a name.
    Named(&'static str),
    /// No reply within the time a request has.
    RequestTimeout,
    /// No reply until the end, though earlier ones came.
    Unanswered,
    /// The server's TLS has a fault.
    Tls(throng_tls::Kind),
    /// Anything else: an errno(3).
    Other(i32),
}

impl ErrorKind {
    pub(super) fn of(errno: Errno) -> Self {
        match errno {
            Errno::CONNREFUSED => Self::Refused,
            Errno::TIMEDOUT => Self::ConnectTimeout,
            Errno::NETUNREACH | Errno::HOSTUNREACH => Self::Unreachable,
            Errno::ACCESS | Errno::PERM => Self::Denied,
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
            Self::Named(name) => name,
            Self::RequestTimeout => "request-timeout",
            Self::Unanswered => "unanswered",
            Self::Denied => "permission-denied",
            Self::Tls(kind) => kind.name(),
            Self::Other(errno) => return format!("errno-{errno}"),
        };
        name.to_owned()
    }
}

/// What one client did. Times are nanoseconds since the load began; none: it never happened.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientStats {
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
