//! A result of one run and the same result of a later one: whether it held.

use serde::{Serialize, Serializer};

use crate::Report;
use crate::comparison::size::Size;
use crate::comparison::{Pair, PairMetric};
use crate::limit::{Limits, ServerLimit};
use crate::study::claims::{ClaimVerdict, JudgedClaim};
use throng_record::TriedValue;
use throng_record::format::counted;
use throng_record::metrics::{Metric, Quantity};
use throng_stats::{MARGIN, Verdict};

/// A result in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repeated {
    #[serde(flatten)]
    pub subject: Subject,
    /// The result of the earlier run.
    pub earlier: Seen,
    /// The result of the later run; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<Seen>,
    /// Whether the earlier result held.
    pub outcome: Outcome,
    /// Whether the difference has the same direction but another size: the intervals do not overlap.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub other_size: bool,
    /// The later limit over the earlier one. A limit comes from one search, so there is no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The verdict on the later limit: different only if a value passed in one run and failed in the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// What a result is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Subject {
    /// A server compared with another one of the same run.
    Pair {
        clients: u32,
        server: String,
        reference: String,
        #[serde(serialize_with = "name")]
        metric: &'static Metric,
    },
    /// The limit of a server.
    Limit {
        server: String,
        /// "clients", "requests per second".
        unit: &'static str,
    },
    /// A claim of a study.
    Claim { text: String },
}

/// A result as one of the runs has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Seen {
    /// The server's value over the reference's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Quantity>,
    /// The verdict on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The verdict in a word, or the limit.
    pub word: String,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The later run says the same.
    Held,
    /// The later run contradicts it.
    NotHeld,
    /// The later run neither confirms nor contradicts it.
    Undecided,
    /// One of the runs does not allow a comparison.
    NotComparable,
    /// The earlier run had no verdict that could hold.
    NoVerdict,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn name<S: Serializer>(metric: &&'static Metric, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(metric.name)
}

impl Subject {
    /// "throughput of poll compared with epoll, 50 clients".
    fn sentence(&self) -> String {
        match self {
            Self::Pair {
                clients,
                server,
                reference,
                metric,
            } => {
                let (noun, with) = (metric.noun(), counted(*clients, "client"));
                format!("{noun} of {server} compared with {reference}, {with}")
            }
            Self::Limit { server, .. } => format!("limit of {server}"),
            Self::Claim { text } => format!("claim \"{text}\""),
        }
    }

    /// Its row in a table.
    pub fn title(&self) -> &str {
        match self {
            Self::Pair { metric, .. } => metric.label,
            Self::Limit { server, .. } => server,
            Self::Claim { text } => text,
        }
    }
}

impl Seen {
    fn of(measured: &PairMetric) -> Self {
        Self {
            ratio: measured.ratio,
            verdict: Some(measured.verdict),
            word: measured.word.to_owned(),
            why: measured.why.clone(),
        }
    }

    fn word(word: impl Into<String>) -> Self {
        Self {
            word: word.into(),
            ..Self::default()
        }
    }

    /// "0.97 (0.95–0.99) slower".
    pub fn text(&self) -> String {
        let times = self.ratio.as_ref().map(Quantity::as_ratio);
        let words = times.into_iter().chain([self.word.clone()]);
        words.collect::<Vec<_>>().join(" ")
    }

    /// "3.4x faster (3.1–3.7x)", "equivalent".
    fn sized(&self) -> String {
        let differs = self.verdict.is_some_and(Verdict::is_difference);
        let of_difference = self.ratio.filter(|_| differs);
        of_difference.map_or_else(
            || self.word.clone(),
            |times| Size::of(times).with(&self.word),
        )
    }

    fn interval(&self) -> Option<(f64, f64)> {
        let times = self.ratio?;
        times.low.zip(times.high)
    }

    /// Whether the two intervals overlap; true if either has no interval.
    fn overlaps(&self, other: &Self) -> bool {
        let both = self.interval().zip(other.interval());
        both.is_none_or(|((low, high), (other_low, other_high))| {
            low <= other_high && other_low <= high
        })
    }

