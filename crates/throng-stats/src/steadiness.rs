//! Whether a rate drifted while it was measured.
//!
//! A window is divided into equal intervals. Pearson's correlation of their counts with time says how much of the
//! movement is a trend (neper flags runs the same way). The change from the first to the last third says whether the
//! trend matters. Both are needed: a rate that rises by 0.1 % without noise has correlation 1, and noise alone makes
//! the thirds differ.

use serde::Serialize;

use crate::interval::median;

/// Fewest intervals for a verdict. With 8, chance alone exceeds |r| > 0.8 in about 2 % of windows (the
/// two-sided 5 % point for 6 degrees of freedom is 0.707, the 1 % point 0.834).
const FEWEST_INTERVALS: usize = 8;

/// Two-sided 5 % point of the normal distribution.
const NORMAL_95: f64 = 1.959_964;

/// A stronger correlation is a trend.
const STRONG_CORRELATION: f64 = 0.8;

/// A trend that changes the rate by more than this, relative to the first third, matters.
const GREAT_CHANGE: f64 = 0.1;

/// The trend of a rate over its window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Pearson's correlation of count with time, -1 to 1; 0 if all intervals are equal.
    pub correlation: f64,
    /// Change from the first to the last third of the intervals, relative to the first: 0.1 is 10 % more.
    pub change: f64,
}

/// The trend over equal intervals in time order; `None` with fewer than 3 intervals, or if the first third is 0.
pub fn trend(intervals: &[u64]) -> Option<Trend> {
    let third = intervals.len() / 3;
    if third == 0 {
        return None;
    }
    let sum = |part: &[u64]| part.iter().map(|count| *count as f64).sum::<f64>();
    let (first, last) = (
        sum(&intervals[..third]),
        sum(&intervals[intervals.len() - third..]),
    );
    if first <= 0.0 {
        return None;
    }
    Some(Trend {
        correlation: correlation_with_time(intervals, sum(intervals) / intervals.len() as f64),
        change: (last - first) / first,
    })
}

/// Whether a window drifted: |correlation| above 0.8 and a change of more than 10 %, over at least 8 intervals.
pub fn is_unsteady(intervals: &[u64]) -> bool {
    intervals.len() >= FEWEST_INTERVALS
        && trend(intervals).is_some_and(|trend| {
            trend.correlation.abs() > STRONG_CORRELATION && trend.change.abs() > GREAT_CHANGE
        })
}

/// By how much the rate rose within a window: the change of its median from the first to the second half. `None` below
/// 10 %, or if Mann and Whitney's test calls it noise. A server that warms up rises in steps, which correlate little
/// with time.
pub fn rise(intervals: &[u64]) -> Option<f64> {
    let counts: Vec<f64> = intervals.iter().map(|count| *count as f64).collect();
    let risen = change(&counts, NORMAL_95).filter(|change| *change > GREAT_CHANGE);
    risen.filter(|_| counts.len() >= FEWEST_INTERVALS)
}

/// A smaller change of a median does not matter, even if all windows agree on its direction.
const SMALL_CHANGE: f64 = 0.05;

/// A change that most of several windows share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedTrend {
    /// The median of the changes.
    pub change: f64,
    /// Windows that changed in its direction.
    pub agree: usize,
}

/// Whether the changes of several windows have one direction, although each alone could be noise: a sign test, at a
/// level of 5 %.
pub fn shared_trend(changes: &[f64]) -> Option<SharedTrend> {
    let typical = median(changes)?;
    let moved = changes.iter().filter(|change| **change != 0.0);
    let (agree, all) = moved.fold((0, 0), |(agree, all), change| {
        (agree + usize::from(*change * typical > 0.0), all + 1)
    });
    (typical.abs() >= SMALL_CHANGE && by_chance(agree, all) < 0.05).then_some(SharedTrend {
        change: typical,
        agree,
    })
}

/// The probability that at least `agree` of `all` fair coins show the same side.
fn by_chance(agree: usize, all: usize) -> f64 {
    // The number of ways to choose k of them, from 0 on.
    let ways = std::iter::successors(Some((0, 1.0)), |(k, ways)| {
        Some((k + 1, ways * (all - k) as f64 / (k + 1) as f64))
    });
    let tail = ways.take(all + 1).skip(agree).map(|(_, ways)| ways);
    (2.0 * tail.sum::<f64>() / 2.0_f64.powi(all as i32)).min(1.0)
}

