//! What there is to tell of a load in which each client has so many requests to make and then is done.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::outcome::latency;
use super::share::Share;
use super::tally::{ClientTally, ErrorKind};
use super::times::Times;
use crate::record::{Completion, FirstFailure, ServiceSample};

/// What each client was to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Requests of each.
    pub(super) requests: u32,
    /// Clients that might be there at the same time.
    pub(super) at_once: u32,
    /// From which the sample was drawn.
    pub(super) seed: u64,
}

/// What one worker saw of its clients' jobs.
pub(super) struct JobsTally {
    /// From when a client began to connect until it was done, of those that were.
    pub(super) time: Times,
    /// Times that clients thought, as they were drawn.
    pub(super) think: Sum,
    /// Failures of those who connected.
    pub(super) connect_failures: BTreeMap<ErrorKind, u64>,
    /// A few of the service times.
    pub(super) sample: Sample,
}

impl JobsTally {
    pub(super) fn new(seed: u64, worker: usize) -> Self {
        Self {
            time: Times::default(),
            think: Sum::default(),
            connect_failures: BTreeMap::new(),
            sample: Sample::new(seed, worker as u64),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.time.add(&other.time);
        self.think.merge(other.think);
        for (&kind, count) in &other.connect_failures {
            *self.connect_failures.entry(kind).or_default() += count;
        }
        self.sample.merge(&other.sample);
    }
}

/// Of times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    count: u64,
    total: u64,
}

impl Sum {
    pub(super) fn add(&mut self, time: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(time);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
    }

    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64 / 1e9)
    }
}

/// A random sample of a stream, every value of which is as likely to be in it.
///
/// Each value draws a number, and those with the least numbers stay (bottom-k sampling). So the samples
/// of several streams merge into one of all of them, however long each was, which those of Vitter's
/// algorithm R do not.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    kept: BinaryHeap<(u64, u64)>,
    random: fastrand::Rng,
}

impl Sample {
    /// Values that are kept.
    const SIZE: usize = 50;

    pub(super) fn new(seed: u64, stream: u64) -> Self {
        // Streams of neighbouring seeds are alike in their first numbers; the schedules use those.
        let seed = seed ^ (stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            kept: BinaryHeap::with_capacity(Self::SIZE),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    #[inline]
    pub(super) fn offer(&mut self, value: u64) {
        let drawn = self.random.u64(..);
        self.keep((drawn, value));
    }

    fn keep(&mut self, one: (u64, u64)) {
        if self.kept.len() < Self::SIZE {
            self.kept.push(one);
        } else if let Some(mut last) = self.kept.peek_mut()
            && one < *last
        {
            *last = one;
        }
    }

    fn merge(&mut self, other: &Self) {
        for &one in &other.kept {
            self.keep(one);
        }
    }

    /// The values in it, each with the number that was drawn for it.
    pub(super) fn kept(&self) -> Vec<(u64, u64)> {
        self.kept.iter().copied().collect()
    }

    /// Takes in those of a sample of another stream.
    pub(super) fn merge_kept(&mut self, kept: &[(u64, u64)]) {
        for &one in kept {
            self.keep(one);
        }
    }

    pub(super) fn figures(&self, seed: u64) -> Option<ServiceSample> {
        let count = self.kept.len();
        let total: f64 = self.kept.iter().map(|&(_, value)| value as f64).sum();
        (count > 0).then(|| ServiceSample {
            count: count as u32,
            mean_us: total / count as f64 / 1e3,
            seed,
        })
    }
}

/// When the last client ended, done or not, if all of them have.
pub(super) fn last_end(clients: &[(usize, ClientTally)]) -> Option<u64> {
    let ends = clients
        .iter()
        .map(|(_, client)| client.done_at.or(client.failed_at));
    ends.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// The figures of a load whose clients are these, in order.
pub(super) fn completion(
    asked: Asked,
    tally: &JobsTally,
    clients: &[(usize, ClientTally)],
    share: Share,
) -> Completion {
    let seconds = |time: u64| time as f64 / 1e9;
    let of_clients = || clients.iter().map(|(_, client)| client);
    let done = of_clients().filter(|client| client.done_at.is_some());
    let done = done.count() as u32;
    let failures = of_clients()
        .enumerate()
        .filter_map(|(number, client)| Some((Reverse(client.failed_at?), number, client)));
    let failed = failures.clone().count() as u32;
    let first = failures.max_by_key(|&(at, number, _)| (at, Reverse(number)));
    let last_done_s = of_clients()
        .filter_map(|client| client.done_at)
        .max()
        .map(seconds);
    let mut completion = Completion {
        requests_each: asked.requests,
        at_once: asked.at_once,
        clients_done: done,
        failed,
        not_done: clients.len() as u32 - done - failed,
        last_done_s,
        clients_per_s: None,
        think_s_mean: tally.think.mean_s(),
        job_time: latency(&tally.time),
        service_sample: tally.sample.figures(asked.seed),
        connect_failures: tally
            .connect_failures
            .iter()
            .map(|(kind, &count)| (kind.name(), count))
            .collect(),
        first_failure: first.map(|(Reverse(at), number, client)| FirstFailure {
            client: share.among_all(number as u64) as u32,
            at_s: seconds(at),
            kind: client.error.map(ErrorKind::name).unwrap_or_default(),
            connected: client.connected_at.is_some() || client.error == Some(ErrorKind::Reset),
        }),
    };
    completion.set_rate();
    completion
}

impl Completion {
    /// Works out the clients done a second from their number and the time.
    pub(super) fn set_rate(&mut self) {
        let time = self.last_done_s.filter(|time| *time > 0.0);
        self.clients_per_s = time.map(|time| f64::from(self.clients_done) / time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(sample: &Sample) -> f64 {
        sample.figures(1).unwrap().mean_us
    }

    #[test]
    fn a_sample_holds_all_of_few_and_some_of_many() {
        let mut sample = Sample::new(1, 0);
        assert_eq!(sample.figures(1), None);
        for value in 1..=50 {
            sample.offer(value * 1000);
        }
        assert!((mean(&sample) - 25.5).abs() < 1e-9);
        for value in 51..=10_000 {
            sample.offer(value * 1000);
        }
        assert_eq!(sample.figures(7).unwrap().count, 50);
        assert_eq!(sample.figures(7).unwrap().seed, 7);
        assert!((3000.0..7000.0).contains(&mean(&sample)));
    }

    #[test]
    fn merged_samples_are_of_all_streams_by_their_length() {
        // Three quarters of all values are in the second stream.
        let (mut of_second, rounds) = (0, 400);
        for seed in 0..rounds {
            let (mut short, mut long) = (Sample::new(seed, 0), Sample::new(seed, 1));
            (0..500).for_each(|_| short.offer(0));
            (0..1500).for_each(|_| long.offer(1));
            short.merge(&long);
            assert_eq!(short.kept.len(), Sample::SIZE);
            of_second += short.kept.iter().map(|&(_, value)| value).sum::<u64>();
        }
        let share = of_second as f64 / (rounds * Sample::SIZE as u64) as f64;
        assert!((share - 0.75).abs() < 0.015, "{share}");
    }
}