    /// Whether it is certain that the server and the reference differ by no more than `margin`.
    fn is_within(&self, margin: f64) -> bool {
        let near = |times: f64| times.ln().abs() <= margin.ln_1p();
        self.interval()
            .is_some_and(|(low, high)| near(low) && near(high))
    }
}

impl Outcome {
    /// As shown in tables.
    pub fn text(self) -> &'static str {
        match self {
            Self::Held => "reproduced",
            Self::NotHeld => "not reproduced",
            Self::Undecided => "undecided",
            Self::NotComparable => "not comparable",
            Self::NoVerdict => "no original verdict",
        }
    }

    /// The outcome of a verdict by a metric for which differences of up to `least` do not matter.
    fn of(then: &Seen, now: &Seen, least: f64) -> Self {
        use Verdict::{Equivalent, Inconclusive, NotComparable};
        let verdicts = [then, now].map(|seen| seen.verdict.unwrap_or(NotComparable));
        match verdicts {
            [NotComparable, _] | [_, NotComparable] => Self::NotComparable,
            [Inconclusive, _] => Self::NoVerdict,
            [earlier, later] if earlier == later => Self::Held,
            [_, Inconclusive] => Self::Undecided,
            // A difference that is certain to be too small to matter.
            [Equivalent, _] if now.is_within(MARGIN.max(least)) => Self::Held,
            // Both runs may have seen the same ratio.
            [Equivalent, _] | [_, Equivalent] if then.overlaps(now) => Self::Undecided,
            _ => Self::NotHeld,
        }
    }

    /// The outcome of a limit, from the verdict on the later one.
    fn of_limit(now: Verdict) -> Self {
        match now {
            Verdict::Better | Verdict::Worse => Self::NotHeld,
            Verdict::Equivalent | Verdict::Inconclusive => Self::Held,
            Verdict::NotComparable => Self::NotComparable,
        }
    }

    /// The outcome of a claim, from the cells that both runs judged: it held if none of them turned.
    fn of_claim(then: &JudgedClaim, now: &JudgedClaim) -> Self {
        let both: Vec<(ClaimVerdict, ClaimVerdict)> = then
            .cells
            .iter()
            .filter_map(|earlier| {
                let later = now.cells.iter().find(|later| later.is_same(earlier))?;
                Some((earlier.verdict, later.verdict))
            })
            .collect();
        let decided = both.iter().filter(|(earlier, _)| earlier.is_decided());
        let repeated = decided.clone().filter(|(_, later)| later.is_decided());
        let is_measured = |(earlier, later): &(ClaimVerdict, ClaimVerdict)| {
            ![*earlier, *later].contains(&ClaimVerdict::NotMeasured)
        };
        if repeated.clone().any(|(earlier, later)| earlier != later) {
            Self::NotHeld
        } else if repeated.count() > 0 {
            Self::Held
        } else if !both.iter().any(is_measured) {
            Self::NotComparable
        } else if decided.count() > 0 {
            Self::Undecided
        } else {
            Self::NoVerdict
        }
    }
}

impl Repeated {
    fn new(subject: Subject, [earlier, later]: [Seen; 2], outcome: Outcome) -> Self {
        Self {
            subject,
            earlier,
            later: Some(later),
            outcome,
            other_size: false,
            ratio: None,
            verdict: None,
        }
    }

    /// Both results, as shown in tables.
    pub fn seen(&self) -> [String; 2] {
        let later = self.later.as_ref().map(Seen::text);
        [
            self.earlier.text(),
            later.unwrap_or_else(|| "not measured".to_owned()),
        ]
    }

    /// Why there is no verdict; may be empty.
    pub fn why(&self) -> &str {
        let mut seen = [Some(&self.earlier), self.later.as_ref()]
            .into_iter()
            .flatten();
        seen.find_map(|seen| seen.why.as_deref())
            .unwrap_or_default()
    }