/// Number of rows considered; the later half is compared with the earlier one.
const LOOKED_AT: usize = 20;

/// Detects when repeated measurements have become level, as at the end of a warm-up.
///
/// The last half of the rows, but at least 20, is divided into 20 equal parts. It is level if the medians of the last
/// 10 parts and of the 10 before differ by less than 5 %, or by no more than noise. The difference is noise if Mann
/// and Whitney's test (Annals of Mathematical Statistics 18, 1947) does not find either half greater at a level of 5
/// %. During a long warm-up, the halves differ by far more than noise (E. Barrett et al., "Virtual machine warmup
/// blows hot and cold", OOPSLA 2017).
///
/// A warm-up has lulls, and frequent looks meet one. So this looks only when there are a quarter more rows than
/// before, three looks in a row have to agree, and each suspects a change at a level of 20 %. In simulated rises under noise of
/// 10 % and 30 %, that ended 0 and 36 of 100 warm-ups too early; asking at every row ended all of them.
#[derive(Debug, Clone, Default)]
pub struct Level {
    rows: Vec<[Option<f64>; 2]>,
    /// The number of rows at the last look.
    looked_at: usize,
    /// Looks in a row that found both values level.
    agreeing: u32,
}

/// Consecutive looks that have to find the values level.
const LEVEL_LOOKS: u32 = 3;
/// Two-sided 20 % point of the normal distribution.
const NORMAL_80: f64 = 1.281_552;

/// The rows after which a level value is seen to be level at the earliest.
pub const FEWEST_ROWS: usize = next_look(next_look(LOOKED_AT));

/// The number of rows at the look after the one at `rows`.
const fn next_look(rows: usize) -> usize {
    rows + rows.div_ceil(4)
}

/// A value that is not level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unsettled {
    /// Index of the value in its row.
    pub column: usize,
    /// Change of its median between the halves: 0.1 is 10 % more.
    pub change: f64,
}

impl Level {
    /// Adds a row: two values over the same length of time as in all other rows. A value that is always absent is
    /// ignored.
    pub fn push(&mut self, values: [Option<f64>; 2]) {
        self.rows.push(values);
        if self.rows.len() >= LOOKED_AT.max(next_look(self.looked_at)) {
            self.looked_at = self.rows.len();
            self.agreeing = match self.changed(NORMAL_80) {
                None => self.agreeing + 1,
                Some(_) => 0,
            };
        }
    }

    /// Whether both values are level.
    pub fn is_reached(&self) -> bool {
        self.agreeing >= LEVEL_LOOKS
    }

    /// The first value that is not level; `None` with too few rows.
    pub fn unsettled(&self) -> Option<Unsettled> {
        self.changed(NORMAL_95)
    }

    fn changed(&self, point: f64) -> Option<Unsettled> {
        (0..2).find_map(|column| {
            let change = change(&self.last_half(column)?, point)?;
            Some(Unsettled { column, change })
        })
    }

    /// The considered part of a column; `None` if it is too short.
    fn last_half(&self, column: usize) -> Option<Vec<f64>> {
        let count = LOOKED_AT.max(self.rows.len() / 2);
        let rows = &self.rows[self.rows.len().checked_sub(count)?..];
        means_of_parts(&rows.iter().map(|row| row[column]).collect::<Vec<_>>())
    }
}

/// By how much the median of a series differs between its halves; `None` if level, or if the series is too short.
pub fn shift(series: &[f64]) -> Option<f64> {
    let means = means_of_parts(&series.iter().copied().map(Some).collect::<Vec<_>>())?;
    change(&means, NORMAL_95)
}

