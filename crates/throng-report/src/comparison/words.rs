//! The comparison of two servers in a few sentences.

use super::pair::{LongerRun, Pair, PairMetric};
use super::size::{Size, inverse, percent};
use throng_record::format::{capitalized_unless, counted, list, whole};
use throng_stats::{MARGIN, Verdict};

/// Kinds of times, and the percentiles of each that are compared.
const TIMES: [(&str, [&str; 2]); 3] = [
    ("latency", ["latency_p50_us", "latency_p99_us"]),
    ("response time", ["response_p50_us", "response_p99_us"]),
    ("job time", ["job_p50_us", "job_p99_us"]),
];

/// More inconclusive measures than this share one sentence.
const MOST_SENTENCES: usize = 2;

/// A measure that repeats another: clients per second is the inverse of completion time.
const UNSAID: &str = "clients_per_s";

/// How much a sentence says about each difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Only its estimate.
    Estimates,
    /// Its interval too, or how large it could be without showing.
    Intervals,
}

/// "With 50 clients, B is 3.4x faster than A (3.1–3.7x) and uses 12 % less memory (10–14 %). ..."
pub(super) fn sentence(pair: &Pair) -> String {
    sentences(pair, Detail::Intervals).join(" ")
}

impl Pair {
    /// "With 50 clients, B is 3.4x faster than A and uses 12 % less memory. Its latency is 70 % lower at p50."
    pub(crate) fn first_sentences(&self) -> String {
        let shown = match self.not_compared {
            Some(_) => 1,
            None => differences(self, Detail::Estimates).len().clamp(1, 2),
        };
        sentences(self, Detail::Estimates)[..shown].join(" ")
    }
}

/// The sentences about a pair, at least one.
fn sentences(pair: &Pair, detail: Detail) -> Vec<String> {
    let (server, reference) = (&pair.server, &pair.reference);
    let with = format!("With {}", counted(pair.clients, "client"));
    if let Some(why) = &pair.not_compared {
        return vec![format!(
            "{with}, {server} and {reference} are not comparable: {why}."
        )];
    }
    let mut sentences = differences(pair, detail);
    sentences.extend(equivalent(pair, sentences.is_empty()));
    sentences.extend(inconclusive(pair, sentences.is_empty(), detail));
    if sentences.is_empty() {
        sentences.push(format!(
            "{server} and {reference} have no measurement in common"
        ));
    }
    sentences[0] = format!("{with}, {}", sentences[0]);
    sentences.extend(not_comparable(pair));
    let closed = sentences
        .iter()
        .map(|sentence| capitalized_unless(sentence, &[server, reference]) + ".");
    closed.collect()
}

/// The differences: one sentence for speed, cost and memory, one for each kind of time, one for fairness.
fn differences(pair: &Pair, detail: Detail) -> Vec<String> {
    let found = |name: &str| {
        let by = pair.by(name)?;
        by.ratio.filter(|_| by.verdict.is_difference())
    };
    let size = |ratio| {
        let mut size = Size::of(ratio);
        if detail == Detail::Estimates {
            size.range.clear();
        }
        size
    };
    let (server, reference) = (&pair.server, &pair.reference);
    // Only the first clause names the reference.
    let mut named = Some(reference.as_str());
    let mut clauses = Vec::new();
    let speed = found("completion_s")
        .map(inverse)
        .or_else(|| found("requests_per_s"));
    if let Some(ratio) = speed {
        let word = if ratio.value > 1.0 {
            "faster"
        } else {
            "slower"
        };
        let than = named.take().map(|name| format!(" than {name}"));
        let Size {
            estimate, range, ..
        } = size(ratio);
        clauses.push(format!(
            "is {estimate} {word}{}{range}",
            than.unwrap_or_default()
        ));
    }
    let amounts = [
        ("server_cpu_us_per_request", "CPU per request"),
        ("server_pss_bytes", "memory"),
    ];
    for (name, noun) in amounts {
        if let Some(ratio) = found(name) {
            clauses.push(uses(size(ratio), ratio.value > 1.0, noun, named.take()));
        }
    }
    let mut sentences = Vec::new();
    if !clauses.is_empty() {
        sentences.push(format!("{server} {}", list(&clauses)));
    }
    for (kind, percentiles) in TIMES {
        let times: Vec<String> = percentiles
            .into_iter()
            .filter_map(|name| {
                let ratio = found(name)?;
                let shown = size(ratio);
                let word = if ratio.value > 1.0 { "higher" } else { "lower" };
                let at = pair.by(name)?.metric.statistic()?;
                Some(format!("{} {word} at {at}{}", shown.estimate, shown.range))
            })
            .collect();
        if !times.is_empty() {
            let all = list(&times);
            sentences.push(if sentences.is_empty() {
                format!("the {kind} of {server} is {all} than that of {reference}")
            } else {
                format!("its {kind} is {all}")
            });
        }
    }
    if let Some(jain) = pair
        .by("fairness_jain")
        .filter(|by| by.verdict.is_difference())
    {
        let [before, now, ..] = jain.cells();
        let more = if jain.verdict == Verdict::Better {
            "more"
        } else {
            "less"
        };
        sentences.push(format!(
            "{server} serves clients {more} evenly: Jain's index {now} vs {before}"
        ));
    }
    sentences
}

