//! The summary of a record: one [`Row`] per server and number of clients, over its trials.
//!
//! `throng run --json` prints it, with the metric names of the catalogue. Missing values are absent.

mod connecting;
pub mod scalability;

use std::collections::BTreeMap;

use serde::Serialize;

use super::at_load::Share;
use super::checks::Checks;
use super::completion::{CompletionRow, served};
use super::pace::Pacer;
pub use connecting::FirstConnectFailure;
use scalability::Scaling;
use throng_record::findings::FindingKind;
use throng_record::findings::cpu::{CLIENT_LIMITED, THROTTLED};
use throng_record::findings::replies::{NOT_LEVEL, UNEXPECTED};
use throng_record::findings::{Circumstances, cause};
use throng_record::format::{counted, list, number, whole};
use throng_record::metrics::{Absence, METRICS, Metric, Quantity, Values};
use throng_record::{
    Find, Finding, Load, Purpose, Run, ServerInfo, Slice, Trial, counting, set_aside,
};

/// The share of its CPU time that a server may use after its replies in slices before its throughput counts as too
/// high.
const LATE: f64 = 0.05;

/// A whole run in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub study: String,
    /// The question it answers.
    pub question: String,
    /// The seed of the run, which also seeds the resampling of scalability fits.
    pub seed: u64,
    /// Planned trials per server and number of clients.
    pub runs: u32,
    /// The servers, in display order.
    pub servers: Vec<String>,
    /// The numbers of clients, in ascending order.
    pub clients: Vec<u32>,
    /// Trials planned.
    pub trials_planned: u32,
    /// Trials in the record, failed ones included.
    pub trials_run: u32,
    /// The invalid trials, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<InvalidTrials>,
    /// The rows, by number of clients, then by server.
    pub rows: Vec<Row>,
    /// Checks of the run itself, by number of clients.
    pub checks: Vec<Checks>,
    /// The scalability of each server, if the run has enough different numbers of clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// The number of clients at which connecting starts to fail, if each client has a job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first_connect_failures: Vec<FirstConnectFailure>,
}

/// What was found in trials of one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingOfTrials {
    /// The first one.
    #[serde(flatten)]
    pub finding: Finding,
    /// The number of trials with such a finding.
    pub trials: u32,
}

impl FindingOfTrials {
    fn all(trials: &[&Trial]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for finding in trials.iter().flat_map(|trial| &trial.findings) {
            match all
                .iter_mut()
                .find(|known| known.finding.kind == finding.kind)
            {
                Some(known) => known.trials += 1,
                None => all.push(Self {
                    finding: finding.clone(),
                    trials: 1,
                }),
            }
        }
        all
    }
}

/// Trials whose figures could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvalidTrials {
    /// Their number.
    pub trials: u32,
    /// How many of them were replaced by a valid trial.
    pub repeated: u32,
    /// Why: for each cause, the first reason seen and how many more there were.
    pub reasons: Vec<String>,
}

impl InvalidTrials {
    fn of(trials: &[Trial]) -> Option<Self> {
        let mut kinds: Vec<(&Finding, u32)> = Vec::new();
        let mut repeated = 0;
        for (_, why, replaced) in set_aside(trials) {
            repeated += u32::from(replaced);
            match kinds.iter_mut().find(|(first, _)| first.kind == why.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((why, 1)),
            }
        }
        let invalid: u32 = kinds.iter().map(|(_, count)| count).sum();
        let reasons = kinds.into_iter().map(|(first, count)| match count {
            1 => first.text.clone(),
            _ => format!("{} (and {} more)", first.text, count - 1),
        });
        (invalid > 0).then(|| Self {
            trials: invalid,
            repeated,
            reasons: reasons.collect(),
        })
    }

    /// "2 of 12 trials invalid: the load generator stood still for 2.00 s of 3.00 s; repeated."
    pub(super) fn sentence(&self, all: u32) -> String {
        let repeated = match self.repeated {
            0 => String::new(),
            repeated if repeated == self.trials => "; repeated".to_owned(),
            some => format!("; {some} repeated"),
        };
        format!(
            "{} of {} invalid: {}{repeated}.",
            self.trials,
            counted(all, "trial"),
            self.reasons.join("; ")
        )
    }
}

