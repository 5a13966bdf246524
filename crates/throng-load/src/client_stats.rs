//! The stats of a worker, and of each of its clients.

use std::collections::HashMap;
use std::net::SocketAddr;

use rustix::io::Errno;
use throng_record::load_stats::{JobStats, LoadStats, OpenStats, SessionStats, Times, TimesByPart};

use super::Plan;
use super::Until;

/// Stats of one worker, and of each of its clients.
pub(super) type WorkerStats = (LoadStats, Vec<ClientStats>);

/// The empty stats of a worker, with room for all times that it will record.
pub(super) fn empty_stats(plan: &Plan) -> LoadStats {
    LoadStats {
        threads: 1,
        service_time: Times::with_room(),
        connect_time: Times::with_room(),
        times_by_part: TimesByPart::with_room(),
        lateness: if plan.has_due_times() {
            Times::with_room()
        } else {
            Times::default()
        },
        open: plan.rate.map(|_| OpenStats {
            response_time: Times::with_room(),
            ..OpenStats::default()
        }),
        sessions: plan.settings.flow.map(|flow| {
            let names = flow.steps.iter().map(|step| step.name.as_str());
            Box::new(SessionStats::of_steps(names))
        }),
        tls: plan.tls.as_ref().map(|_| Box::default()),
        jobs: plan.has_jobs().then(|| {
            Box::new(JobStats {
                requests_each: match plan.until {
                    Until::Each { requests, .. } => requests,
                    _ => None,
                },
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
    /// Connection refused.
    Refused,
    /// Connection timeout.
    ConnectTimeout,
    /// Unreachable.
    Unreachable,
    /// No permission to use the unix socket.
    Denied,
    /// No free local port.
    NoPort,
    /// No free descriptor.
    NoDescriptor,
    /// The server reset the connection.
    Reset,
    /// The server closed it although a reply was due.
    ClosedEarly,
    /// The reply was wrong.
    WrongReply,
    /// The reply was wrong in a way that its protocol names.
    Named(&'static str),
    /// Request timeout.
    RequestTimeout,
    /// No reply at the end, although earlier ones arrived.
    Unanswered,
    /// At the end, a reply that only the server's close completes.
    EndlessReply,
    /// A fault of the server's TLS.
    Tls(throng_tls::Kind),
    /// Another error: an errno(3).
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
            Self::EndlessReply => "endless-reply",
            Self::Denied => "permission-denied",
            Self::Tls(kind) => kind.name(),
            Self::Other(errno) => return format!("errno-{errno}"),
        };
        name.to_owned()
    }
}

/// The stats of one client. Times are nanoseconds since the load began; `None` for never.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientStats {
    pub(super) source: Option<SocketAddr>,
    pub(super) started_at: Option<u64>,
    pub(super) connected_at: Option<u64>,
    pub(super) first_reply_at: Option<u64>,
    pub(super) connections: u32,
    /// When it finished all its requests; when it failed permanently.
    pub(super) done_at: Option<u64>,
    pub(super) failed_at: Option<u64>,
    pub(super) errors: u32,
    pub(super) requests: u64,
    pub(super) replies: u64,
    pub(super) window_replies: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// Its first error.
    pub(super) error: Option<ErrorKind>,
}

/// The first errors of a worker's clients, each kind once. A client stores an index from 1, or 0 for no error.
#[derive(Debug, Default)]
pub(super) struct ErrorKinds(Vec<ErrorKind>);

impl ErrorKinds {
    /// The index of a kind. If there were ever more kinds than indexes, the last index would stand for the rest.
    pub(super) fn number(&mut self, kind: ErrorKind) -> u8 {
        let place = self
            .0
            .iter()
            .position(|known| *known == kind)
            .unwrap_or_else(|| {
                if self.0.len() < usize::from(u8::MAX) {
                    self.0.push(kind);
                }
                self.0.len() - 1
            });
        place as u8 + 1
    }

    pub(super) fn kind(&self, number: u8) -> Option<ErrorKind> {
        self.0.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The local addresses of a worker's clients, each once. A client stores an index from 1, and its port. Index 0 stands
/// for an unknown address.
#[derive(Debug, Default)]
pub(super) struct Sources {
    numbers: HashMap<SocketAddr, u16>,
    addresses: Vec<SocketAddr>,
}

impl Sources {
    /// The index of an address. Beyond 65,534 different ones, addresses are unknown.
    pub(super) fn number(&mut self, mut address: SocketAddr) -> (u16, u16) {
        let port = address.port();
        address.set_port(0);
        if let Some(&number) = self.numbers.get(&address) {
            return (number, port);
        }
        if self.addresses.len() + 1 >= usize::from(u16::MAX) {
            return (0, port);
        }
        self.addresses.push(address);
        let number = self.addresses.len() as u16;
        self.numbers.insert(address, number);
        (number, port)
    }

    pub(super) fn address(&self, (number, port): (u16, u16)) -> Option<SocketAddr> {
        let place = usize::from(number).checked_sub(1)?;
        let mut address = *self.addresses.get(place)?;
        address.set_port(port);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_errors_are_found_by_their_numbers() {
        let mut sources = Sources::default();
        let addresses: [SocketAddr; 3] =
            ["127.0.0.1:5", "[fe80::1%3]:5", "127.0.0.1:9"].map(|text| text.parse().unwrap());
        let numbers = addresses.map(|address| sources.number(address));
        assert_eq!(numbers, [(1, 5), (2, 5), (1, 9)]);
        let found = numbers.map(|number| sources.address(number));
        assert_eq!(found, addresses.map(Some));
        assert_eq!(sources.address((0, 5)), None);

        let mut kinds = ErrorKinds::default();
        let errors = [ErrorKind::Reset, ErrorKind::Other(5), ErrorKind::Reset];
        assert_eq!(errors.map(|kind| kinds.number(kind)), [1, 2, 1]);
        assert_eq!(kinds.kind(2), Some(ErrorKind::Other(5)));
        assert_eq!(kinds.kind(0), None);
        let last = (0..1000).map(|errno| kinds.number(ErrorKind::Other(errno)));
        assert_eq!(last.last(), Some(u8::MAX));
    }
}