/// The means of `LOOKED_AT` equal parts; `None` if one is empty.
fn means_of_parts(series: &[Option<f64>]) -> Option<Vec<f64>> {
    let begins = |part: usize| part * series.len() / LOOKED_AT;
    let mean = |part: usize| {
        let values = series[begins(part)..begins(part + 1)].iter().flatten();
        let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    (0..LOOKED_AT).map(mean).collect()
}

/// Relative change of the median from the earlier to the later half; `None` if level. `point` is that of the normal
/// distribution up to which a difference is noise.
fn change(values: &[f64], point: f64) -> Option<f64> {
    let (earlier, later) = values.split_at(values.len() / 2);
    let (before, after) = (median(earlier)?, median(later)?);
    let change = if before > 0.0 {
        after / before - 1.0
    } else {
        f64::from(u8::from(after > 0.0))
    };
    (change.abs() >= SMALL_CHANGE && is_greater(earlier, later, point)).then_some(change)
}

/// Whether either half is greater by Mann and Whitney's test.
fn is_greater(earlier: &[f64], later: &[f64], point: f64) -> bool {
    // Pairs in which the later value is greater: half of all pairs without a change.
    let pairs = earlier
        .iter()
        .flat_map(|one| later.iter().map(move |other| (one, other)));
    let greater: f64 = pairs
        .map(|(one, other)| match other.total_cmp(one) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        })
        .sum();
    let (m, n) = (earlier.len() as f64, later.len() as f64);
    let error = (m * n * (m + n + 1.0) / 12.0).sqrt();
    ((greater - m * n / 2.0) / error).abs() >= point
}

