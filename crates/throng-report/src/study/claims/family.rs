//! All tests of a study, with one correction for all of them.

use super::weigh::LEVEL;
use super::words::p_value;
use super::{ClaimVerdict, Evidence, JudgedCheck};
use throng_stats::holm;

/// The verdicts of all claims of a study and of their causes, in order.
///
/// All expectations of a claim must hold. It is confirmed with the greatest p-value of its comparisons, which needs no
/// correction for their number (R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling",
/// Technometrics 24 (1982)). One contrary result is enough to refute it, so the smallest p-value of a contrary is
/// multiplied by the number of comparisons (Bonferroni). Then Holm's procedure corrects both families: decisions and
/// equivalences.
pub(super) struct Family {
    verdicts: Vec<(ClaimVerdict, Option<f64>)>,
    tests: usize,
}

/// The p-values of a claim's comparisons.
struct ClaimTest {
    confirmed: f64,
    refuted: f64,
    equivalent: f64,
    /// The finding if nothing is decided.
    undecided: ClaimVerdict,
}

impl Family {
    /// The family of tests made up of the checks of each claim.
    pub(super) fn of<'a>(claims: impl Iterator<Item = &'a Vec<JudgedCheck>>) -> Self {
        let tested: Vec<Result<ClaimTest, ClaimVerdict>> =
            claims.map(|checks| ClaimTest::of(checks)).collect();
        let those: Vec<&ClaimTest> = tested.iter().flatten().collect();
        let decided: Vec<f64> = those
            .iter()
            .map(|one| one.confirmed.min(one.refuted))
            .collect();
        let equivalent: Vec<f64> = those.iter().map(|one| one.equivalent).collect();
        let (decided, equivalent) = (holm(&decided), holm(&equivalent));
        let mut corrected = decided.iter().zip(&equivalent);
        let tests = those.len();
        let verdicts = tested.iter().map(|one| match one {
            Err(finding) => (*finding, None),
            Ok(one) => {
                let Some((&decided, &equivalent)) = corrected.next() else {
                    return (one.undecided, None);
                };
                let finding = match (decided < LEVEL, equivalent < LEVEL) {
                    (true, _) if one.refuted <= one.confirmed => ClaimVerdict::Refuted,
                    (true, _) => ClaimVerdict::Confirmed,
                    (false, true) => ClaimVerdict::Equivalent,
                    (false, false) => one.undecided,
                };
                let p = if finding == ClaimVerdict::Equivalent {
                    equivalent
                } else {
                    decided
                };
                (finding, Some(p))
            }
        });
        Self {
            verdicts: verdicts.collect(),
            tests,
        }
    }

    /// The finding about the claim with index `place`.
    pub(super) fn verdict(&self, place: usize) -> ClaimVerdict {
        self.verdicts[place].0
    }

    /// The corrected p-value of the claim with index `place`.
    pub(super) fn p(&self, place: usize) -> Option<f64> {
        self.verdicts[place].1
    }

    /// A note that the checks of the claim with index `place` would decide it if they were the only ones; otherwise
    /// empty.
    pub(super) fn not_after_correction(&self, place: usize, checks: &[JudgedCheck]) -> String {
        let (verdict, p) = self.verdicts[place];
        let evidence = checks.iter().flat_map(|check| &check.evidence);
        let alone = ClaimVerdict::of_all(evidence.map(|one| one.verdict));
        match (verdict, alone, p) {
            (
                ClaimVerdict::Inconclusive,
                Some(ClaimVerdict::Confirmed | ClaimVerdict::Refuted | ClaimVerdict::Equivalent),
                Some(p),
            ) => {
                format!(
                    " This alone would be significant; corrected for the comparisons and {} tests of this study, it is not (p = {}). More runs would decide it.",
                    self.tests,
                    p_value(p)
                )
            }
            _ => String::new(),
        }
    }
}

