//! What a server counts: totals, and a line for every client.
//!
//! All of it lies in memory shared with forked children, so that fork and prefork servers count
//! like the others and nothing is lost when a child is killed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::record::ServerCounts;
use crate::sys::shared;

/// Lines kept; clients beyond are counted in the totals only. 64 bytes each, taken when used.
const ROWS: usize = 1 << 20;
const ROW_WORDS: usize = 8;

/// Why a connection was closed as soon as it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Refusal {
    /// The descriptor table is full.
    Descriptors,
    /// The descriptor does not fit into the set that select() takes.
    SetSize,
    /// No further thread could be started.
    Threads,
    /// No further process could be started.
    Processes,
}

const REFUSALS: [(Refusal, &str); 4] = [
    (Refusal::Descriptors, "descriptors"),
    (Refusal::SetSize, "set-size"),
    (Refusal::Threads, "threads"),
    (Refusal::Processes, "processes"),
];

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Outcome {
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
}

const OUTCOMES: [(Outcome, &str); 7] = [
    (Outcome::Open, "open"),
    (Outcome::ClientClosed, "client-closed"),
    (Outcome::ServerClosed, "server-closed"),
    (Outcome::Reset, "reset"),
    (Outcome::ProtocolError, "protocol-error"),
    (Outcome::Drained, "drained"),
    (Outcome::Cut, "cut"),
];

// Places of the totals in the shared words.
const ACCEPTED: usize = 0;
const OPEN: usize = 1;
const PEAK_OPEN: usize = 2;
const REQUESTS: usize = 3;
const BYTES_IN: usize = 4;
const BYTES_OUT: usize = 5;
const ACCEPT_FAILED: usize = 6;
const REFUSED: usize = 8;
const ENDED: usize = REFUSED + REFUSALS.len();
const TOTALS: usize = (ENDED + OUTCOMES.len()).next_multiple_of(ROW_WORDS);

// Places of a client's figures in its row.
const STATE: usize = 0; // port << 16 | is_ipv4 << 8 | outcome
const CONNECTED_AT: usize = 1;
const CLOSED_AT: usize = 2;
const ROW_REQUESTS: usize = 3;
const ROW_BYTES_IN: usize = 4;
const ROW_BYTES_OUT: usize = 5;
const ADDRESS: usize = 6;

/// The counts of a server and of all its processes and threads.
#[derive(Debug)]
pub struct Book {
    words: &'static [AtomicU64],
    began: Instant,
}

