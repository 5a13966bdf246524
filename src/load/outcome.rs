//! What all clients of a load saw, put together at its end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

use super::jobs::{self, Asked};
use super::merge::{Contribution, Pieces, Served};
use super::share::Share;
use super::shared::WindowTimes;
use super::tally::{ClientTally, ErrorKind, TENTHS, WorkerTally};
use super::times::Times;
use crate::record::{Correlation, Fairness, Latency, Load, OpenLoop, ProbeClients, Window};
use crate::stats;

/// What all clients saw.
#[derive(Debug)]
pub struct Outcome {
    /// The figures.
    pub load: Load,
    clients: Vec<(usize, ClientTally)>,
    pieces: Pieces,
    share: Share,
}

/// What is known of a load beside what its clients saw.
pub(super) struct Circumstances {
    pub(super) window: WindowTimes,
    pub(super) stopped_by: &'static str,
    /// CPU time of the load's process in the window.
    pub(super) cpu_s: Option<f64>,
    /// What each client was to do, where each had a job.
    pub(super) job: Option<Asked>,
    /// Clients of all parts.
    pub(super) clients: u32,
    /// Which part this is.
    pub(super) share: Share,
    /// Whether to tell of each client what putting parts together needs.
    pub(super) gathers_clients: bool,
}

impl Outcome {
    /// Workers' tallies in the order of their numbers.
    pub(super) fn merge(tallies: Vec<WorkerTally>, circumstances: &Circumstances) -> Self {
        let (sum, clients) = add_up(tallies);
        let window = &circumstances.window;
        // The leader noticed a little later than the last client ended.
        let window = &match circumstances.job.and_then(|_| jobs::last_end(&clients)) {
            Some(end) if window.ends_after(end) => window.ending_at(end + 1),
            _ => *window,
        };
        let duration_s = window.duration_ns() as f64 / 1e9;
        let replies: u64 = clients
            .iter()
            .map(|(_, client)| client.window_replies)
            .sum();
        let figures = Window {
            duration_s,
            replies,
            replies_per_s: if duration_s > 0.0 {
                replies as f64 / duration_s
            } else {
                0.0
            },
            bytes_sent: sum.window_bytes_sent,
            bytes_received: sum.window_bytes_received,
            slices: if window.has_slices() {
                sum.slices().to_vec()
            } else {
                Vec::new()
            },
            slices_by_tenth: if window.has_slices() && circumstances.clients as usize >= TENTHS {
                sum.served.map(Vec::from).to_vec()
            } else {
                Vec::new()
            },
            times: window.has_slices().then(|| sum.times.recorded()).flatten(),
        };
        let (errors, errors_first_s) = errors(&sum);
        let load = Load {
            window: figures,
            stopped_by: circumstances.stopped_by.to_owned(),
            cpu_s: circumstances.cpu_s,
            declined: sum
                .declined
                .iter()
                .map(|(why, &count)| (why.to_string(), count))
                .collect(),
            service_time: latency(&sum.service_time),
            connect_time: latency(&sum.connect_time),
            open_loop: sum.open.as_ref().map(|open| OpenLoop {
                due: open.response_time.len() + open.lost,
                waited: open.waited,
                never_sent: open.never_sent,
                unanswered: open.unanswered,
                lost: open.lost,
                response_time: latency(&open.response_time),
            }),
            lateness: sum.lateness.as_ref().and_then(latency),
            errors,
            errors_first_s,
            completion: circumstances
                .job
                .zip(sum.jobs.as_deref())
                .map(|(asked, tally)| {
                    let share = circumstances.share;
                    Box::new(jobs::completion(asked, tally, &clients, share))
                }),
            ..of_clients(&clients, window, circumstances.job.is_none())
        };
        let pieces = pieces(&sum, &clients, window, circumstances);
        Self {
            load,
            clients,
            pieces,
            share: circumstances.share,
        }
    }

    /// What it is as one part of several.
    pub fn into_contribution(self) -> Contribution {
        Contribution {
            load: self.load,
            pieces: self.pieces,
        }
    }

