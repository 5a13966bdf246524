//! All trials of one invocation, one after the other, each on disk before the next begins.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::cluster::Origin;
use super::live_snapshot::{Foreseen, LiveSnapshot};
use super::loads;
use super::plan::{Rounds, ServerUnderTest, interleave};
use super::probes::{ProbeKind, other_purposes};
use super::server::{Launch, State};
use super::trial::{self, Setup};
use super::verify::Rigour;
use super::{host, limit, side_by_side, spin, warnings};
use throng_record::spec::{Assignment, TrialSpec};
use throng_record::{
    Attempt, Below, ClientHost, Comparison, Ending, Failure, Find, Host, Limit, Purpose, Run,
    SCHEMA_VERSION, ServerInfo, Settings, Spin, Store, StudyInfo, Trial,
};
use throng_registry::Unsupported;
use throng_stats::paired::LogRatio;
use throng_sys::signal::Stop;

/// A run, resolved and ready to begin.
pub struct RunSpec {
    /// What is run.
    pub study: StudyInfo,
    /// The settings in force.
    pub settings: Settings,
    /// What the servers are compared with, where that was asked for.
    pub comparison: Option<Comparison>,
    /// The limit that is searched for, where one is: then what is tried follows from what was found.
    pub limit: Option<Limit>,
    /// The servers that take part.
    pub servers: Vec<ServerInfo>,
    /// The one of them that takes part a second time, as its own control.
    pub control: Option<usize>,
    /// A server that does least, which says what the clients can reach.
    pub null_server: Option<ServerInfo>,
    /// What measures them.
    pub probes: Vec<&'static dyn ProbeKind>,
    /// The program that generates the load: this one.
    pub program: PathBuf,
    /// The seed of the order.
    pub seed: u64,
    /// The command line that started the run.
    pub arguments: Vec<String>,
    /// The machine.
    pub host: Host,
    /// The hosts from which clients come, where these are several.
    pub client_hosts: Vec<ClientHost>,
    /// Trials that an earlier invocation of the same run finished.
    pub done: Vec<Trial>,
}

impl RunSpec {
    pub(super) fn server(&self, planned: &TrialSpec) -> &ServerInfo {
        let null = || {
            self.null_server
                .as_ref()
                .expect("one is planned only if there")
        };
        self.servers.get(planned.server).unwrap_or_else(null)
    }

    /// What is told of a trial that begins.
    fn starts(&self, planned: &TrialSpec, index: usize, foreseen: &[f64]) -> Started<'_> {
        Started {
            index,
            total: foreseen.len(),
            foreseen: Some(Foreseen::of(
                foreseen,
                index,
                !self.settings.load.has_jobs(),
            )),
            server: &self.server(planned).name,
            clients: planned.clients,
            rate_per_s: None,
            round: planned.round,
            purpose: planned.purpose,
            percent: planned.percent,
        }
    }

    /// Requests a second of a trial that tries a rate.
    pub(super) fn rate_of(&self, attempt: Option<&Attempt>) -> Option<u64> {
        let searched = self.limit.as_ref()?;
        (searched.find == Find::Rate).then_some(attempt?.value)
    }

    /// All trials in their order.
    fn order(&self) -> Vec<TrialSpec> {
        interleave(&self.settings.clients, &self.rounds(), self.seed)
    }

    /// Whether a trial is one of those that are measured side by side.
    fn is_in_slices(&self, planned: &TrialSpec) -> bool {
        let timed = [Purpose::Timed, Purpose::Control, Purpose::Ceiling];
        !self.settings.method.is_trials() && timed.contains(&planned.purpose)
    }

    /// The repeats that time, with control and ceiling among them; then once each part of the rates
    /// that these reached, and each other purpose of a probe that can measure here, as often as is said.
    fn rounds(&self) -> Vec<Rounds> {
        let of = |server, purpose| ServerUnderTest {
            server,
            purpose,
            percent: None,
        };
        let all = |purpose| -> Vec<ServerUnderTest> {
            (0..self.servers.len())
                .map(|server| of(server, purpose))
                .collect()
        };
        let mut timed = all(Purpose::Timed);
        timed.extend(self.control.map(|server| of(server, Purpose::Control)));
        let null_server = self.null_server.iter();
        timed.extend(null_server.map(|_| of(self.servers.len(), Purpose::Ceiling)));
        let at = |percent: &u32| {
            let percent = Some(*percent);
            all(Purpose::Below)
                .into_iter()
                .map(move |server| ServerUnderTest { percent, ..server })
        };
        let below: Vec<ServerUnderTest> = self.settings.below_percent.iter().flat_map(at).collect();
        let rounds = |runs, servers_under_test| Rounds {
            runs,
            servers_under_test,
        };
        let of_other = |purpose| rounds(self.settings.counted_runs, all(purpose));
        // Side by side, rounds are of slices.
        let runs = if self.settings.method.is_trials() {
            self.settings.runs
        } else {
            1
        };
        [rounds(runs, timed), rounds(1, below)]
            .into_iter()
            .chain(other_purposes(&self.probes).into_iter().map(of_other))
            .collect()
    }
}

