//! A record boiled down: one [`Row`] for each (server, number of clients), over its trials.
//!
//! This is what `throng run --json` prints, so names are stable. What was not measured is absent.

mod side;

use std::collections::BTreeMap;

use serde::Serialize;

use super::below::Share;
use super::checks::Checks;
use super::completion::{CompletionRow, FirstConnectFailure, served};
use super::counted::Counted;
use super::histograms::{Times, merge};
use super::pace::Pacer;
use super::scalability::Scaling;
use super::unserved;
use super::wire::Wire;
use crate::record::{Load, Purpose, Run, Trial};
use crate::stats::{bootstrap_median, is_unsteady, median};
pub use side::SideRow;
use side::per_reply;

/// A side's CPU use, relative to what it may use, from which on it is full.
const FULL: f64 = 0.95;

/// A whole run in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What was run.
    pub study: String,
    /// The question it answers.
    pub question: String,
    /// The seed of the run; intervals are drawn from it too.
    pub seed: u64,
    /// How often each pair was to be tried.
    pub repeats: u32,
    /// The servers, in the order in which they are shown.
    pub servers: Vec<String>,
    /// The numbers of clients, rising.
    pub clients: Vec<u32>,
    /// Trials planned, and trials in the record.
    pub trials_planned: u32,
    /// Trials in the record, failed ones included.
    pub trials_run: u32,
    /// By number of clients, then by server.
    pub rows: Vec<Row>,
    /// What the run says about itself, by number of clients.
    pub checks: Vec<Checks>,
    /// How each server scales, where there are numbers of clients enough to tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// From how many clients on connecting fails, where each client has a job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first_connect_failures: Vec<FirstConnectFailure>,
}

/// A median over trials, with its 95 % interval when there are at least two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantity {
    /// Median over trials.
    pub median: f64,
    /// Lower end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// Which side had no CPU left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Full {
    /// Neither: both waited part of the time.
    Neither,
    /// The server: what should limit it.
    Server,
    /// The load generator: the rate is a lower bound.
    Client,
    /// Both: the rate is close to the generator's own ceiling.
    Both,
}

/// One server under one number of clients, over all its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the server.
    pub server: String,
    /// Clients wanted.
    pub clients: u32,
    /// What limits the server by design, where clients were not served for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structural_limit: Option<String>,
    /// Trials with figures.
    pub trials_ok: u32,
    /// Trials without.
    pub trials_failed: u32,
    /// Why trials failed, each reason once.
    pub failures: Vec<String>,
    /// Clients connected, median over trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected: Option<f64>,
    /// Clients served, median over trials; where each had a job, those who were done with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<f64>,
    /// Whether every trial served every client wanted.
    pub served_all: bool,
    /// Clients never served, median over trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_served: Option<f64>,
    /// Verified replies a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies_per_s: Option<Quantity>,
    /// Replies for each second of CPU that the server spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies_per_server_cpu_s: Option<Quantity>,
    /// The server's process tree.
    pub server_side: SideRow,
    /// Its flows on the wire, when trials were captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// The load generator's.
    pub client_side: SideRow,
    /// Which side had no CPU left, when both were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<Full>,
    /// Share of what the clients can reach, where they were so near it that it may have been the
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_ceiling: Option<f64>,
    /// What set the pace in place of the server, which kept it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paced_by: Option<Pacer>,
    /// How the clients came to an end, where each had a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionRow>,
    /// From sending a request to its whole reply, over all trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Times>,
    /// Longest wait from `connect()` to the first reply, in any trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_answer_max_us: Option<f64>,
    /// Longest wait for a connection, in any trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_max_us: Option<f64>,
    /// How evenly the served clients were served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<FairnessRow>,
    /// Clients that ended with an error, by kind, added up over trials.
    pub errors: BTreeMap<String, u64>,
    /// Requests sent whole, over all trials.
    pub requests: u64,
    /// Replies verified, over all trials.
    pub verified: u64,
    /// Whether every request sent was answered rightly.
    pub all_verified: bool,
    /// The values of each trial that ratios are made from.
    pub rounds: Vec<Round>,
    /// What one reply cost both sides, from the trial in which that was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Response times at parts of this rate, each from a trial of its own, rising.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Share>,
}