/// One server with one number of clients, over all its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the server.
    pub server: String,
    /// Requested number of clients.
    pub clients: u32,
    /// Why it left clients unserved, if the record shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unserved_because: Option<String>,
    /// Trials with figures.
    pub trials_ok: u32,
    /// Trials without figures.
    pub trials_failed: u32,
    /// Why trials failed, each reason once.
    pub failures: Vec<String>,
    /// Whether every trial served every requested client.
    pub served_all: bool,
    /// The clients served in each trial that left some unserved, ascending.
    pub served_short: Vec<u32>,
    /// Every metric that was measured, by its name in the catalogue.
    pub metrics: Values,
    /// Why metrics have no value, if known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<&'static str, Absence>,
    /// What was found in its trials, each kind once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingOfTrials>,
    /// The rate as a share of the clients' maximum, if it is so large that the clients may have been the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_ceiling: Option<f64>,
    /// The share of its CPU time that the server used after its last replies in slices. Set only if it is so large
    /// that its next replies would have had to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub works_late: Option<f64>,
    /// The setting that set the pace instead of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paced_by: Option<Pacer>,
    /// How the clients ended, if each has a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionRow>,
    /// Clients that ended with an error, by kind, summed over trials.
    pub errors: BTreeMap<String, u64>,
    /// Requests sent in full, over all trials.
    pub requests: u64,
    /// Whole replies, over all trials.
    pub replies: u64,
    /// Correct replies, over all trials.
    pub verified: u64,
    /// Whether every request sent was answered correctly.
    pub all_verified: bool,
    /// What unexpected replies did.
    #[serde(skip)]
    pub(crate) unexpected_in_words: &'static str,
    /// Unexpected replies by status or by the condition of a step, summed over trials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unexpected: BTreeMap<String, u64>,
    /// The steps of sessions, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRow>,
    /// Response times at shares of this rate, each from its own trial, in ascending order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_load: Vec<Share>,
}

impl Summary {
    /// Summarises the `trials` of `run`.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub fn of(run: &Run, trials: &[Trial]) -> anyhow::Result<Self> {
        let (all, invalid) = (trials.len() as u32, InvalidTrials::of(trials));
        let counting = counting(trials);
        let counted = &*counting;
        // Trials of a search have their own tables.
        let rows_of = counted.iter().filter(|trial| !trial.purpose.seeks_limit());
        let mut clients: Vec<u32> = rows_of.map(|trial| trial.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        let checks: Vec<Checks> = clients
            .iter()
            .map(|count| Checks::of(run, counted, *count))
            .collect::<anyhow::Result<_>>()?;
        let mut rows = Vec::new();
        for (count, of_count) in clients.iter().zip(&checks) {
            for server in &run.servers {
                let of_pair = || {
                    let all_counted = counted.iter();
                    all_counted
                        .filter(|trial| trial.clients == *count && trial.server == server.name)
                };
                let of_row: Vec<&Trial> = of_pair()
                    .filter(|trial| trial.purpose == Purpose::Timed)
                    .collect();
                if !of_row.is_empty() {
                    let untimed: Vec<&Trial> = of_pair()
                        .filter(|trial| !trial.purpose.is_timed())
                        .collect();
                    let mut row = Row::of(run, &of_row, &untimed)?;
                    row.at_load = Share::all(of_pair())?;
                    row.unserved_because = unserved_because(run, server, &of_row);
                    let rate = row.value("requests_per_s");
                    row.near_ceiling = rate.and_then(|rate| of_count.near_ceiling(rate));
                    rows.push(row);
                }
            }
        }
        let servers: Vec<String> = run
            .servers
            .iter()
            .map(|server| server.name.clone())
            .collect();
        Ok(Self {
            scaling: Scaling::of_run(&servers, &clients, &rows, run.seed),
            first_connect_failures: FirstConnectFailure::of_run(&servers, &rows),
            study: run.study.name.clone(),
            question: run.study.question.clone(),
            seed: run.seed,
            runs: run.settings.runs,
            servers,
            clients,
            trials_planned: run.trials_planned,
            trials_run: all,
            invalid,
            rows,
            checks,
        })
    }

    /// The sentence about invalid trials.
    pub(super) fn invalid(&self) -> Option<String> {
        let invalid = self.invalid.as_ref()?;
        Some(invalid.sentence(self.trials_run))
    }

    /// Checks of the run itself with `clients` clients.
    pub fn checks_at(&self, clients: u32) -> Option<&Checks> {
        self.checks.iter().find(|checks| checks.clients == clients)
    }

    /// The rows with `clients` clients, in the order of the servers.
    pub fn rows_at(&self, clients: u32) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.clients == clients)
    }
}

/// Whether each client of a run with these rows had a job.
pub(super) fn has_jobs(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.completion.is_some())
}

/// A step of sessions, over all trials that count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRow {
    /// Its name.
    pub name: String,
    /// The metrics of its replies.
    pub metrics: Values,
}