/// A trial that begins.
pub struct Started<'a> {
    /// Its place, from 0.
    pub index: usize,
    /// How many there are.
    pub total: usize,
    /// What it takes, and what the others do, where it is known which these are.
    pub foreseen: Option<Foreseen>,
    /// Name of the server.
    pub server: &'a str,
    /// Number of clients.
    pub clients: u32,
    /// Requests a second, where it tries a rate.
    pub rate_per_s: Option<u64>,
    /// Repetition, from 0.
    pub round: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Below the maximum: at which part of the rate reached before.
    pub percent: Option<u32>,
}

/// Whoever wants to show how the run goes.
pub trait Observer {
    /// A trial begins.
    fn begins(&mut self, started: &Started<'_>);
    /// How often it wants to see figures of the load while it runs; none: not at all.
    fn wants_figures_every(&self) -> Option<Duration> {
        None
    }
    /// Told many times a second while a load runs, between two samples, so it must be quick.
    fn sees(&mut self, _: &LiveSnapshot) {}
    /// Told about once a second while servers are measured side by side.
    fn sees_ratios(&mut self, _: &RatiosSoFar) {}
    /// A trial has ended and is on disk.
    fn ended(&mut self, trial: &Trial);
}

/// How servers that are measured side by side compare so far.
#[derive(Debug, Clone)]
pub struct RatiosSoFar {
    /// Rounds so far.
    pub rounds: u32,
    /// Name of the server that the others are compared with.
    pub reference: String,
    /// Requests a second of the others over those of the reference, where there are rounds enough.
    pub rates: Vec<(String, LogRatio)>,
    /// How much of the time or of the rounds is over, from 0 to 1.
    pub share_done: f64,
}

/// Who attends a trial: somebody who sees it, and somebody who may stop it.
pub(super) struct Audience<'a> {
    pub(super) observer: &'a mut dyn Observer,
    pub(super) stop: Stop,
}

/// Runs all trials, or as many as there is time for until a signal asks to stop.
///
/// # Errors
/// When the record cannot be written; what failed in a trial is part of the trial.
pub fn run(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &mut Store,
    observer: &mut dyn Observer,
    stop: Stop,
) -> anyhow::Result<(Run, Vec<Trial>)> {
    if let Some(asked) = &plan.limit {
        return limit::run(plan, asked, origin, store, observer, stop);
    }
    let order = plan.order();
    let foreseen: Vec<f64> = order
        .iter()
        .map(|planned| loads::foreseen(&plan.settings, planned.purpose))
        .collect();
    let run = begin(plan, order.len(), store)?;
    let mut trials = plan.done.clone();
    let audience = &mut Audience { observer, stop };
    for (index, planned) in order.iter().enumerate() {
        if trials.iter().any(|trial| trial.index as usize == index) {
            continue;
        }
        if plan.is_in_slices(planned) {
            let together: Vec<(usize, &TrialSpec)> = order
                .iter()
                .enumerate()
                .filter(|(_, other)| plan.is_in_slices(other) && other.clients == planned.clients)
                .collect();
            audience
                .observer
                .begins(&plan.starts(planned, index, &foreseen));
            let seen = side_by_side::run(plan, store, &together, audience)?;
            for trial in seen {
                // One of an earlier invocation stays: those of its round are measured again without it.
                if trials.iter().all(|other| other.index != trial.index) {
                    store.add_trial(&trial)?;
                    audience.observer.ended(&trial);
                    trials.push(trial);
                }
            }
            if stop.requested() {
                break;
            }
            continue;
        }
        let started = plan.starts(planned, index, &foreseen);
        audience.observer.begins(&started);
        let (measured, trial) = one_trial(plan, origin, store, &trials, index, planned, audience)?;
        if measured == Measured::CutShort {
            break;
        }
        audience.observer.ended(&trial);
        trials.push(trial);
        if measured == Measured::HostLost {
            return end(run, trials, Ending::HostLost, store);
        }
        if stop.requested() {
            break;
        }
    }
    let complete = trials.len() == order.len();
    end(run, trials, ending(complete), store)
}

