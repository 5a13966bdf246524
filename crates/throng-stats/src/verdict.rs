//! Verdicts on comparisons, corrected for the number of comparisons in one report.

use serde::Serialize;

use crate::paired::{LogRatio, holm};

/// Servers within this share of each other are equivalent.
pub const MARGIN: f64 = 0.02;

/// Maximum share of reports with a wrong verdict.
const LEVEL: f64 = 0.05;

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

/// The verdicts on all comparisons of one report, by Holm's procedure: the probability of any wrong difference is at
/// most 5 %, and so is the probability of any wrong equivalence.
///
/// A significant difference is reported even within `margin`: its size shows whether it matters.
pub fn verdicts(all: &[RatioTest], margin: f64) -> Vec<Verdict> {
    let judged: Vec<(usize, &RatioTest, LogRatio)> = all
        .iter()
        .enumerate()
        .filter_map(|(place, one)| Some((place, one, one.ratio?)))
        .collect();
    let differ = judged
        .iter()
        .map(|(_, one, ratio)| ratio.p_beyond(one.least));
    let differ = holm(&differ.collect::<Vec<_>>());
    let alike = judged
        .iter()
        .map(|(_, one, ratio)| ratio.p_equivalent(margin.max(one.least)));
    let alike = holm(&alike.collect::<Vec<_>>());
    let mut verdicts = vec![Verdict::Inconclusive; all.len()];
    for (((place, one, ratio), differs), alike) in judged.iter().zip(differ).zip(alike) {
        verdicts[*place] = match (differs < LEVEL, alike < LEVEL) {
            (true, _) if (ratio.log > 0.0) == one.higher_is_better => Verdict::Better,
            (true, _) => Verdict::Worse,
            (false, true) => Verdict::Equivalent,
            (false, false) => Verdict::Inconclusive,
        };
    }
    verdicts
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
            verdicts(&all, MARGIN),
            [Better, Worse, Equivalent, Inconclusive, Inconclusive, Worse]
        );
    }

    #[test]
    fn a_difference_within_the_margin_is_a_difference() {
        assert_eq!(
            verdicts(&[compared(0.01, 0.001)], MARGIN),
            [Verdict::Better]
        );
        let does_not_matter = RatioTest {
            least: 0.02,
            ..compared(0.01, 0.001)
        };
        assert_eq!(verdicts(&[does_not_matter], MARGIN), [Verdict::Equivalent]);
    }

    #[test]
    fn many_comparisons_need_stronger_evidence_each() {
        let weak = compared(0.05, 0.022);
        assert_eq!(verdicts(&[weak], MARGIN), [Verdict::Better]);
        assert!(
            verdicts(&[weak, compared(0.0, 0.05)], MARGIN)
                .iter()
                .all(|one| *one == Verdict::Inconclusive)
        );
    }
}
