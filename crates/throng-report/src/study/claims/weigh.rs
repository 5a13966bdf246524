//! Two values against each other: what their trials allow to be said.

use super::Finding;
use crate::comparison::size::inverse;
use crate::study::sample::Sample;
use throng_record::claim::Relation;
use throng_record::format::number;
use throng_record::metrics::Quantity;

/// Fewest trials of each side to weigh. With 3 each, all of one lie below all of the other by chance in 1 of 20
/// cases; with 2 in 1 of 6.
pub(super) const FEWEST_TRIALS: usize = 3;

/// One side of a comparison, evaluated.
#[derive(Debug, Clone)]
pub(super) struct Term {
    /// How it is called in a sentence.
    pub(super) name: String,
    /// Its value as text.
    pub(super) text: String,
    /// What it rests on; none for a number that was written.
    pub(super) sample: Option<Sample>,
    /// The part it is from, so that its rounds are not paired with those of another.
    pub(super) part: usize,
    /// What it is known to lie between.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) value: f64,
    /// A difference of this share or less does not matter.
    pub(super) least: f64,
}

/// What comes of weighing two values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weighed {
    pub(super) finding: Finding,
    /// The first over the second, where trials say it.
    pub(super) ratio: Option<Quantity>,
    /// Differences up to this do not matter.
    pub(super) floor: f64,
}

/// Whether the first stands so to the second, give or take a share where that belongs to it. The ratio is
/// always of the first to the second.
pub(super) fn weigh(first: &Term, relation: Relation, second: &Term, share: f64) -> Weighed {
    match relation {
        Relation::Less => below(first, second, None),
        Relation::AtMost => below(first, second, Some(share)),
        Relation::Greater => turned(below(second, first, None)),
        Relation::AtLeast => turned(below(second, first, Some(share))),
        _ => alike(first, second, share),
    }
}

fn turned(weighed: Weighed) -> Weighed {
    Weighed {
        ratio: weighed.ratio.map(inverse),
        ..weighed
    }
}

/// Whether the first lies below the second, or is no more than it, give or take a share.
fn below(first: &Term, second: &Term, no_more: Option<f64>) -> Weighed {
    let floor = first.least.max(second.least);
    let ratio = ratio(first, second);
    let finding = match (ends(ratio), no_more) {
        _ if first.is_scarce() || second.is_scarce() => Finding::Inconclusive,
        (Some((low, high)), Some(share)) => {
            let most = 1.0 + floor.max(share);
            finding(high <= most, low > most)
        }
        (Some((low, high)), None) => finding(high < 1.0 / (1.0 + floor), low > 1.0 + floor),
        (None, Some(_)) => finding(first.high <= second.low, first.low > second.high),
        (None, None) => finding(first.high < second.low, first.low >= second.high),
    };
    Weighed {
        finding,
        ratio,
        floor,
    }
}

/// Whether two values differ by no more than a share.
fn alike(first: &Term, second: &Term, share: f64) -> Weighed {
    let ratio = ratio(first, second);
    let (least, most) = (1.0 / (1.0 + share), 1.0 + share);
    let finding = match ends(ratio) {
        _ if first.is_scarce() || second.is_scarce() => Finding::Inconclusive,
        Some((low, high)) => finding(low >= least && high <= most, low > most || high < least),
        None => {
            let within = |a: f64, b: f64| a <= b * most && b <= a * most;
            let ends = [(first.low, second.high), (first.high, second.low)];
            let apart = first.low > second.high * most || second.low > first.high * most;
            finding(ends.iter().all(|(a, b)| within(*a, *b)), apart)
        }
    };
    Weighed {
        finding,
        ratio,
        floor: share,
    }
}

fn ends(ratio: Option<Quantity>) -> Option<(f64, f64)> {
    let ratio = ratio?;
    ratio.low.zip(ratio.high)
}

