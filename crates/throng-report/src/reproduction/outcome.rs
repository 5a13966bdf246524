//! Whether the repeat confirms a verdict.

use serde::Serialize;

use crate::comparison::{PairMetric, ratio};
use crate::study::claims::ClaimVerdict;
use throng_record::metrics::Quantity;
use throng_stats::{MARGIN, Verdict};

/// The outcome of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The second run says the same.
    Held,
    /// The second run contradicts it.
    NotHeld,
    /// The second run neither confirms nor contradicts it.
    NowInconclusive,
    /// One of the runs does not allow a comparison.
    NotComparable,
    /// The first run had no verdict that could hold.
    NoVerdict,
}

impl Outcome {
    /// As shown in tables.
    pub fn text(self) -> &'static str {
        match self {
            Self::Held => "reproduced",
            Self::NotHeld => "not reproduced",
            Self::NowInconclusive => "now inconclusive",
            Self::NotComparable => "not comparable",
            Self::NoVerdict => "no original verdict",
        }
    }
}

/// A comparison, as found in one of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunVerdict {
    /// The server's value over the reference's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Quantity>,
    /// The verdict on the server.
    pub verdict: Verdict,
    /// The verdict in a word that suits the metric.
    pub word: &'static str,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl RunVerdict {
    pub(super) fn of(measured: &PairMetric) -> Self {
        Self {
            ratio: measured.ratio,
            verdict: measured.verdict,
            word: measured.word,
            why: measured.why.clone(),
        }
    }

    /// "0.97 (0.95–0.99), slower".
    pub fn text(&self) -> String {
        let ratio = self.ratio.as_ref().map(ratio);
        let words = ratio.into_iter().chain([self.word.to_owned()]);
        words.collect::<Vec<_>>().join(", ")
    }

    fn interval(&self) -> Option<(f64, f64)> {
        let ratio = self.ratio?;
        ratio.low.zip(ratio.high)
    }

    /// Whether the two intervals overlap; true if either has no interval.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let both = self.interval().zip(other.interval());
        both.is_none_or(|((low, high), (other_low, other_high))| {
            low <= other_high && other_low <= high
        })
    }

    /// Whether it is certain that the server and the reference differ by no more than `margin`.
    fn is_within(&self, margin: f64) -> bool {
        let near = |ratio: f64| ratio.ln().abs() <= margin.ln_1p();
        self.interval()
            .is_some_and(|(low, high)| near(low) && near(high))
    }
}

/// The outcome of a verdict by a metric for which differences of up to `least` do not matter.
pub(super) fn of(then: &RunVerdict, now: &RunVerdict, least: f64) -> Outcome {
    use Verdict::{Equivalent, Inconclusive, NotComparable};
    match (then.verdict, now.verdict) {
        (NotComparable, _) | (_, NotComparable) => Outcome::NotComparable,
        (Inconclusive, _) => Outcome::NoVerdict,
        (then, now) if then == now => Outcome::Held,
        (_, Inconclusive) => Outcome::NowInconclusive,
        // A difference that is certain to be too small to matter.
        (Equivalent, _) if now.is_within(MARGIN.max(least)) => Outcome::Held,
        // Both runs may have seen the same ratio.
        (Equivalent, _) | (_, Equivalent) if then.overlaps(now) => Outcome::NowInconclusive,
        _ => Outcome::NotHeld,
    }
}

/// The outcome of a limit, from the verdict on the limit of the second run.
pub(super) fn of_limit(now: Verdict) -> Outcome {
    match now {
        Verdict::Better | Verdict::Worse => Outcome::NotHeld,
        Verdict::Equivalent | Verdict::Inconclusive => Outcome::Held,
        Verdict::NotComparable => Outcome::NotComparable,
    }
}

/// The outcome of a claim.
pub(super) fn of_claim(then: ClaimVerdict, now: ClaimVerdict) -> Outcome {
    use ClaimVerdict::{Censored, Inconclusive, NotTestable};
    match (then, now) {
        (NotTestable | Censored, _) | (_, NotTestable | Censored) => Outcome::NotComparable,
        (Inconclusive, _) => Outcome::NoVerdict,
        (then, now) if then == now => Outcome::Held,
        (_, Inconclusive) => Outcome::NowInconclusive,
        _ => Outcome::NotHeld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Better, Equivalent, Inconclusive, NotComparable, Worse};

    fn seen(verdict: Verdict, low: f64, high: f64) -> RunVerdict {
        RunVerdict {
            ratio: Some(Quantity {
                low: Some(low),
                high: Some(high),
                ..Quantity::bare((low * high).sqrt())
            }),
            verdict,
            word: "",
            why: None,
        }
    }

    #[test]
    fn a_verdict_holds_unless_it_is_contradicted() {
        let better = seen(Better, 1.2, 1.4);
        let small = seen(Better, 1.002, 1.008);
        let same = seen(Equivalent, 0.99, 1.01);
        for (then, now, expected) in [
            (&better, seen(Better, 1.1, 1.3), Outcome::Held),
            (&better, seen(Better, 3.0, 4.0), Outcome::Held),
            (&better, seen(Worse, 0.8, 0.9), Outcome::NotHeld),
            (
                &better,
                seen(Inconclusive, 0.8, 1.3),
                Outcome::NowInconclusive,
            ),
            (&better, same.clone(), Outcome::NotHeld),
            // The difference may still be there.
            (&small, same.clone(), Outcome::NowInconclusive),
            (&same, same.clone(), Outcome::Held),
            // Still within the margin.
            (&same, small.clone(), Outcome::Held),
            (&same, better.clone(), Outcome::NotHeld),
            (&same, seen(Worse, 0.95, 0.995), Outcome::NowInconclusive),
            (&same, seen(NotComparable, 1.0, 1.0), Outcome::NotComparable),
            (
                &seen(NotComparable, 1.0, 1.0),
                same.clone(),
                Outcome::NotComparable,
            ),
            (
                &seen(Inconclusive, 0.5, 2.0),
                better.clone(),
                Outcome::NoVerdict,
            ),
        ] {
            assert_eq!(of(then, &now, 0.0), expected, "{then:?} {now:?}");
        }
        assert!(!better.overlaps(&seen(Better, 3.0, 4.0)));
        // If 5 % does not matter, it contradicts nothing.
        let five = seen(Worse, 0.955, 0.96);
        assert_eq!(of(&same, &five, 0.0), Outcome::NotHeld);
        assert_eq!(of(&same, &five, 0.05), Outcome::Held);
    }

    #[test]
    fn claims_and_limits_hold_likewise() {
        use ClaimVerdict::{Censored, Confirmed, Equivalent, NotTestable, Refuted};
        for (then, now, expected) in [
            (Confirmed, Confirmed, Outcome::Held),
            (Confirmed, Refuted, Outcome::NotHeld),
            (Refuted, Confirmed, Outcome::NotHeld),
            (
                Refuted,
                ClaimVerdict::Inconclusive,
                Outcome::NowInconclusive,
            ),
            (ClaimVerdict::Inconclusive, Refuted, Outcome::NoVerdict),
            (Equivalent, Equivalent, Outcome::Held),
            (Equivalent, Confirmed, Outcome::NotHeld),
            (Confirmed, NotTestable, Outcome::NotComparable),
            (Censored, Refuted, Outcome::NotComparable),
        ] {
            assert_eq!(of_claim(then, now), expected, "{then:?} {now:?}");
        }
        assert_eq!(of_limit(Worse), Outcome::NotHeld);
        assert_eq!(of_limit(Inconclusive), Outcome::Held);
        assert_eq!(of_limit(NotComparable), Outcome::NotComparable);
    }
}
