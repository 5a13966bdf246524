//! Two values against each other: what their trials allow to be said.

use throng_stats::Interval;

use super::Finding;
use crate::study::sample::Sample;
use throng_record::claim::Relation;
use throng_record::format::number;

/// One side of a comparison, evaluated.
#[derive(Debug, Clone)]
pub(super) struct Term {
    /// How it is called in a sentence.
    pub(super) name: String,
    /// Its value as text.
    pub(super) text: String,
    /// What it rests on; none for a number that was written.
    pub(super) sample: Option<Sample>,
    /// The part it is from, so that rounds are told apart.
    pub(super) part: usize,
    /// What it is known to lie between.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) value: f64,
    /// What two equal servers came out apart by, there.
    pub(super) noise: f64,
}

/// What comes of weighing two values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weighed {
    pub(super) finding: Finding,
    /// The first over the second, where trials say it.
    pub(super) ratio: Option<Interval>,
    /// Differences below this are not told apart.
    pub(super) floor: f64,
}

/// Whether the first stands so to the second, give or take a share where that belongs to it. The ratio is
/// always of the first to the second.
pub(super) fn weigh(
    first: &Term,
    relation: Relation,
    second: &Term,
    share: f64,
    seed: u64,
) -> Weighed {
    match relation {
        Relation::Less => below(first, second, None, seed),
        Relation::AtMost => below(first, second, Some(share), seed),
        Relation::Greater => turned(below(second, first, None, seed)),
        Relation::AtLeast => turned(below(second, first, Some(share), seed)),
        _ => alike(first, second, share, seed),
    }
}

fn turned(weighed: Weighed) -> Weighed {
    let ratio = weighed.ratio.map(|ratio| Interval {
        estimate: 1.0 / ratio.estimate,
        low: 1.0 / ratio.high,
        high: 1.0 / ratio.low,
    });
    Weighed { ratio, ..weighed }
}

/// Whether the first lies below the second, or is no more than it, give or take a share.
fn below(first: &Term, second: &Term, no_more: Option<f64>, seed: u64) -> Weighed {
    let floor = first.noise.max(second.noise);
    let ratio = ratio(first, second, seed);
    let finding = match (ratio, no_more) {
        (Some(ratio), Some(share)) => {
            let most = 1.0 + floor.max(share);
            told(ratio.high <= most, ratio.low > most)
        }
        (Some(ratio), None) => told(ratio.high < 1.0 / (1.0 + floor), ratio.low > 1.0 + floor),
        (None, Some(_)) => told(first.high <= second.low, first.low > second.high),
        (None, None) => told(first.high < second.low, first.low >= second.high),
    };
    Weighed {
        finding,
        ratio,
        floor,
    }
}

/// Whether two values differ by no more than a share.
fn alike(first: &Term, second: &Term, share: f64, seed: u64) -> Weighed {
    let ratio = ratio(first, second, seed);
    let (low, high) = (1.0 / (1.0 + share), 1.0 + share);
    let finding = if let Some(ratio) = ratio {
        told(
            ratio.low >= low && ratio.high <= high,
            ratio.low > high || ratio.high < low,
        )
    } else {
        let within = |a: f64, b: f64| a <= b * high && b <= a * high;
        let ends = [(first.low, second.high), (first.high, second.low)];
        let apart = first.low > second.high * high || second.low > first.high * high;
        told(ends.iter().all(|(a, b)| within(*a, *b)), apart)
    };
    Weighed {
        finding,
        ratio,
        floor: share,
    }
}

fn told(confirmed: bool, refuted: bool) -> Finding {
    match (confirmed, refuted) {
        (true, _) => Finding::Confirmed,
        (_, true) => Finding::Refuted,
        _ => Finding::NotDistinguishable,
    }
}

/// The ratio of both over trials, where both have some and are no mere counts.
fn ratio(first: &Term, second: &Term, seed: u64) -> Option<Interval> {
    let (a, b) = (first.sample.as_ref()?, second.sample.as_ref()?);
    if a.exact || b.exact {
        return None;
    }
    if first.part == second.part {
        return a.trials.ratio(&b.trials, seed);
    }
    // Rounds of another part are other rounds, whatever their numbers.
    a.trials.ratio(&b.trials.clone().apart(), seed)
}