/// How evenly clients were served, over the trials of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FairnessRow {
    /// Jain's index.
    pub jain: Quantity,
    /// Fewest replies of a client in any trial.
    pub min: u64,
    /// Most replies of a client in any trial.
    pub max: u64,
    /// Most starved clients in any trial.
    pub starved: u32,
}

/// What one trial adds to the ratios between servers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Round {
    /// Repetition, from 0.
    pub round: u32,
    /// Verified replies a second.
    pub replies_per_s: f64,
    /// CPU time of the server for each reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_reply: Option<f64>,
    /// Jain's index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
    /// Until the last client was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
    /// Whether the rate did not drift while it was measured.
    pub steady: bool,
}

impl Summary {
    /// Boils `trials` of `run` down.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub fn of(run: &Run, trials: &[Trial]) -> anyhow::Result<Self> {
        // Trials of a search have tables of their own.
        let rows_of = trials.iter().filter(|trial| !trial.purpose.seeks_limit());
        let mut clients: Vec<u32> = rows_of.map(|trial| trial.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        let checks: Vec<Checks> = clients
            .iter()
            .map(|count| Checks::of(run, trials, *count))
            .collect();
        let mut rows = Vec::new();
        for (count, checks) in clients.iter().zip(&checks) {
            for server in &run.servers {
                let of_pair = || {
                    let trials = trials.iter();
                    trials.filter(|trial| trial.clients == *count && trial.server == server.name)
                };
                let of_row: Vec<&Trial> = of_pair()
                    .filter(|trial| trial.purpose == Purpose::Timed)
                    .collect();
                if !of_row.is_empty() {
                    let mut row = Row::of(run, &of_row)?;
                    row.counted = Counted::of(of_pair());
                    row.below = Share::all(of_pair())?;
                    row.structural_limit = unserved::by_design(server, of_row.iter().copied());
                    row.wire = Wire::of(of_pair(), run.seed);
                    let rate = row.replies_per_s.map(|rate| rate.median);
                    row.near_ceiling = rate.and_then(|rate| checks.near_ceiling(rate));
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
            repeats: run.settings.repeats,
            servers,
            clients,
            trials_planned: run.trials_planned,
            trials_run: trials.len() as u32,
            rows,
            checks,
        })
    }

    /// What the run says about itself with one number of clients.
    pub fn checks_at(&self, clients: u32) -> Option<&Checks> {
        self.checks.iter().find(|checks| checks.clients == clients)
    }

    /// The rows of one number of clients, in the order of the servers.
    pub fn rows_at(&self, clients: u32) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.clients == clients)
    }
}

