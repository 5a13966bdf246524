//! The statistical test that compares two values, from their trials.

use super::ClaimVerdict;
use super::value::Value;
use throng_record::claim::Relation;
use throng_record::metrics::Quantity;
use throng_stats::{Against, LEVEL, LogRatio, PValues, Shown};

/// Two values, and what their trials say about a relation between them.
#[derive(Debug, Clone)]
pub(super) struct Weighed {
    pub(super) first: Value,
    pub(super) second: Value,
    pub(super) relation: Relation,
    /// The p-value of "it holds": small if that is shown.
    yes: f64,
    /// The p-value of the contrary.
    no: f64,
    /// The p-value of "they are within the margin", if a difference was claimed.
    tie: Option<f64>,
    /// What the run's own comparison says, if it has this one: yes, no or too noisy.
    decided: Option<ClaimVerdict>,
    /// The first value over the second, without its factor, if trials show it.
    pub(super) ratio: Option<Quantity>,
    /// The rounds that a decision would need.
    pub(super) need: RoundsToDecide,
    /// Differences up to this share do not matter.
    pub(super) margin: f64,
    has_trials: bool,
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

/// More trials than this are not suggested.
const MOST_ROUNDS: usize = 1000;

/// Tests the relation of the first value to the second; `share` is the margin. `direction` is what the run's own
/// comparison says, if it has one: 1 if the first is greater, -1 if it is less, 0 if neither is shown.
pub(super) fn weigh(
    first: Value,
    relation: Relation,
    second: Value,
    share: f64,
    direction: Option<i8>,
) -> Weighed {
    use Relation::{AtLeast, AtMost, Falls, Greater, Grows, Highest, Less, Lowest};
    let floor = first.least.max(second.least);
    let margin = share.max(floor);
    let sides = Sides {
        first: &first,
        second: &second,
        trials: against(&first, &second),
    };
    let is_number = first.place.is_none() || second.place.is_none();
    // Two-sided, because either direction would be reported.
    let twice = |p: f64| (2.0 * p).min(1.0);
    let (within_low, within_high) = (1.0 / (1.0 + margin), 1.0 + margin);
    let alike = sides
        .is_below(within_high, false)
        .max(sides.is_above(within_low, false));
    let (least, most) = (1.0 / (1.0 + floor), 1.0 + floor);
    // A difference from another value needs more than what does not matter; a bound is kept or missed.
    let slack = |end: f64| if is_number { 1.0 } else { end };
    let (yes, no, tie) = match relation {
        Less | Lowest | Falls => (
            twice(sides.is_below(least, true)),
            twice(sides.is_above(most, !is_number)),
            (!is_number).then_some(alike),
        ),
        Greater | Highest | Grows => (
            twice(sides.is_above(most, true)),
            twice(sides.is_below(least, !is_number)),
            (!is_number).then_some(alike),
        ),
        AtMost => {
            let end = slack(within_high);
            (
                twice(sides.is_below(end, false)),
                twice(sides.is_above(end, true)),
                None,
            )
        }
        AtLeast => {
            let end = slack(within_low);
            (
                twice(sides.is_above(end, false)),
                twice(sides.is_below(end, true)),
                None,
            )
        }
        Relation::Alike | Relation::Flat | Relation::EndedBy => {
            let apart = sides.is_below(within_low, true);
            (
                alike,
                twice(apart.min(sides.is_above(within_high, true))),
                None,
            )
        }
    };
    let wanted = match relation {
        Less | Lowest => Some(-1),
        Greater | Highest => Some(1),
        _ => None,
    };
    let decided = wanted.zip(direction);
    let shown = ratio(&first, &second, sides.trials.as_ref());
    Weighed {
        yes,
        no,
        tie,
        decided: decided.map(|(needed, seen)| match seen {
            0 => ClaimVerdict::Noisy,
            seen if seen == needed => ClaimVerdict::Yes,
            _ => ClaimVerdict::No,
        }),
        ratio: shown.map(|shown| shown.times(second.factor)),
        need: need(sides.trials.as_ref(), margin),
        margin,
        has_trials: sides.trials.is_some(),
        relation,
        first,
        second,
    }
}

impl Weighed {
    /// What a family of tests is to decide; `None` if nothing was tested.
    pub(super) fn p_values(&self) -> Option<PValues> {
        let is_open = |p: &f64| *p < 1.0;
        let either = self.yes.min(self.no);
        let (differs, alike) = if self.is_of_equality() {
            (Some(self.no), Some(self.yes))
        } else {
            (Some(either).filter(|_| self.decided.is_none()), self.tie)
        };
        let tested = PValues {
            differs: differs.filter(is_open),
            alike: alike.filter(is_open),
        };
        let is_tested = tested.differs.or(tested.alike).is_some();
        (self.has_trials && is_tested).then_some(tested)
    }

    /// Whether either value is only a bound.
    fn is_bounded(&self) -> bool {
        self.first.bound.is_some() || self.second.bound.is_some()
    }

