//! The result of a load of which each of several processes had a part, put together.
//!
//! Parts are added one at a time and forgotten, so it takes the same memory for two as for thousands. Counts
//! add, and histograms merge bucket by bucket: every percentile is that of one histogram of all values.
//! Times of different hosts are put on one clock.

mod made_up;

use std::collections::BTreeMap;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

pub use made_up::synthetic;

use super::jobs::{Sample, Sum};
use super::outcome::{early_bias, fairness, figures};
use super::tally::PARTS;
use super::times::TimesByPart;
use crate::record::{Completion, FirstFailure, Latency, Load, OpenLoop, ProbeClients, Window};
use crate::stats::fairness::Counts;

/// What the clients of one part of a load saw, with what is needed to put it together with the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contribution {
    /// The figures of this part by itself.
    pub load: Load,
    /// What these alone do not say.
    pub pieces: Pieces,
}

/// What figures of parts do not say that those of the whole need. Times are on the `CLOCK_MONOTONIC` of the
/// part's host, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pieces {
    /// When the load began.
    pub began_ns: u64,
    /// From when replies counted; none if the load did not come so far.
    pub from_ns: Option<u64>,
    /// Until when.
    pub until_ns: u64,
    /// Whether that time was fixed beforehand.
    pub timed: bool,
    /// Replies in the window to each client that was served, where clients compete for them.
    pub replies: Option<Counts>,
    /// Times that clients thought, where each had a job.
    pub think: Sum,
    /// The sample of service times there: each with the number that was drawn for it.
    pub sample: Vec<(u64, u64)>,
    /// Each client that was served, where that was asked for.
    pub clients: Option<Vec<Served>>,
}

/// A client that was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// When it was connected, since the load began, in nanoseconds.
    pub connected_at: u64,
    /// Replies to it in the window.
    pub window_replies: u64,
    /// And over its life.
    pub replies: u64,
}

/// Times that are added up.
#[derive(Default)]
struct Times(Option<Histogram<u64>>);

impl Times {
    fn add(&mut self, part: Option<&Latency>) -> anyhow::Result<()> {
        let Some(part) = part else {
            return Ok(());
        };
        let times = part.times()?;
        match &mut self.0 {
            Some(sum) => sum
                .add(times)
                .context("histograms of two hosts do not have the same bounds"),
            sum => {
                *sum = Some(times);
                Ok(())
            }
        }
    }

    fn figures(&self) -> Option<Latency> {
        figures(self.0.as_ref()?)
    }
}

/// All times of a load, as far as it has them.
#[derive(Default)]
struct AllTimes {
    service: Times,
    response: Times,
    lateness: Times,
    connect: Times,
    first_answer: Times,
    job: Times,
    probe_response: Times,
    probe_service: Times,
}

/// Parts of a load as they are added up.
#[derive(Default)]
pub struct Whole {
    /// Its counts are sums so far; what follows from all parts is made at the end.
    load: Option<Load>,
    times: AllTimes,
    replies: Option<Counts>,
    think: Sum,
    sample: Option<Sample>,
    /// None once a part has none.
    clients: Option<Vec<(i128, Served)>>,
    /// On the clock of the one that leads.
    began: i128,
    from: Option<i128>,
    until: Option<i128>,
    timed: bool,
    /// Longest window of a part, in seconds.
    longest_s: f64,
    last_done: Option<i128>,
    errors_first: BTreeMap<String, i128>,
    first_failure: Option<(i128, FirstFailure)>,
}

/// What ends a load, what is to be told of before what.
const ENDINGS: [&str; 7] = [
    "interrupted",
    "silence",
    "time-limit",
    "clients",
    "bytes",
    "requests",
    "duration",
];

impl Whole {
    /// Adds a part, whose host's clock shows `offset_ns` more than that of the host that leads; where that
    /// is not known, its load is taken to have begun with the first one.
    ///
    /// # Errors
    /// When a histogram in it cannot be read.
    pub fn add(&mut self, part: Contribution, offset_ns: Option<i64>) -> anyhow::Result<()> {
        let Contribution { load, pieces } = part;
        let began = i128::from(pieces.began_ns);
        let offset = match (offset_ns, &self.load) {
            (Some(offset), _) => i128::from(offset),
            (None, None) => 0,
            (None, Some(_)) => began - self.began,
        };
        let began = began - offset;
        self.add_times(&load)?;
        self.add_moments(&load, &pieces, began, offset);
        self.add_clients(pieces, began);
        match &mut self.load {
            None => self.load = Some(load),
            Some(sum) => add_counts(sum, &load),
        }
        Ok(())
    }

    fn add_times(&mut self, load: &Load) -> anyhow::Result<()> {
        let times = &mut self.times;
        times.service.add(load.service_time.as_ref())?;
        times.lateness.add(load.lateness.as_ref())?;
        times.connect.add(load.connect_time.as_ref())?;
        times.first_answer.add(load.first_answer.as_ref())?;
        if let Some(open) = &load.open_loop {
            times.response.add(open.response_time.as_ref())?;
        }
        if let Some(jobs) = &load.completion {
            times.job.add(jobs.job_time.as_ref())?;
        }
        if let Some(probe) = &load.probe {
            times.probe_response.add(probe.response_time.as_ref())?;
            times.probe_service.add(probe.service_time.as_ref())?;
        }
        Ok(())
    }

