//! One trial of a run, and the start and end of a run.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::loads;
use super::observer::Audience;
use super::plan::TrialSpec;
use super::run_spec::{RunSpec, begun, is_watched, utc_now};
use super::spin;
use super::trial::{self, Setup};
use super::verify::Strictness;
use crate::cluster::Origin;
use crate::host;
use crate::host::other_processes::Watch;
use crate::profile;
use crate::servers::server::{Launch, State};
use throng_record::findings;
use throng_record::findings::servers::{STOPPED_LATE, output};
use throng_record::{Ending, Purpose, Run, ServerInfo, Settings, Spin, Store, Trial, Why};
use throng_spec::{Assignment, Paths};

/// Writes the record of a run before its first trial, and moves this process off the server's CPUs.
pub(crate) fn begin(plan: &RunSpec, trials: usize, store: &Store) -> anyhow::Result<Run> {
    let settings = &plan.settings;
    let watch = Watch::start();
    let mut run = begun(plan, watch.busiest());
    run.trials_planned = trials as u32;
    store.write_run(&run)?;
    if !settings.client_cpus.is_empty() {
        // Probes must not run on the server's CPUs.
        host::bind_to(&settings.client_cpus)?;
    }
    Ok(run)
}

/// The ending of a run that only a signal can interrupt.
pub(crate) fn ending(complete: bool) -> Ending {
    if complete {
        Ending::Complete
    } else {
        Ending::Interrupted
    }
}

/// Completes the record of a run after its last trial.
pub(crate) fn end(
    mut run: Run,
    trials: Vec<Trial>,
    ending: Ending,
    store: &Store,
) -> anyhow::Result<(Run, Vec<Trial>)> {
    run.findings.extend(findings::of_trials(&trials));
    run.ending = ending;
    run.finished_at = Some(utc_now());
    store.write_run(&run)?;
    Ok((run, trials))
}

/// Fills a trial with its results; `earlier` trials are over.
pub(crate) fn measure(
    plan: &RunSpec,
    origin: &mut Origin,
    store: &Store,
    planned: &TrialSpec,
    (trial, earlier): (&mut Trial, &[Trial]),
    audience: &mut Audience<'_>,
) -> anyhow::Result<TrialEnd> {
    let began = Instant::now();
    let figures_every = audience.observer.live_interval();
    let before = spin_now(plan);
    let setup = setup(plan, store, planned, (trial, earlier), figures_every);
    let result = trial::run(&setup, origin, audience);
    if result.interrupted {
        return Ok(TrialEnd::Interrupted);
    }
    trial.spin = Some(spun(before, spin_now(plan)));
    trial.took_s = began.elapsed().as_secs_f64();
    store_result(plan, store, trial, result)
}

/// Everything that a trial needs.
pub(crate) fn setup<'a>(
    plan: &'a RunSpec,
    store: &Store,
    planned: &TrialSpec,
    (trial, earlier): (&Trial, &[Trial]),
    figures_every: Option<Duration>,
) -> Setup<'a> {
    let settings = &plan.settings;
    let info = plan.server(planned);
    let mut load = loads::of_trial(plan, trial, earlier);
    if let Some(path) = info.running().and_then(|running| running.path.as_ref()) {
        load.path = Some(Paths::one(path.clone()));
    }
    Setup {
        launch: Launch {
            info,
            log: store.csv("server", trial),
            limit: Duration::from_secs_f64(settings.ready_timeout_s),
            stop_limit: Duration::from_secs_f64(settings.stop_timeout_s),
            hook_limit: Duration::from_secs_f64(settings.hook_timeout_s),
            cpus: &settings.server_cpus,
            tls: settings.load.tls.as_ref(),
            address: settings
                .server_address
                .unwrap_or(Ipv4Addr::LOCALHOST.into()),
            state: State::default(),
        },
        program: &plan.program,
        load: Assignment {
            clients_csv: Some(store.csv("clients", trial)),
            figures_every: if watched(settings, planned.purpose).is_off() {
                figures_every.map(|every| loads::figures_every(plan, every))
            } else {
                Some(REPORTS_WHILE_WATCHED)
            },
            ..Assignment::new(load, settings.load_threads)
        },
        client_cpus: &settings.client_cpus,
        loss_percent: settings.link.and_then(|link| link.loss_percent),
        rigour: strictness(info, settings),
        load_limit: loads::limit(plan, planned),
        purpose: planned.purpose,
        why: watched(settings, planned.purpose),
        probes: plan.probes.clone(),
        files: store.file("captures", trial, ""),
    }
}

/// How closely the server of a trial by itself is watched.
fn watched(settings: &Settings, purpose: Purpose) -> Why {
    if is_watched(settings, purpose) {
        settings.why
    } else {
        Why::Off
    }
}

/// Interval between the clients' reports while a server is watched, whose turns begin and end with one.
const REPORTS_WHILE_WATCHED: Duration = Duration::from_millis(10);

/// The current speed of the CPUs of both sides.
pub(crate) fn spin_now(plan: &RunSpec) -> (f64, f64) {
    spin::of_both(&plan.settings.server_cpus, &plan.settings.client_cpus)
}

pub(crate) fn spun(before: (f64, f64), after: (f64, f64)) -> Spin {
    Spin {
        server_before_ns: before.0,
        server_after_ns: after.0,
        client_before_ns: before.1,
        client_after_ns: after.1,
    }
}

/// Stores the result of a trial in its record.
pub(crate) fn store_result(
    plan: &RunSpec,
    store: &Store,
    trial: &mut Trial,
    result: trial::Result,
) -> anyhow::Result<TrialEnd> {
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
    trial.profile = result.profile;
    if settings.why == Why::Profile {
        profile::write(&store.file("profiles", trial, ".folded"), &result.stacks)?;
    }
    let mut messages = result.messages;
    for words in replies(trial) {
        messages.scan(&words, "a reply");
    }
    trial.server_messages = messages.found();
    let late = result
        .stopped_late
        .map(|reason| STOPPED_LATE.found(format!("{reason}; its results are kept")));
    trial.findings = late
        .into_iter()
        .chain(output(result.written_bytes))
        .collect();
    let mut servers = plan.servers.iter().chain(&plan.null_server);
    let server = servers
        .find(|server| server.name == trial.server)
        .cloned()
        .unwrap_or_default();
    trial.examine(&server, settings, &plan.host);
    Ok(if result.host_lost {
        TrialEnd::HostLost
    } else {
        TrialEnd::Complete
    })
}

/// The first wrong reply of each kind, which may contain the reason for a rejection.
fn replies(trial: &Trial) -> Vec<String> {
    let load = trial.load.iter();
    load.flat_map(|load| load.error_details.values().cloned())
        .collect()
}

/// How far a trial got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialEnd {
    /// To its end; failures in it are part of the result.
    Complete,
    /// A signal interrupted it; it has no result.
    Interrupted,
    /// A client host was lost, so no further trial is possible.
    HostLost,
}

/// A foreign server is only tested for what the load needs.
fn strictness(server: &ServerInfo, settings: &Settings) -> Strictness {
    match &server.foreign {
        None if settings.load.asks_to_close() => Strictness::OneEach,
        None => Strictness::All,
        Some(_) if settings.load.pipeline > 1 => Strictness::Pipelined,
        Some(_) if settings.load.requests_per_connection == Some(1) => Strictness::OneEach,
        Some(_) => Strictness::OneByOne,
    }
}
