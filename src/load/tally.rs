//! What the clients of a load saw: per worker while it runs, put together at its end.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use rustix::io::Errno;

use crate::protocol::Decline;
use crate::record::{Fairness, Latency, Load, Window};
use crate::stats;

/// Equal parts of the steady part whose replies are counted apart.
pub(super) const SLICES: usize = 20;

/// Longest time a histogram tells apart, an hour; longer ones count as that.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram of times in nanoseconds, 3 significant digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid")
}

/// Why a client ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// No reply until the end, though earlier ones came.
    Unanswered,
    /// Anything else.
    Other(Errno),
}

impl ErrorKind {
    pub(super) fn of(errno: Errno) -> Self {
        match errno {
            Errno::CONNREFUSED => Self::Refused,
            Errno::TIMEDOUT => Self::ConnectTimeout,
            Errno::NETUNREACH | Errno::HOSTUNREACH => Self::Unreachable,
            Errno::ADDRNOTAVAIL => Self::NoPort,
            Errno::MFILE | Errno::NFILE => Self::NoDescriptor,
            Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Self::Reset,
            other => Self::Other(other),
        }
    }

    fn name(self) -> String {
        let name = match self {
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::Unreachable => "unreachable",
            Self::NoPort => "no-port",
            Self::NoDescriptor => "no-descriptor",
            Self::Reset => "reset",
            Self::ClosedEarly => "closed-early",
            Self::WrongReply => "wrong-reply",
            Self::Unanswered => "unanswered",
            Self::Other(errno) => return format!("errno-{}", errno.raw_os_error()),
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
    pub(super) requests: u64,
    pub(super) replies: u64,
    pub(super) window_replies: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) error: Option<ErrorKind>,
}

/// What one worker saw.
pub(super) struct WorkerTally {
    pub(super) service_time: Histogram<u64>,
    pub(super) slices: [u64; SLICES],
    pub(super) window_bytes_sent: u64,
    pub(super) window_bytes_received: u64,
    /// Replies in which the server declined, over the life of the load.
    pub(super) declined: BTreeMap<Decline, u64>,
    /// Every `threads`th client, beginning with the worker's number.
    pub(super) clients: Vec<ClientTally>,
}

/// What all of them saw.
#[derive(Debug)]
pub struct Outcome {
    /// The figures.
    pub load: Load,
    clients: Vec<(usize, ClientTally)>,
}

impl Outcome {
    pub(super) fn merge(
        tallies: Vec<WorkerTally>,
        window: &super::shared::WindowTimes,
        stopped_by: &str,
        threads: usize,
    ) -> Self {
        let mut service_time = histogram();
        let mut slices = vec![0; SLICES];
        let (mut bytes_sent, mut bytes_received) = (0, 0);
        let mut declined = BTreeMap::new();
        let total: usize = tallies.iter().map(|tally| tally.clients.len()).sum();
        let mut clients = vec![(0, ClientTally::default()); total];
        for (number, tally) in tallies.into_iter().enumerate() {
            service_time
                .add(&tally.service_time)
                .expect("all histograms have the same bounds");
            for (sum, part) in slices.iter_mut().zip(tally.slices) {
                *sum += part;
            }
            bytes_sent += tally.window_bytes_sent;
            bytes_received += tally.window_bytes_received;
            for (why, count) in tally.declined {
                *declined.entry(why.to_string()).or_insert(0) += count;
            }
            for (place, client) in tally.clients.into_iter().enumerate() {
                clients[place * threads + number] = (number, client);
            }
        }
        let duration_s = window.duration_ns() as f64 / 1e9;
        let replies: u64 = clients
            .iter()
            .map(|(_, client)| client.window_replies)
            .sum();
        let window_figures = Window {
            duration_s,
            replies,
            replies_per_s: if duration_s > 0.0 {
                replies as f64 / duration_s
            } else {
                0.0
            },
            bytes_sent,
            bytes_received,
            slices: if window.has_slices() {
                slices
            } else {
                Vec::new()
            },
        };
        let load = Load {
            window: window_figures,
            stopped_by: stopped_by.to_owned(),
            threads: threads as u32,
            declined,
            service_time: latency(&service_time),
            ..add_up(&clients, window)
        };
        Self { load, clients }
    }

