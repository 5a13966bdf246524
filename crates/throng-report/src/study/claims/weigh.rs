//! The statistical test that compares two values, from their trials.

use super::ClaimVerdict;
use super::term::Term;
use throng_record::claim::Relation;
use throng_record::metrics::Quantity;
use throng_stats::{Against, LogRatio};

/// A p-value below this is significant.
pub(super) const LEVEL: f64 = 0.05;

/// The result of comparing two values: one p-value per statement, small if the statement is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TestResult {
    /// That the expectation holds.
    pub(super) shown: f64,
    /// That the contrary holds.
    pub(super) contrary: f64,
    /// If a difference was expected: that both are within the margin of each other.
    pub(super) within: f64,
    /// The first value over the second, without its factor, if trials show it.
    pub(super) ratio: Option<Quantity>,
    /// The rounds that a decision would need.
    pub(super) need: RoundsToDecide,
    /// Differences up to this share do not matter.
    pub(super) margin: f64,
    /// Whether either value is only a bound.
    pub(super) is_censored: bool,
}

/// The rounds that a decision would need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoundsToDecide {
    /// The comparison does not rest on trials.
    None,
    /// Too few rounds to know their spread.
    More { had: usize },
    /// About `rounds` rounds; there were `had`.
    About { had: usize, rounds: usize },
    /// More than is practical.
    TooMany { had: usize },
}

/// The smallest number of rounds that gives an interval.
pub(super) const FEWEST_FOR_INTERVALS: usize = throng_stats::paired::FEWEST_PAIRS;
/// More trials than this are not suggested.
const MOST_ROUNDS: usize = 1000;

/// Tests the relation of the first value to the second; `share` is the margin. The ratio is always first over second.
pub(super) fn weigh(first: &Term, relation: Relation, second: &Term, share: f64) -> TestResult {
    let floor = first.least.max(second.least);
    let margin = share.max(floor);
    let sides = Sides {
        first,
        second,
        trials: against(first, second),
    };
    let is_number = first.is_written || second.is_written;
    // Two-sided, because either direction would be reported.
    let twice = |p: f64| (2.0 * p).min(1.0);
    let within = || {
        sides
            .is_below(1.0 + margin, false)
            .max(sides.is_above(1.0 / (1.0 + margin), false))
    };
    let (least, most) = (1.0 / (1.0 + floor), 1.0 + floor);
    let (apart_below, apart_above) = (1.0 / (1.0 + margin), 1.0 + margin);
    let (shown, contrary, within) = match relation {
        Relation::Less => (
            twice(sides.is_below(least, true)),
            twice(sides.is_above(most, !is_number)),
            if is_number { 1.0 } else { within() },
        ),
        Relation::Greater => (
            twice(sides.is_above(most, true)),
            twice(sides.is_below(least, !is_number)),
            if is_number { 1.0 } else { within() },
        ),
        Relation::AtMost if is_number => (
            twice(sides.is_below(1.0, false)),
            twice(sides.is_above(1.0, true)),
            1.0,
        ),
        Relation::AtMost => (
            twice(sides.is_below(apart_above, false)),
            twice(sides.is_above(apart_above, true)),
            1.0,
        ),
        Relation::AtLeast if is_number => (
            twice(sides.is_above(1.0, false)),
            twice(sides.is_below(1.0, true)),
            1.0,
        ),
        Relation::AtLeast => (
            twice(sides.is_above(apart_below, false)),
            twice(sides.is_below(apart_below, true)),
            1.0,
        ),
        _ => (
            within(),
            twice(
                sides
                    .is_below(apart_below, true)
                    .min(sides.is_above(apart_above, true)),
            ),
            1.0,
        ),
    };
    TestResult {
        shown,
        contrary,
        within,
        ratio: ratio(first, second, sides.trials.as_ref())
            .map(|ratio| scaled(ratio, second.factor)),
        need: need(sides.trials.as_ref(), margin),
        margin,
        is_censored: first.bound.is_some() || second.bound.is_some(),
    }
}

/// Two values, with what their trials say about their ratio.
struct Sides<'a> {
    first: &'a Term,
    second: &'a Term,
    trials: Option<Against>,
}

impl Sides<'_> {
    /// The p-value of the first being below `factor` times the second. Without trials it is 0 if that holds, otherwise
    /// 1.
    fn is_below(&self, factor: f64, strictly: bool) -> f64 {
        match &self.trials {
            _ if self.first.may_be(true) || self.second.may_be(false) => 1.0,
            Some(trials) => trials.p_below(factor),
            None => certain(self.first.high, factor * self.second.low, strictly),
        }
    }

    fn is_above(&self, factor: f64, strictly: bool) -> f64 {
        match &self.trials {
            _ if self.first.may_be(false) || self.second.may_be(true) => 1.0,
            Some(trials) => trials.p_above(factor),
            None => certain(factor * self.second.high, self.first.low, strictly),
        }
    }
}