    /// What happened when, of a load that `began` on the clock of the host that leads.
    fn add_moments(&mut self, load: &Load, pieces: &Pieces, began: i128, offset: i128) {
        self.began = match &self.load {
            None => began,
            Some(_) => self.began.min(began),
        };
        let since_began = |seconds: f64| began.saturating_add((seconds * 1e9).round() as i128);
        if let Some(from) = pieces.from_ns {
            let (from, until) = (
                i128::from(from) - offset,
                i128::from(pieces.until_ns) - offset,
            );
            self.from = Some(self.from.map_or(from, |first| first.min(from)));
            self.until = Some(self.until.map_or(until, |last| last.max(until)));
        }
        self.timed |= pieces.timed;
        self.longest_s = self.longest_s.max(load.window.duration_s);
        for (kind, &seconds) in &load.errors_first_s {
            let at = since_began(seconds);
            let first = self.errors_first.entry(kind.clone()).or_insert(at);
            *first = at.min(*first);
        }
        if let Some(jobs) = &load.completion {
            self.last_done = self.last_done.max(jobs.last_done_s.map(since_began));
            if let Some(failure) = &jobs.first_failure {
                let at = since_began(failure.at_s);
                let earlier = |(first, other): &(i128, FirstFailure)| {
                    (at, failure.client) < (*first, other.client)
                };
                if self.first_failure.as_ref().is_none_or(earlier) {
                    self.first_failure = Some((at, failure.clone()));
                }
            }
        }
    }

    fn add_clients(&mut self, pieces: Pieces, began: i128) {
        let is_first = self.load.is_none();
        if let Some(replies) = pieces.replies {
            self.replies.get_or_insert_default().merge(&replies);
        }
        self.think.merge(pieces.think);
        if !pieces.sample.is_empty() {
            self.sample
                .get_or_insert_with(|| Sample::new(0, 0))
                .merge_kept(&pieces.sample);
        }
        let clients = pieces.clients.map(|clients| {
            let connected = |client: Served| (began + i128::from(client.connected_at), client);
            clients.into_iter().map(connected).collect::<Vec<_>>()
        });
        match (&mut self.clients, clients) {
            (sum @ None, clients) if is_first => *sum = clients,
            (Some(sum), Some(clients)) => sum.extend(clients),
            (sum, _) => *sum = None,
        }
    }

    /// The figures of all parts together; none where there was none.
    pub fn load(mut self) -> Option<Load> {
        let mut load = self.load.take()?;
        let since_began = |at: i128| at.saturating_sub(self.began) as f64 / 1e9;
        load.window.duration_s = match (self.from, self.until) {
            // All have windows of one length; that they did not begin at once makes none longer.
            _ if self.timed => self.longest_s,
            (Some(from), Some(until)) => (until - from) as f64 / 1e9,
            _ => 0.0,
        };
        let Window {
            duration_s,
            replies,
            ..
        } = load.window;
        load.window.replies_per_s = if duration_s > 0.0 {
            replies as f64 / duration_s
        } else {
            0.0
        };
        let times = &self.times;
        load.service_time = times.service.figures();
        load.lateness = times.lateness.figures();
        load.connect_time = times.connect.figures();
        load.first_answer = times.first_answer.figures();
        if let Some(open) = &mut load.open_loop {
            open.response_time = times.response.figures();
        }
        if let Some(probe) = &mut load.probe {
            probe.response_time = times.probe_response.figures();
            probe.service_time = times.probe_service.figures();
        }
        let firsts = self.errors_first.iter();
        load.errors_first_s = firsts
            .map(|(kind, &at)| (kind.clone(), since_began(at)))
            .collect();
        if let Some(jobs) = &mut load.completion {
            jobs.last_done_s = self.last_done.map(since_began);
            jobs.set_rate();
            jobs.think_s_mean = self.think.mean_s();
            jobs.job_time = times.job.figures();
            let seed = jobs.service_sample.map_or(0, |sample| sample.seed);
            jobs.service_sample = self.sample.as_ref().and_then(|s| s.figures(seed));
            jobs.first_failure = self.first_failure.take().map(|(at, failure)| FirstFailure {
                at_s: since_began(at),
                ..failure
            });
        }
        load.fairness = self.replies.as_ref().and_then(fairness);
        if let Some(fairness) = &mut load.fairness {
            if let Some(clients) = &self.clients {
                let began = self.began;
                let connected = |at: i128| (at - began) as f64;
                let of = |replies: fn(&Served) -> u64| {
                    early_bias(
                        clients
                            .iter()
                            .map(|(at, one)| (connected(*at), replies(one))),
                    )
                };
                fairness.early_bias = of(|client| client.window_replies);
                fairness.early_bias_life = of(|client| client.replies);
            } else {
                fairness.bias_absent = Some(format!(
                    "{} clients on several hosts are too many to bring together in the order in which \
                     they were connected",
                    load.clients
                ));
            }
        }
        Some(load)
    }
}