fn correlation_with_time(intervals: &[u64], mean: f64) -> f64 {
    let middle = (intervals.len() - 1) as f64 / 2.0;
    let (mut both, mut times, mut counts) = (0.0, 0.0, 0.0);
    for (place, count) in intervals.iter().enumerate() {
        let (time, count) = (place as f64 - middle, *count as f64 - mean);
        both += time * count;
        times += time * time;
        counts += count * count;
    }
    if counts <= 0.0 {
        0.0
    } else {
        both / (times * counts).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of rows until these are level, if ever.
    fn level_after(values: impl Iterator<Item = f64>) -> Option<usize> {
        let mut level = Level::default();
        values.enumerate().find_map(|(place, value)| {
            level.push([Some(value), None]);
            level.is_reached().then_some(place + 1)
        })
    }

    #[test]
    fn constant_values_are_level_as_early_as_possible() {
        assert_eq!(level_after(std::iter::repeat_n(5.0, 40)), Some(FEWEST_ROWS));
        assert_eq!(level_after(std::iter::repeat_n(5.0, FEWEST_ROWS - 1)), None);
        assert_eq!(level_after(std::iter::repeat_n(0.0, 40)), Some(FEWEST_ROWS));
    }

    #[test]
    fn noise_is_level_and_a_rise_is_not_until_it_ends() {
        let mut random = fastrand::Rng::with_seed(5);
        let noisy = (0..400).map(|_| 100.0 * (0.9 + 0.2 * random.f64()));
        assert!(level_after(noisy).is_some());
        // A server with a JIT compiler: eight times as fast after 60 rows.
        let rising = |place: usize| 100.0 * (1.0 + 7.0 * (place.min(60) as f64 / 60.0));
        let after = level_after((0..200).map(rising)).unwrap();
        assert!((61..=200).contains(&after), "{after}");
        assert_eq!(
            level_after((0..200).map(|place| 1.05_f64.powi(place))),
            None
        );
    }

    /// Regression: level was asked at every row, and the first lull in the rise of a JVM ended its warm-up.
    #[test]
    fn a_lull_in_a_rise_is_not_level() {
        let mut random = fastrand::Rng::with_seed(11);
        let rises = |row: usize| 1.0 + row.min(600) as f64 / 100.0;
        let rows: Vec<f64> = (0..3000)
            .map(|row| rises(row) * (0.9 + 0.2 * random.f64()))
            .collect();
        let mut level = Level::default();
        let lulls = rows.iter().take(400).filter(|value| {
            level.push([Some(**value), None]);
            level.rows.len() >= LOOKED_AT && level.unsettled().is_none()
        });
        assert!(
            lulls.count() > 0,
            "asked at every row, it was level too early"
        );
        let after = level_after(rows.iter().copied()).unwrap();
        assert!((400..3000).contains(&after), "{after}");
    }

    #[test]
    fn a_rise_that_all_windows_share_is_found_although_each_is_noise() {
        let up = |change: f64| Some((change, 9));
        let of = |changes: &[f64]| {
            let found = shared_trend(changes);
            found.map(|found| (found.change, found.agree))
        };
        let nine = [0.6, 0.2, 0.9, 0.1, -0.02, 0.67, 1.1, 0.3, 0.8, 0.4];
        assert_eq!(of(&nine), up(0.5));
        assert_eq!(of(&nine.map(|change| -change)), up(-0.5));
        assert_eq!(of(&[0.6, -0.2, 0.9, -0.1, 0.4, 0.67, 1.1, -0.3]), None);
        assert_eq!(of(&nine.map(|change| change / 20.0)), None, "it is small");
        assert_eq!(of(&nine[..3]), None, "three coins agree easily");
        assert_eq!(of(&[]), None);
        // Binomial(10, 1/2): 2 (10 + 1) / 1024.
        assert!((by_chance(9, 10) - 22.0 / 1024.0).abs() < 1e-12);
        assert!((by_chance(0, 0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_rise_in_steps_is_a_rise() {
        let steps = [
            5, 5, 6, 5, 5, 6, 5, 5, 5, 6, 11, 12, 11, 11, 12, 11, 12, 11, 11, 12,
        ];
        assert!(!is_unsteady(&[5, 11, 5, 11, 5, 11, 5, 11]));
        assert!((rise(&steps).unwrap() - 1.2).abs() < 0.3);
        let falls: Vec<u64> = steps.iter().rev().copied().collect();
        assert_eq!(rise(&falls), None);
        assert_eq!(rise(&[5, 11, 5, 11, 5, 11, 5, 11]), None);
        assert_eq!(rise(&[1, 9, 10]), None, "too few");
    }

    /// Neighbouring groups of 10 rows differ only by noise, but the halves of all rows differ.
    #[test]
    fn a_slow_rise_under_noise_is_detected() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut level = Level::default();
        for place in 0..400 {
            let noise = 0.95 + 0.1 * random.f64();
            level.push([Some((1000.0 + 5.0 * f64::from(place)) * noise), Some(3.0)]);
        }
        let unsettled = level.unsettled().unwrap();
        assert_eq!(unsettled.column, 0);
        assert!((0.1..0.4).contains(&unsettled.change), "{unsettled:?}");
    }

    #[test]
    fn a_series_shifts_only_beyond_its_noise() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut series = |rise: f64| -> Vec<f64> {
            let noisy = |place: i32| (1.0 + rise * f64::from(place)) * (0.9 + 0.2 * random.f64());
            (0..200).map(noisy).collect()
        };
        assert_eq!(shift(&series(0.0)), None);
        let risen = shift(&series(0.002)).unwrap();
        assert!((0.1..0.3).contains(&risen), "{risen}");
        assert_eq!(shift(&[1.0, 2.0, 3.0]), None, "too few");
    }

    #[test]
    fn both_values_must_be_level_and_an_absent_one_is_ignored() {
        let mut level = Level::default();
        for place in 0..60 {
            level.push([None, Some(100.0 / f64::from(place + 1))]);
        }
        assert!(!level.is_reached());
        let unsettled = level.unsettled().unwrap();
        assert!(unsettled.column == 1 && unsettled.change < -0.2);
    }

    #[test]
    fn a_straight_rise_has_correlation_one() {
        let rise: Vec<u64> = (100..109).collect();
        let trend = trend(&rise).unwrap();
        assert!((trend.correlation - 1.0).abs() < 1e-12);
        // 106+107+108 against 100+101+102
        assert!((trend.change - 18.0 / 303.0).abs() < 1e-12);
        assert!(!is_unsteady(&rise), "6 % is a trend that does not matter");
    }

    #[test]
    fn correlation_of_a_case_worked_by_hand() {
        // times -1 0 1, counts 2 1 6 around 3: (1 + 3) / sqrt(2 · 14)
        let trend = trend(&[2, 1, 6]).unwrap();
        assert!((trend.correlation - 4.0 / 28.0_f64.sqrt()).abs() < 1e-12);
        assert!((trend.change - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_decline_of_a_third_is_unsteady() {
        assert!(is_unsteady(&[100, 96, 91, 88, 82, 79, 75, 70, 66]));
    }

    #[test]
    fn noise_without_trend_and_few_intervals_are_not_flagged() {
        assert!(!is_unsteady(&[100, 80, 120, 90, 110, 85, 115, 100]));
        assert!(!is_unsteady(&[100, 80, 60, 40]));
    }

    #[test]
    fn equal_intervals_have_no_correlation_and_zeros_no_trend() {
        assert_eq!(
            trend(&[5; 9]),
            Some(Trend {
                correlation: 0.0,
                change: 0.0
            })
        );
        assert_eq!(trend(&[]), None);
        assert_eq!(trend(&[0; 9]), None);
    }
}