fn finding(confirmed: bool, refuted: bool) -> Finding {
    match (confirmed, refuted) {
        (true, _) => Finding::Confirmed,
        (_, true) => Finding::Refuted,
        _ => Finding::Inconclusive,
    }
}

/// The ratio of both over trials, where both have some and are no mere counts: with its 95 % interval, or of too
/// few trials with the widest range that they allow.
fn ratio(first: &Term, second: &Term) -> Option<Quantity> {
    let (a, b) = (first.sample.as_ref()?, second.sample.as_ref()?);
    if a.exact || b.exact {
        return None;
    }
    let (a, b) = (&a.trials, &b.trials);
    // Rounds of another part are other rounds, whatever their numbers.
    let (known, rough) = if first.part == second.part {
        (a.ratio(b), a.rough_ratio(b))
    } else {
        (a.ratio_apart(b), a.rough_ratio_apart(b))
    };
    known.map(Quantity::of_ratio).or_else(|| {
        let ((a_low, a_high), (b_low, b_high)) = (a.range()?, b.range()?);
        (a_low > 0.0 && b_low > 0.0).then_some(Quantity {
            value: rough?,
            low: Some(a_low / b_high),
            high: Some(a_high / b_low),
            is_range: true,
        })
    })
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
            least: 0.0,
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

    /// Whether its trials are too few to decide anything.
    pub(super) fn is_scarce(&self) -> bool {
        let scarce = |sample: &Sample| !sample.exact && sample.trials.trials() < FEWEST_TRIALS;
        self.sample.as_ref().is_some_and(scarce)
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
    fn values_apart_are_decided_and_values_that_cross_are_not() {
        let (small, large) = (term(&[1.0, 1.1, 1.05]), term(&[2.0, 2.1, 2.2]));
        let finding = |a: &Term, b: &Term, level: bool| below(a, b, level.then_some(0.05)).finding;
        assert_eq!(finding(&small, &large, false), Finding::Confirmed);
        assert_eq!(finding(&large, &small, false), Finding::Refuted);
        assert_eq!(finding(&large, &small, true), Finding::Refuted);
        assert_eq!(
            finding(&small, &term(&[0.9, 1.2, 1.0]), false),
            Finding::Inconclusive
        );
        let noisy = Term {
            least: 1.5,
            ..small.clone()
        };
        assert_eq!(finding(&noisy, &large, false), Finding::Inconclusive);
        let two = term(&[1.0, 1.1]);
        assert_eq!(finding(&two, &large, false), Finding::Inconclusive);
        // As much as itself is no more than itself.
        let same = term(&[1.0, 1.01, 1.0]);
        assert_eq!(finding(&same, &same, true), Finding::Confirmed);
        assert_eq!(
            finding(&small, &Term::number(3.0, String::new()), false),
            Finding::Confirmed
        );
        assert_eq!(
            finding(&small, &Term::number(1.05, String::new()), false),
            Finding::Inconclusive
        );
    }

    #[test]
    fn alike_is_shown_and_not_only_not_refuted() {
        let finding = |a: &[f64], b: &[f64]| alike(&term(a), &term(b), 0.1).finding;
        assert_eq!(
            finding(&[1.0, 1.01, 1.02], &[1.0, 1.02, 1.01]),
            Finding::Confirmed
        );
        assert_eq!(
            finding(&[1.0, 1.5, 0.7], &[1.0, 1.6, 0.6]),
            Finding::Inconclusive
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
            let (one, other) = (below(&a, &b, None).finding, below(&b, &a, None).finding);
            prop_assert!(one == Finding::Inconclusive || one != other);
            // Nothing is both alike and distinguished by more than that.
            let within = alike(&a, &b, 0.1);
            if within.finding == Finding::Confirmed {
                let ratio = within.ratio.expect("trials give one");
                prop_assert!(ratio.low > Some(0.9) && ratio.high < Some(1.11));
            }
        }
    }
}