    /// "throughput of poll compared with epoll, 50 clients: was equivalent, now 3.4x faster (3.1–3.7x)".
    pub(super) fn sentence(&self) -> String {
        let later = self.later.as_ref().map_or_else(String::new, Seen::sized);
        let unit = match &self.subject {
            Subject::Limit { unit, .. } => format!(" {unit}"),
            _ => String::new(),
        };
        let (about, earlier) = (self.subject.sentence(), self.earlier.sized());
        format!("{about}: was {earlier}, now {later}{unit}")
    }

    /// The verdicts on these pairs of the earlier run, and on the same pairs of the later run.
    pub(super) fn of_pairs(then: &[Pair], now: &[Pair]) -> Vec<Self> {
        let is_same = |a: &Pair, b: &Pair| {
            (a.clients, &a.server, &a.reference) == (b.clients, &b.server, &b.reference)
        };
        let repeated = then.iter().flat_map(|pair| {
            let later = now.iter().find(|other| is_same(pair, other));
            let measures = pair.measures.iter();
            measures.map(move |measured| {
                let same = later.and_then(|later| later.by(measured.name));
                Self::of_pair(pair, measured, same)
            })
        });
        repeated.collect()
    }

    fn of_pair(pair: &Pair, then: &PairMetric, now: Option<&PairMetric>) -> Self {
        let (earlier, later) = (Seen::of(then), now.map(Seen::of));
        let outcome = later.as_ref().map_or(Outcome::NotComparable, |seen| {
            Outcome::of(&earlier, seen, then.metric.least_difference)
        });
        let is_apart = later.as_ref().is_some_and(|seen| !earlier.overlaps(seen));
        Self {
            subject: Subject::Pair {
                clients: pair.clients,
                server: pair.server.clone(),
                reference: pair.reference.clone(),
                metric: then.metric,
            },
            other_size: outcome == Outcome::Held && then.verdict.is_difference() && is_apart,
            earlier,
            later,
            outcome,
            ratio: None,
            verdict: None,
        }
    }

    /// The claims that both runs judged.
    pub(super) fn of_claims(then: &[JudgedClaim], now: &[JudgedClaim]) -> Vec<Self> {
        let both = then.iter().filter_map(|claim| {
            let mut others = now.iter();
            let later = others.find(|other| other.text == claim.text)?;
            let text = claim.text.clone();
            let verdicts = [claim.verdict, later.verdict];
            Some(Self::new(
                Subject::Claim { text },
                verdicts.map(|verdict| Seen::word(verdict.text())),
                Outcome::of_claim(claim, later),
            ))
        });
        both.collect()
    }