/// Adds what is counted, and nothing else; what a host says may be anything.
fn add_counts(sum: &mut Load, part: &Load) {
    sum.clients = sum.clients.saturating_add(part.clients);
    sum.connected = sum.connected.saturating_add(part.connected);
    sum.served = sum.served.saturating_add(part.served);
    sum.never_served = sum.never_served.saturating_add(part.never_served);
    sum.connections = sum.connections.saturating_add(part.connections);
    sum.requests = sum.requests.saturating_add(part.requests);
    sum.verified = sum.verified.saturating_add(part.verified);
    add_each(&mut sum.declined, &part.declined);
    add_window(&mut sum.window, &part.window);
    add_each(&mut sum.errors, &part.errors);
    sum.open_loop = both(
        sum.open_loop.take(),
        part.open_loop.as_ref(),
        |sum, part| {
            *sum = OpenLoop {
                due: sum.due.saturating_add(part.due),
                waited: sum.waited.saturating_add(part.waited),
                never_sent: sum.never_sent.saturating_add(part.never_sent),
                unanswered: sum.unanswered.saturating_add(part.unanswered),
                lost: sum.lost.saturating_add(part.lost),
                response_time: None,
            }
        },
    );
    sum.completion = both(
        sum.completion.take(),
        part.completion.as_ref(),
        |sum, part| {
            add_jobs(sum, part);
        },
    );
    sum.probe = both(sum.probe.take(), part.probe.as_ref(), add_probe);
    sum.cpu_s = sum.cpu_s.zip(part.cpu_s).map(|(sum, part)| sum + part);
    let rank = |ending: &str| ENDINGS.iter().position(|known| *known == ending);
    // Where some hosts have no client left, how the others ended says more.
    let rank = |ending: &str| rank(ending).unwrap_or(ENDINGS.len());
    if rank(&part.stopped_by) < rank(&sum.stopped_by) {
        sum.stopped_by.clone_from(&part.stopped_by);
    }
    sum.threads = sum.threads.saturating_add(part.threads);
}

fn both<T: Clone>(sum: Option<T>, part: Option<&T>, add: impl Fn(&mut T, &T)) -> Option<T> {
    match (sum, part) {
        (Some(mut sum), Some(part)) => {
            add(&mut sum, part);
            Some(sum)
        }
        (sum, part) => sum.or_else(|| part.cloned()),
    }
}

fn add_each(sum: &mut BTreeMap<String, u64>, part: &BTreeMap<String, u64>) {
    for (name, count) in part {
        let sum = sum.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

fn add_window(sum: &mut Window, part: &Window) {
    sum.replies = sum.replies.saturating_add(part.replies);
    sum.bytes_sent = sum.bytes_sent.saturating_add(part.bytes_sent);
    sum.bytes_received = sum.bytes_received.saturating_add(part.bytes_received);
    add_slices(&mut sum.slices, &part.slices);
    let tenths = part.slices_by_tenth.len().max(sum.slices_by_tenth.len());
    sum.slices_by_tenth.resize(tenths, Vec::new());
    for (sum, part) in sum.slices_by_tenth.iter_mut().zip(&part.slices_by_tenth) {
        add_slices(sum, part);
    }
    match (&mut sum.times, &part.times) {
        (Some(sum), Some(part)) => {
            // Each has the ranges of its own times.
            let mut times = TimesByPart::<PARTS>::of(sum);
            times.add(&TimesByPart::of(part));
            *sum = times.recorded().unwrap_or_default();
        }
        (sum, part) => *sum = sum.take().or_else(|| part.clone()),
    }
}

/// A host whose clients had all gone before the window has no slices.
fn add_slices(sum: &mut Vec<u64>, part: &[u64]) {
    sum.resize(sum.len().max(part.len()), 0);
    for (sum, part) in sum.iter_mut().zip(part) {
        *sum = sum.saturating_add(*part);
    }
}

fn add_jobs(sum: &mut Completion, part: &Completion) {
    sum.at_once = sum.at_once.saturating_add(part.at_once);
    sum.clients_done = sum.clients_done.saturating_add(part.clients_done);
    sum.failed = sum.failed.saturating_add(part.failed);
    sum.not_done = sum.not_done.saturating_add(part.not_done);
    sum.service_sample = sum.service_sample.or(part.service_sample);
    add_each(&mut sum.connect_failures, &part.connect_failures);
}

fn add_probe(sum: &mut ProbeClients, part: &ProbeClients) {
    sum.clients = sum.clients.saturating_add(part.clients);
    sum.due = sum.due.saturating_add(part.due);
    add_each(&mut sum.errors, &part.errors);
}

#[cfg(test)]
mod tests;
