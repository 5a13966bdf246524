//! The timeouts of a connection: for being idle, and for an incomplete request.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::{Conn, Interest, READS_PER_EVENT, State, WorkerBuffers};
use crate::Server;
use crate::close_reason::CloseReason;

/// Number of times that all connections are checked within the shorter of the two timeouts. So an overdue connection
/// is closed between 1 and 1.25 times the timeout after its last byte, or after the first byte of its request.
pub const CHECKS_PER_TIMEOUT: u32 = 4;

/// After how many checks a connection is overdue.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    idle: u32,
    request: u32,
}

impl Timeouts {
    /// The timeouts of a server, and the interval between checks; `None` without timeouts.
    pub fn of(server: &Server) -> Option<(Self, Duration)> {
        let shorter = match (server.idle_timeout, server.request_timeout) {
            (Some(idle), Some(request)) => idle.min(request),
            (idle, request) => idle.or(request)?,
        };
        let every = (shorter / CHECKS_PER_TIMEOUT).max(Duration::from_micros(1));
        let looks = |timeout: Option<Duration>| {
            let looks = timeout.map(|timeout| timeout.as_nanos().div_ceil(every.as_nanos()));
            looks.map_or(u32::MAX, |looks| u32::try_from(looks).unwrap_or(u32::MAX))
        };
        let timeouts = Self {
            idle: looks(server.idle_timeout),
            request: looks(server.request_timeout),
        };
        Some((timeouts, every))
    }
}

/// How many checks of a connection were made since its last progress.
#[derive(Debug, Default)]
pub(super) struct TimeoutChecks {
    /// Checks since bytes were last moved.
    idle: u32,
    /// Checks since its request began, and how many requests it had completed by then.
    request: u32,
    completed: u32,
}

impl TimeoutChecks {
    /// Called when bytes were moved.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.idle = 0;
    }
}

/// How long a worker with a single connection may wait for its next bytes.
#[derive(Debug)]
pub struct Wait {
    idle: Option<Duration>,
    request: Option<Duration>,
    /// When the current request began, and how many requests were complete by then.
    began: Option<(Instant, u64)>,
}

impl Wait {
    /// The timeouts of a server.
    pub fn of(server: &Server) -> Self {
        Self {
            idle: server.idle_timeout,
            request: server.request_timeout,
            began: None,
        }
    }

    /// The remaining time, and how the connection ends when that is over.
    pub fn next<S: AsFd>(&mut self, conn: &Conn<S>) -> (Option<Duration>, CloseReason) {
        let (Some(request), Some(completed)) = (self.request, conn.completed_before()) else {
            self.began = None;
            return (self.idle, CloseReason::Idle);
        };
        let began = self.began.filter(|(_, before)| *before == completed);
        let (at, _) = *self
            .began
            .insert(began.unwrap_or_else(|| (Instant::now(), completed)));
        let left = request.saturating_sub(at.elapsed());
        match self.idle {
            Some(idle) if idle < left => (Some(idle), CloseReason::Idle),
            _ => (Some(left), CloseReason::RequestTimeout),
        }
    }
}

impl<S: AsFd> Conn<S> {
    /// How many requests were completed before the current one. `None` if no request has begun, or if input waits for
    /// answers to be sent.
    fn completed_before(&self) -> Option<u64> {
        let comes = match self.state {
            State::Serving | State::Draining => {
                let waits = !self.out.is_empty() || self.backlog.is_some();
                !waits && self.session.is_within_request()
            }
            // Discarding input has a time limit too.
            State::Lingering(_) => true,
            State::Ending(_) | State::Parting(_) => false,
        };
        comes.then(|| self.stats.requests())
    }

    /// To be called at each check. Returns whether the connection is overdue; if so, the caller drops it.
    pub fn is_overdue(&mut self, timeouts: Timeouts) -> bool {
        let completed = self.completed_before().map(|completed| completed as u32);
        let checks = &mut self.timeout_checks;
        checks.idle = checks.idle.saturating_add(1);
        match completed {
            Some(completed) if completed == checks.completed => checks.request += 1,
            Some(completed) => (checks.completed, checks.request) = (completed, 1),
            None => checks.request = 0,
        }
        let reason = if checks.idle > timeouts.idle {
            CloseReason::Idle
        } else if checks.request > timeouts.request {
            CloseReason::RequestTimeout
        } else {
            return false;
        };
        self.times_out(reason);
        true
    }

    /// Ends an overdue connection, which the caller then drops.
    pub fn times_out(&mut self, reason: CloseReason) {
        self.stats.ends(match self.state {
            // Everything but the client's close was complete.
            State::Lingering(earlier) if reason == CloseReason::RequestTimeout => earlier,
            _ => reason,
        });
    }

