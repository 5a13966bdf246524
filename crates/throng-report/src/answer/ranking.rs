//! Servers ranked by one measure, with those that cannot be told apart from the best.

use crate::summary::{Row, Summary};
use throng_record::format::{ABSENT, index};
use throng_record::metrics::{Better, Metric, named};
use throng_stats::{Interval, Verdict};

/// What servers are ranked by.
pub(super) struct Measure {
    /// "costs least".
    pub(super) superlative: &'static str,
    /// "costs", before "1.52 times that".
    pub(super) verb: &'static str,
    /// "cost the same", of several that cannot be told apart.
    pub(super) alike: &'static str,
    metric: &'static str,
    /// Its value in a sentence, with `{}` for it.
    text: &'static str,
    /// How others are told: by this of their own value, or else as times the best's. A multiple of
    /// an index means nothing.
    pub(super) own: Option<fn(f64) -> String>,
    /// Its values, and which bound these are where the load generator was the limit.
    pub(super) limited: (&'static str, &'static str),
}

pub(super) const RATE: Measure = Measure {
    superlative: "served most",
    verb: "served",
    alike: "rate",
    metric: "requests_per_s",
    text: "{} requests a second",
    own: None,
    limited: ("rates", "lower"),
};

pub(super) const COMPLETION: Measure = Measure {
    superlative: "had all of them done first",
    verb: "took",
    alike: "completion time",
    metric: "completion_s",
    text: "after {}",
    own: None,
    limited: ("completion times", "upper"),
};

pub(super) const COST: Measure = Measure {
    superlative: "costs least",
    verb: "costs",
    alike: "CPU cost",
    metric: "server_cpu_us_per_request",
    text: "{} of server CPU a request",
    own: None,
    limited: ("costs", "upper"),
};

pub(super) const FAIRNESS: Measure = Measure {
    superlative: "is fairest",
    verb: "has",
    alike: "fairness",
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

/// The servers ranked by one measure.
pub(super) struct Ranking<'a> {
    pub(super) best: &'a Row,
    /// Not distinguishable from the best.
    pub(super) level: Vec<&'a str>,
    /// With one trial only, so not compared.
    pub(super) single: Vec<&'a str>,
    /// Worse than the best, least difference first, with value over the best's.
    pub(super) behind: Vec<(&'a Row, Interval)>,
}

/// `None` when fewer than two of the rows have the measure. All rows have the same number of clients.
pub(super) fn rank<'a>(
    rows: &[&'a Row],
    measure: &Measure,
    summary: &Summary,
) -> Option<Ranking<'a>> {
    let seed = summary.seed;
    let checks = summary.checks_at(rows.first()?.clients);
    let metric = measure.metric();
    let noise = checks.and_then(|checks| checks.noise(metric, seed));
    let floor = noise.unwrap_or(0.0).max(metric.least_difference);
    let higher_is_better = metric.better == Better::Higher;
    let mut valued: Vec<(&Row, f64)> = rows
        .iter()
        .filter_map(|row| Some((*row, measure.of(row)?)))
        .collect();
    if valued.len() < 2 {
        return None;
    }
    let repeated = |row: &Row| {
        let sample = row.metrics.sample(measure.metric);
        sample.is_some_and(|sample| sample.trials() >= 2)
    };
    let mut single = Vec::new();
    if valued.iter().filter(|(row, _)| repeated(row)).count() >= 2 {
        single = valued
            .iter()
            .filter(|(row, _)| !repeated(row))
            .map(|(row, _)| row.server.as_str())
            .collect();
        valued.retain(|(row, _)| repeated(row));
    }
    valued.sort_by(|a, b| a.1.total_cmp(&b.1));
    if higher_is_better {
        valued.reverse();
    }
    let best = valued[0].0;
    let mut ranking = Ranking {
        best,
        level: Vec::new(),
        single,
        behind: Vec::new(),
    };
    for (row, _) in &valued[1..] {
        let ratio = row.metrics.ratio(&best.metrics, metric, seed);
        let verdict = Verdict::beyond(floor, ratio, higher_is_better);
        match (verdict, ratio) {
            (Verdict::NotDistinguishable, _) | (_, None) => ranking.level.push(&row.server),
            (_, Some(ratio)) => ranking.behind.push((row, ratio)),
        }
    }
    Some(ranking)
}

pub(super) fn with_best<'a>(ranking: &Ranking<'a>) -> Vec<&'a str> {
    std::iter::once(ranking.best.server.as_str())
        .chain(ranking.level.iter().copied())
        .collect()
}

pub(super) fn value(row: &Row, measure: &Measure) -> String {
    let text = |value| measure.text.replace("{}", &measure.metric().text(value));
    measure.of(row).map_or_else(|| ABSENT.to_owned(), text)
}
