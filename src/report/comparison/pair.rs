//! Two servers under the same load, by every measure that they have.

use serde::Serialize;

use super::condition::Judged;
use super::words;
use crate::record::{Purpose, Run, Trial};
use crate::report::format::{ABSENT, counted, or_absent};
use crate::report::metrics::{Better, COMPARED, METRICS, Metric, RATE, RATE_PER_CPU, Whole};
use crate::report::summary::{Quantity, Row, Summary};
use crate::stats::{Interval, Verdict, bootstrap_ratio, median};

/// Measures of how fast a server is, which tell of something else where the clients were the limit or set
/// the pace.
const OF_SPEED: [&str; 3] = [RATE.name, "completion", "clients_per_s"];

/// Two servers under the same load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Number of clients.
    pub clients: u32,
    /// The server.
    pub server: String,
    /// What it is compared with.
    pub reference: String,
    /// Both by each measure that either has.
    pub measures: Vec<Measured>,
    /// Why they are not compared at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// What that says.
    pub sentence: String,
}

/// Two servers by one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Name of the measure.
    pub name: &'static str,
    /// Heading in tables.
    #[serde(skip)]
    pub title: &'static str,
    /// Median of the reference over trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<f64>,
    /// Median of the server over trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The server's over the reference's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
    /// By what share two equal servers came out apart, where one was measured twice; a ratio nearer
    /// to 1 is not told apart from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// What that says of the server.
    pub verdict: Word,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(skip)]
    metric: &'static Metric,
}

/// A verdict, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The server is better.
    Better,
    /// It is worse.
    Worse,
    /// The trials do not tell them apart.
    NotDistinguishable,
    /// The figures do not allow a comparison.
    Withheld,
}

impl Word {
    /// As it stands in tables.
    pub fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NotDistinguishable => "not told apart",
            Self::Withheld => "not compared",
        }
    }
}

impl PartialEq for &'static Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The trials of one server under one number of clients: those that time for one purpose, and all
/// that do not time.
pub(super) struct Values<'a> {
    pub(super) server: &'a str,
    pub(super) clients: u32,
    trials: Vec<&'a Trial>,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        trials: &'a [Trial],
        server: &'a str,
        clients: u32,
        purpose: Purpose,
    ) -> Self {
        let of_both = trials.iter().filter(|trial| {
            let wanted = trial.purpose == purpose || !trial.purpose.is_timed();
            trial.server == server && trial.clients == clients && wanted
        });
        Self {
            server,
            clients,
            trials: of_both.collect(),
        }
    }

    /// A metric by round.
    pub(super) fn of(&self, metric: &'static Metric) -> impl Iterator<Item = (u32, f64)> {
        self.trials
            .iter()
            .filter_map(|trial| Some((trial.round, metric.of(trial)?)))
    }

    /// A metric over all of them.
    pub(super) fn over(&self, metric: &'static Metric, seed: u64) -> Option<Quantity> {
        metric.over(self.trials.iter().copied(), seed)
    }

    /// The ratio of both by a metric.
    fn ratio(
        &self,
        others: &Self,
        metric: &'static Metric,
        together: Together,
        seed: u64,
    ) -> Option<Interval> {
        let values: Vec<(u32, f64)> = self.of(metric).collect();
        let mut others: Vec<(u32, f64)> = others.of(metric).collect();
        if together == Together::Apart {
            // Rounds of another run are other rounds, whatever their numbers.
            for (round, _) in &mut others {
                *round += 1 << 31;
            }
        }
        bootstrap_ratio(&values, &others, seed)
    }

    /// A metric over them, as its trials make one value.
    fn whole(&self, metric: &'static Metric) -> Option<f64> {
        let values: Vec<f64> = self.of(metric).map(|(_, value)| value).collect();
        match metric.whole {
            Whole::Median => median(&values),
            Whole::Sum => values.first().map(|_| values.iter().sum()),
            Whole::Greatest => values.into_iter().max_by(f64::total_cmp),
        }
    }
}

