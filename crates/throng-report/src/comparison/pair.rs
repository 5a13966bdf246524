//! Two servers under the same load, compared by every metric that both have.

use serde::Serialize;

use super::size::{briefly, inverse, word};
use crate::summary::{Row, Summary};
use throng_record::Run;
use throng_record::format::{ABSENT, or_absent};
use throng_record::metrics::{
    Absence, Better, ConditionResult, METRICS, Metric, Quantity, compared,
};
use throng_stats::paired::FEWEST_PAIRS;
use throng_stats::{LogRatio, MARGIN, RatioTest, Verdict, verdicts};

/// Two servers under the same load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Number of clients.
    pub clients: u32,
    pub server: String,
    /// The reference.
    pub reference: String,
    /// Both servers by each measure that either has.
    pub measures: Vec<PairMetric>,
    /// The same server in two runs by all other metrics that have a better direction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<PairMetric>,
    /// Why they are not compared at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// The verdict.
    pub sentence: String,
}

/// Two servers by one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairMetric {
    /// Name of the measure.
    pub name: &'static str,
    /// Heading in tables.
    #[serde(skip)]
    pub title: &'static str,
    /// The reference's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<f64>,
    /// The server's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The server's value over the reference's, from the ratios of the rounds. Without an interval if there are too
    /// few rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Quantity>,
    /// The verdict on the server.
    pub verdict: Verdict,
    /// The verdict in a word that suits the measure: "faster", "cheaper".
    pub word: &'static str,
    /// The smallest difference, as a share, that this many rounds with this much noise would show in 80 of 100 runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_difference: Option<f64>,
    /// If the verdict is inconclusive: the run that would show a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<LongerRun>,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(skip)]
    pub(crate) metric: &'static Metric,
    #[serde(skip)]
    log: Option<LogRatio>,
    #[serde(skip)]
    limited: Option<Limited>,
    /// Whether the value of the reference and the server's are bounds.
    #[serde(skip)]
    are_bounds: [bool; 2],
}

/// The load generator was the limit for one of two servers, which is at least as good as its value.
#[derive(Debug, Clone, PartialEq)]
struct Limited {
    /// The only verdict that holds in spite of it: the true difference is at least as large.
    holds: Verdict,
    why: String,
}

/// A run that would show a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LongerRun {
    /// Its length relative to the one that was made.
    pub times: f64,
    /// The difference, as a share.
    pub difference: f64,
}

/// One of two servers that are compared.
pub(crate) struct Side<'a> {
    pub(super) row: &'a Row,
    /// Its name in sentences.
    pub(super) called: &'a str,
}

impl<'a> Side<'a> {
    /// A server of the run itself.
    pub(super) fn of(row: &'a Row) -> Self {
        Self {
            row,
            called: &row.server,
        }
    }

    /// Whether a single trial gives many values, one per slice.
    fn is_in_slices(&self) -> bool {
        let rate = self.row.quantity("requests_per_s");
        rate.is_some_and(|rate| rate.is_of_slices)
    }
}

/// A whole run, from which to take sides.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) run: &'a Run,
    pub(crate) summary: &'a Summary,
}

impl<'a> Source<'a> {
    pub(crate) fn side(self, server: &'a str, clients: u32, called: &'a str) -> Option<Side<'a>> {
        let row = self
            .summary
            .rows_at(clients)
            .find(|row| row.server == server)?;
        Some(Side { row, called })
    }
}

/// Pairs a server of this run with another one, or with itself in another run. The verdicts follow once all comparisons
/// of a page exist: see [`judge`].
pub(crate) fn pair(side: &Side<'_>, reference: &Side<'_>, together: Pairing) -> Pair {
    // If each client has a job, the time until all are done says the same thing better.
    let has_jobs = side.row.completion.is_some() && reference.row.completion.is_some();
    let metrics = compared()
        .into_iter()
        .filter(|metric| !has_jobs || metric.name != "requests_per_s");
    let measures = measures(metrics, side, reference, together);
    let not_compared = [side, reference].into_iter().find_map(not_comparable);
    Pair {
        clients: side.row.clients,
        server: side.called.to_owned(),
        reference: reference.called.to_owned(),
        measures,
        more: Vec::new(),
        not_compared,
        sentence: String::new(),
    }
}

/// The same by all metrics that have a better direction and that no pair has. Totals are left out if there is a
/// per-request value of the same metric.
pub(crate) fn others(side: &Side<'_>, reference: &Side<'_>, together: Pairing) -> Vec<PairMetric> {
    let metrics = METRICS.iter().filter(|metric| {
        metric.better != Better::Neutral && !metric.shown.compared && metric.per_request().is_none()
    });
    measures(metrics, side, reference, together)
}