impl Term {
    /// A number that was written.
    pub(super) fn number(value: f64, text: String) -> Self {
        Self {
            name: text.clone(),
            text,
            sample: None,
            part: 0,
            low: value,
            high: value,
            value,
            noise: 0.0,
        }
    }

    /// So many times it.
    pub(super) fn times(mut self, factor: f64) -> Self {
        if factor.total_cmp(&1.0).is_eq() {
            return self;
        }
        self.name = format!("{} times the {}", number(factor), self.name);
        for value in [&mut self.low, &mut self.high, &mut self.value] {
            *value *= factor;
        }
        if let Some(sample) = &mut self.sample {
            sample.trials = sample.trials.clone().times(factor);
        }
        self
    }

    /// Whether a single trial is all there is, which has no interval.
    pub(super) fn is_lonely(&self) -> bool {
        let lonely = |sample: &Sample| !sample.exact && sample.trials.trials() < 2;
        self.sample.as_ref().is_some_and(lonely)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn term(values: &[f64]) -> Term {
        let rounds: Vec<(u32, f64)> = (0..).zip(values.iter().copied()).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let sample = Sample {
            trials: throng_stats::Sample::of_values(rounds),
            value: f64::midpoint(low, high),
            interval: Some((low, high)),
            exact: false,
        };
        Term {
            sample: Some(sample),
            low,
            high,
            ..Term::number(f64::midpoint(low, high), String::new())
        }
    }

    #[test]
    fn values_apart_are_told_and_values_that_cross_are_not() {
        let (small, large) = (term(&[1.0, 1.1, 1.05]), term(&[2.0, 2.1, 2.2]));
        let finding =
            |a: &Term, b: &Term, level: bool| below(a, b, level.then_some(0.05), 1).finding;
        assert_eq!(finding(&small, &large, false), Finding::Confirmed);
        assert_eq!(finding(&large, &small, false), Finding::Refuted);
        assert_eq!(finding(&large, &small, true), Finding::Refuted);
        assert_eq!(
            finding(&small, &term(&[0.9, 1.2, 1.0]), false),
            Finding::NotDistinguishable
        );
        let noisy = Term {
            noise: 1.5,
            ..small.clone()
        };
        assert_eq!(finding(&noisy, &large, false), Finding::NotDistinguishable);
        // As much as itself is no more than itself.
        let same = term(&[1.0, 1.01, 1.0]);
        assert_eq!(finding(&same, &same, true), Finding::Confirmed);
        assert_eq!(
            finding(&small, &Term::number(3.0, String::new()), false),
            Finding::Confirmed
        );
        assert_eq!(
            finding(&small, &Term::number(1.05, String::new()), false),
            Finding::NotDistinguishable
        );
    }

    #[test]
    fn alike_is_shown_and_not_only_not_refuted() {
        let finding = |a: &[f64], b: &[f64]| alike(&term(a), &term(b), 0.1, 1).finding;
        assert_eq!(
            finding(&[1.0, 1.01, 1.02], &[1.0, 1.02, 1.01]),
            Finding::Confirmed
        );
        assert_eq!(
            finding(&[1.0, 1.5, 0.7], &[1.0, 1.6, 0.6]),
            Finding::NotDistinguishable
        );
        assert_eq!(
            finding(&[1.0, 1.01, 1.02], &[2.0, 2.02, 2.01]),
            Finding::Refuted
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Two cannot both be below each other.
        #[test]
        fn what_is_confirmed_one_way_is_not_confirmed_the_other(
            a in prop::collection::vec(0.5_f64..2.0, 2..7),
            b in prop::collection::vec(0.5_f64..2.0, 2..7),
        ) {
            let (a, b) = (term(&a), term(&b));
            let (one, other) = (below(&a, &b, None, 1).finding, below(&b, &a, None, 1).finding);
            prop_assert!(one == Finding::NotDistinguishable || one != other);
            // Nothing is both alike and told apart by more than that.
            let within = alike(&a, &b, 0.1, 1);
            if within.finding == Finding::Confirmed {
                let ratio = within.ratio.expect("trials give one");
                prop_assert!(ratio.low > 0.9 && ratio.high < 1.11);
            }
        }
    }
}