/// One of two that are compared.
pub(in crate::report) struct Side<'a> {
    values: Values<'a>,
    row: &'a Row,
    /// How it is called beside the other.
    called: &'a str,
}

/// A whole run, to take sides from.
#[derive(Clone, Copy)]
pub(in crate::report) struct Source<'a> {
    pub(in crate::report) run: &'a Run,
    pub(in crate::report) summary: &'a Summary,
    pub(in crate::report) trials: &'a [Trial],
}

impl<'a> Source<'a> {
    pub(in crate::report) fn side(
        self,
        server: &'a str,
        clients: u32,
        called: &'a str,
    ) -> Option<Side<'a>> {
        let row = self
            .summary
            .rows_at(clients)
            .find(|row| row.server == server)?;
        Some(Side {
            values: Values::new(self.trials, server, clients, Purpose::Timed),
            row,
            called,
        })
    }
    /// Compares a server of this run with another one, or with what it was in another run.
    pub(in crate::report) fn pair(
        self,
        side: &Side<'_>,
        reference: &Side<'_>,
        together: Together,
    ) -> Pair {
        // Where each client has a job, the time until all are done says the same better.
        let has_jobs = side.row.completion.is_some() && reference.row.completion.is_some();
        let metrics = METRICS[..COMPARED]
            .iter()
            .filter(|metric| !has_jobs || metric.name != RATE.name);
        let measures = self.measures(metrics, side, reference, together);
        let not_compared = [side, reference].into_iter().find_map(not_comparable);
        let mut pair = Pair {
            clients: side.values.clients,
            server: side.called.to_owned(),
            reference: reference.called.to_owned(),
            measures,
            not_compared,
            sentence: String::new(),
        };
        pair.sentence = words::sentence(&pair);
        pair
    }

    /// The same by all metrics of which less or more is better and that no pair has. What was counted in all
    /// is left out where there is the same for one reply.
    pub(in crate::report) fn others(
        self,
        side: &Side<'_>,
        reference: &Side<'_>,
        together: Together,
    ) -> Vec<Measured> {
        let of_all = |metric: &Metric| {
            let of_one = format!("{}_per_reply", metric.name);
            METRICS.iter().any(|other| other.name == of_one)
        };
        let metrics = METRICS[COMPARED..]
            .iter()
            .filter(|metric| metric.better != Better::Neither && !of_all(metric));
        self.measures(metrics, side, reference, together)
    }

    /// Both by each of these metrics that either has.
    fn measures(
        self,
        metrics: impl Iterator<Item = &'static Metric>,
        side: &Side<'_>,
        reference: &Side<'_>,
        together: Together,
    ) -> Vec<Measured> {
        let not_compared = [side, reference].into_iter().find_map(not_comparable);
        metrics
            .map(|metric| self.measured(metric, side, reference, together))
            .map(|measured| match &not_compared {
                Some(why) => measured.withheld(why),
                None => measured,
            })
            .filter(|measured| measured.reference.is_some() || measured.value.is_some())
            .collect()
    }

    fn measured(
        self,
        metric: &'static Metric,
        side: &Side<'_>,
        reference: &Side<'_>,
        together: Together,
    ) -> Measured {
        let (values, others) = (&side.values, &reference.values);
        let ratio = values.ratio(others, metric, together, self.run.seed);
        let noise = self.noise(metric, values.clients);
        let floor = noise.unwrap_or(0.0).max(metric.least);
        let verdict = match Verdict::beyond(floor, ratio, metric.better == Better::Higher) {
            Verdict::Better => Word::Better,
            Verdict::Worse => Word::Worse,
            Verdict::NotDistinguishable => Word::NotDistinguishable,
        };
        let measured = Measured {
            name: metric.name,
            title: metric.title,
            reference: others.whole(metric),
            value: values.whole(metric),
            ratio,
            noise,
            verdict,
            why: None,
            metric,
        };
        match (speed_means_nothing(metric, side, reference), ratio) {
            (Some(why), _) => measured.withheld(&why),
            (None, _) if metric.whole != Whole::Median => {
                measured.withheld("it is no median over trials, and so has no interval")
            }
            (None, None) => measured.withheld("it was not measured in enough trials"),
            (None, Some(_)) => measured,
        }
    }

    /// By what share the server that was measured twice came out apart.
    fn noise(self, metric: &'static Metric, clients: u32) -> Option<f64> {
        let control = self.run.settings.control.as_deref()?;
        let of = |purpose| Values::new(self.trials, control, clients, purpose);
        let (again, timed) = (of(Purpose::Control), of(Purpose::Timed));
        let ratio = again.ratio(&timed, metric, Together::Interleaved, self.run.seed)?;
        Some((ratio.estimate - 1.0).abs())
    }
}