/// Both servers by each of `metrics` that either has.
fn measures(
    metrics: impl Iterator<Item = &'static Metric>,
    side: &Side<'_>,
    reference: &Side<'_>,
    together: Pairing,
) -> Vec<PairMetric> {
    let not_compared = [side, reference].into_iter().find_map(not_comparable);
    metrics
        .map(|metric| PairMetric::of(metric, side, reference, together))
        .map(|measured| match &not_compared {
            Some(why) => measured.withheld(why),
            None => measured,
        })
        .filter(|measured| {
            let is_known = measured.reference.is_some() || measured.value.is_some();
            is_known || too_few_replies(measured.metric, side, reference)
        })
        .collect()
}

impl PairMetric {
    /// Two servers by one metric, without a verdict.
    pub(super) fn of(
        metric: &'static Metric,
        side: &Side<'_>,
        reference: &Side<'_>,
        together: Pairing,
    ) -> Self {
        let (values, others) = (&side.row.metrics, &reference.row.metrics);
        let samples = values
            .sample(metric.name)
            .zip(others.sample(metric.name))
            .filter(|_| !metric.is_exact());
        let (log, rough, rounds) = samples.map_or((None, None, 0), |(own, other)| match together {
            Pairing::Interleaved => (
                own.ratio(other),
                own.rough_ratio(other),
                own.pairs(other).len(),
            ),
            Pairing::Apart => (
                own.unpaired_ratio(other),
                own.rough_unpaired_ratio(other),
                own.trials().min(other.trials()),
            ),
        });
        let ratio = log.map(Quantity::of_ratio).or(rough.map(Quantity::bare));
        let measured = PairMetric {
            name: metric.name,
            title: metric.label,
            reference: others.value(metric.name),
            value: values.value(metric.name),
            ratio,
            verdict: Verdict::Inconclusive,
            word: word(Verdict::Inconclusive, metric),
            smallest_difference: log.map(|log| log.smallest_difference()),
            needed: None,
            why: None,
            metric,
            log,
            limited: limited(metric, side, reference),
            are_bounds: [reference, side].map(|one| one.row.is_bound(metric)),
        };
        let unfit = works_late(metric, side, reference);
        match unfit.or_else(|| means_nothing(metric, side, reference)) {
            Some(why) => measured.withheld(&why),
            None if metric.is_exact() => {
                measured.withheld("a value over all trials has no interval")
            }
            None if samples.is_none() && too_few_replies(metric, side, reference) => {
                measured.withheld(Absence::TooFewReplies.text())
            }
            None if samples.is_none() => measured.withheld("measured for only one of them"),
            None if log.is_none() && side.is_in_slices() => PairMetric {
                word: ONCE,
                why: None,
                ..measured.withheld(ONCE)
            },
            None if log.is_none() => PairMetric {
                why: Some(too_few(rounds)),
                ..measured
            },
            None => measured,
        }
    }
}

/// In place of a verdict on a metric that slices do not have.
const ONCE: &str = "measured once";

/// "only 3 trials, at least 6 are needed".
fn too_few(trials: usize) -> String {
    if trials >= FEWEST_PAIRS {
        return "too many trials have the value 0".to_owned();
    }
    if trials == 1 {
        return format!("measured only once, at least {FEWEST_PAIRS} trials are needed");
    }
    format!("only {trials} trials, at least {FEWEST_PAIRS} are needed")
}

/// Gives all comparisons of a page their verdicts, in one family of tests.
pub(crate) fn judge<'a>(all: impl IntoIterator<Item = &'a mut PairMetric>) {
    let comparable = |one: &&mut PairMetric| one.verdict != Verdict::NotComparable;
    let mut compared: Vec<&mut PairMetric> = all.into_iter().filter(comparable).collect();
    let tests: Vec<RatioTest> = compared.iter().map(|one| one.test()).collect();
    for (one, verdict) in compared.iter_mut().zip(verdicts(&tests)) {
        one.verdict = verdict;
        one.word = word(verdict, one.metric);
        one.needed = one
            .log
            .filter(|_| verdict == Verdict::Inconclusive)
            .and_then(LongerRun::of);
        one.settle_limited();
    }
}

/// The ratio of a metric, as a test to judge.
pub(crate) fn compared_by(metric: &Metric, ratio: Option<LogRatio>) -> RatioTest {
    RatioTest {
        ratio,
        higher_is_better: metric.better == Better::Higher,
        least: metric.least_difference,
    }
}

