//! A Poisson process of rate 1: positions on a line, with independent gaps of mean 1.

use fastrand::Rng;

/// A position of the process, in two parts, so that the billionth position is as precise as the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Position {
    pub(super) whole: u64,
    pub(super) fraction: f64,
}

impl Position {
    fn after(self, distance: f64) -> Self {
        let fraction = self.fraction + distance;
        Self {
            whole: self.whole.saturating_add(fraction.trunc() as u64),
            fraction: fraction.fract(),
        }
    }

    fn distance_to(self, other: Self) -> f64 {
        (other.whole - self.whole) as f64 + (other.fraction - self.fraction)
    }
}

/// The process, at one of its positions.
#[derive(Debug, Clone)]
pub(super) struct UnitProcess {
    random: Rng,
    position: Position,
}

impl UnitProcess {
    /// A process at its first position.
    pub(super) fn new(random: Rng) -> Self {
        let mut process = Self {
            random,
            position: Position {
                whole: 0,
                fraction: 0.0,
            },
        };
        process.step();
        process
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Moves to the next position.
    pub(super) fn step(&mut self) {
        self.position = self.position.after(gap(&mut self.random));
    }

    /// Moves to the first position beyond a bound, and counts the steps. All later positions must be beyond it too.
    ///
    /// First takes strides of doubling size, each a single draw from a gamma distribution. Then bisects the last
    /// stride: the middle position between two known ones has a beta distribution.
    pub(super) fn skip_until(&mut self, beyond: impl Fn(Position) -> bool) -> u64 {
        let (mut steps, mut stride) = (0, 1);
        while !beyond(self.position) {
            let next = self.position.after(gamma(stride, &mut self.random));
            if beyond(next) {
                return steps + self.halve(stride, next, beyond);
            }
            self.position = next;
            steps += stride;
            stride *= 2;
        }
        steps
    }

    /// Moves to the first position beyond a bound, given that the position `steps` steps ahead is beyond it.
    fn halve(
        &mut self,
        mut steps: u64,
        mut end: Position,
        beyond: impl Fn(Position) -> bool,
    ) -> u64 {
        let mut taken = 0;
        while steps > 1 {
            let half = steps / 2;
            let one = gamma(half, &mut self.random);
            let share = one / (one + gamma(steps - half, &mut self.random));
            let middle = self
                .position
                .after(self.position.distance_to(end).max(0.0) * share);
            if beyond(middle) {
                end = middle;
                steps = half;
            } else {
                self.position = middle;
                taken += half;
                steps -= half;
            }
        }
        self.position = end;
        taken + 1
    }
}

/// The gap between two positions.
pub(super) fn gap(random: &mut Rng) -> f64 {
    -(-random.f64()).ln_1p()
}

/// The sum of `gaps` gaps (Marsaglia and Tsang, ACM Transactions on Mathematical Software 26, 2000). It rejects one
/// draw in 20 for a single gap, fewer for more gaps.
fn gamma(gaps: u64, random: &mut Rng) -> f64 {
    let d = gaps as f64 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = normal(random);
        let v = (1.0 + c * normal).powi(3);
        // The logarithm of 0 or less is not comparable, so such a draw is rejected.
        if -gap(random) < normal.powi(2) / 2.0 + d * (1.0 - v + v.ln()) {
            return d * v;
        }
    }
}

/// A draw from the standard normal distribution (Box and Muller, 1958).
fn normal(random: &mut Rng) -> f64 {
    let radius = (2.0 * gap(random)).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_variance(values: &[f64]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        (mean, squares.sum::<f64>() / count)
    }

    #[test]
    fn the_sum_of_gaps_has_their_mean_and_variance() {
        let mut random = Rng::with_seed(7);
        for gaps in [1, 2, 10, 1000] {
            let sums: Vec<f64> = (0..20_000).map(|_| gamma(gaps, &mut random)).collect();
            let (mean, variance) = mean_and_variance(&sums);
            // 5 standard errors; the fourth moment of a gamma distribution is 3k² + 6k.
            let k = gaps as f64;
            assert!((mean - k).abs() < 5.0 * (k / 20_000.0).sqrt(), "{mean}");
            let error = ((2.0 * k * k + 6.0 * k) / 20_000.0).sqrt();
            assert!((variance - k).abs() < 5.0 * error, "{gaps}: {variance}");
        }
    }

    /// However many positions are skipped in one step, their number has a Poisson distribution.
    #[test]
    fn as_many_are_skipped_as_come() {
        for length in [3, 40, 5000] {
            let counts: Vec<f64> = (0..20_000)
                .map(|seed| {
                    let mut process = UnitProcess::new(Rng::with_seed(seed));
                    process.skip_until(|place| place.whole >= length) as f64
                })
                .collect();
            let (mean, variance) = mean_and_variance(&counts);
            let length = length as f64;
            let error = 5.0 * (length / 20_000.0).sqrt();
            assert!((mean - length).abs() < error, "{length}: {mean}");
            let dispersion = variance / mean;
            assert!((dispersion - 1.0).abs() < 0.05, "{length}: {dispersion}");
        }
    }

    /// The distance from a bound to the next position is distributed like a gap.
    #[test]
    fn the_place_after_a_skip_is_one_gap_away() {
        let distances: Vec<f64> = (0..20_000)
            .map(|seed| {
                let mut process = UnitProcess::new(Rng::with_seed(seed));
                process.skip_until(|place| place.whole >= 1000);
                let place = process.position();
                (place.whole - 1000) as f64 + place.fraction
            })
            .collect();
        let (mean, variance) = mean_and_variance(&distances);
        assert!((mean - 1.0).abs() < 0.036, "{mean}");
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
    }
}
