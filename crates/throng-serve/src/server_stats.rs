//! The server's statistics: totals, and one row per client.
//!
//! All statistics are in memory shared with forked children, so that fork and prefork servers count like the others
//! and nothing is lost if a child is killed. A new client reuses the row of one that has gone, unless all rows are
//! logged.

mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::close_reason::{CLOSE_REASONS, CloseReason, REFUSALS, Refusal, named};
use super::worker::Worker;
pub use rows::Retention;
use rows::{
    ADDRESS, CLOSED_AT, CONNECTED_AT, ROW_BYTES_IN, ROW_BYTES_OUT, ROW_REQUESTS, ROW_WORDS, ROWS,
    Row, Rows, STATE,
};
use throng_spec::{ServerCounts, ServerWorker};
use throng_sys::shared;

// Offsets of the totals in the shared words.
const ADMITTED: usize = 0;
const OPEN: usize = 1;
const PEAK_OPEN: usize = 2;
const REQUESTS: usize = 3;
const BYTES_IN: usize = 4;
const BYTES_OUT: usize = 5;
const ACCEPT_FAILED: usize = 6;
const ROWS_USED: usize = 7;
const ROWS_FREE: usize = 8;
const ROWS_KEPT: usize = 9;
const NOTIFIED: usize = 10;
const REFUSED: usize = 11;
const ANSWERED: usize = REFUSED + REFUSALS.len();
const ANSWERED_NS: usize = ANSWERED + 1;
const ENDED: usize = ANSWERED_NS + 1;
const TOTALS: usize = (ENDED + CLOSE_REASONS.len()).next_multiple_of(ROW_WORDS);

// After the totals come the rows, and then, for each of several loops, its clients and requests.
const WORKERS: usize = TOTALS + ROWS * ROW_WORDS;

/// The row of a client from accept() on; `None` inside for a client that found all rows in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionId(Option<u32>);

/// The statistics that every connection updates.
#[derive(Debug)]
struct SharedStats {
    words: &'static [AtomicU64],
    rows: Rows,
    began: Instant,
}

/// The statistics of a server, including all its processes and threads.
#[derive(Debug)]
pub struct ServerStats {
    shared: &'static SharedStats,
    most_open: u64,
    /// The worker of all clients that this process accepts, encoded as in a row. Not shared.
    owner: AtomicU64,
}

impl ServerStats {
    /// Creates empty statistics for at most `max_clients` concurrent clients and for `loops` loops.
    ///
    /// # Errors
    /// If the shared memory cannot be mapped.
    pub fn open(max_clients: Option<u64>, loops: usize, keeps: Retention) -> io::Result<Self> {
        let words = shared::counters(WORKERS + 2 * loops)?;
        let rows = rows_in(words);
        rows.keep(keeps);
        let shared = SharedStats {
            words,
            rows,
            began: Instant::now(),
        };
        Ok(Self {
            shared: Box::leak(Box::new(shared)),
            most_open: max_clients.unwrap_or(u64::MAX),
            owner: AtomicU64::new(Worker::ANY.bits()),
        })
    }

    /// Attributes all clients that this process accepts from now on to `worker`, so that [`lost`](Self::lost) finds
    /// them even if the process dies before serving them.
    pub fn belongs_to(&self, worker: Worker) {
        self.owner.store(worker.bits(), Relaxed);
    }

    /// Registers an accepted client; `None` if there are too many.
    pub fn admit(&self, peer: SocketAddr) -> Option<ConnectionId> {
        let one_more = |open: u64| (open < self.most_open).then_some(open + 1);
        if self.shared.words[OPEN]
            .fetch_update(Relaxed, Relaxed, one_more)
            .is_err()
        {
            self.refused(Refusal::Clients);
            return None;
        }
        self.shared.words[ADMITTED].fetch_add(1, Relaxed);
        let id = ConnectionId(self.shared.rows.take());
        if let Some(row) = self.row(id) {
            for figure in [ROW_REQUESTS, ROW_BYTES_IN, ROW_BYTES_OUT] {
                row[figure].store(0, Relaxed);
            }
            let (address, is_ipv4) = match peer.ip() {
                IpAddr::V4(ip) => (ip.to_ipv6_mapped(), 1),
                IpAddr::V6(ip) => (ip, 0),
            };
            let owner = self.owner.load(Relaxed);
            row[STATE].store(owner | u64::from(peer.port()) << 16 | is_ipv4 << 8, Relaxed);
            let bits = u128::from(address);
            row[ADDRESS].store((bits >> 64) as u64, Relaxed);
            row[ADDRESS + 1].store(bits as u64, Relaxed);
            row[CONNECTED_AT].store(self.now(), Relaxed);
        }
        Some(id)
    }

    /// Records that `worker` serves the client from now on.
    pub fn hand_to(&self, id: ConnectionId, worker: Worker) {
        if let Some(row) = self.row(id) {
            row[STATE].fetch_or(worker.bits(), Relaxed);
        }
    }