/// Writes what is known of a run before its first trial, and leaves the server's CPUs to it.
pub(super) fn begin(plan: &RunSpec, trials: usize, store: &Store) -> anyhow::Result<Run> {
    let settings = &plan.settings;
    let mut run = begun(plan);
    run.trials_planned = trials as u32;
    store.write_run(&run)?;
    if !settings.client_cpus.is_empty() {
        // What measures must not run where the server runs.
        host::bind_to(&settings.client_cpus)?;
    }
    Ok(run)
}

/// How a run ended that only a signal can have cut short.
pub(super) fn ending(complete: bool) -> Ending {
    if complete {
        Ending::Complete
    } else {
        Ending::Interrupted
    }
}

/// Writes what is known of a run after its last trial.
pub(super) fn end(
    mut run: Run,
    trials: Vec<Trial>,
    ending: Ending,
    store: &Store,
) -> anyhow::Result<(Run, Vec<Trial>)> {
    run.warnings.extend(warnings::of_trials(&trials));
    run.ending = ending;
    run.finished_at = Some(utc_now());
    store.write_run(&run)?;
    Ok((run, trials))
}

/// A run that has not come to its first new trial.
pub fn begun(plan: &RunSpec) -> Run {
    let settings = &plan.settings;
    Run {
        schema_version: SCHEMA_VERSION,
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
        throng_build: build(),
        study: plan.study.clone(),
        seed: plan.seed,
        started_at: plan
            .done
            .first()
            .map_or_else(utc_now, |trial| trial.started_at.clone()),
        finished_at: None,
        ending: Ending::Unfinished,
        arguments: plan.arguments.clone(),
        settings: settings.clone(),
        servers: plan.servers.clone(),
        null_server: plan.null_server.clone(),
        host: plan.host.clone(),
        client_hosts: plan.client_hosts.clone(),
        comparison: plan.comparison.clone(),
        limit: plan.limit.clone(),
        unavailable: unavailable(&plan.probes),
        trials_planned: plan.order().len() as u32,
        warnings: warnings::of_run(&plan.host, settings),
    }
}

/// How this program was built.
fn build() -> String {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let environment = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "gnu"
    };
    let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("{profile}, {arch}-{system}-{environment}")
}

/// Runs one trial after those that are `done` and records it, unless a signal cut it short.
fn one_trial(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &mut Store,
    done: &[Trial],
    index: usize,
    planned: &TrialSpec,
    audience: &mut Audience<'_>,
) -> anyhow::Result<(Measured, Trial)> {
    let server = &plan.server(planned).name;
    let mut trial = Trial {
        index: index as u32,
        round: planned.round,
        server: server.clone(),
        clients: planned.clients,
        purpose: planned.purpose,
        below: planned
            .percent
            .map(|percent| Below::of(percent, done, server, planned.clients)),
        started_at: utc_now(),
        ..Trial::default()
    };
    let measured = if trial.below.is_some_and(|below| below.rate_per_s.is_none()) {
        trial.failure = Some(no_rate(planned.clients));
        Measured::Whole
    } else {
        measure(plan, origin, store, planned, &mut trial, audience)?
    };
    if measured != Measured::CutShort {
        store.add_trial(&trial)?;
    }
    Ok((measured, trial))
}

/// Why there is no load below a maximum that is not known.
fn no_rate(clients: u32) -> Failure {
    Failure {
        stage: "load".to_owned(),
        reason: format!(
            "no trial at full speed with as many clients ({clients}) had replies, so there is no rate to \
             take a part of"
        ),
        output: String::new(),
    }
}