/// The most rounds worth suggesting.
const MOST_ROUNDS: f64 = 1000.0;

impl LongerRun {
    /// The run that would show the smallest of these differences that does not take too long, or else half of what
    /// shows now.
    fn of(log: LogRatio) -> Option<Self> {
        let seen = log.smallest_difference();
        let differences = [MARGIN, 0.05, 0.1, 0.2, 0.5];
        let smaller = differences.into_iter().filter(|share| *share < seen);
        let to_see = |difference| {
            Some(Self {
                times: log.rounds_needed(difference)? as f64 / log.pairs() as f64,
                difference,
            })
        };
        let mut all = smaller.filter_map(to_see);
        let bearable = all.find(|needed| needed.times * log.pairs() as f64 <= MOST_ROUNDS);
        bearable.or_else(|| to_see(seen / 2.0))
    }
}

/// Whether two servers were measured in the same rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// In the same rounds, each with its own order.
    Interleaved,
    /// In different runs.
    Apart,
}

/// Why a server cannot be compared with others.
fn not_comparable(side: &Side<'_>) -> Option<String> {
    let (row, called) = (side.row, side.called);
    if row.trials_ok == 0 {
        let reason = row.failures.first().map_or("", String::as_str);
        return Some(format!("every trial of {called} failed ({reason})"));
    }
    if let Some(why) = row.not_comparable() {
        return Some(format!("{called}: {why}"));
    }
    (!row.served_all).then(|| {
        let served = row.served_in_words().unwrap_or_default();
        match row.why_not_all() {
            Some(why) => format!("{called} served {served} ({why})"),
            None => format!("{called} served {served}"),
        }
    })
}

/// Whether either lacks a metric because its clients got too few replies.
fn too_few_replies(metric: &Metric, side: &Side<'_>, reference: &Side<'_>) -> bool {
    let lacks = |one: &Side<'_>| one.row.absent.get(metric.name) == Some(&Absence::TooFewReplies);
    lacks(side) || lacks(reference)
}

/// Why a metric of speed is too good in slices: one of the servers keeps working when no request is waiting.
fn works_late(metric: &Metric, side: &Side<'_>, reference: &Side<'_>) -> Option<String> {
    let is_of_speed = metric.slice.is_some() && !metric.is_cpu();
    let mut sides = [side, reference].into_iter().filter(|_| is_of_speed);
    sides.find_map(|one| {
        let percent = 100.0 * one.row.works_late?;
        Some(format!(
            "{} used {percent:.0} % of its CPU time after its replies, when no request waited; use --method trials",
            one.called
        ))
    })
}

/// Why a metric describes the load instead of the servers.
fn means_nothing(metric: &Metric, side: &Side<'_>, reference: &Side<'_>) -> Option<String> {
    if !metric.follows_rate {
        return None;
    }
    if !metric.is_speed() {
        let pacer = side.row.paced_by.or(reference.row.paced_by)?;
        return Some(format!("{} sets the pace", pacer.name()));
    }
    if side.row.client_limited() && reference.row.client_limited() {
        return Some(limited_by(&[side, reference]));
    }
    let pacer = side.row.paced_by.and(reference.row.paced_by)?;
    Some(format!("{} sets the pace, and both keep up", pacer.name()))
}

/// The end of the interval of a ratio that is nearest to 1, if the true ratio may be farther away.
fn bound(ratio: Quantity) -> Quantity {
    let nearest = if ratio.value < 1.0 {
        ratio.high
    } else {
        ratio.low
    };
    Quantity {
        is_bound: true,
        ..Quantity::bare(nearest.unwrap_or(ratio.value))
    }
}

