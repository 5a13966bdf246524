//! A random sample of a stream of times, and their sum.

use serde::{Deserialize, Serialize};

use crate::ServiceSample;

/// The number and sum of times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub total: u64,
}

impl Sum {
    /// Adds a time.
    pub fn add(&mut self, time: u64) {
        self.merge(Self {
            count: 1,
            total: time,
        });
    }

    /// Merges another one.
    pub fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
    }

    /// Their mean in seconds; `None` without any.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64 / 1e9)
    }
}

/// A uniform random sample of a stream.
///
/// Each value has a random number, and those with the lowest numbers are kept (bottom-k sampling). So samples of
/// several streams merge into one sample of all of them, whatever their lengths, unlike samples of Vitter's algorithm
/// R.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sample {
    /// Numbers and values, ascending by number.
    kept: Vec<(u64, u64)>,
}

impl Sample {
    /// Size of the sample.
    const SIZE: usize = 50;

    /// Offers a value, with the random number that was `drawn` for it.
    #[inline]
    pub fn offer(&mut self, drawn: u64, value: u64) {
        let is_full = self.kept.len() >= Self::SIZE;
        if is_full && self.kept.last().is_some_and(|last| (drawn, value) >= *last) {
            return;
        }
        let place = self.kept.partition_point(|one| *one < (drawn, value));
        self.kept.insert(place, (drawn, value));
        self.kept.truncate(Self::SIZE);
    }

    /// Merges the sample of another stream.
    pub fn merge(&mut self, other: &Self) {
        for &(drawn, value) in &other.kept {
            self.offer(drawn, value);
        }
    }

    /// The figures for the record of a load with this seed; `None` if the sample is empty.
    pub fn figures(&self, seed: u64) -> Option<ServiceSample> {
        let count = self.kept.len();
        let total: f64 = self.kept.iter().map(|&(_, value)| value as f64).sum();
        (count > 0).then(|| ServiceSample {
            count: count as u32,
            mean_us: total / count as f64 / 1e3,
            seed,
        })
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
        let mut random = fastrand::Rng::with_seed(1);
        let mut sample = Sample::default();
        assert_eq!(sample.figures(1), None);
        for value in 1..=50 {
            sample.offer(random.u64(..), value * 1000);
        }
        assert!((mean(&sample) - 25.5).abs() < 1e-9);
        for value in 51..=10_000 {
            sample.offer(random.u64(..), value * 1000);
        }
        assert_eq!(sample.figures(7).unwrap().count, 50);
        assert_eq!(sample.figures(7).unwrap().seed, 7);
        assert!((3000.0..7000.0).contains(&mean(&sample)));
    }

    #[test]
    fn merged_samples_are_of_all_streams_by_their_length() {
        // Three quarters of all values are in the second stream.
        let mut random = fastrand::Rng::with_seed(1);
        let (mut of_second, rounds) = (0, 400);
        for _ in 0..rounds {
            let (mut short, mut long) = (Sample::default(), Sample::default());
            (0..500).for_each(|_| short.offer(random.u64(..), 0));
            (0..1500).for_each(|_| long.offer(random.u64(..), 1));
            short.merge(&long);
            assert_eq!(short.kept.len(), Sample::SIZE);
            of_second += short.kept.iter().map(|&(_, value)| value).sum::<u64>();
        }
        let share = of_second as f64 / f64::from(rounds * Sample::SIZE as u32);
        assert!((share - 0.75).abs() < 0.015, "{share}");
    }
}
