//! Servers ranked by one measure, with those that cannot be told apart from the best.

use crate::report::completion::completion_s;
use crate::report::format::{ABSENT, index, number, time};
use crate::report::summary::{Round, Row, Summary};
use crate::stats::{Interval, Verdict, bootstrap_ratio};

/// What servers are ranked by.
pub(super) struct Measure {
    /// "costs least".
    pub(super) superlative: &'static str,
    /// "costs", before "1.52 times that".
    pub(super) verb: &'static str,
    /// "cost the same", of several that cannot be told apart.
    pub(super) alike: &'static str,
    higher_is_better: bool,
    pub(super) of_round: fn(&Round) -> Option<f64>,
    pub(super) of_row: fn(&Row) -> Option<f64>,
    text: fn(f64) -> String,
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
    higher_is_better: true,
    of_round: |round| Some(round.replies_per_s),
    of_row: |row| Some(row.replies_per_s?.median),
    text: |rate| format!("{} requests a second", number(rate)),
    own: None,
    limited: ("rates", "lower"),
};

pub(super) const COMPLETION: Measure = Measure {
    superlative: "had all of them done first",
    verb: "took",
    alike: "completion time",
    higher_is_better: false,
    of_round: |round| round.completion_s,
    of_row: completion_s,
    text: |seconds| format!("after {}", time(seconds * 1e6)),
    own: None,
    limited: ("completion times", "upper"),
};

pub(super) const COST: Measure = Measure {
    superlative: "costs least",
    verb: "costs",
    alike: "CPU cost",
    higher_is_better: false,
    of_round: |round| round.server_cpu_us_per_reply,
    of_row: |row| Some(row.server_side.cpu_us_per_reply?.median),
    text: |cost| format!("{} of server CPU a request", time(cost)),
    own: None,
    limited: ("costs", "upper"),
};

pub(super) const FAIRNESS: Measure = Measure {
    superlative: "is fairest",
    verb: "has",
    alike: "fairness",
    higher_is_better: true,
    of_round: |round| round.jain,
    of_row: |row| Some(row.fairness?.jain.median),
    text: |jain| format!("Jain's index {}", index(jain)),
    own: Some(index),
    limited: ("indices", "lower"),
};

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
    let floor = checks.map_or(0.0, |checks| checks.noise_floor(measure.of_round, seed));
    let mut valued: Vec<(&Row, f64)> = rows
        .iter()
        .filter_map(|row| Some((*row, (measure.of_row)(row)?)))
        .collect();
    if valued.len() < 2 {
        return None;
    }
    let repeated = |row: &Row| rounds(row, measure).len() >= 2;
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
    if measure.higher_is_better {
        valued.reverse();
    }
    let (best, best_rounds) = (valued[0].0, rounds(valued[0].0, measure));
    let mut ranking = Ranking {
        best,
        level: Vec::new(),
        single,
        behind: Vec::new(),
    };
    for (row, _) in &valued[1..] {
        let ratio = bootstrap_ratio(&rounds(row, measure), &best_rounds, seed);
        let verdict = Verdict::beyond(floor, ratio, measure.higher_is_better);
        match (verdict, ratio) {
            (Verdict::NotDistinguishable, _) | (_, None) => ranking.level.push(&row.server),
            (_, Some(ratio)) => ranking.behind.push((row, ratio)),
        }
    }
    Some(ranking)
}

fn rounds(row: &Row, measure: &Measure) -> Vec<(u32, f64)> {
    row.rounds
        .iter()
        .filter_map(|round| Some((round.round, (measure.of_round)(round)?)))
        .collect()
}

pub(super) fn with_best<'a>(ranking: &Ranking<'a>) -> Vec<&'a str> {
    std::iter::once(ranking.best.server.as_str())
        .chain(ranking.level.iter().copied())
        .collect()
}

pub(super) fn value(row: &Row, measure: &Measure) -> String {
    (measure.of_row)(row).map_or_else(|| ABSENT.to_owned(), measure.text)
}
