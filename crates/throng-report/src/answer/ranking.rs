//! Servers ranked by one metric, with their differences from the best.

use crate::comparison::compared_by;
use crate::comparison::size::Size;
use crate::summary::{Row, Summary};
use throng_record::format::{ABSENT, index, list};
use throng_record::metrics::{Better, Metric, Quantity, named};
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

/// The servers ranked by one measure with one number of clients.
pub(super) struct Ranking<'a> {
    pub(super) best: &'a Row,
    /// Servers within the margin of the best.
    pub(super) equivalent: Vec<&'a str>,
    /// Servers with too much noise to decide, and the smallest difference that would have shown.
    pub(super) inconclusive: Vec<(&'a str, f64)>,
    /// Servers with too few rounds to decide.
    pub(super) too_few: Vec<&'a str>,
    /// Servers worse than the best, the smallest difference first, with their value over the best's.
    pub(super) behind: Vec<(&'a Row, Quantity)>,
}

/// All rankings of an answer: their verdicts are corrected together.
pub(super) struct Rankings<'a>(Vec<(u32, &'static str, Ranking<'a>)>);

/// One server compared with the best.
struct RankedServer<'a> {
    row: &'a Row,
    ratio: Option<LogRatio>,
}

impl<'a> Rankings<'a> {
    /// Ranks all rows that served all their clients, for each number of clients.
    pub(super) fn of(summary: &'a Summary) -> Self {
        let mut all: Vec<(u32, &Measure, &Row, Vec<RankedServer<'_>>)> = Vec::new();
        for &clients in &summary.clients {
            let rows: Vec<&Row> = super::ranked_rows(summary, clients);
            for measure in [super::pace(&rows), &COST, &FAIRNESS] {
                all.extend(
                    against_best(&rows, measure)
                        .map(|(best, behind)| (clients, measure, best, behind)),
                );
            }
        }
        let compared: Vec<RatioTest> = all
            .iter()
            .flat_map(|(_, measure, _, behind)| {
                let metric = measure.metric();
                behind.iter().map(|one| compared_by(metric, one.ratio))
            })
            .collect();
        let mut verdicts = verdicts(&compared, MARGIN).into_iter();
        let rankings = all.into_iter().map(|(clients, measure, best, behind)| {
            let judged = behind.into_iter().zip(verdicts.by_ref());
            (clients, measure.metric, Ranking::of(best, judged))
        });
        Self(rankings.collect())
    }

    /// `None` when fewer than two servers have the measure.
    pub(super) fn get(&self, clients: u32, measure: &Measure) -> Option<&Ranking<'a>> {
        let mut all = self.0.iter();
        let found = all.find(|(own, metric, _)| *own == clients && *metric == measure.metric);
        found.map(|(_, _, ranking)| ranking)
    }
}

/// The row with the best value.
pub(super) fn best<'a>(rows: &[&'a Row], measure: &Measure) -> Option<&'a Row> {
    Some(from_best(rows, measure).first()?.0)
}

/// Rows with their values, the best first. Values that the load set are not ranked; the answer names the servers that
/// kept the pace.
fn from_best<'a>(rows: &[&'a Row], measure: &Measure) -> Vec<(&'a Row, f64)> {
    let own = rows
        .iter()
        .filter(|row| measure.metric != FAIRNESS.metric || row.is_own(measure.metric()));
    let valued = own.filter_map(|row| Some((*row, measure.of(row)?)));
    let mut valued: Vec<(&Row, f64)> = valued.collect();
    valued.sort_by(|a, b| a.1.total_cmp(&b.1));
    if measure.metric().better == Better::Higher {
        valued.reverse();
    }
    valued
}

/// The row with the best value, and the others' ratios to it.
fn against_best<'a>(
    rows: &[&'a Row],
    measure: &Measure,
) -> Option<(&'a Row, Vec<RankedServer<'a>>)> {
    let valued = from_best(rows, measure);
    let ((best, _), others) = valued.split_first()?;
    let sample = |row: &'a Row| row.metrics.sample(measure.metric);
    let ratio = |row: &'a Row| sample(row)?.ratio(sample(best)?);
    let behind = others.iter().map(|(row, _)| RankedServer {
        row,
        ratio: ratio(row),
    });
    (!others.is_empty()).then(|| (*best, behind.collect()))
}

impl<'a> Ranking<'a> {
    fn of(best: &'a Row, judged: impl Iterator<Item = (RankedServer<'a>, Verdict)>) -> Self {
        let mut ranking = Self {
            best,
            equivalent: Vec::new(),
            inconclusive: Vec::new(),
            too_few: Vec::new(),
            behind: Vec::new(),
        };
        for (RankedServer { row, ratio }, verdict) in judged {
            let name = row.server.as_str();
            match (verdict, ratio) {
                (_, None) => ranking.too_few.push(name),
                (Verdict::Worse, Some(ratio)) => {
                    ranking.behind.push((row, Quantity::of_ratio(ratio)));
                }
                (Verdict::Equivalent, _) => ranking.equivalent.push(name),
                (_, Some(ratio)) => {
                    let seen = ratio.smallest_difference();
                    ranking.inconclusive.push((name, seen));
                }
            }
        }
        ranking
    }

    /// Whether the best is better than at least one other server.
    pub(super) fn is_decided(&self) -> bool {
        !self.behind.is_empty()
    }
}

/// " Not ranked (fewer than 6 rounds): fork."
pub(super) fn too_few(ranking: &Ranking<'_>) -> Option<String> {
    let names = list(&ranking.too_few);
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