fn limited_by(sides: &[&Side<'_>]) -> String {
    let names: Vec<&str> = sides.iter().map(|side| side.called).collect();
    format!(
        "the load generator was the limit for {}",
        names.join(" and ")
    )
}

/// Whether a metric of speed of one of them only is that of the load generator.
fn limited(metric: &Metric, side: &Side<'_>, reference: &Side<'_>) -> Option<Limited> {
    let [own, others] = [side, reference].map(|one| one.row.is_bound(metric));
    match (own, others) {
        (true, false) => Some(Limited {
            holds: Verdict::Better,
            why: limited_by(&[side]),
        }),
        (false, true) => Some(Limited {
            holds: Verdict::Worse,
            why: limited_by(&[reference]),
        }),
        _ => None,
    }
}

impl Pair {
    /// Withholds the verdict on every measure.
    pub(crate) fn withhold(&mut self, why: &str) {
        self.not_compared = Some(why.to_owned());
        for measured in &mut self.measures {
            measured.withhold(why);
        }
    }
}

impl PairMetric {
    fn test(&self) -> RatioTest {
        compared_by(self.metric, self.log)
    }

    /// If the load generator was the limit for one of both, keeps a verdict that holds all the same, with the ratio as a
    /// bound.
    fn settle_limited(&mut self) {
        let Some(Limited { holds, why }) = self.limited.clone() else {
            return;
        };
        match self.log.filter(|_| self.verdict == holds) {
            Some(log) => {
                self.ratio = Some(bound(Quantity::of_ratio(log)));
                self.why = Some(why);
            }
            None => self.withhold(&why),
        }
    }

    /// Takes away ratio and verdict, for a reason.
    pub(super) fn withhold(&mut self, why: &str) {
        self.ratio = None;
        self.verdict = Verdict::NotComparable;
        self.word = word(Verdict::NotComparable, self.metric);
        self.smallest_difference = None;
        self.log = None;
        self.why.get_or_insert_with(|| why.to_owned());
    }

    fn withheld(mut self, why: &str) -> Self {
        self.withhold(why);
        self
    }

    /// The ratio, oriented so that more than 1 is faster or cheaper.
    fn ratio_of_rates(&self) -> Option<Quantity> {
        let ratio = self.ratio?;
        Some(match self.metric.better {
            Better::Lower => inverse(ratio),
            Better::Higher | Better::Neutral => ratio,
        })
    }

    /// The values of both, the ratio and the verdict, as shown in tables.
    pub fn cells(&self) -> [String; 4] {
        let too_few = Absence::TooFewReplies.text();
        let value = |value: Option<f64>, is_bound| match value {
            None if self.why.as_deref() == Some(too_few) => too_few.to_owned(),
            _ => or_absent(value, |value| self.metric.bounded(value, is_bound)),
        };
        let [reference, own] = self.are_bounds;
        let ratio = self
            .ratio
            .as_ref()
            .map_or_else(|| ABSENT.to_owned(), Quantity::as_ratio);
        [
            value(self.reference, reference),
            value(self.value, own),
            ratio,
            self.size(),
        ]
    }

    /// "3.4x faster", "equivalent".
    pub(crate) fn size(&self) -> String {
        let of_difference = self.ratio.filter(|_| self.verdict.is_difference());
        of_difference.map_or_else(
            || self.word.to_owned(),
            |ratio| briefly(ratio, self.verdict, self.metric),
        )
    }
}

impl Pair {
    pub(crate) fn by(&self, name: &str) -> Option<&PairMetric> {
        self.measures.iter().find(|measured| measured.name == name)
    }

    /// Judges the threshold that the server must not be slower by more than `percent` percent.
    pub(super) fn not_slower(&self, percent: f64) -> ConditionResult {
        let slower = |ratio: Quantity| ratio.high.is_some_and(|high| high < 1.0 - percent / 100.0);
        // If the load generator was the limit for one of both, its rate is a bound: only the other can miss, by it.
        let known = |measured: &&PairMetric| match &measured.limited {
            None => measured.log.is_some(),
            Some(limited) => {
                let ratio = measured.ratio_of_rates();
                limited.holds == Verdict::Worse && ratio.is_some_and(slower)
            }
        };
        let by = [
            "requests_per_s",
            "clients_per_s",
            "server_cpu_us_per_request",
        ];
        let judged = by
            .iter()
            .find_map(|name| self.by(name).filter(known))
            .and_then(|judged| Some((judged, judged.ratio_of_rates()?)));
        let (missed, seen) = if let Some((judged, ratio)) = judged {
            let times = match judged.limited {
                None => ratio,
                Some(_) => bound(ratio),
            }
            .as_ratio();
            let seen = format!(
                "{times} times the {} of {}",
                of_rate(judged),
                self.reference
            );
            (slower(ratio), seen)
        } else {
            let few = by.iter().find_map(|name| self.by(name)?.why.as_deref());
            let why = self
                .not_compared
                .as_deref()
                .or(few)
                .unwrap_or("no measurement in common");
            (true, format!("not judged: {why}"))
        };
        ConditionResult {
            demand: format!("slower by more than {percent} %"),
            server: self.server.clone(),
            clients: self.clients,
            missed,
            seen,
        }
    }
}

/// The rate that [`PairMetric::ratio_of_rates`] is about.
fn of_rate(measured: &PairMetric) -> &'static str {
    match measured.name {
        "requests_per_s" => "requests per second",
        "clients_per_s" => "clients per second",
        _ => "requests per CPU-second",
    }
}