/// Whether two were measured in the same rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Together {
    /// In an order of their own in each round.
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
    if row.trials_ok == 1 {
        return Some(format!("{called} has one good trial, and it takes two"));
    }
    (!row.served_all).then(|| {
        let served = row
            .served
            .map_or_else(String::new, |served| format!("{served:.0} of "));
        format!("{called} served {served}{}", counted(row.clients, "client"))
    })
}

fn speed_means_nothing(metric: &Metric, side: &Side<'_>, reference: &Side<'_>) -> Option<String> {
    if !OF_SPEED.contains(&metric.name) {
        return None;
    }
    let limited: Vec<&str> = [side, reference]
        .into_iter()
        .filter(|side| side.row.client_limited())
        .map(|side| side.called)
        .collect();
    if !limited.is_empty() {
        return Some(format!(
            "the clients were the limit for {}",
            limited.join(" and ")
        ));
    }
    let pacer = side.row.paced_by.and(reference.row.paced_by)?;
    Some(format!("{} sets the pace, and both kept it", pacer.name()))
}

impl Measured {
    fn withheld(self, why: &str) -> Self {
        Self {
            ratio: None,
            verdict: Word::Withheld,
            why: self.why.or_else(|| Some(why.to_owned())),
            ..self
        }
    }

    /// The values of both, the ratio and the verdict, as they stand in tables.
    pub fn cells(&self) -> [String; 4] {
        let value = |value: Option<f64>| or_absent(value, |value| self.metric.unit.text(value));
        let ratio = self
            .ratio
            .as_ref()
            .map_or_else(|| ABSENT.to_owned(), words::ratio);
        [
            value(self.reference),
            value(self.value),
            ratio,
            self.verdict.text().to_owned(),
        ]
    }
}

impl Pair {
    fn by(&self, name: &str) -> Option<&Measured> {
        self.measures.iter().find(|measured| measured.name == name)
    }

    /// Judges that the server must not be slower by more than so many percent.
    pub(super) fn not_slower(&self, percent: f64) -> Judged {
        let told = |measured: &&Measured| measured.ratio.is_some();
        let by = [RATE.name, "clients_per_s", RATE_PER_CPU.name]
            .into_iter()
            .find_map(|name| self.by(name).filter(told));
        let (missed, seen) = if let Some((by, ratio)) = by.and_then(|by| Some((by, by.ratio?))) {
            let (times, what) = (words::ratio(&ratio), words::noun(by));
            let seen = format!("{times} times the {what} of {}", self.reference);
            (ratio.high < 1.0 - percent / 100.0, seen)
        } else {
            let why = self.not_compared.as_deref();
            let why = why.unwrap_or("nothing could be compared");
            (true, format!("cannot be judged: {why}"))
        };
        Judged {
            demand: format!("slower by more than {percent} %"),
            server: self.server.clone(),
            clients: self.clients,
            missed,
            seen,
        }
    }
}