impl Row {
    /// Trials of one server and one number of clients; at least one.
    fn of(run: &Run, trials: &[&Trial]) -> anyhow::Result<Self> {
        let good: Vec<(&Trial, &Load)> = trials
            .iter()
            .filter(|trial| trial.failure.is_none())
            .filter_map(|trial| Some((*trial, trial.load.as_ref()?)))
            .collect();
        let loads = || good.iter().map(|(_, load)| *load);
        let of_loads = |value: fn(&Load) -> u32| {
            median(
                &loads()
                    .map(|load| f64::from(value(load)))
                    .collect::<Vec<_>>(),
            )
        };
        let greatest = |values: Vec<f64>| values.into_iter().max_by(f64::total_cmp);
        let quantity = |values: Vec<f64>| Quantity::of(&values, run.seed);
        let requests = loads().map(|load| load.requests).sum();
        let verified = loads().map(|load| load.verified).sum();
        let mut errors = BTreeMap::new();
        for (kind, count) in loads().flat_map(|load| &load.errors) {
            *errors.entry(kind.clone()).or_default() += count;
        }
        let server_side = SideRow::of(run, &good, |trial| trial.server_side.as_ref());
        let client_side = SideRow::of(run, &good, |trial| trial.client_side.as_ref());
        let rounds: Vec<Round> = good
            .iter()
            .map(|(trial, load)| Round::of(trial, load))
            .collect();
        let cost = rounds
            .iter()
            .filter_map(|round| round.server_cpu_us_per_reply);
        Ok(Self {
            server: trials[0].server.clone(),
            clients: trials[0].clients,
            structural_limit: None,
            trials_ok: good.len() as u32,
            trials_failed: (trials.len() - good.len()) as u32,
            failures: failures(trials),
            connected: of_loads(|load| load.connected),
            served: of_loads(served),
            served_all: !good.is_empty() && loads().all(|load| served(load) >= load.clients),
            never_served: of_loads(|load| load.never_served),
            replies_per_s: quantity(rounds.iter().map(|round| round.replies_per_s).collect()),
            replies_per_server_cpu_s: quantity(
                cost.filter(|c| *c > 0.0).map(|c| 1e6 / c).collect(),
            ),
            full: full(run, &server_side, &client_side),
            near_ceiling: None,
            paced_by: Pacer::of_all(loads()),
            completion: CompletionRow::of(&good, run.seed)?,
            wire: None,
            server_side,
            client_side,
            service_time: merge(loads().filter_map(|load| load.service_time.as_ref()))?,
            first_answer_max_us: greatest(
                loads()
                    .filter_map(|load| Some(load.first_answer.as_ref()?.max_us))
                    .collect(),
            ),
            connect_max_us: greatest(
                loads()
                    .filter_map(|load| Some(load.connect_time.as_ref()?.max_us))
                    .collect(),
            ),
            fairness: FairnessRow::of(run.seed, loads()),
            errors,
            requests,
            verified,
            all_verified: requests == verified && requests > 0,
            rounds,
            counted: None,
            below: Vec::new(),
        })
    }
}

impl Quantity {
    /// Median and interval of `values`; `None` without values.
    pub(super) fn of(values: &[f64], seed: u64) -> Option<Self> {
        let interval = bootstrap_median(values, seed);
        Some(Self {
            median: median(values)?,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        })
    }
}

impl Row {
    /// Whether the clients can have been what limited the rate: their CPU was full, or they were
    /// near what they can reach.
    pub fn client_limited(&self) -> bool {
        matches!(self.full, Some(Full::Client | Full::Both)) || self.near_ceiling.is_some()
    }
}

impl Round {
    pub(super) fn of(trial: &Trial, load: &Load) -> Self {
        let cost = trial
            .server_side
            .as_ref()
            .and_then(|side| per_reply(side, load, "cpu_ms"));
        Self {
            round: trial.round,
            replies_per_s: load.window.replies_per_s,
            server_cpu_us_per_reply: cost.map(|milliseconds| milliseconds * 1000.0),
            jain: load.fairness.as_ref().map(|fairness| fairness.jain),
            completion_s: load.completion.as_deref().and_then(|jobs| jobs.last_done_s),
            steady: !is_unsteady(&load.window.slices),
        }
    }
}

impl FairnessRow {
    fn of<'a>(seed: u64, loads: impl Iterator<Item = &'a Load>) -> Option<Self> {
        let all: Vec<_> = loads.filter_map(|load| load.fairness.as_ref()).collect();
        let jain: Vec<f64> = all.iter().map(|fairness| fairness.jain).collect();
        Some(Self {
            jain: Quantity::of(&jain, seed)?,
            min: all.iter().map(|fairness| fairness.min).min()?,
            max: all.iter().map(|fairness| fairness.max).max()?,
            starved: all.iter().map(|fairness| fairness.starved).max()?,
        })
    }
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

/// Which side had no CPU left. A server with fewer threads than CPUs cannot use more than one CPU
/// a thread, and neither can the load generator.
fn full(run: &Run, server: &SideRow, client: &SideRow) -> Option<Full> {
    let tasks = server
        .threads
        .unwrap_or(f64::INFINITY)
        .max(server.processes.unwrap_or(1.0));
    let server_cpus = f64::from(run.server_cpus()).min(tasks.max(1.0));
    let client_cpus = f64::from(run.client_cpus());
    let server = server.cpu_percent? >= 100.0 * FULL * server_cpus;
    let client = client.cpu_percent? >= 100.0 * FULL * client_cpus;
    Some(match (server, client) {
        (false, false) => Full::Neither,
        (true, false) => Full::Server,
        (false, true) => Full::Client,
        (true, true) => Full::Both,
    })
}