    /// Adds what probe clients saw.
    pub(super) fn add_probes(&mut self, tally: &WorkerTally, rate_per_s: f64) {
        let (errors, _) = errors(tally);
        let Some(open) = &tally.open else { return };
        self.load.probe = Some(ProbeClients {
            clients: tally.clients.len() as u32,
            rate_per_s,
            due: open.response_time.len() + open.lost,
            response_time: latency(&open.response_time),
            service_time: latency(&tally.service_time),
            errors,
        });
    }

    /// Writes a line a client, in order of their numbers, which is the order of connecting. Only who has a job
    /// is ever done.
    ///
    /// # Errors
    /// As `to` gives them.
    pub fn write_clients(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(
            to,
            "client,worker,source,connected_at_us,connect_us,first_answer_us,done_at_us,connections,\
             requests,replies,window_replies,bytes_sent,bytes_received,errors,error"
        )?;
        let since = |from: Option<u64>, then: Option<u64>| match (from, then) {
            (Some(from), Some(then)) => format!("{:.1}", then.saturating_sub(from) as f64 / 1e3),
            _ => String::new(),
        };
        for (number, (worker, client)) in self.clients.iter().enumerate() {
            let number = self.share.among_all(number as u64);
            writeln!(
                to,
                "{number},{worker},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                client
                    .source
                    .map(|source| source.to_string())
                    .unwrap_or_default(),
                since(Some(0), client.connected_at),
                since(client.started_at, client.connected_at),
                since(client.started_at, client.first_answer_at),
                since(Some(0), client.done_at),
                client.connections,
                client.requests,
                client.replies,
                client.window_replies,
                client.bytes_sent,
                client.bytes_received,
                client.errors,
                client.error.map(ErrorKind::name).unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}

/// The sum over workers, and the clients in order, each with its worker's number.
fn add_up(tallies: Vec<WorkerTally>) -> (WorkerTally, Vec<(usize, ClientTally)>) {
    let workers = tallies.len();
    let total: usize = tallies.iter().map(|tally| tally.clients.len()).sum();
    let mut clients = vec![(0, ClientTally::default()); total];
    let mut sum: Option<WorkerTally> = None;
    for (number, mut tally) in tallies.into_iter().enumerate() {
        for (place, client) in std::mem::take(&mut tally.clients).into_iter().enumerate() {
            clients[place * workers + number] = (number, client);
        }
        match &mut sum {
            Some(sum) => sum.add(&tally),
            None => sum = Some(tally),
        }
    }
    let sum = sum.unwrap_or_else(|| WorkerTally::new(false, false));
    (sum, clients)
}

fn errors(tally: &WorkerTally) -> (BTreeMap<String, u64>, BTreeMap<String, f64>) {
    let named = |(kind, errors): (&ErrorKind, &super::tally::Errors)| {
        let name = kind.name();
        (
            (name.clone(), errors.count),
            (name, errors.began as f64 / 1e9),
        )
    };
    tally.errors.iter().map(named).unzip()
}

/// The figures that are sums over clients. Where they do not `compete` for a server's time but have a
/// job each, that they get the same is no merit of its.
fn of_clients(clients: &[(usize, ClientTally)], window: &WindowTimes, compete: bool) -> Load {
    let mut first_answer = Times::default();
    let mut load = Load {
        clients: clients.len() as u32,
        ..Load::default()
    };
    for (_, client) in clients {
        load.requests += client.requests;
        load.verified += client.replies;
        load.connections += u64::from(client.connections);
        load.connected += u32::from(client.connected_at.is_some());
        if let Some(took) = client.first_answer_within(window) {
            load.served += 1;
            first_answer.record(took);
        } else if client.error.is_none() {
            load.never_served += 1;
        }
    }
    load.first_answer = latency(&first_answer);
    if compete {
        let served: Vec<Served> = served(clients, window).collect();
        let replies: Vec<u64> = served.iter().map(|client| client.window_replies).collect();
        let bias = |replies: fn(&Served) -> u64| {
            let clients = served.iter();
            early_bias(clients.map(|client| (client.connected_at as f64, replies(client))))
        };
        load.fairness = stats::fairness::fairness(&replies).map(|fairness| Fairness {
            early_bias: bias(|client| client.window_replies),
            early_bias_life: bias(|client| client.replies),
            ..recorded(fairness)
        });
    }
    load
}

/// The clients that were served.
fn served(clients: &[(usize, ClientTally)], window: &WindowTimes) -> impl Iterator<Item = Served> {
    let answered = clients
        .iter()
        .filter(|(_, client)| client.first_answer_within(window).is_some());
    answered.map(|(_, client)| Served {
        connected_at: client.connected_at.unwrap_or_default(),
        window_replies: client.window_replies,
        replies: client.replies,
    })
}

impl ClientTally {
    /// How long its first answer took, from when it began to connect, if it came before the window ended.
    fn first_answer_within(&self, window: &WindowTimes) -> Option<u64> {
        let then = self.first_answer_at?;
        let took = then.saturating_sub(self.started_at?);
        window.ends_after(then).then_some(took)
    }
}

/// Evenness in the form of the record, without what the order of connecting says.
fn recorded(fairness: stats::Fairness) -> Fairness {
    Fairness {
        mean: fairness.mean,
        min: fairness.min,
        max: fairness.max,
        jain: fairness.jain,
        slowest_decile_share: fairness.slowest_decile_share,
        starved: fairness.starved,
        early_bias: None,
        early_bias_life: None,
        bias_absent: None,
    }
}

/// The same of clients that were counted in several processes.
pub(super) fn fairness(counts: &stats::fairness::Counts) -> Option<Fairness> {
    counts.fairness().map(recorded)
}

/// What the figures do not say that putting parts together needs.
fn pieces(
    sum: &WorkerTally,
    clients: &[(usize, ClientTally)],
    window: &WindowTimes,
    circumstances: &Circumstances,
) -> Pieces {
    let jobs = sum.jobs.as_deref();
    Pieces {
        began_ns: window.began,
        from_ns: (window.from < u64::MAX).then_some(window.from),
        until_ns: window.until,
        timed: window.is_timed(),
        replies: circumstances.job.is_none().then(|| {
            let mut counts = stats::fairness::Counts::default();
            served(clients, window).for_each(|client| counts.add(client.window_replies));
            counts
        }),
        think: jobs.map(|jobs| jobs.think).unwrap_or_default(),
        sample: jobs.map(|jobs| jobs.sample.kept()).unwrap_or_default(),
        clients: circumstances
            .gathers_clients
            .then(|| served(clients, window).collect()),
    }
}

/// Whether clients that were connected earlier had more replies: each with the time when it was and its
/// replies.
pub(super) fn early_bias(clients: impl Iterator<Item = (f64, u64)>) -> Option<Correlation> {
    let pairs: Vec<(f64, f64)> = clients
        .map(|(connected_at, replies)| (-connected_at, replies as f64))
        .collect();
    let found = stats::rank_correlation(&pairs)?;
    Some(Correlation {
        coefficient: found.coefficient,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
    })
}

/// The figures of a histogram; none when it is empty. A percentile needs so many values that some
/// lie beyond it.
pub(super) fn latency(times: &Times) -> Option<Latency> {
    figures(&times.histogram())
}

/// The same of one that is there already.
pub(super) fn figures(histogram: &Histogram<u64>) -> Option<Latency> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_clients_that_get_more_show_as_a_positive_bias() {
        // Client 7 was the last to be connected, whatever its number.
        let clients = (0..20_u64).map(|number| match number {
            7 => (900.0, 10),
            _ => (number as f64, 100 - number),
        });
        let found = early_bias(clients.clone()).unwrap();
        assert!((found.coefficient - 1.0).abs() < 1e-9);
        assert!(found.low > Some(0.9) && found.high <= Some(1.0));
        let alike = early_bias(clients.map(|(connected_at, _)| (connected_at, 50)));
        assert_eq!(alike, None, "all got the same");
    }
}