    /// The limits of the servers that both runs searched, in the order of the later run.
    pub(super) fn of_limits([then, now]: [&Report<'_>; 2]) -> Vec<Self> {
        let (Some(a), Some(b)) = (&then.limits, &now.limits) else {
            return Vec::new();
        };
        let both = b.servers.iter().filter_map(|later| {
            let mut others = a.servers.iter();
            let earlier = others.find(|earlier| earlier.server == later.server)?;
            Some(Self::of_limit((a, earlier), (b, later)))
        });
        both.collect()
    }

    fn of_limit((a, then): (&Limits, &ServerLimit), (b, now): (&Limits, &ServerLimit)) -> Self {
        let value = |tried: Option<TriedValue>| tried.map(|tried| tried.value);
        let passed = value(then.passed).zip(value(now.passed));
        let is_above = |upper: &ServerLimit, lower: &ServerLimit| {
            let ends = value(lower.failed).zip(value(upper.passed));
            ends.is_some_and(|(failed, held)| held >= failed)
        };
        let why = if a.find != b.find {
            Some(format!("the earlier run searched for {}", a.unit()))
        } else if then.passed.is_none() {
            Some("nothing passed in the earlier run".to_owned())
        } else if now.passed.is_none() {
            Some("nothing passed in the later run".to_owned())
        } else {
            None
        };
        let verdict = match passed {
            _ if why.is_some() => Verdict::NotComparable,
            _ if is_above(now, then) => Verdict::Better,
            _ if is_above(then, now) => Verdict::Worse,
            Some((earlier, later)) if earlier == later => Verdict::Equivalent,
            _ => Verdict::Inconclusive,
        };
        let comparable = passed.filter(|(earlier, _)| why.is_none() && *earlier > 0);
        let later = Seen {
            why,
            ..Seen::word(now.text())
        };
        let subject = Subject::Limit {
            server: now.server.clone(),
            unit: b.unit(),
        };
        let both = [Seen::word(then.text()), later];
        Self {
            ratio: comparable.map(|(old, new)| new as f64 / old as f64),
            verdict: Some(verdict),
            ..Self::new(subject, both, Outcome::of_limit(verdict))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::claims::ClaimCell;
    use Verdict::{Better, Equivalent, Inconclusive, NotComparable, Worse};

    fn seen(verdict: Verdict, low: f64, high: f64) -> Seen {
        Seen {
            ratio: Some(Quantity {
                low: Some(low),
                high: Some(high),
                ..Quantity::bare((low * high).sqrt())
            }),
            verdict: Some(verdict),
            ..Seen::default()
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
            (&better, seen(Inconclusive, 0.8, 1.3), Outcome::Undecided),
            (&better, same.clone(), Outcome::NotHeld),
            // The difference may still be there.
            (&small, same.clone(), Outcome::Undecided),
            (&same, same.clone(), Outcome::Held),
            // Still within the margin.
            (&same, small.clone(), Outcome::Held),
            (&same, better.clone(), Outcome::NotHeld),
            (&same, seen(Worse, 0.95, 0.995), Outcome::Undecided),
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
            assert_eq!(Outcome::of(then, &now, 0.0), expected, "{then:?} {now:?}");
        }
        assert!(!better.overlaps(&seen(Better, 3.0, 4.0)));
        // If 5 % does not matter, it contradicts nothing.
        let five = seen(Worse, 0.955, 0.96);
        assert_eq!(Outcome::of(&same, &five, 0.0), Outcome::NotHeld);
        assert_eq!(Outcome::of(&same, &five, 0.05), Outcome::Held);
    }

    #[test]
    fn claims_and_limits_hold_likewise() {
        use ClaimVerdict::{No, Noisy, NotMeasured, Tie, Yes};
        let claim = |verdicts: &[ClaimVerdict]| JudgedClaim {
            text: String::new(),
            leads: false,
            verdict: Yes,
            sentence: String::new(),
            cells: (0..)
                .zip(verdicts)
                .map(|(clients, &verdict)| ClaimCell {
                    part: String::new(),
                    title: String::new(),
                    metric: String::new(),
                    server: String::new(),
                    rival: String::new(),
                    against: String::new(),
                    clients: Some(clients),
                    verdict,
                    seen: String::new(),
                    ratio: None,
                    margin: 0.0,
                    published: None,
                    missing: None,
                })
                .collect(),
            cause: None,
            fidelity: None,
        };
        for (then, now, expected) in [
            ([Yes, No], [Yes, No], Outcome::Held),
            ([Yes, No], [Yes, Yes], Outcome::NotHeld),
            ([Yes, Tie], [Noisy, No], Outcome::NotHeld),
            ([Yes, No], [Noisy, No], Outcome::Held),
            ([No, Noisy], [Noisy, Noisy], Outcome::Undecided),
            ([Noisy, Noisy], [No, Yes], Outcome::NoVerdict),
            (
                [Yes, NotMeasured],
                [NotMeasured, No],
                Outcome::NotComparable,
            ),
        ] {
            let [earlier, later] = [claim(&then), claim(&now)];
            assert_eq!(
                Outcome::of_claim(&earlier, &later),
                expected,
                "{then:?} {now:?}"
            );
        }
        assert_eq!(Outcome::of_limit(Worse), Outcome::NotHeld);
        assert_eq!(Outcome::of_limit(Inconclusive), Outcome::Held);
        assert_eq!(Outcome::of_limit(NotComparable), Outcome::NotComparable);
    }
}