/// "uses 2.1x the CPU per request of epoll (2.0–2.2x)", "uses 12 % less memory than epoll (10–14 %)"; without the name of
/// the reference, if another clause has it.
fn uses(shown: Size, is_more: bool, noun: &str, reference: Option<&str>) -> String {
    let Size {
        estimate,
        range,
        is_factor,
    } = shown;
    match (is_more && is_factor, reference) {
        (true, Some(name)) => format!("uses {estimate} the {noun} of {name}{range}"),
        (true, None) => format!("uses {estimate} its {noun}{range}"),
        (false, _) => {
            let more = if is_more { "more" } else { "less" };
            let than = reference.map(|name| format!(" than {name}"));
            format!(
                "uses {estimate} {more} {noun}{}{range}",
                than.unwrap_or_default()
            )
        }
    }
}

/// "equivalent within 2 %: throughput and p50 latency".
fn equivalent(pair: &Pair, is_first: bool) -> Option<String> {
    let nouns: Vec<String> = with(pair, Verdict::Equivalent)
        .map(|one| one.metric.noun())
        .collect();
    let within = whole(MARGIN * 100.0);
    if nouns.is_empty() {
        return None;
    }
    Some(if is_first {
        let (server, reference) = (&pair.server, &pair.reference);
        format!(
            "{server} and {reference} are equivalent within {within} % in {}",
            list(&nouns)
        )
    } else {
        format!("equivalent within {within} %: {}", list(&nouns))
    })
}

/// "p99 latency: no significant difference; 8 % or more would show; about 40 rounds would show 3 %".
fn inconclusive(pair: &Pair, is_first: bool, detail: Detail) -> Vec<String> {
    let all: Vec<&PairMetric> = with(pair, Verdict::Inconclusive).collect();
    let mut reasons: Vec<&str> = all.iter().filter_map(|one| one.why.as_deref()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let mut sentences = Vec::new();
    for why in reasons {
        let of_it = all.iter().filter(|one| one.why.as_deref() == Some(why));
        let nouns: Vec<String> = of_it.map(|one| one.metric.noun()).collect();
        let what = if is_first && nouns.len() == all.len() {
            format!("{} vs {}", pair.server, pair.reference)
        } else {
            list(&nouns)
        };
        sentences.push(format!("{what}: inconclusive, {why}"));
    }
    let pair_name = if is_first && sentences.is_empty() {
        format!("{} vs {}", pair.server, pair.reference)
    } else {
        String::new()
    };
    let noisy: Vec<(&PairMetric, f64, Option<LongerRun>)> = all
        .into_iter()
        .filter_map(|one| Some((one, one.smallest_difference?, one.needed)))
        .collect();
    if noisy.len() > MOST_SENTENCES {
        let of = if pair_name.is_empty() {
            String::new()
        } else {
            pair_name + ": "
        };
        let seen = noisy.iter().map(|(one, seen, _)| match detail {
            Detail::Estimates => one.metric.noun(),
            Detail::Intervals => format!("{} (≥{} would show)", one.metric.noun(), percent(*seen)),
        });
        sentences.push(format!(
            "{of}no significant difference in {}",
            list(&seen.collect::<Vec<_>>())
        ));
        return sentences;
    }
    for (place, (one, seen, needed)) in noisy.into_iter().enumerate() {
        let of = if place == 0 && !pair_name.is_empty() {
            format!("{pair_name}, ")
        } else {
            String::new()
        };
        let more = needed.map_or_else(
            || "a longer run would not show smaller ones".to_owned(),
            |needed| {
                format!(
                    "a run {} times as long would show {}",
                    whole(needed.times.ceil()),
                    percent(needed.difference)
                )
            },
        );
        sentences.push(format!(
            "{of}{}: no significant difference; {} or more would show; {more}",
            one.metric.noun(),
            percent(seen),
        ));
    }
    sentences
}

/// "throughput is not comparable: the load generator was the limit for thread".
fn not_comparable(pair: &Pair) -> Vec<String> {
    // The reason for fairness follows from the one for speed.
    let measured = |one: &&PairMetric| {
        let is_speed = one.metric.is_speed() || !one.metric.follows_rate;
        one.value.is_some() && one.reference.is_some() && is_speed
    };
    with(pair, Verdict::NotComparable)
        .filter(measured)
        .filter_map(|one| {
            let why = one.why.as_deref()?;
            Some(format!("{} is not comparable: {why}", one.metric.noun()))
        })
        .collect()
}

/// The measures with this verdict; speed comes first, as in the tables.
fn with(pair: &Pair, verdict: Verdict) -> impl Iterator<Item = &PairMetric> {
    let is_speed = |one: &&PairMetric| one.metric.is_speed();
    let of = move |one: &&PairMetric| one.verdict == verdict && one.name != UNSAID;
    let all = || pair.measures.iter().filter(of);
    let first = all().filter(is_speed);
    // Equal fairness is not worth a sentence.
    let unsaid =
        move |one: &&PairMetric| one.name == "fairness_jain" && verdict == Verdict::Equivalent;
    first.chain(all().filter(move |one| !is_speed(one) && !unsaid(one)))
}
