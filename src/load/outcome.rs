//! What all clients of a load saw, put together at its end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

use super::jobs::{self, Asked};
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
}

/// What is known of a load beside what its clients saw.
pub(super) struct Circumstances {
    pub(super) window: WindowTimes,
    pub(super) stopped_by: &'static str,
    /// CPU time of the load's process in the window.
    pub(super) cpu_s: Option<f64>,
    /// What each client was to do, where each had a job.
    pub(super) job: Option<Asked>,
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
            slices_by_tenth: if window.has_slices() && clients.len() >= TENTHS {
                sum.served.map(Vec::from).to_vec()
            } else {
                Vec::new()
            },
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
                .map(|(asked, tally)| Box::new(jobs::completion(asked, tally, &clients))),
            ..of_clients(&clients, window, circumstances.job.is_none())
        };
        Self { load, clients }
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
    let mut served = Vec::new();
    let mut load = Load {
        clients: clients.len() as u32,
        ..Load::default()
    };
    for (_, client) in clients {
        load.requests += client.requests;
        load.verified += client.replies;
        load.connections += u64::from(client.connections);
        load.connected += u32::from(client.connected_at.is_some());
        let answered = client
            .first_answer_at
            .filter(|&time| window.ends_after(time));
        if let (Some(from), Some(then)) = (client.started_at, answered) {
            load.served += 1;
            first_answer.record(then.saturating_sub(from));
            served.push(client);
        } else if client.error.is_none() {
            load.never_served += 1;
        }
    }
    load.first_answer = latency(&first_answer);
    let replies: Vec<u64> = served.iter().map(|client| client.window_replies).collect();
    let fairness = stats::fairness::fairness(&replies).filter(|_| compete);
    load.fairness = fairness.map(|fairness| Fairness {
        mean: fairness.mean,
        min: fairness.min,
        max: fairness.max,
        jain: fairness.jain,
        slowest_decile_share: fairness.slowest_decile_share,
        starved: fairness.starved,
        early_bias: early_bias(&served, |client| client.window_replies),
        early_bias_life: early_bias(&served, |client| client.replies),
    });
    load
}

/// Whether clients that were connected earlier had more replies.
fn early_bias(clients: &[&ClientTally], replies: fn(&ClientTally) -> u64) -> Option<Correlation> {
    let pairs: Vec<(f64, f64)> = clients
        .iter()
        .filter_map(|client| Some((-(client.connected_at? as f64), replies(client) as f64)))
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
    let histogram = times.histogram();
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
        histogram: encode(&histogram),
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
        let clients: Vec<ClientTally> = (0..20)
            .map(|number| ClientTally {
                connected_at: Some(if number == 7 { 900 } else { number }),
                window_replies: if number == 7 { 10 } else { 100 - number },
                replies: 50,
                ..ClientTally::default()
            })
            .collect();
        let clients: Vec<&ClientTally> = clients.iter().collect();
        let found = early_bias(&clients, |client| client.window_replies).unwrap();
        assert!((found.coefficient - 1.0).abs() < 1e-9);
        assert!(found.low > Some(0.9) && found.high <= Some(1.0));
        let alike = early_bias(&clients, |client| client.replies);
        assert_eq!(alike, None, "all got the same");
    }
}