    /// Whether equality was claimed.
    pub(super) fn is_of_equality(&self) -> bool {
        matches!(self.relation, Relation::Alike | Relation::Flat)
    }

    /// The verdict, from what the family shows.
    pub(super) fn verdict(&self, shown: Shown) -> ClaimVerdict {
        if self.has_trials {
            self.from(shown)
        } else {
            self.alone()
        }
    }

    /// The verdict if it were the only comparison; without trials, the p-values are 0 or 1.
    pub(super) fn alone(&self) -> ClaimVerdict {
        let is_shown = |p: Option<f64>| p.is_some_and(|p| p < LEVEL);
        self.from(if self.is_of_equality() {
            Shown {
                differs: is_shown(Some(self.no)),
                alike: is_shown(Some(self.yes)),
            }
        } else {
            Shown {
                differs: is_shown(Some(self.yes.min(self.no))),
                alike: is_shown(self.tie),
            }
        })
    }

    fn from(&self, shown: Shown) -> ClaimVerdict {
        let by_own = match (shown.differs, self.yes < self.no) {
            (false, _) => ClaimVerdict::Noisy,
            (true, true) => ClaimVerdict::Yes,
            (true, false) => ClaimVerdict::No,
        };
        match self.decided.unwrap_or(by_own) {
            _ if shown.alike && self.is_of_equality() => ClaimVerdict::Yes,
            _ if shown.alike => ClaimVerdict::Tie,
            ClaimVerdict::Noisy if self.is_bounded() => ClaimVerdict::NotMeasured,
            decided => decided,
        }
    }
}

/// Two values, with what their trials say about their ratio.
struct Sides<'a> {
    first: &'a Value,
    second: &'a Value,
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
fn against(first: &Value, second: &Value) -> Option<Against> {
    let (one, other) = (first.trials(), second.trials());
    match (one, other) {
        // Rounds of different parts are different rounds, even if their numbers match.
        (Some(one), Some(other)) => Some(Against::sample(one, other, first.is_beside(second))),
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
fn ratio(first: &Value, second: &Value, trials: Option<&Against>) -> Option<Quantity> {
    let (a, b) = (first.trials()?, second.trials()?);
    let rough = if first.is_beside(second) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::value::{Bound, Measured, Repeats};
    use super::*;
    use crate::study::sample::Sample;

    fn place() -> Measured {
        Measured {
            part: 0,
            server: "epoll".to_owned(),
            clients: Some(100),
            repeats: Repeats::Timed,
        }
    }

    fn value(values: &[f64]) -> Value {
        let rounds: Vec<(u32, f64)> = (0..).zip(values.iter().copied()).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let sample = Sample {
            trials: throng_stats::Sample::of_values(rounds),
            value: f64::midpoint(low, high),
            interval: Some((low, high)),
            exact: false,
        };
        Value {
            sample: Some(sample),
            place: Some(place()),
            low,
            high,
            ..Value::number(f64::midpoint(low, high), String::new())
        }
    }

    fn found(first: &Value, relation: Relation, second: &Value, share: f64) -> ClaimVerdict {
        weigh(first.clone(), relation, second.clone(), share, None).alone()
    }

    #[test]
    fn values_apart_are_decided_and_values_that_cross_are_not() {
        use ClaimVerdict::{No, Noisy, Tie, Yes};
        use Relation::{Alike, AtLeast, AtMost, Greater, Less};
        let small = value(&[1.0, 1.1, 1.05, 1.02, 1.01]);
        let large = value(&[2.0, 2.1, 2.2, 2.05, 2.03]);
        let wide = value(&[0.9, 1.2, 1.0, 1.1, 0.8]);
        let three = |of: &Value| {
            let values: Vec<f64> = of
                .trials()
                .unwrap()
                .by_round()
                .iter()
                .map(|(_, v)| *v)
                .collect();
            self::value(&values[..3])
        };
        let number = |value| Value::number(value, String::new());
        for (first, relation, second, expected) in [
            (&small, Less, &large, Yes),
            (&small, Greater, &large, No),
            (&large, Less, &small, No),
            (&large, AtMost, &small, No),
            (&small, AtLeast, &large, No),
            (&small, Less, &wide, Noisy),
            (&small, Alike, &large, No),
            (&small, Alike, &wide, Noisy),
            // No values overlap, but with three on each side that can happen by chance.
            (&three(&small), Less, &three(&large), Noisy),
            (&small, Less, &number(3.0), Noisy),
            (
                &value(&[1.0, 1.1, 1.05, 1.02, 1.01, 1.0]),
                Less,
                &number(3.0),
                Yes,
            ),
            (
                &value(&[1.0, 1.1, 1.05, 1.02, 1.01, 1.0]),
                Greater,
                &number(3.0),
                No,
            ),
        ] {
            assert_eq!(
                found(first, relation, second, 0.05),
                expected,
                "{first:?} {relation:?} {second:?}"
            );
        }
        let noisy = Value {
            least: 1.5,
            ..small.clone()
        };
        assert_eq!(found(&noisy, Less, &large, 0.0), Tie);
        // A difference that is certain, but too small to matter.
        let (a, b) = (
            [1.0, 1.001, 0.999, 1.0, 1.001, 0.999],
            [1.02, 1.021, 1.019, 1.02, 1.021, 1.019],
        );
        let (a, b) = (value(&a), value(&b));
        assert_eq!(found(&a, Less, &b, 0.05), Tie);
        assert_eq!(found(&a, Less, &b, 0.01), Yes);
        assert_eq!(found(&b, Less, &a, 0.05), Tie);
        assert_eq!(found(&a, Alike, &b, 0.05), Yes);
        assert_eq!(found(&b, AtMost, &a, 0.05), Yes);
    }

    fn bound(may_be_higher: bool) -> Bound {
        Bound {
            may_be_higher,
            why: "descriptors".to_owned(),
        }
    }

    #[test]
    fn a_time_with_a_full_load_generator_may_be_lower_and_not_higher() {
        use ClaimVerdict::{NotMeasured, Yes};
        let limited = |values: &[f64]| Value {
            bound: Some(bound(false)),
            ..value(values)
        };
        let (short, long) = (limited(&[1.0; 6]), limited(&[3.0; 6]));
        let known = value(&[2.0; 6]);
        for (first, relation, second, expected) in [
            (&short, Relation::Less, &known, Yes),
            (&known, Relation::Greater, &short, Yes),
            (&long, Relation::Greater, &known, NotMeasured),
            (&known, Relation::Less, &long, NotMeasured),
            (&short, Relation::Less, &long, NotMeasured),
            (&short, Relation::Alike, &short, NotMeasured),
        ] {
            assert_eq!(found(first, relation, second, 0.05), expected);
        }
    }

    #[test]
    fn bounds_that_may_be_more_decide_nothing_beyond_them() {
        let reach = |low: f64, censored: bool| Value {
            place: Some(place()),
            high: if censored { f64::INFINITY } else { low },
            bound: censored.then(|| bound(true)),
            ..Value::number(low, String::new())
        };
        let (more, as_much, less) = (reach(100.0, true), reach(100.0, true), reach(50.0, false));
        assert_eq!(
            found(&more, Relation::Greater, &less, 0.05),
            ClaimVerdict::Yes
        );
        assert_eq!(
            found(&less, Relation::Greater, &more, 0.05),
            ClaimVerdict::No
        );
        assert_eq!(
            found(&more, Relation::Greater, &as_much, 0.05),
            ClaimVerdict::NotMeasured
        );
        assert_eq!(
            found(&less, Relation::AtLeast, &less, 0.0),
            ClaimVerdict::Yes
        );
        assert_eq!(found(&less, Relation::Less, &less, 0.0), ClaimVerdict::Tie);
    }

    #[test]
    fn the_needed_rounds_are_estimated() {
        let need =
            |a: &[f64], b: &[f64]| weigh(value(a), Relation::Less, value(b), 0.05, None).need;
        assert_eq!(need(&[1.0; 3], &[2.0; 3]), RoundsToDecide::More { had: 3 });
        let noisy = [1.0, 1.4, 0.7, 1.2, 0.9, 1.1, 1.3, 0.8];
        let RoundsToDecide::About { had: 8, rounds } = need(&noisy, &[1.1; 8]) else {
            panic!("{:?}", need(&noisy, &[1.1; 8]));
        };
        assert!((9..1000).contains(&rounds), "{rounds}");
    }

    #[test]
    fn what_the_comparison_of_the_run_says_is_said() {
        let (small, large) = (value(&[1.0; 6]), value(&[2.0; 6]));
        for (direction, expected) in [
            (None, ClaimVerdict::Yes),
            (Some(-1), ClaimVerdict::Yes),
            (Some(1), ClaimVerdict::No),
            (Some(0), ClaimVerdict::Noisy),
        ] {
            let weighed = weigh(
                small.clone(),
                Relation::Less,
                large.clone(),
                0.05,
                direction,
            );
            assert_eq!(weighed.alone(), expected);
            let is_tested = weighed.p_values().is_some_and(|p| p.differs.is_some());
            assert_eq!(is_tested, direction.is_none());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Two values cannot each be below the other.
        #[test]
        fn a_confirmed_claim_does_not_confirm_its_opposite(
            a in prop::collection::vec(0.5_f64..2.0, 2..9),
            b in prop::collection::vec(0.5_f64..2.0, 2..9),
        ) {
            let (a, b) = (value(&a), value(&b));
            let less = |one: &Value, other: &Value| weigh(one.clone(), Relation::Less, other.clone(), 0.1, None);
            let (one, other) = (less(&a, &b), less(&b, &a));
            prop_assert!(one.yes >= LEVEL || other.yes >= LEVEL);
            let turned = weigh(b, Relation::Greater, a, 0.1, None);
            prop_assert!((one.yes - turned.yes).abs() < 1e-9 && (one.no - turned.no).abs() < 1e-9);
        }
    }
}