    /// Opens the statistics of a client.
    pub fn open_connection(&self, id: ConnectionId, worker: Worker) -> ConnectionStats {
        self.hand_to(id, worker);
        self.shared.words[PEAK_OPEN].fetch_max(self.shared.words[OPEN].load(Relaxed), Relaxed);
        ConnectionStats {
            shared: self.shared,
            row: self.row(id),
            requests: 0,
            bytes_in: 0,
            bytes_out: 0,
            reason: CloseReason::Cut,
        }
    }

    /// Records that a client was accepted but could not be served.
    pub fn give_up(&self, id: ConnectionId, why: Refusal) {
        self.refused(why);
        self.open_connection(id, Worker::ANY)
            .ends(CloseReason::GivenUp);
    }

    /// Ends the open connections of a process that died.
    pub fn lost(&self, worker: Worker) {
        for (place, row) in self.shared.rows.used() {
            let id = ConnectionId(Some(place));
            let state = row[STATE].load(Relaxed);
            if Worker::of(state) == worker && reason_in(state) == CloseReason::Open as u64 {
                let mut connection = self.open_connection(id, worker);
                connection.received(
                    row[ROW_BYTES_IN].load(Relaxed) as usize,
                    row[ROW_REQUESTS].load(Relaxed),
                );
                connection.sent(row[ROW_BYTES_OUT].load(Relaxed) as usize);
                connection.ends(CloseReason::Lost);
            }
        }
    }

    /// Records that a client was rejected.
    pub fn refused(&self, why: Refusal) {
        self.shared.words[REFUSED + why as usize].fetch_add(1, Relaxed);
    }

    /// Records that the kernel reported `descriptors` descriptors as ready.
    pub fn notified(&self, descriptors: usize) {
        self.shared.words[NOTIFIED].fetch_add(descriptors as u64, Relaxed);
    }

    /// Records that accept() failed for a reason unrelated to the client.
    pub fn accept_failed(&self) {
        self.shared.words[ACCEPT_FAILED].fetch_add(1, Relaxed);
    }

    /// The totals, including open connections.
    pub fn counts(&self) -> ServerCounts {
        let total = |at: usize| self.shared.words[at].load(Relaxed);
        let mut refused = named(&REFUSALS, |why| total(REFUSED + *why as usize));
        if total(ACCEPT_FAILED) > 0 {
            refused.insert("accept-error".to_owned(), total(ACCEPT_FAILED));
        }
        let given_up = total(ENDED + CloseReason::GivenUp as usize);
        let mut counts = ServerCounts {
            accepted: total(ADMITTED) - given_up,
            peak_open: total(PEAK_OPEN),
            refused,
            requests: total(REQUESTS),
            bytes_in: total(BYTES_IN),
            bytes_out: total(BYTES_OUT),
            notifications: Some(total(NOTIFIED)).filter(|count| *count > 0),
            answered: total(ANSWERED),
            answered_ns: total(ANSWERED_NS),
            outcomes: named(&CLOSE_REASONS, |reason| match reason {
                CloseReason::GivenUp => 0, // counted as rejected
                _ => total(ENDED + *reason as usize),
            }),
            unlogged: total(ROWS_USED).saturating_sub(ROWS as u64),
            workers: Vec::new(),
        };
        // Open connections, and those of a process that died, are counted only in the rows.
        let mut lost = 0;
        let mut workers: BTreeMap<u32, ServerWorker> = BTreeMap::new();
        let (loops, _) = self.shared.words[WORKERS..].as_chunks::<2>();
        for ([clients, requests], number) in loops.iter().zip(0..) {
            let (clients, requests) = (clients.load(Relaxed), requests.load(Relaxed));
            if clients > 0 {
                workers.insert(number, ServerWorker { clients, requests });
            }
        }
        for (_, row) in self.shared.rows.used() {
            let state = row[STATE].load(Relaxed);
            if reason_in(state) == CloseReason::Open as u64 {
                if let Some(number) = Worker::of(state).as_number() {
                    let worker = workers.entry(number).or_default();
                    worker.clients += 1;
                    worker.requests += row[ROW_REQUESTS].load(Relaxed);
                }
                counts.requests += row[ROW_REQUESTS].load(Relaxed);
                counts.bytes_in += row[ROW_BYTES_IN].load(Relaxed);
                counts.bytes_out += row[ROW_BYTES_OUT].load(Relaxed);
                lost += 1;
            }
        }
        if lost > 0 {
            counts.outcomes.insert("open".to_owned(), lost);
        }
        counts.workers = workers.into_values().collect();
        counts
    }