    /// Reads, answers and writes on a blocking socket until the connection ends. To stop earlier, shut the socket
    /// down for reading, and finally for writing.
    pub fn serve(&mut self, server: &Server, buffers: &mut WorkerBuffers) {
        if server.idle_timeout.is_some() {
            for direction in [Timeout::Recv, Timeout::Send] {
                let _ = set_socket_timeout(&self.socket, direction, server.idle_timeout);
            }
        }
        let mut wait = Wait::of(server);
        let mut set = server.idle_timeout;
        loop {
            let (limit, reason) = wait.next(self);
            if limit == Some(Duration::ZERO) {
                return self.times_out(reason);
            }
            if limit != set {
                let _ = set_socket_timeout(&self.socket, Timeout::Recv, limit);
                set = limit;
            }
            let interest = if server.request_timeout.is_some() {
                // Read only once, so that the next read gets the remaining time.
                self.resume(buffers, true, READS_PER_EVENT - 1)
            } else {
                self.on_ready(buffers, true)
            };
            match interest {
                Interest::Close => break,
                // The call returned without a byte: the time is up.
                Interest::Read if limit.is_some() => return self.times_out(reason),
                Interest::Write if limit.is_some() => return self.times_out(CloseReason::Idle),
                Interest::MoreRead | Interest::Read | Interest::Write => {}
            }
        }
        if server.stop.requested() {
            match self.state {
                State::Ending(CloseReason::ClientClosed) => self.stats.ends(CloseReason::Drained),
                State::Ending(CloseReason::Reset) if self.shut => self.stats.ends(CloseReason::Cut),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::listen::Client;
    use crate::server_stats::{Retention, ServerStats};
    use crate::tuning::Tuning;
    use crate::worker::Worker;
    use throng_sys::signal::Stop;

    const SIZE: usize = 10;

    /// An echo server with these timeouts, whose listener is unused.
    fn server(idle: Option<Duration>, request: Option<Duration>) -> Server {
        use crate::listen::{Listener, Options};
        let options = Options {
            address: "127.0.0.1:0".parse().unwrap(),
            backlog: 1,
            reuse_port: false,
            batch: 1,
            nodelay: true,
        };
        let listeners = Box::leak(vec![Listener::bind(&options).unwrap()].into_boxed_slice());
        Server {
            listener: &listeners[0],
            listeners,
            stop: Stop::install().unwrap(),
            protocol: throng_spec::registry::find("protocol", throng_protocol::PROTOCOLS, "echo")
                .unwrap(),
            offer: throng_protocol::Offer {
                size: SIZE,
                ..throng_protocol::Offer::default()
            },
            stats: Box::leak(Box::new(
                ServerStats::open(None, 1, Retention::Totals).unwrap(),
            )),
            worker: Worker::ANY,
            workers: 1,
            tuning: Tuning::default(),
            drain: Duration::ZERO,
            idle_timeout: idle,
            request_timeout: request,
        }
    }

    fn connect(server: &Server) -> (Conn, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let id = server
            .stats
            .admit((std::net::Ipv4Addr::LOCALHOST, 1).into())
            .unwrap();
        let client = Client {
            socket: ours.into(),
            id,
        };
        (Conn::open(client, server), theirs)
    }

    fn outcomes(server: &Server) -> Vec<(String, u64)> {
        server.stats.counts().outcomes.into_iter().collect()
    }

    #[test]
    fn a_request_that_trickles_is_overdue_and_one_that_comes_whole_is_not() {
        let day = Duration::from_hours(24);
        let server = server(Some(3 * day), Some(day));
        let (timeouts, every) = Timeouts::of(&server).unwrap();
        assert_eq!(every, day / 4);
        let (mut conn, _client) = connect(&server);
        // No request is incomplete, since only complete ones arrive.
        for _ in 0..20 {
            assert!(!conn.is_overdue(timeouts));
            conn.feed(&[1; SIZE]);
            conn.advance(SIZE);
        }
        // One byte per check.
        let mut looks = 0;
        loop {
            conn.feed(&[1]);
            conn.advance(1);
            if conn.is_overdue(timeouts) {
                break;
            }
            looks += 1;
        }
        assert_eq!(looks, 4);
        drop(conn);
        assert_eq!(outcomes(&server), [("request-timeout".to_owned(), 1)]);
        // Without any bytes between requests, it is idle.
        let (mut conn, _client) = connect(&server);
        assert_eq!((0..20).position(|_| conn.is_overdue(timeouts)), Some(12));
        drop(conn);
        assert_eq!(outcomes(&server)[0], ("idle-timeout".to_owned(), 1));
    }

    #[test]
    fn a_process_that_serves_one_client_cuts_a_request_that_is_not_whole() {
        let server = server(None, Some(Duration::from_millis(20)));
        let (mut conn, mut client) = connect(&server);
        client.write_all(&[1; SIZE + 1]).unwrap();
        conn.serve(&server, &mut WorkerBuffers::for_one());
        drop(conn);
        assert_eq!(outcomes(&server), [("request-timeout".to_owned(), 1)]);
        let mut replies = Vec::new();
        client.read_to_end(&mut replies).unwrap();
        assert_eq!(replies.len(), SIZE + 1);
    }

    #[test]
    fn a_wait_has_what_is_left_for_the_request() {
        let (second, day) = (Duration::from_secs(1), Duration::from_hours(24));
        let server = server(Some(day), Some(day.abs_diff(second)));
        let (mut conn, _client) = connect(&server);
        let mut wait = Wait::of(&server);
        assert_eq!(wait.next(&conn), (Some(day), CloseReason::Idle));
        conn.feed(&[1]);
        conn.advance(1);
        let (first, reason) = wait.next(&conn);
        assert_eq!(reason, CloseReason::RequestTimeout);
        conn.feed(&[1]);
        conn.advance(1);
        let (second, _) = wait.next(&conn);
        assert!(second < first && first < Some(day), "{first:?} {second:?}");
        conn.feed(&[1; SIZE - 2]);
        conn.advance(SIZE - 2);
        assert_eq!(wait.next(&conn), (Some(day), CloseReason::Idle));
    }
}