impl Book {
    /// Opens an empty book.
    ///
    /// # Errors
    /// When the shared memory cannot be mapped.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            words: shared::counters(TOTALS + ROWS * ROW_WORDS)?,
            began: Instant::now(),
        })
    }

    /// A client was accepted.
    pub fn enter(&self, peer: SocketAddr) -> Line {
        let number = self.words[ACCEPTED].fetch_add(1, Relaxed) as usize;
        let open = self.words[OPEN].fetch_add(1, Relaxed) + 1;
        self.words[PEAK_OPEN].fetch_max(open, Relaxed);
        let row = (number < ROWS).then(|| self.row(number));
        if let Some(row) = row {
            let (address, is_ipv4) = match peer.ip() {
                IpAddr::V4(ip) => (ip.to_ipv6_mapped(), 1),
                IpAddr::V6(ip) => (ip, 0),
            };
            let bits = u128::from(address);
            row[ADDRESS].store((bits >> 64) as u64, Relaxed);
            row[ADDRESS + 1].store(bits as u64, Relaxed);
            row[CONNECTED_AT].store(self.now(), Relaxed);
            row[STATE].store(u64::from(peer.port()) << 16 | is_ipv4 << 8, Relaxed);
        }
        Line {
            totals: &self.words[..TOTALS],
            row,
            began: self.began,
            requests: 0,
            bytes_in: 0,
            bytes_out: 0,
            outcome: Outcome::Cut,
        }
    }

    /// A client was turned away.
    pub fn refused(&self, why: Refusal) {
        self.words[REFUSED + why as usize].fetch_add(1, Relaxed);
    }

    /// accept() failed for a reason that is none of the client's.
    pub fn accept_failed(&self) {
        self.words[ACCEPT_FAILED].fetch_add(1, Relaxed);
    }

    /// Everything counted, open connections included.
    pub fn counts(&self) -> ServerCounts {
        let total = |place: usize| self.words[place].load(Relaxed);
        let mut refused = named(&REFUSALS, |why| total(REFUSED + *why as usize));
        if total(ACCEPT_FAILED) > 0 {
            refused.insert("accept-error".to_owned(), total(ACCEPT_FAILED));
        }
        let mut counts = ServerCounts {
            accepted: total(ACCEPTED),
            peak_open: total(PEAK_OPEN),
            refused,
            requests: total(REQUESTS),
            bytes_in: total(BYTES_IN),
            bytes_out: total(BYTES_OUT),
            outcomes: named(&OUTCOMES, |outcome| total(ENDED + *outcome as usize)),
            unlogged: total(ACCEPTED).saturating_sub(ROWS as u64),
        };
        // What is still open, or was in a process that died, is in the rows only.
        let mut lost = 0;
        for row in self.rows() {
            if row[STATE].load(Relaxed) & 0xff == Outcome::Open as u64 {
                counts.requests += row[ROW_REQUESTS].load(Relaxed);
                counts.bytes_in += row[ROW_BYTES_IN].load(Relaxed);
                counts.bytes_out += row[ROW_BYTES_OUT].load(Relaxed);
                lost += 1;
            }
        }
        if lost > 0 {
            counts.outcomes.insert("open".to_owned(), lost);
        }
        counts
    }

    /// Writes a line a client, in order of connection.
    ///
    /// # Errors
    /// As `to` gives them.
    pub fn write_clients(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(
            to,
            "client,address,connected_at_us,closed_at_us,requests,bytes_in,bytes_out,outcome"
        )?;
        for (number, row) in self.rows().enumerate() {
            let word = |place: usize| row[place].load(Relaxed);
            let state = word(STATE);
            let bits = u128::from(word(ADDRESS)) << 64 | u128::from(word(ADDRESS + 1));
            let mut ip = IpAddr::V6(Ipv6Addr::from(bits));
            if state >> 8 & 1 == 1 {
                ip = ip.to_canonical();
            }
            let peer = SocketAddr::new(ip, (state >> 16) as u16);
            let outcome = OUTCOMES[(state & 0xff) as usize % OUTCOMES.len()].1;
            write!(
                to,
                "{number},{peer},{:.1},",
                word(CONNECTED_AT) as f64 / 1e3
            )?;
            if outcome != "open" {
                write!(to, "{:.1}", word(CLOSED_AT) as f64 / 1e3)?;
            }
            writeln!(
                to,
                ",{},{},{},{outcome}",
                word(ROW_REQUESTS),
                word(ROW_BYTES_IN),
                word(ROW_BYTES_OUT)
            )?;
        }
        Ok(())
    }

    fn row(&self, number: usize) -> &'static [AtomicU64] {
        let start = TOTALS + number * ROW_WORDS;
        &self.words[start..start + ROW_WORDS]
    }

    fn rows(&self) -> impl Iterator<Item = &'static [AtomicU64]> {
        let used = (self.words[ACCEPTED].load(Relaxed) as usize).min(ROWS);
        (0..used).map(|number| self.row(number))
    }

    fn now(&self) -> u64 {
        nanoseconds(self.began.elapsed())
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Counts by name, those that are 0 left out.
fn named<T>(table: &[(T, &str)], count: impl Fn(&T) -> u64) -> BTreeMap<String, u64> {
    table
        .iter()
        .map(|(key, name)| ((*name).to_owned(), count(key)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The line of one client; written through at every request, added up when dropped.
#[derive(Debug)]
pub struct Line {
    totals: &'static [AtomicU64],
    row: Option<&'static [AtomicU64]>,
    began: Instant,
    requests: u64,
    bytes_in: u64,
    bytes_out: u64,
    outcome: Outcome,
}

impl Line {
    /// Bytes came in that completed so many requests.
    pub fn received(&mut self, bytes: usize, requests: u64) {
        self.bytes_in += bytes as u64;
        self.requests += requests;
        if let Some(row) = self.row {
            row[ROW_BYTES_IN].store(self.bytes_in, Relaxed);
            row[ROW_REQUESTS].store(self.requests, Relaxed);
        }
    }

    /// Bytes went out.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
        if let Some(row) = self.row {
            row[ROW_BYTES_OUT].store(self.bytes_out, Relaxed);
        }
    }

    /// How the connection ends; the default is [`Outcome::Cut`].
    pub fn ends(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let add = |place: usize, count: u64| {
            self.totals[place].fetch_add(count, Relaxed);
        };
        add(REQUESTS, self.requests);
        add(BYTES_IN, self.bytes_in);
        add(BYTES_OUT, self.bytes_out);
        add(ENDED + self.outcome as usize, 1);
        self.totals[OPEN].fetch_sub(1, Relaxed);
        if let Some(row) = self.row {
            row[CLOSED_AT].store(nanoseconds(self.began.elapsed()), Relaxed);
            row[STATE].fetch_or(self.outcome as u64, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_open_and_what_ended() {
        let book = Book::open().unwrap();
        let peer = "127.0.0.1:4000".parse().unwrap();
        let mut first = book.enter(peer);
        let mut second = book.enter("[::1]:5000".parse().unwrap());
        first.received(1000, 1);
        first.sent(900);
        second.received(10, 0);
        first.ends(Outcome::ClientClosed);
        drop(first);
        book.refused(Refusal::SetSize);
        let counts = book.counts();
        assert_eq!((counts.accepted, counts.peak_open), (2, 2));
        assert_eq!(
            (counts.requests, counts.bytes_in, counts.bytes_out),
            (1, 1010, 900)
        );
        assert_eq!(counts.refused, BTreeMap::from([("set-size".to_owned(), 1)]));
        assert_eq!(
            counts.outcomes,
            BTreeMap::from([("client-closed".to_owned(), 1), ("open".to_owned(), 1)])
        );
        let mut csv = Vec::new();
        book.write_clients(&mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[1].starts_with("0,127.0.0.1:4000,"), "{csv}");
        assert!(lines[1].ends_with(",1,1000,900,client-closed"), "{csv}");
        assert!(
            lines[2].starts_with("1,[::1]:5000,") && lines[2].ends_with(",open"),
            "{csv}"
        );
    }
}