impl StepRow {
    /// The steps of these trials.
    fn all(good: &[(&Trial, &Load)]) -> anyhow::Result<Vec<Self>> {
        let sessions = good.iter().find_map(|(_, load)| load.sessions.as_ref());
        let steps = sessions.into_iter().flat_map(|sessions| &sessions.steps);
        let row = |name: &String| {
            let trials: Vec<Trial> = good
                .iter()
                .filter_map(|(trial, _)| trial.of_step(name))
                .collect();
            Ok(Self {
                name: name.clone(),
                metrics: Values::of(&trials)?,
            })
        };
        steps.map(|step| row(&step.name)).collect()
    }
}

impl Row {
    /// Why it did not serve all its clients, as far as known.
    pub(super) fn why_not_all(&self) -> Option<String> {
        let kinds: Vec<&str> = self.errors.keys().map(String::as_str).collect();
        let errors = (!kinds.is_empty()).then(|| list(&kinds));
        self.unserved_because.clone().or(errors)
    }

    /// Whether its clients had think time.
    pub(super) fn thinks(&self) -> bool {
        self.value("think_mean_s").is_some() || self.paced_by == Some(Pacer::Think)
    }

    /// Builds the row of one server and number of clients from its timed `trials`, at least one, and its `untimed`
    /// ones.
    fn of(run: &Run, trials: &[&Trial], untimed: &[&Trial]) -> anyhow::Result<Self> {
        let good: Vec<(&Trial, &Load)> = trials
            .iter()
            .filter(|trial| trial.failure.is_none())
            .filter_map(|trial| Some((*trial, trial.load.as_ref()?)))
            .collect();
        let loads = || good.iter().map(|(_, load)| *load);
        let requests = loads().map(|load| load.requests).sum();
        let verified = loads().map(|load| load.verified).sum();
        let sum = |counts: fn(&Load) -> &BTreeMap<String, u64>| {
            let mut sum = BTreeMap::new();
            for (kind, count) in loads().flat_map(counts) {
                *sum.entry(kind.clone()).or_default() += count;
            }
            sum
        };
        let all = || trials.iter().chain(untimed).copied();
        let short = loads().filter(|load| served(load) < load.clients);
        let mut served_short: Vec<u32> = short.map(served).collect();
        served_short.sort_unstable();
        let metrics = Values::of(all())?;
        let absent = METRICS
            .iter()
            .filter(|metric| metrics.get(metric.name).is_none())
            .filter_map(|metric| Some((metric.name, metric.absence(run, all())?)));
        Ok(Self {
            server: trials[0].server.clone(),
            clients: trials[0].clients,
            unserved_because: None,
            trials_ok: good.len() as u32,
            trials_failed: (trials.len() - good.len()) as u32,
            failures: failures(trials),
            served_all: !good.is_empty() && loads().all(|load| served(load) >= load.clients),
            served_short,
            absent: absent.collect(),
            findings: FindingOfTrials::all(trials),
            metrics,
            near_ceiling: None,
            works_late: works_late(&good),
            paced_by: Pacer::of_all(loads()),
            completion: CompletionRow::of(&good),
            errors: sum(|load| &load.errors),
            unexpected: sum(|load| &load.unexpected),
            unexpected_in_words: loads().next().map_or("", Load::unexpected_in_words),
            requests,
            replies: loads().map(Load::replies).sum(),
            verified,
            all_verified: requests == verified && requests > 0,
            steps: StepRow::all(&good)?,
            at_load: Vec::new(),
        })
    }

    /// A metric with its interval.
    pub fn quantity(&self, metric: &str) -> Option<Quantity> {
        self.metrics.quantity(metric)
    }

    /// A metric.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.value(metric)
    }

    /// "1 of 1,000 clients", or "0 to 319 of 5,000 clients in 2 of 3 trials": the trials that left clients unserved, with
    /// their number, unless all did.
    pub fn served_in_words(&self) -> Option<String> {
        let served = self.served_short_in_words(" to ")?;
        let clients = counted(self.clients, "client");
        let short = self.served_short.len();
        let of_trials = if short < self.trials_ok as usize {
            format!(" in {short} of {} trials", self.trials_ok)
        } else {
            String::new()
        };
        Some(format!("{served} of {clients}{of_trials}"))
    }

    /// "0 to 319": the clients served in the trials that left some unserved.
    pub fn served_short_in_words(&self, between: &str) -> Option<String> {
        let (fewest, most) = (self.served_short.first()?, self.served_short.last()?);
        let served = whole(f64::from(*fewest));
        Some(if most > fewest {
            format!("{served}{between}{}", whole(f64::from(*most)))
        } else {
            served
        })
    }

    /// Clients served; if each has a job, the clients that finished it.
    pub fn served(&self) -> Option<f64> {
        self.value("clients_done").or(self.value("clients_served"))
    }
}

