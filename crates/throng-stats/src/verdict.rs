//! Verdicts on comparisons, corrected for the number of comparisons in one report.

use serde::Serialize;

use crate::paired::{LogRatio, holm};

/// Servers within this share of each other are equivalent.
pub const MARGIN: f64 = 0.02;

/// A p-value below this is significant: the maximum share of reports with a wrong verdict.
pub const LEVEL: f64 = 0.05;

/// The verdict on the first of two servers in one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The first is better.
    Better,
    /// The first is worse.
    Worse,
    /// They are within the margin of each other.
    Equivalent,
    /// The measurements are too few or too noisy.
    Inconclusive,
    /// The measurements are not comparable.
    NotComparable,
}

impl Verdict {
    /// Whether it names a difference.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Better | Self::Worse)
    }
}

/// A comparison to be judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioTest {
    /// The ratio of the first to the second; `None` with too few rounds.
    pub ratio: Option<LogRatio>,
    /// Whether a ratio above 1 is good.
    pub higher_is_better: bool,
    /// Differences of up to this share are ignored in this metric, even if significant.
    pub least: f64,
}

/// The p-values of one comparison: small if what it says is shown, `None` if it is not tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PValues {
    /// That there is a difference, in either direction.
    pub differs: Option<f64>,
    /// That any difference is within the margin.
    pub alike: Option<f64>,
}

/// What the family of its page shows about one comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    pub differs: bool,
    pub alike: bool,
}

/// What is shown about each comparison of one page, by Holm's procedure: the probability of any wrong difference is at
/// most 5 %, and so is the probability of any wrong equivalence.
pub fn family(all: &[PValues]) -> Vec<Shown> {
    let shown = |of: fn(&PValues) -> Option<f64>| {
        let mut corrected = holm(&all.iter().filter_map(of).collect::<Vec<f64>>()).into_iter();
        let each = all
            .iter()
            .map(move |one| of(one).and_then(|_| corrected.next()));
        each.map(|p| p.is_some_and(|p| p < LEVEL))
    };
    shown(|one| one.differs)
        .zip(shown(|one| one.alike))
        .map(|(differs, alike)| Shown { differs, alike })
        .collect()
}

impl RatioTest {
    /// Its p-values; `None` with too few rounds.
    pub fn p_values(&self) -> Option<PValues> {
        let ratio = self.ratio?;
        Some(PValues {
            differs: Some(ratio.p_beyond(self.least)),
            alike: Some(ratio.p_equivalent(MARGIN.max(self.least))),
        })
    }

    /// The verdict, from what its family shows.
    ///
    /// A significant difference is reported even within the margin: its size shows whether it matters.
    pub fn verdict(&self, shown: Shown) -> Verdict {
        match (shown.differs, shown.alike, self.ratio) {
            (true, _, Some(ratio)) if (ratio.log > 0.0) == self.higher_is_better => Verdict::Better,
            (true, ..) => Verdict::Worse,
            (false, true, _) => Verdict::Equivalent,
            (false, false, _) => Verdict::Inconclusive,
        }
    }
}

/// The verdicts on comparisons that are all of a page.
pub fn verdicts(all: &[RatioTest]) -> Vec<Verdict> {
    let known: Vec<PValues> = all.iter().filter_map(RatioTest::p_values).collect();
    let mut shown = family(&known).into_iter();
    let mut verdict = |one: &RatioTest| {
        let of_it = one.ratio.and_then(|_| shown.next());
        one.verdict(of_it.unwrap_or_default())
    };
    all.iter().map(&mut verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Better, Equivalent, Inconclusive, Worse};

    fn compared(log: f64, error: f64) -> RatioTest {
        let ratio = LogRatio {
            log,
            error,
            floor: 0.0,
            freedom: 50.0,
            pairs: 84,
        };
        RatioTest {
            ratio: Some(ratio),
            higher_is_better: true,
            least: 0.0,
        }
    }

    #[test]
    fn each_verdict_has_a_case() {
        let few = RatioTest {
            ratio: None,
            ..compared(0.5, 0.01)
        };
        let lower_is_better = RatioTest {
            higher_is_better: false,
            ..compared(0.5, 0.01)
        };
        let all = [
            compared(0.5, 0.01),
            compared(-0.5, 0.01),
            compared(0.001, 0.004),
            compared(0.05, 0.05),
            few,
            lower_is_better,
        ];
        assert_eq!(
            verdicts(&all),
            [Better, Worse, Equivalent, Inconclusive, Inconclusive, Worse]
        );
    }

    #[test]
    fn a_difference_within_the_margin_is_a_difference() {
        assert_eq!(verdicts(&[compared(0.01, 0.001)]), [Verdict::Better]);
        let does_not_matter = RatioTest {
            least: 0.02,
            ..compared(0.01, 0.001)
        };
        assert_eq!(verdicts(&[does_not_matter]), [Verdict::Equivalent]);
    }

    #[test]
    fn many_comparisons_need_stronger_evidence_each() {
        let weak = compared(0.05, 0.022);
        assert_eq!(verdicts(&[weak]), [Verdict::Better]);
        assert!(
            verdicts(&[weak, compared(0.0, 0.05)])
                .iter()
                .all(|one| *one == Verdict::Inconclusive)
        );
    }
}
