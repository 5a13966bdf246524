//! Servers ranked by one metric, with their differences from the best.

use crate::comparison::compared_by;
use crate::comparison::size::Size;
use crate::summary::{Row, Summary};
use throng_record::format::{ABSENT, index, list};
use throng_record::metrics::{self, Better, Metric, Quantity, named};
use throng_stats::paired::FEWEST_PAIRS;
use throng_stats::{LogRatio, MARGIN, RatioTest, Verdict, verdicts};

/// A metric that ranks servers.
pub(super) struct Measure {
    /// "uses the least CPU per request".
    pub(super) superlative: &'static str,
    /// "uses", before "40 % more".
    pub(super) verb: &'static str,
    /// "more": how a worse server differs.
    pub(super) worse: &'static str,
    /// "throughput".
    pub(super) noun: &'static str,
    pub(super) metric: &'static str,
    /// The text of a value in a sentence, with `{}` in place of the value.
    text: &'static str,
    /// How to write the other servers: by their own value in this format, or, if `None`, as a difference from the
    /// best. A multiple of an index means nothing.
    pub(super) own: Option<fn(f64) -> String>,
    /// The noun for its values, and which bound they are if the load generator was the limit.
    pub(super) limited: (&'static str, &'static str),
}

pub(super) const RATE: Measure = Measure {
    superlative: "is fastest",
    verb: "is",
    worse: "slower",
    noun: "throughput",
    metric: "requests_per_s",
    text: "{} requests per second",
    own: None,
    limited: ("rates", "lower"),
};

pub(super) const COMPLETION: Measure = Measure {
    superlative: "finishes first",
    verb: "takes",
    worse: "longer",
    noun: "completion time",
    metric: "completion_s",
    text: "{}",
    own: None,
    limited: ("completion times", "upper"),
};

pub(super) const COST: Measure = Measure {
    superlative: "uses the least CPU per request",
    verb: "uses",
    worse: "more",
    noun: "CPU per request",
    metric: "server_cpu_us_per_request",
    text: "{}",
    own: None,
    limited: ("costs", "upper"),
};

pub(super) const FAIRNESS: Measure = Measure {
    superlative: "is fairest",
    verb: "has",
    worse: "",
    noun: "fairness",
    metric: "fairness_jain",
    text: "Jain's index {}",
    own: Some(index),
    limited: ("indices", "lower"),
};

impl Measure {
    pub(super) fn metric(&self) -> &'static Metric {
        named(self.metric).expect("measures are metrics of the catalogue")
    }

    pub(super) fn of(&self, row: &Row) -> Option<f64> {
        row.value(self.metric)
    }
}

/// The servers ranked by one metric with one number of clients.
pub(crate) struct Ranking<'a> {
    pub(crate) metric: &'static Metric,
    pub(crate) best: &'a Row,
    /// The others, the best first.
    pub(crate) others: Vec<RankedServer<'a>>,
}

/// All rankings of a report: every metric that ranks servers, with each number of clients. Their verdicts are corrected
/// together, so the same ratio has the same verdict in every place.
pub(crate) struct Rankings<'a>(Vec<(u32, Ranking<'a>)>);

/// One server compared with the best.
pub(crate) struct RankedServer<'a> {
    pub(crate) row: &'a Row,
    /// Its ratio to the best; `None` with too few rounds.
    pub(crate) ratio: Option<LogRatio>,
    pub(crate) verdict: Verdict,
}

impl<'a> Rankings<'a> {
    /// Ranks all rows that served all their clients, for each number of clients.
    pub(crate) fn of(summary: &'a Summary) -> Self {
        let mut all: Vec<(u32, Ranking<'_>)> = Vec::new();
        for &clients in &summary.clients {
            let rows: Vec<&Row> = super::ranked_rows(summary, clients);
            let rankings = metrics::ranked().filter_map(|metric| against_best(&rows, metric));
            all.extend(rankings.map(|ranking| (clients, ranking)));
        }
        let compared: Vec<RatioTest> = all
            .iter()
            .flat_map(|(_, ranking)| {
                let tested = ranking.others.iter();
                tested.map(|one| compared_by(ranking.metric, one.ratio))
            })
            .collect();
        let judged = all.iter_mut().flat_map(|(_, ranking)| &mut ranking.others);
        for (server, verdict) in judged.zip(verdicts(&compared, MARGIN)) {
            server.verdict = verdict;
        }
        Self(all)
    }

    /// `None` when fewer than two servers have the metric.
    pub(crate) fn get(&self, clients: u32, metric: &str) -> Option<&Ranking<'a>> {
        let mut all = self.0.iter();
        let found = all.find(|(own, ranking)| *own == clients && ranking.metric.name == metric);
        found.map(|(_, ranking)| ranking)
    }
}