impl Row {
    /// Why the server is not ranked although it served all its clients: its replies were not as expected, or it had
    /// not become level.
    pub fn not_comparable(&self) -> Option<String> {
        self.not_as_expected().or_else(|| self.not_level())
    }

    /// How it did not serve its clients as expected; its times are then those of something else.
    pub(super) fn fault(&self) -> Option<String> {
        let server = &self.server;
        if self.trials_ok == 0 {
            return Some(format!("{server} failed in every trial"));
        }
        if !self.served_all {
            let why = self
                .why_not_all()
                .map_or_else(String::new, |why| format!(": {why}"));
            return Some(format!("{server} served {}{why}", self.served_in_words()?));
        }
        Some(format!("{server}: {}", self.not_as_expected()?))
    }

    fn not_as_expected(&self) -> Option<String> {
        let count: u64 = self.unexpected.values().sum();
        let share = count as f64 / self.replies.max(1) as f64;
        (share > UNEXPECTED).then(|| {
            let statuses: Vec<&str> = self.unexpected.keys().map(String::as_str).collect();
            let percent = number(share * 100.0);
            format!(
                "{percent} % of its replies {} ({})",
                self.unexpected_in_words,
                list(&statuses)
            )
        })
    }

    /// Whether a metric describes the server, rather than the pace that the load sets.
    pub(super) fn is_own(&self, metric: &Metric) -> bool {
        !metric.follows_rate || self.paced_by.is_none()
    }

    /// Whether it served all its clients as expected.
    pub fn is_ranked(&self) -> bool {
        self.served_all && self.not_comparable().is_none()
    }

    /// The first finding of this kind in its trials, with the number of these trials.
    fn found(&self, kind: &FindingKind) -> Option<&FindingOfTrials> {
        let mut findings = self.findings.iter();
        findings.find(|found| found.finding.is(kind))
    }

    /// The first finding of this kind in its trials.
    pub fn finding(&self, kind: &FindingKind) -> Option<&Finding> {
        Some(&self.found(kind)?.finding)
    }

    /// Whether most of its trials have this finding.
    pub fn mostly(&self, kind: &FindingKind) -> bool {
        let found = self.found(kind);
        found.is_some_and(|found| 2 * found.trials > self.trials_ok)
    }

    /// What was not level after the warm-up, if no trial was level.
    pub(super) fn not_level(&self) -> Option<String> {
        let found = self.found(&NOT_LEVEL)?;
        (found.trials == self.trials_ok).then(|| found.finding.text.clone())
    }

    /// Whether the clients may have limited the rate: their CPU was full, or they were near their maximum rate.
    pub fn client_limited(&self) -> bool {
        self.mostly(&CLIENT_LIMITED) || self.near_ceiling.is_some()
    }

    /// Whether a metric is a bound: a speed that is the load generator's.
    pub(super) fn is_bound(&self, metric: &Metric) -> bool {
        metric.follows_rate && metric.is_speed() && self.client_limited()
    }
}

/// The finding about a limit of a control group, from the row whose processes it stopped most.
pub(super) fn worst<'a>(
    rows: impl Iterator<Item = &'a Row>,
    kind: &'static FindingKind,
) -> Option<&'a Finding> {
    let throttled = |finding: &Finding| finding.values.get(THROTTLED).copied().unwrap_or(0.0);
    let all = rows.filter_map(|row| row.finding(kind));
    all.max_by(|one, other| throttled(one).total_cmp(&throttled(other)))
}

/// Why a server left clients unserved in these trials, if the record shows it.
fn unserved_because(run: &Run, server: &ServerInfo, trials: &[&Trial]) -> Option<String> {
    let circumstances = Circumstances {
        server,
        settings: &run.settings,
        host: &run.host,
        find: Find::Clients,
    };
    Some(cause::of_unserved(trials, &circumstances)?.sentence)
}

/// The share of the server's CPU time used after the last replies of slices; `None` below [`LATE`].
fn works_late(trials: &[(&Trial, &Load)]) -> Option<f64> {
    let slices = || trials.iter().flat_map(|(trial, _)| &trial.slices);
    let sum = |part: fn(&Slice) -> Option<u64>| slices().filter_map(part).sum::<u64>() as f64;
    let late = sum(|slice| slice.server_cpu_late_ns) / sum(|slice| slice.server_cpu_ns);
    (late >= LATE).then_some(late)
}

fn failures(trials: &[&Trial]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for failure in trials.iter().filter_map(|trial| trial.failure.as_ref()) {
        let reason = format!("{}: {}", failure.stage, failure.reason);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}