    /// Writes one CSV row per client, in order of connection.
    ///
    /// # Errors
    /// Those of writing to `to`.
    pub fn write_clients(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(
            to,
            "client,address,connected_at_us,closed_at_us,requests,bytes_in,bytes_out,worker,outcome"
        )?;
        for (number, row) in self.shared.rows.used() {
            let word = |at: usize| row[at].load(Relaxed);
            let state = word(STATE);
            let bits = u128::from(word(ADDRESS)) << 64 | u128::from(word(ADDRESS + 1));
            let mut ip = IpAddr::V6(Ipv6Addr::from(bits));
            if state >> 8 & 1 == 1 {
                ip = ip.to_canonical();
            }
            // A unix socket has no address, nor does a client that had already disconnected.
            let address = SocketAddr::new(ip, (state >> 16) as u16);
            let peer = if ip.is_unspecified() {
                String::new()
            } else {
                address.to_string()
            };
            let reason = CLOSE_REASONS[reason_in(state) as usize % CLOSE_REASONS.len()].1;
            write!(
                to,
                "{number},{peer},{:.1},",
                word(CONNECTED_AT) as f64 / 1e3
            )?;
            if reason != "open" {
                write!(to, "{:.1}", word(CLOSED_AT) as f64 / 1e3)?;
            }
            writeln!(
                to,
                ",{},{},{},{},{reason}",
                word(ROW_REQUESTS),
                word(ROW_BYTES_IN),
                word(ROW_BYTES_OUT),
                Worker::of(state)
            )?;
        }
        Ok(())
    }

    fn row(&self, id: ConnectionId) -> Option<&'static Row> {
        self.shared.rows.get(id.0?)
    }

    fn now(&self) -> u64 {
        self.shared.now()
    }
}

impl SharedStats {
    fn now(&self) -> u64 {
        nanoseconds(self.began.elapsed())
    }
}

fn reason_in(state: u64) -> u64 {
    state & 0xff
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Counts of one connection, updated at every request and added to the totals when dropped.
#[derive(Debug)]
pub struct ConnectionStats {
    shared: &'static SharedStats,
    row: Option<&'static Row>,
    requests: u64,
    bytes_in: u64,
    bytes_out: u64,
    reason: CloseReason,
}

impl ConnectionStats {
    /// Records that `bytes` bytes arrived and completed `requests` requests.
    pub fn received(&mut self, bytes: usize, requests: u64) {
        self.bytes_in += bytes as u64;
        self.requests += requests;
        if let Some(row) = self.row {
            row[ROW_BYTES_IN].store(self.bytes_in, Relaxed);
            row[ROW_REQUESTS].store(self.requests, Relaxed);
        }
    }

    /// Records that `bytes_in` bytes arrived and completed `requests` requests, and that `bytes_out` bytes were sent.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is called once a request, from several models"
    )]
    pub fn exchanged(&mut self, bytes_in: usize, requests: u64, bytes_out: usize) {
        self.bytes_in += bytes_in as u64;
        self.requests += requests;
        self.bytes_out += bytes_out as u64;
        if let Some(row) = self.row {
            row[ROW_BYTES_IN].store(self.bytes_in, Relaxed);
            row[ROW_REQUESTS].store(self.requests, Relaxed);
            row[ROW_BYTES_OUT].store(self.bytes_out, Relaxed);
        }
    }

    /// Records that `bytes` bytes were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
        if let Some(row) = self.row {
            row[ROW_BYTES_OUT].store(self.bytes_out, Relaxed);
        }
    }

    /// Takes back `bytes` bytes that counted as sent but were not.
    pub fn not_sent(&mut self, bytes: usize) {
        self.bytes_out = self.bytes_out.saturating_sub(bytes as u64);
        self.sent(0);
    }

    /// Number of requests completed so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Sets how the connection ends; the default is [`CloseReason::Cut`].
    pub fn ends(&mut self, reason: CloseReason) {
        self.reason = reason;
    }
}

impl Drop for ConnectionStats {
    fn drop(&mut self) {
        let words = self.shared.words;
        let add = |at: usize, count: u64| {
            words[at].fetch_add(count, Relaxed);
        };
        add(REQUESTS, self.requests);
        add(BYTES_IN, self.bytes_in);
        add(BYTES_OUT, self.bytes_out);
        add(ENDED + self.reason as usize, 1);
        words[OPEN].fetch_sub(1, Relaxed);
        let Some(row) = self.row else {
            return;
        };
        let now = self.shared.now();
        if self.requests > 0 {
            add(ANSWERED, 1);
            add(ANSWERED_NS, now - row[CONNECTED_AT].load(Relaxed));
        }
        row[CLOSED_AT].store(now, Relaxed);
        let state = row[STATE].fetch_or(self.reason as u64, Relaxed);
        if let Some(number) = Worker::of(state).as_number() {
            let at = WORKERS + 2 * number as usize;
            if at < words.len() {
                add(at, 1);
                add(at + 1, self.requests);
            }
        }
        self.shared.rows.give_back(row);
    }
}

/// The part of the shared words that holds the rows.
fn rows_in(words: &'static [AtomicU64]) -> Rows {
    Rows {
        words: &words[TOTALS..WORKERS],
        used: &words[ROWS_USED],
        free: &words[ROWS_FREE],
        kept: &words[ROWS_KEPT],
    }
}