/// The row with the best value.
pub(super) fn best<'a>(rows: &[&'a Row], measure: &Measure) -> Option<&'a Row> {
    from_best(rows, measure.metric()).first().copied()
}

/// Rows with a value, the best first. Fairness that the load set is not ranked; the answer names the servers that kept
/// the pace.
pub(crate) fn from_best<'a>(rows: &[&'a Row], metric: &Metric) -> Vec<&'a Row> {
    let own = rows
        .iter()
        .filter(|row| metric.name != FAIRNESS.metric || row.is_own(metric));
    let value = |row: &Row| row.value(metric.name).filter(|value| *value > 0.0);
    let valued = own.filter_map(|row| Some((*row, value(row)?)));
    let mut valued: Vec<(&Row, f64)> = valued.collect();
    valued.sort_by(|one, other| match metric.better {
        Better::Higher => other.1.total_cmp(&one.1),
        _ => one.1.total_cmp(&other.1),
    });
    valued.into_iter().map(|(row, _)| row).collect()
}

/// The row with the best value, and the others' ratios to it, without verdicts.
fn against_best<'a>(rows: &[&'a Row], metric: &'static Metric) -> Option<Ranking<'a>> {
    let sorted = from_best(rows, metric);
    let (best, others) = sorted.split_first()?;
    let sample = |row: &'a Row| row.metrics.sample(metric.name);
    let compared = others.iter().map(|row| RankedServer {
        row,
        ratio: sample(row).and_then(|own| own.ratio(sample(best)?)),
        verdict: Verdict::Inconclusive,
    });
    (!others.is_empty()).then(|| Ranking {
        metric,
        best,
        others: compared.collect(),
    })
}

impl<'a> Ranking<'a> {
    /// Servers that are equivalent to the best.
    pub(super) fn equivalent(&self) -> Vec<&'a str> {
        let others = self.others.iter();
        let equivalent = others.filter(|one| one.verdict == Verdict::Equivalent);
        equivalent.map(|one| one.row.server.as_str()).collect()
    }

    /// Servers with too much noise to decide, and the smallest difference that would have shown.
    pub(super) fn inconclusive(&self) -> Vec<(&'a str, f64)> {
        let others = self.others.iter();
        let open =
            others.filter(|one| !matches!(one.verdict, Verdict::Equivalent | Verdict::Worse));
        let seen = |one: &RankedServer<'a>| {
            Some((one.row.server.as_str(), one.ratio?.smallest_difference()))
        };
        open.filter_map(seen).collect()
    }

    /// Servers with too few rounds to decide.
    pub(super) fn too_few(&self) -> Vec<&'a str> {
        let others = self.others.iter();
        let few = others.filter(|one| one.ratio.is_none());
        few.map(|one| one.row.server.as_str()).collect()
    }

    /// Servers worse than the best, the smallest difference first, with their value over the best's.
    pub(crate) fn behind(&self) -> Vec<(&'a Row, Quantity)> {
        let others = self.others.iter();
        let worse = others.filter(|one| one.verdict == Verdict::Worse);
        worse
            .filter_map(|one| Some((one.row, Quantity::of_ratio(one.ratio?))))
            .collect()
    }

    /// Whether the best is better than at least one other server.
    pub(super) fn is_decided(&self) -> bool {
        let mut others = self.others.iter();
        others.any(|one| one.verdict == Verdict::Worse)
    }
}

/// " Not ranked (fewer than 6 rounds): fork."
pub(super) fn too_few(ranking: &Ranking<'_>) -> Option<String> {
    let names = list(&ranking.too_few());
    (!names.is_empty()).then(|| format!(" Not ranked (fewer than {FEWEST_PAIRS} rounds): {names}."))
}

pub(super) fn value(row: &Row, measure: &Measure) -> String {
    let text = |value| measure.text.replace("{}", &measure.metric().text(value));
    measure.of(row).map_or_else(|| ABSENT.to_owned(), text)
}

/// "3.4x slower (3.1–3.7x)".
pub(super) fn behind(row: &Row, ratio: Quantity, measure: &Measure) -> String {
    match own_value(row, measure) {
        Some(own) => own,
        None => Size::of(ratio).with(measure.worse),
    }
}

/// The row's own value, for a measure whose multiples mean nothing.
fn own_value(row: &Row, measure: &Measure) -> Option<String> {
    Some(measure.own?(measure.of(row)?))
}