/// Fills a trial with what is measured.
pub(super) fn measure(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &Store,
    planned: &TrialSpec,
    trial: &mut Trial,
    audience: &mut Audience<'_>,
) -> anyhow::Result<Measured> {
    let began = Instant::now();
    let figures_every = audience.observer.wants_figures_every();
    let before = spin_now(plan);
    let setup = setup(plan, store, planned, trial, figures_every);
    let result = trial::run(&setup, origin, audience);
    if result.interrupted {
        return Ok(Measured::CutShort);
    }
    trial.spin = Some(spun(before, spin_now(plan)));
    trial.took_s = began.elapsed().as_secs_f64();
    note(plan, store, trial, result)
}

/// Everything that a trial needs.
pub(super) fn setup<'a>(
    plan: &'a RunSpec,
    store: &Store,
    planned: &TrialSpec,
    trial: &Trial,
    figures_every: Option<Duration>,
) -> Setup<'a> {
    let settings = &plan.settings;
    let info = plan.server(planned);
    Setup {
        launch: Launch {
            info,
            log: store.csv("server", trial),
            limit: Duration::from_secs_f64(settings.start_timeout_s),
            hook_limit: Duration::from_secs_f64(settings.hook_timeout_s),
            cpus: &settings.server_cpus,
            address: settings
                .server_address
                .unwrap_or(Ipv4Addr::LOCALHOST.into()),
            state: State::default(),
        },
        program: &plan.program,
        load: Assignment {
            clients_csv: Some(store.csv("clients", trial)),
            figures_every: figures_every.map(|every| loads::figures_every(plan, every)),
            ..Assignment::new(loads::of_trial(plan, trial), settings.load_threads)
        },
        client_cpus: &settings.client_cpus,
        rigour: rigour(info, settings),
        load_limit: loads::limit(plan, planned),
        purpose: planned.purpose,
        probes: plan.probes.clone(),
        files: store.file("captures", trial, ""),
    }
}

/// How fast the CPUs of both sides are now.
pub(super) fn spin_now(plan: &RunSpec) -> (f64, f64) {
    spin::of_both(&plan.settings.server_cpus, &plan.settings.client_cpus)
}

pub(super) fn spun(before: (f64, f64), after: (f64, f64)) -> Spin {
    Spin {
        server_before_ns: before.0,
        server_after_ns: after.0,
        client_before_ns: before.1,
        client_after_ns: after.1,
    }
}

/// Takes what came of a trial into its record.
pub(super) fn note(
    plan: &RunSpec,
    store: &Store,
    trial: &mut Trial,
    result: trial::Result,
) -> anyhow::Result<Measured> {
    let settings = &plan.settings;
    if !result.samples.is_empty() {
        let path = store.csv("samples", trial);
        trial::write_samples(&path, &result.samples)
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))?;
    }
    trial.failure = result.failure;
    trial.load = result.load;
    trial.server_side = result.server_side;
    trial.client_side = result.client_side;
    trial.hosts = result.hosts;
    trial.start_skew = result.start_skew;
    trial.network = result.network;
    trial.server_counts = result.server_counts;
    trial.warnings = warnings::of_trial(trial, settings);
    trial
        .warnings
        .extend(warnings::of_output(result.written_bytes));
    let of_network = warnings::network::of_trial(trial, settings, &plan.host);
    trial.warnings.extend(of_network);
    Ok(if result.host_lost {
        Measured::HostLost
    } else {
        Measured::Whole
    })
}

/// How far a trial came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measured {
    /// To its end, whatever failed in it.
    Whole,
    /// A signal cut it short, and there is nothing of it.
    CutShort,
    /// A client host was lost: there can be no other.
    HostLost,
}

/// A server that is not ours has to master what the load asks of it, and no more.
fn rigour(server: &ServerInfo, settings: &Settings) -> Rigour {
    match &server.foreign {
        None => Rigour::All,
        Some(_) if settings.load.pipeline > 1 => Rigour::Pipelined,
        Some(_) => Rigour::OneByOne,
    }
}

/// The probes that were chosen and cannot measure here.
fn unavailable(probes: &[&'static dyn ProbeKind]) -> BTreeMap<String, Unsupported> {
    let why_not = |kind: &&dyn ProbeKind| {
        let unsupported = kind.supported().err()?;
        Some((kind.info().name.to_owned(), unsupported))
    };
    probes.iter().filter_map(why_not).collect()
}

/// Now, in UTC, RFC 3339, to the second.
pub fn utc_now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
