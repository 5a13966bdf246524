//! Two servers under the same load, by every measure that they have.

use serde::Serialize;

use crate::summary::{Row, Summary};
use throng_record::Run;
use throng_record::format::{ABSENT, counted, or_absent};
use throng_record::metrics::{Better, Judged, METRICS, Metric, compared};
use throng_stats::{Interval, Verdict};

/// Measures of how fast a server is, which tell of something else where the clients were the limit or set
/// the pace.
const OF_SPEED: [&str; 3] = ["requests_per_s", "completion_s", "clients_per_s"];

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
    /// The reference's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<f64>,
    /// The server's.
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

/// One of two that are compared.
pub(crate) struct Side<'a> {
    row: &'a Row,
    /// How it is called beside the other.
    called: &'a str,
}

/// A whole run, to take sides from.
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

    /// Compares a server of this run with another one, or with what it was in another run; what that says is
    /// still to be said.
    pub(super) fn unsaid(self, side: &Side<'_>, reference: &Side<'_>, together: Together) -> Pair {
        // Where each client has a job, the time until all are done says the same better.
        let has_jobs = side.row.completion.is_some() && reference.row.completion.is_some();
        let metrics = compared()
            .into_iter()
            .filter(|metric| !has_jobs || metric.name != "requests_per_s");
        let measures = self.measures(metrics, side, reference, together);
        let not_compared = [side, reference].into_iter().find_map(not_comparable);
        Pair {
            clients: side.row.clients,
            server: side.called.to_owned(),
            reference: reference.called.to_owned(),
            measures,
            not_compared,
            sentence: String::new(),
        }
    }

    /// The same by all metrics of which less or more is better and that no pair has. What was counted in all
    /// is left out where there is the same for one reply.
    pub(crate) fn others(
        self,
        side: &Side<'_>,
        reference: &Side<'_>,
        together: Together,
    ) -> Vec<Measured> {
        let metrics = METRICS.iter().filter(|metric| {
            metric.better != Better::Neutral
                && !metric.shown.compared
                && metric.per_request().is_none()
        });
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
        let (values, others, seed) = (&side.row.metrics, &reference.row.metrics, self.run.seed);
        let ratio = match together {
            Together::Interleaved => values.ratio(others, metric, seed),
            Together::Apart => values.ratio_apart(others, metric, seed),
        };
        let checks = self.summary.checks_at(side.row.clients);
        let noise = checks.and_then(|checks| checks.noise(metric, seed));
        let floor = noise.unwrap_or(0.0).max(metric.least_difference);
        let verdict = match Verdict::beyond(floor, ratio, metric.better == Better::Higher) {
            Verdict::Better => Word::Better,
            Verdict::Worse => Word::Worse,
            Verdict::NotDistinguishable => Word::NotDistinguishable,
        };
        let measured = Measured {
            name: metric.name,
            title: metric.label,
            reference: others.value(metric.name),
            value: values.value(metric.name),
            ratio,
            noise,
            verdict,
            why: None,
            metric,
        };
        match (speed_means_nothing(metric, side, reference), ratio) {
            (Some(why), _) => measured.withheld(&why),
            (None, _) if metric.is_exact() => {
                measured.withheld("it is a count over trials, and so has no interval")
            }
            (None, None) => measured.withheld("it was not measured in enough trials"),
            (None, Some(_)) => measured,
        }
    }
}

/// A measure in a sentence.
pub(super) fn noun(measured: &Measured) -> String {
    match measured.name {
        "requests_per_s" => "requests a second".to_owned(),
        "requests_per_server_cpu_s" => "requests per CPU-second".to_owned(),
        "server_pss_bytes" => "memory".to_owned(),
        "fairness_jain" => "fairness".to_owned(),
        "completion_s" => "completion time".to_owned(),
        "clients_per_s" => "clients done a second".to_owned(),
        "latency_sample_us" => "mean latency of 50 requests".to_owned(),
        name => match name.split_once('_') {
            Some(("latency", _)) => format!("latency at {}", percentile(name)),
            Some((kind, _)) => format!("{kind} time at {}", percentile(name)),
            None => name.to_owned(),
        },
    }
}

/// "p99" of "latency_p99_us".
pub(super) fn percentile(name: &str) -> &str {
    name.split('_').nth(1).unwrap_or(name)
}

/// "1.52 (1.47–1.58)".
pub(super) fn ratio(ratio: &Interval) -> String {
    // As many as tell a narrow interval's ends from 1.
    let narrow = ratio.high - ratio.low < 0.05;
    let decimals = match ratio.estimate {
        ..0.01 => 4,
        ..0.1 => 3,
        0.98..1.02 if narrow => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!(
        "{:.decimals$} ({:.decimals$}–{:.decimals$})",
        ratio.estimate, ratio.low, ratio.high
    )
}

/// Whether two were measured in the same rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Together {
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
            .served()
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
        let value = |value: Option<f64>| or_absent(value, |value| self.metric.text(value));
        let ratio = self.ratio.as_ref().map_or_else(|| ABSENT.to_owned(), ratio);
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
        let by = [
            "requests_per_s",
            "clients_per_s",
            "requests_per_server_cpu_s",
        ]
        .into_iter()
        .find_map(|name| self.by(name).filter(told));
        let (missed, seen) = if let Some((by, ratio)) = by.and_then(|by| Some((by, by.ratio?))) {
            let (times, what) = (self::ratio(&ratio), noun(by));
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