fn certain(low: f64, high: f64, strictly: bool) -> f64 {
    let holds = low < high || (!strictly && low.total_cmp(&high).is_le());
    f64::from(u8::from(!holds))
}

/// The ratio of the first to the second, from trials; `None` without trials.
fn against(first: &Term, second: &Term) -> Option<Against> {
    let (one, other) = (first.trials(), second.trials());
    match (one, other) {
        // Rounds of different parts are different rounds, even if their numbers match.
        (Some(one), Some(other)) => Some(Against::sample(one, other, first.part == second.part)),
        (Some(one), None) => Some(Against::number(one, second.low)),
        _ => None,
    }
}

/// The number of rounds that would suffice, estimated from their spread: to show a difference of the observed size, or
/// to show that there is none beyond the margin, whichever takes fewer.
fn need(trials: Option<&Against>, margin: f64) -> RoundsToDecide {
    let Some(trials) = trials else {
        return RoundsToDecide::None;
    };
    let had = trials.trials();
    let Some(ratio) = trials.ratio() else {
        return RoundsToDecide::More { had };
    };
    let seen = ratio.log.abs();
    let wanted = seen.max(margin.ln_1p() - seen);
    match LogRatio::rounds_needed(&ratio, wanted.exp_m1()) {
        Some(rounds) if rounds <= MOST_ROUNDS => RoundsToDecide::About {
            had,
            rounds: rounds.max(had + 1),
        },
        _ => RoundsToDecide::TooMany { had },
    }
}

/// The ratio of both over trials, if both have some: with its 95 % interval or, with too few trials, the widest range
/// that they allow.
fn ratio(first: &Term, second: &Term, trials: Option<&Against>) -> Option<Quantity> {
    let (a, b) = (first.trials()?, second.trials()?);
    let rough = if first.part == second.part {
        a.rough_ratio(b)
    } else {
        a.rough_unpaired_ratio(b)
    };
    let known = trials?.ratio();
    known.map(Quantity::of_ratio).or_else(|| {
        let (range_a, range_b) = (a.range(), b.range());
        let ((a_low, a_high), (b_low, b_high)) = range_a.zip(range_b)?;
        (a_low > 0.0 && b_low > 0.0).then_some(Quantity {
            low: Some(a_low / b_high),
            high: Some(a_high / b_low),
            is_range: true,
            ..Quantity::bare(rough?)
        })
    })
}

/// `ratio` multiplied by `factor`.
fn scaled(ratio: Quantity, factor: f64) -> Quantity {
    Quantity {
        value: ratio.value * factor,
        low: ratio.low.map(|low| low * factor),
        high: ratio.high.map(|high| high * factor),
        ..ratio
    }
}

impl TestResult {
    /// The finding without correction.
    pub(super) fn finding(&self) -> ClaimVerdict {
        if self.within < LEVEL {
            ClaimVerdict::Equivalent
        } else if self.shown < LEVEL {
            ClaimVerdict::Confirmed
        } else if self.contrary < LEVEL {
            ClaimVerdict::Refuted
        } else if self.is_censored {
            ClaimVerdict::Censored
        } else {
            ClaimVerdict::Inconclusive
        }
    }

    /// A result without trials: certain either way.
    pub(super) fn certainly(is_so: bool) -> Self {
        let p = |holds: bool| f64::from(u8::from(!holds));
        Self {
            shown: p(is_so),
            contrary: p(!is_so),
            within: 1.0,
            ratio: None,
            need: RoundsToDecide::None,
            margin: 0.0,
            is_censored: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::term::Bound;
    use super::*;
    use crate::study::sample::Sample;

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
            is_written: false,
            low,
            high,
            ..Term::number(f64::midpoint(low, high), String::new())
        }
    }

    fn found(first: &Term, relation: Relation, second: &Term, share: f64) -> ClaimVerdict {
        weigh(first, relation, second, share).finding()
    }