    /// Writes a line a client, in order of their numbers, which is the order of connecting.
    ///
    /// # Errors
    /// As `to` gives them.
    pub fn write_clients(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(
            to,
            "client,worker,source,connected_at_us,connect_us,first_answer_us,requests,replies,\
             window_replies,bytes_sent,bytes_received,error"
        )?;
        let since = |from: Option<u64>, then: Option<u64>| match (from, then) {
            (Some(from), Some(then)) => format!("{:.1}", then.saturating_sub(from) as f64 / 1e3),
            _ => String::new(),
        };
        for (number, (worker, client)) in self.clients.iter().enumerate() {
            writeln!(
                to,
                "{number},{worker},{},{},{},{},{},{},{},{},{},{}",
                client
                    .source
                    .map(|source| source.to_string())
                    .unwrap_or_default(),
                since(Some(0), client.connected_at),
                since(client.started_at, client.connected_at),
                since(client.started_at, client.first_answer_at),
                client.requests,
                client.replies,
                client.window_replies,
                client.bytes_sent,
                client.bytes_received,
                client.error.map(ErrorKind::name).unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}

/// The figures that are sums over clients.
fn add_up(clients: &[(usize, ClientTally)], window: &super::shared::WindowTimes) -> Load {
    let mut connect_time = histogram();
    let mut first_answer = histogram();
    let mut errors = BTreeMap::new();
    let mut served = Vec::new();
    let mut load = Load {
        clients: clients.len() as u32,
        ..Load::default()
    };
    for (_, client) in clients {
        load.requests += client.requests;
        load.verified += client.replies;
        if let (Some(from), Some(then)) = (client.started_at, client.connected_at) {
            load.connected += 1;
            connect_time.saturating_record(then - from);
        }
        let answered = client
            .first_answer_at
            .filter(|&time| window.ends_after(time));
        if let (Some(from), Some(then)) = (client.started_at, answered) {
            load.served += 1;
            first_answer.saturating_record(then - from);
            served.push(client.window_replies);
        } else if client.error.is_none() {
            load.never_served += 1;
        }
        if let Some(error) = client.error {
            *errors.entry(error.name()).or_insert(0) += 1;
        }
    }
    load.errors = errors;
    load.connect_time = latency(&connect_time);
    load.first_answer = latency(&first_answer);
    load.fairness = stats::fairness::fairness(&served).map(|fairness| Fairness {
        mean: fairness.mean,
        min: fairness.min,
        max: fairness.max,
        jain: fairness.jain,
        slowest_decile_share: fairness.slowest_decile_share,
        starved: fairness.starved,
    });
    load
}

/// The figures of a histogram; none when it is empty. A percentile needs so many values that some
/// lie beyond it.
fn latency(histogram: &Histogram<u64>) -> Option<Latency> {
    let count = histogram.len();
    if count == 0 {
        return None;
    }
    let at = |percentile: f64| histogram.value_at_percentile(percentile) as f64 / 1e3;
    let from = |needed: u64, percentile: f64| (count >= needed).then(|| at(percentile));
    Some(Latency {
        count,
        min_us: histogram.min() as f64 / 1e3,
        mean_us: histogram.mean() / 1e3,
        p50_us: at(50.0),
        p90_us: at(90.0),
        p99_us: from(100, 99.0),
        p999_us: from(10_000, 99.9),
        p9999_us: from(1_000_000, 99.99),
        max_us: histogram.max() as f64 / 1e3,
        histogram: encode(histogram),
    })
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory does not fail");
    base64::engine::general_purpose::STANDARD.encode(&bytes)
}