impl ClaimTest {
    /// The tests of `checks`; an error with the finding if there is no comparison.
    fn of(checks: &[JudgedCheck]) -> Result<Self, ClaimVerdict> {
        let evidence: Vec<&Evidence> = checks.iter().flat_map(|check| &check.evidence).collect();
        if evidence.is_empty() {
            let findings = checks.iter().map(|check| check.verdict);
            return Err(ClaimVerdict::of_all(findings).unwrap_or(ClaimVerdict::NotTestable));
        }
        // A difference too small to matter neither confirms nor contradicts the claim.
        let is_small = |one: &Evidence| one.p[2] < LEVEL;
        let either = |one: &Evidence, p: f64| if is_small(one) { 1.0 } else { p };
        let greatest =
            |p: &dyn Fn(&Evidence) -> f64| evidence.iter().map(|one| p(one)).fold(0.0, f64::max);
        let least = evidence
            .iter()
            .map(|one| either(one, one.p[1]))
            .fold(1.0, f64::min);
        // A check without any measurement keeps the claim from being confirmed.
        let all_checked = checks.iter().all(|check| !check.evidence.is_empty());
        let is_confirmed = if all_checked {
            greatest(&|one| either(one, one.p[0]))
        } else {
            1.0
        };
        let is_equivalent = all_checked && evidence.iter().any(|one| is_small(one));
        let open = checks
            .iter()
            .filter(|check| check.verdict != ClaimVerdict::Refuted);
        let open = ClaimVerdict::of_all(open.map(|check| check.verdict));
        Ok(Self {
            confirmed: is_confirmed,
            refuted: (least * evidence.len() as f64).min(1.0),
            equivalent: if is_equivalent {
                greatest(&|one| one.p[2].min(one.p[0]))
            } else {
                1.0
            },
            undecided: open
                .filter(|open| matches!(open, ClaimVerdict::Censored | ClaimVerdict::NotTestable))
                .unwrap_or(ClaimVerdict::Inconclusive),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(p: &[[f64; 3]]) -> Vec<JudgedCheck> {
        let evidence = p.iter().map(|p| Evidence {
            verdict: match p {
                [_, _, within] if *within < LEVEL => ClaimVerdict::Equivalent,
                [shown, ..] if *shown < LEVEL => ClaimVerdict::Confirmed,
                [_, contrary, _] if *contrary < LEVEL => ClaimVerdict::Refuted,
                _ => ClaimVerdict::Inconclusive,
            },
            sentence: String::new(),
            ratio: None,
            margin: 0.05,
            p: *p,
        });
        let evidence: Vec<Evidence> = evidence.collect();
        let findings = evidence.iter().map(|one| one.verdict);
        vec![JudgedCheck {
            text: String::new(),
            verdict: ClaimVerdict::of_all(findings).unwrap_or(ClaimVerdict::NotTestable),
            sentence: String::new(),
            evidence,
            missing: Vec::new(),
        }]
    }

    fn verdicts(claims: &[Vec<JudgedCheck>]) -> Vec<ClaimVerdict> {
        let family = Family::of(claims.iter());
        (0..claims.len())
            .map(|place| family.verdict(place))
            .collect()
    }

    #[test]
    fn each_verdict_has_its_case() {
        use ClaimVerdict::{Confirmed, Equivalent, Inconclusive, NotTestable, Refuted};
        let claims = [
            check(&[[1e-4, 1.0, 1.0], [1e-3, 1.0, 1.0]]),
            check(&[[1e-4, 1.0, 1.0], [1.0, 1e-4, 1.0]]),
            check(&[[1e-4, 1.0, 1.0], [1.0, 1e-4, 1e-6]]),
            check(&[[1e-4, 1.0, 1.0], [0.3, 1.0, 0.4]]),
            check(&[]),
        ];
        let expected = [Confirmed, Refuted, Equivalent, Inconclusive, NotTestable];
        assert_eq!(verdicts(&claims), expected);
    }

    #[test]
    fn more_claims_need_stronger_evidence_each() {
        let weak = check(&[[0.02, 1.0, 1.0]]);
        assert_eq!(
            verdicts(std::slice::from_ref(&weak)),
            [ClaimVerdict::Confirmed]
        );
        let three = vec![weak; 3];
        assert_eq!(verdicts(&three), [ClaimVerdict::Inconclusive; 3]);
        // If all comparisons must hold, none of them needs stronger evidence.
        assert_eq!(
            verdicts(&[check(&[[0.02, 1.0, 1.0]; 5])]),
            [ClaimVerdict::Confirmed]
        );
        // If one contrary result refutes, it needs stronger evidence.
        assert_eq!(
            verdicts(&[check(&[[1.0, 0.02, 1.0]; 5])]),
            [ClaimVerdict::Inconclusive]
        );
    }

    #[test]
    fn a_check_without_measurements_keeps_the_verdict_open() {
        let mut claim = check(&[[1e-6, 1.0, 1.0]]);
        claim.extend(check(&[]));
        assert_eq!(verdicts(&[claim.clone()]), [ClaimVerdict::NotTestable]);
        claim[1].verdict = ClaimVerdict::Censored;
        assert_eq!(verdicts(&[claim]), [ClaimVerdict::Censored]);
    }
}