    #[test]
    fn values_apart_are_decided_and_values_that_cross_are_not() {
        use ClaimVerdict::{Confirmed, Equivalent, Inconclusive, Refuted};
        use Relation::{Alike, AtLeast, AtMost, Greater, Less};
        let small = term(&[1.0, 1.1, 1.05, 1.02, 1.01]);
        let large = term(&[2.0, 2.1, 2.2, 2.05, 2.03]);
        let wide = term(&[0.9, 1.2, 1.0, 1.1, 0.8]);
        let three = |term: &Term| {
            let values: Vec<f64> = term
                .trials()
                .unwrap()
                .by_round()
                .iter()
                .map(|(_, v)| *v)
                .collect();
            self::term(&values[..3])
        };
        let number = |value| Term::number(value, String::new());
        for (first, relation, second, expected) in [
            (&small, Less, &large, Confirmed),
            (&small, Greater, &large, Refuted),
            (&large, Less, &small, Refuted),
            (&large, AtMost, &small, Refuted),
            (&small, AtLeast, &large, Refuted),
            (&small, Less, &wide, Inconclusive),
            (&small, Alike, &large, Refuted),
            (&small, Alike, &wide, Inconclusive),
            // No values overlap, but with three on each side that can happen by chance.
            (&three(&small), Less, &three(&large), Inconclusive),
            (&small, Less, &number(3.0), Inconclusive),
            (
                &term(&[1.0, 1.1, 1.05, 1.02, 1.01, 1.0]),
                Less,
                &number(3.0),
                Confirmed,
            ),
            (
                &term(&[1.0, 1.1, 1.05, 1.02, 1.01, 1.0]),
                Greater,
                &number(3.0),
                Refuted,
            ),
        ] {
            assert_eq!(
                found(first, relation, second, 0.05),
                expected,
                "{first:?} {relation:?} {second:?}"
            );
        }
        let noisy = Term {
            least: 1.5,
            ..small.clone()
        };
        assert_eq!(found(&noisy, Less, &large, 0.0), Equivalent);
        // A difference that is certain, but too small to matter.
        let (a, b) = (
            [1.0, 1.001, 0.999, 1.0, 1.001, 0.999],
            [1.02, 1.021, 1.019, 1.02, 1.021, 1.019],
        );
        let (a, b) = (term(&a), term(&b));
        assert_eq!(found(&a, Less, &b, 0.05), Equivalent);
        assert_eq!(found(&a, Less, &b, 0.01), Confirmed);
        assert_eq!(found(&b, Less, &a, 0.05), Equivalent);
        assert_eq!(found(&a, Alike, &b, 0.05), Confirmed);
        assert_eq!(found(&b, AtMost, &a, 0.05), Confirmed);
    }

    fn bound(may_be_higher: bool) -> Bound {
        Bound {
            may_be_higher,
            why: "descriptors".to_owned(),
        }
    }

    #[test]
    fn a_time_with_a_full_load_generator_may_be_lower_and_not_higher() {
        use ClaimVerdict::{Censored, Confirmed};
        let limited = |values: &[f64]| Term {
            bound: Some(bound(false)),
            ..term(values)
        };
        let (short, long) = (limited(&[1.0; 6]), limited(&[3.0; 6]));
        let known = term(&[2.0; 6]);
        for (first, relation, second, expected) in [
            (&short, Relation::Less, &known, Confirmed),
            (&known, Relation::Greater, &short, Confirmed),
            (&long, Relation::Greater, &known, Censored),
            (&known, Relation::Less, &long, Censored),
            (&short, Relation::Less, &long, Censored),
            (&short, Relation::Alike, &short, Censored),
        ] {
            assert_eq!(found(first, relation, second, 0.05), expected);
        }
    }

    #[test]
    fn bounds_that_may_be_more_decide_nothing_beyond_them() {
        let reach = |low: f64, censored: bool| Term {
            is_written: false,
            high: if censored { f64::INFINITY } else { low },
            bound: censored.then(|| bound(true)),
            ..Term::number(low, String::new())
        };
        let (more, as_much, less) = (reach(100.0, true), reach(100.0, true), reach(50.0, false));
        assert_eq!(
            found(&more, Relation::Greater, &less, 0.05),
            ClaimVerdict::Confirmed
        );
        assert_eq!(
            found(&less, Relation::Greater, &more, 0.05),
            ClaimVerdict::Refuted
        );
        assert_eq!(
            found(&more, Relation::Greater, &as_much, 0.05),
            ClaimVerdict::Censored
        );
        assert_eq!(
            found(&less, Relation::AtLeast, &less, 0.0),
            ClaimVerdict::Confirmed
        );
        assert_eq!(
            found(&less, Relation::Less, &less, 0.0),
            ClaimVerdict::Equivalent
        );
    }

    #[test]
    fn the_needed_rounds_are_estimated() {
        let need = |a: &[f64], b: &[f64]| weigh(&term(a), Relation::Less, &term(b), 0.05).need;
        assert_eq!(need(&[1.0; 3], &[2.0; 3]), RoundsToDecide::More { had: 3 });
        let noisy = [1.0, 1.4, 0.7, 1.2, 0.9, 1.1, 1.3, 0.8];
        let RoundsToDecide::About { had: 8, rounds } = need(&noisy, &[1.1; 8]) else {
            panic!("{:?}", need(&noisy, &[1.1; 8]));
        };
        assert!((9..1000).contains(&rounds), "{rounds}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Two values cannot each be below the other.
        #[test]
        fn a_confirmed_claim_does_not_confirm_its_opposite(
            a in prop::collection::vec(0.5_f64..2.0, 2..9),
            b in prop::collection::vec(0.5_f64..2.0, 2..9),
        ) {
            let (a, b) = (term(&a), term(&b));
            let (one, other) = (weigh(&a, Relation::Less, &b, 0.1), weigh(&b, Relation::Less, &a, 0.1));
            prop_assert!(one.shown >= LEVEL || other.shown >= LEVEL);
            let turned = weigh(&b, Relation::Greater, &a, 0.1);
            prop_assert!((one.shown - turned.shown).abs() < 1e-9 && (one.contrary - turned.contrary).abs() < 1e-9);
        }
    }
}
