//! When requests are due in an open loop, and how long clients of a closed loop think. Pure functions of a seed,
//! without a clock.
//!
//! The schedule of a load is divided among its workers. Each computes its part alone, and all parts together make up
//! the whole. Times are computed from the number of a request and never summed, so nothing drifts: they are exact to
//! the nanosecond at a constant rate, and within a nanosecond on a ramp.
//!
//! Request number `k` of a rate λ(t) is due when ∫λ reaches `k`. Random arrivals are a Poisson process of rate 1 whose
//! time is stretched in the same way, which is exact for any λ (Çinlar, Introduction to Stochastic Processes, 1975,
//! section 4.7).

mod pace;
mod unit_process;

use std::time::Duration;

use pace::Pace;
use unit_process::{Position, UnitProcess};

pub use throng_spec::{LONG_BY_CHANCE, Spacing, Think};

/// How requests are due in an open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Requests per second, over all clients, when the schedule begins.
    pub from_per_s: f64,
    /// Requests per second at the end of the ramp; the same for a constant rate. A rate may also fall.
    pub to_per_s: f64,
    /// Duration of the ramp, which is linear. Afterwards the rate is constant.
    pub rise: Duration,
    /// Inter-arrival distribution.
    pub spacing: Spacing,
}

/// One think time, in nanoseconds.
pub(super) fn time_to_think(think: Think, random: &mut fastrand::Rng) -> u64 {
    match think {
        Think::None => 0,
        Think::Fixed(time) => nanoseconds(time),
        Think::Uniform(shortest, longest) => {
            let shortest_ns = nanoseconds(shortest);
            random.u64(shortest_ns..=nanoseconds(longest).max(shortest_ns))
        }
        Think::Exponential(mean) => {
            (unit_process::gap(random) * nanoseconds(mean) as f64).round() as u64
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The due times of one worker's requests, in nanoseconds since the schedule began, in ascending order. `u64::MAX`
/// means never.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pace: Pace,
    order: HostAssignment,
    workers: u64,
    next: u64,
}

/// The next request.
#[derive(Debug, Clone)]
enum HostAssignment {
    /// Its number. Its burst begins at a multiple of the burst size.
    Counted { number: u64, burst: u64 },
    /// A random position, in units of the mean distance between this worker's requests.
    Random(UnitProcess),
}

impl Schedule {
    /// The part of worker number `worker` of `workers`: every `workers`th request. For a random schedule, it is a
    /// Poisson process of its own, since the sum of such processes is a Poisson process too.
    pub(super) fn new(rate: &Rate, worker: usize, workers: usize, seed: u64) -> Self {
        let burst = match rate.spacing {
            Spacing::Burst(size) => u64::from(size.max(1)),
            Spacing::Constant | Spacing::Poisson => 1,
        };
        let order = if rate.spacing == Spacing::Poisson {
            HostAssignment::Random(UnitProcess::new(stream(seed, worker)))
        } else {
            let number = worker as u64;
            HostAssignment::Counted { number, burst }
        };
        let mut schedule = Self {
            pace: Pace::new(rate),
            order,
            workers: workers.max(1) as u64,
            next: 0,
        };
        schedule.next = schedule.due();
        schedule
    }

    /// The next due time, without taking it.
    pub(super) fn peek(&self) -> u64 {
        self.next
    }

    /// Takes the next due time.
    pub(super) fn take(&mut self) -> u64 {
        let taken = self.next;
        match &mut self.order {
            HostAssignment::Counted { number, .. } => *number = number.saturating_add(self.workers),
            HostAssignment::Random(process) => process.step(),
        }
        self.next = self.due().max(taken);
        taken
    }

    /// Counts and takes all requests due before `time`, for requests that were never sent. The cost is logarithmic in
    /// their number. After that, a random schedule continues with other values than if requests were taken one by one,
    /// but with the same distribution.
    pub(super) fn skip_until(&mut self, time: u64) -> u64 {
        if self.next >= time {
            return 0;
        }
        let (pace, workers) = (&self.pace, self.workers);
        let skipped = match &mut self.order {
            HostAssignment::Counted { number, burst } => {
                let first = *number;
                let nth = |count: u64| first.saturating_add(count.saturating_mul(workers));
                let count = first_that(|count| pace.due(burst_start(nth(count), *burst)) >= time);
                *number = nth(count);
                count
            }
            HostAssignment::Random(process) => {
                process.skip_until(|place| pace.due_at(number_among_all(place, workers)) >= time)
            }
        };
        self.next = self.due().max(self.next);
        skipped
    }

    fn due(&self) -> u64 {
        match &self.order {
            HostAssignment::Counted { number, burst } => {
                self.pace.due(burst_start(*number, *burst))
            }
            HostAssignment::Random(process) => {
                let place = number_among_all(process.position(), self.workers);
                self.pace.due_at(place)
            }
        }
    }
}

/// The random number generator of one worker.
fn stream(seed: u64, worker: usize) -> fastrand::Rng {
    let mut seeds = fastrand::Rng::with_seed(seed);
    for _ in 0..worker {
        seeds.u64(..);
    }
    seeds.fork()
}

/// All requests of a burst are due with its first.
fn burst_start(number: u64, burst: u64) -> u64 {
    number - number % burst
}

/// The number of a worker's request among the requests of all workers.
fn number_among_all(place: Position, workers: u64) -> f64 {
    place.whole as f64 * workers as f64 + place.fraction * workers as f64
}

/// The smallest number that is enough, if all larger ones are enough too.
fn first_that(enough: impl Fn(u64) -> bool) -> u64 {
    let mut over = 1;
    while !enough(over) && over < u64::MAX {
        over = over.saturating_mul(2);
    }
    let mut low = 0;
    while low < over {
        let middle = low + (over - low) / 2;
        if enough(middle) {
            over = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixture::rate;
    use super::*;

    const MILLISECOND: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MILLISECOND;

    fn taken(schedule: &mut Schedule, count: usize) -> Vec<u64> {
        (0..count).map(|_| schedule.take()).collect()
    }

    /// The first due times of all workers together.
    fn together(rate: &Rate, workers: usize, each: usize) -> Vec<u64> {
        let mut all: Vec<u64> = (0..workers)
            .flat_map(|worker| taken(&mut Schedule::new(rate, worker, workers, 1), each))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn workers_take_turns() {
        let rate = rate(1000.0, Spacing::Constant);
        for (worker, first, second) in [(0, 0, 3), (1, 1, 4), (2, 2, 5)] {
            let mut schedule = Schedule::new(&rate, worker, 3, 1);
            assert_eq!(schedule.peek(), first * MILLISECOND);
            assert_eq!(schedule.take(), first * MILLISECOND);
            assert_eq!(schedule.take(), second * MILLISECOND);
        }
    }

    #[test]
    fn a_burst_comes_at_once_and_keeps_the_rate() {
        let rate = rate(1000.0, Spacing::Burst(3));
        let due = taken(&mut Schedule::new(&rate, 0, 1, 1), 9);
        let expected = [0, 0, 0, 3, 3, 3, 6, 6, 6].map(|time| time * MILLISECOND);
        assert_eq!(due, expected);
        // The requests of a burst are divided, too.
        let due = taken(&mut Schedule::new(&rate, 1, 2, 1), 4);
        assert_eq!(due, [0, 3, 3, 6].map(|time| time * MILLISECOND));
    }

    #[test]
    fn skipped_requests_are_counted() {
        let rate = rate(1000.0, Spacing::Constant);
        let mut schedule = Schedule::new(&rate, 1, 2, 1);
        assert_eq!(schedule.skip_until(MILLISECOND), 0, "none is due before");
        assert_eq!(schedule.skip_until(MILLISECOND + 1), 1);
        assert_eq!(schedule.peek(), 3 * MILLISECOND);
        // A year of requests, in one step.
        let year = 365 * 86_400 * SECOND;
        assert_eq!(schedule.skip_until(year), 365 * 86_400 * 500 - 1);
        assert_eq!(schedule.peek(), year + MILLISECOND);
    }

    #[test]
    fn a_rate_that_has_fallen_to_nothing_stays_there() {
        let rate = Rate {
            to_per_s: 0.0,
            rise: Duration::from_secs(1),
            ..rate(10.0, Spacing::Constant)
        };
        let mut schedule = Schedule::new(&rate, 0, 1, 1);
        assert_eq!(schedule.skip_until(u64::MAX), 5);
        assert_eq!(schedule.take(), u64::MAX);
        assert_eq!(schedule.take(), u64::MAX);
    }

    /// The Kolmogorov-Smirnov distance between 30,000 random values and the exponential distribution with a mean of 1
    /// must be below its 99.9th percentile.
    fn are_exponential(mut values: Vec<f64>) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let dispersion = squares / count / mean.powi(2);
        assert!((mean - 1.0).abs() < 5.0 / count.sqrt(), "{mean}");
        assert!(
            (dispersion - 1.0).abs() < 5.0 * (8.0 / count).sqrt(),
            "{dispersion}"
        );
        values.sort_by(f64::total_cmp);
        let distance = (0..)
            .zip(&values)
            .map(|(index, value)| {
                let expected = -(-value).exp_m1();
                let (below, above) = (f64::from(index) / count, f64::from(index + 1) / count);
                (expected - below).max(above - expected)
            })
            .fold(0.0, f64::max);
        assert!(distance * count.sqrt() < 1.95, "{distance}");
    }

    #[test]
    fn gaps_of_all_workers_together_are_exponential() {
        let rate = rate(5000.0, Spacing::Poisson);
        let due = together(&rate, 3, 11_000);
        // Near the end, some workers have no more requests.
        let gaps = due[..=30_000].windows(2);
        are_exponential(
            gaps.map(|pair| (pair[1] - pair[0]) as f64 * 5000.0 / 1e9)
                .collect(),
        );
    }

    #[test]
    fn neighbouring_gaps_and_workers_have_nothing_in_common() {
        let rate = rate(5000.0, Spacing::Poisson);
        let due: Vec<Vec<u64>> = (0..2)
            .map(|worker| taken(&mut Schedule::new(&rate, worker, 2, 1), 20_001))
            .collect();
        let gaps: Vec<Vec<f64>> = due
            .iter()
            .map(|due| {
                let gaps = due.windows(2).map(|pair| pair[1] - pair[0]);
                gaps.map(|gap| gap as f64 * 2500.0 / 1e9 - 1.0).collect()
            })
            .collect();
        for (ones, others) in [(&gaps[0], &gaps[1][..]), (&gaps[0], &gaps[0][1..])] {
            let products = ones.iter().zip(others).map(|(one, other)| one * other);
            let correlation = products.sum::<f64>() / 20_000.0;
            assert!(correlation.abs() < 5.0 / 20_000_f64.sqrt(), "{correlation}");
        }
    }

    /// On a ramp, gaps are exponential if time is measured by the number of requests due.
    #[test]
    fn random_requests_follow_a_ramp() {
        let rate = Rate {
            from_per_s: 100.0,
            to_per_s: 3000.0,
            rise: Duration::from_secs(10),
            spacing: Spacing::Poisson,
        };
        let so_far = |time: u64| {
            let time = time as f64 / 1e9;
            let rising = time.min(10.0);
            100.0 * rising + 145.0 * rising.powi(2) + 3000.0 * (time - rising)
        };
        let due = taken(&mut Schedule::new(&rate, 0, 1, 2), 30_001);
        let gaps = due.windows(2);
        are_exponential(gaps.map(|pair| so_far(pair[1]) - so_far(pair[0])).collect());
    }

    #[test]
    fn times_to_think_are_exponential_when_asked_for() {
        let mut random = fastrand::Rng::with_seed(3);
        let think = Think::Exponential(Duration::from_millis(20));
        let times = (0..30_000).map(|_| time_to_think(think, &mut random) as f64 / 20e6);
        are_exponential(times.collect());
    }

    #[test]
    fn a_seed_makes_one_schedule() {
        let rate = rate(1000.0, Spacing::Poisson);
        let first = |worker, seed| Schedule::new(&rate, worker, 4, seed).peek();
        assert_eq!(first(0, 1), first(0, 1));
        assert_ne!(first(0, 1), first(0, 2));
        assert_ne!(first(0, 1), first(1, 1));
    }

    proptest! {
        #[test]
        fn the_workers_make_the_whole(
            from_per_s in 0.0..1e6_f64,
            to_per_s in 0.001..1e6_f64,
            rise in prop_oneof![Just(0), 0..10_000_u64],
            burst in prop_oneof![Just(0), 1..100_u32],
            workers in 1..9_usize,
        ) {
            let spacing = if burst == 0 { Spacing::Constant } else { Spacing::Burst(burst) };
            let rise = Duration::from_millis(rise);
            let rate = Rate { from_per_s, to_per_s, rise, spacing };
            prop_assert_eq!(together(&rate, workers, 200), together(&rate, 1, 200 * workers));
        }

        #[test]
        fn time_never_falls(
            from_per_s in 0.0..1e9_f64,
            to_per_s in 0.0..1e9_f64,
            rise in prop_oneof![Just(0), 0..100_000_u64],
            kind in 0..3,
            seed in any::<u64>(),
            skips in prop::collection::vec(0..SECOND, 0..5),
        ) {
            let spacing = [Spacing::Constant, Spacing::Poisson, Spacing::Burst(7)][kind as usize];
            let rise = Duration::from_millis(rise);
            let rate = Rate { from_per_s, to_per_s, rise, spacing };
            let mut schedule = Schedule::new(&rate, 1, 2, seed);
            let mut last = 0;
            let mut time: u64 = 0;
            for skip in skips {
                for _ in 0..100 {
                    let next = schedule.peek();
                    prop_assert!(next >= last);
                    prop_assert_eq!(schedule.take(), next);
                    last = next;
                }
                time += skip;
                schedule.skip_until(time);
                prop_assert!(schedule.peek() >= time.max(last));
            }
        }

        #[test]
        fn skipping_counts_what_taking_would(
            to_per_s in 1.0..1e5_f64,
            rising in any::<bool>(),
            burst in 0..5_u32,
            time in 0..SECOND / 100,
        ) {
            let spacing = if burst == 0 { Spacing::Constant } else { Spacing::Burst(burst) };
            let rate = Rate {
                from_per_s: 0.0,
                to_per_s,
                rise: if rising { Duration::from_millis(3) } else { Duration::ZERO },
                spacing,
            };
            let mut one_by_one = Schedule::new(&rate, 1, 3, 1);
            let mut at_once = one_by_one.clone();
            let mut count = 0;
            while one_by_one.peek() < time {
                one_by_one.take();
                count += 1;
            }
            prop_assert_eq!(at_once.skip_until(time), count);
            prop_assert_eq!(taken(&mut at_once, 9), taken(&mut one_by_one, 9));
        }

        #[test]
        fn thinking_keeps_within_its_bounds(a in 0..SECOND, b in 0..SECOND, seed in any::<u64>()) {
            let (shortest, longest) = (a.min(b), a.max(b));
            let mut random = fastrand::Rng::with_seed(seed);
            let [shortest_time, longest_time] = [shortest, longest].map(Duration::from_nanos);
            let time = time_to_think(Think::Uniform(shortest_time, longest_time), &mut random);
            prop_assert!((shortest..=longest).contains(&time));
            prop_assert_eq!(time_to_think(Think::Fixed(longest_time), &mut random), longest);
            prop_assert_eq!(time_to_think(Think::None, &mut random), 0);
        }
    }
}
